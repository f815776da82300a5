import { describe, expect, test } from 'vitest';
import { readManifest, readRecording } from '../../../../test/corpus.ts';
import { chatContext, type Json } from '../../../../test/sdk/chat.ts';
import { isObject, objects, officialUsage } from '../../../../test/sdk/chat-normal.ts';
import { CodecError } from '../../src/canonical/notes.ts';
import { decodeResponse, encodeResponse, readPlain } from '../../src/protocols/openai-chat/response.ts';

const bodies = readManifest()
  .filter(({ protocol, stream, status }) => protocol === 'openai-chat' && !stream && status < 400)
  .map(({ file }) => ({ file, text: readRecording(file).toString() }))
  .filter(({ text }) => text.trimStart().startsWith('{'))
  .map(({ file, text }) => ({ file, body: JSON.parse(text) as Json }));

const isFailure = ({ body }: { body: Json }): boolean =>
  body['error'] !== undefined || objects(body['choices']).some((choice) => choice['error'] !== undefined);

const withoutNulls = (value: Json): void => {
  for (const key of Object.keys(value)) if (value[key] === null) delete value[key];
};
const choicesOf = (body: Json): Json[] => objects(body['choices']);
const messagesOf = (body: Json): Json[] => choicesOf(body).map((choice) => choice['message'] as Json);
const callsOf = (message: Json): Json[] => objects(message['tool_calls']);
const bodyOfCall = (call: Json): Json => (call[call['type'] === 'custom' ? 'custom' : 'function'] ?? {}) as Json;
const isBlank = (value: unknown): boolean =>
  isObject(value) && Object.values(value).every((field) => field === '' || field === 0 || field === null);

/** What decode + encode changes of a recorded body, and why. Each works on a copy of what the server sent. */
const NORMALISATIONS: { name: string; why: string; apply: (body: Json) => void }[] = [
  {
    name: 'required fields',
    why: 'the official type requires object, role, refusal and logprobs; compatible servers leave them out (#41)',
    apply: (body) => {
      body['object'] = 'chat.completion';
      for (const choice of choicesOf(body)) {
        choice['message'] ??= { role: 'assistant', content: '' }; // Azure, when the answer was filtered
        choice['finish_reason'] ??= '';
      }
      for (const message of messagesOf(body)) message['role'] = 'assistant';
    },
  },
  {
    name: 'created and id',
    why: 'seconds as a number, the time of conversion when the server said none; a derived id when it has none',
    apply: (body) => {
      body['created'] = Number(body['created'] || 1_700_000_000);
      body['id'] ||= expect.stringMatching(/^chatcmpl-./);
    },
  },
  {
    name: 'null',
    why: 'a field that is null says as little as one that is absent',
    apply: (body) => {
      for (const node of [body, ...choicesOf(body), ...messagesOf(body)]) withoutNulls(node);
      for (const call of messagesOf(body).flatMap(callsOf)) withoutNulls(call);
    },
  },
  {
    name: 'blanks',
    why: 'empty lists, texts and structs of optional fields say nothing (Snowflake dumps whole structs)',
    apply: (body) => {
      for (const message of messagesOf(body)) {
        for (const key of ['annotations', 'tool_calls', 'reasoning_details', 'images'])
          if (Array.isArray(message[key]) && message[key].length === 0) delete message[key];
        for (const key of ['refusal', 'reasoning', 'reasoning_content']) if (message[key] === '') delete message[key];
        for (const key of ['audio', 'function_call']) if (isBlank(message[key])) delete message[key];
        for (const call of callsOf(message)) if (call['type'] === 'function' && isBlank(call['custom'])) delete call['custom'];
      }
    },
  },
  {
    name: 'delta beside the message',
    why: 'Perplexity sends a blank delta in whole bodies',
    apply: (body) => {
      for (const choice of choicesOf(body)) delete choice['delta'];
    },
  },
  {
    name: 'content parts',
    why: 'Mistral sends thinking and text as parts; the official type is text',
    apply: (body) => {
      for (const message of messagesOf(body)) {
        if (!Array.isArray(message['content'])) continue;
        const parts = objects(message['content']);
        const thinking = parts.flatMap((part) => objects(part['thinking']).map(({ text }) => text)).join('');
        message['content'] = parts.map(({ text }) => text ?? '').join('');
        message['reasoning_content'] = thinking;
      }
    },
  },
  {
    name: 'calls',
    why: 'id, type and arguments are required',
    apply: (body) => {
      for (const call of messagesOf(body).flatMap(callsOf)) {
        call['type'] ??= 'function';
        call['id'] ||= expect.stringMatching(/^call_./);
        if (call['type'] === 'function') bodyOfCall(call)['arguments'] ??= '{}';
      }
    },
  },
  {
    name: 'empty content',
    why: 'null exactly when there is something else: calls, a refusal, audio',
    apply: (body) => {
      for (const message of messagesOf(body)) {
        const hasOther = ['tool_calls', 'function_call', 'refusal', 'audio'].some((key) => message[key] !== undefined);
        message['content'] = message['content'] || (hasOther ? null : '');
        message['refusal'] ??= null;
      }
    },
  },
  {
    name: 'logprobs',
    why: 'an object with both sides, or null (OpenRouter sends a number, others empty sides)',
    apply: (body) => {
      for (const choice of choicesOf(body)) {
        const logprobs = isObject(choice['logprobs']) ? choice['logprobs'] : {};
        const sides = { content: null, refusal: null, ...logprobs };
        for (const side of ['content', 'refusal'] as const) if (objects(sides[side]).length === 0) sides[side] = null;
        choice['logprobs'] = Object.values(sides).every((side) => side === null) ? null : sides;
      }
    },
  },
  {
    name: 'finish_reason',
    why: 'one of the official words; tool_calls when there are calls (#39)',
    apply: (body) => {
      for (const choice of choicesOf(body)) {
        const calls = callsOf(choice['message'] as Json);
        const finish = choice['finish_reason'] || 'stop';
        const word = { eos: 'stop', tool_call: 'tool_calls' }[String(finish)] ?? finish;
        choice['finish_reason'] = word === 'stop' && calls.length > 0 ? 'tool_calls' : word;
      }
    },
  },
  {
    name: 'usage',
    why: 'official counts: completion_tokens holds the reasoning, total is the sum, a part is at most the whole, details are objects (#43-#45)',
    apply: officialUsage,
  },
];

function normalised(body: Json): Json {
  const copy = structuredClone(body);
  for (const { apply } of NORMALISATIONS) apply(copy);
  return copy;
}

describe.each(bodies.filter((recording) => !isFailure(recording)))('#47 identity of $file', ({ body }) => {
  test('decode + encode gives back everything', () => {
    const context = chatContext();
    expect(encodeResponse(decodeResponse(body, context, readPlain), context)).toEqual(normalised(body));
  });
});

test.each(bodies.filter(isFailure))('#48: $file is an error', ({ body }) => {
  const error = (body['error'] ?? objects(body['choices']).find((choice) => choice['error'])?.['error']) as Json;
  expect(() => decodeResponse(body, chatContext())).toThrow(CodecError);
  expect(() => decodeResponse(body, chatContext())).toThrow(String(error['message']));
});

test.each(NORMALISATIONS)('$name is normalised for a reason', ({ why }) => {
  expect(why.length).toBeGreaterThan(20);
});
