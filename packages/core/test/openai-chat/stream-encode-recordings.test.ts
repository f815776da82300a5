import { describe, expect, test } from 'vitest';
import { readManifest, readRecording } from '../../../../test/corpus.ts';
import { chatContext, chunksOf, decodeChat, encodeChat, type Json } from '../../../../test/sdk/chat.ts';
import { objects, officialUsage } from '../../../../test/sdk/chat-normal.ts';
import { ChatAccumulator } from '../../src/accumulate/chat.ts';
import { ChatGrammar } from '../../src/protocols/openai-chat/grammar.ts';

const streams = readManifest().filter(({ protocol, stream }) => protocol === 'openai-chat' && stream);

const choicesOf = (value: Json): Json[] => objects(value['choices']);
const messagesOf = (completion: Json): Json[] => choicesOf(completion).map((choice) => choice['message'] as Json);

const completionOf = (chunks: Iterable<unknown>): Json => {
  const accumulator = new ChatAccumulator({ everyField: true });
  accumulator.pushAll(chunks);
  return accumulator.finish();
};

/** What decode + encode changes of a recorded stream, and why. */
const NORMALISATIONS: { name: string; why: string; apply: (completion: Json) => void }[] = [
  {
    name: 'usage',
    why: 'official counts: completion_tokens holds the reasoning, total is the sum, a part is at most the whole, details are objects (#43-#45)',
    apply: officialUsage,
  },
  {
    name: 'created and id',
    why: 'required: the time of conversion when the server said none, a derived id when it has none',
    apply: (completion) => {
      completion['created'] ||= 1_700_000_000;
      completion['id'] ||= expect.stringMatching(/^chatcmpl-./);
    },
  },
  {
    name: 'blanks',
    why: 'empty lists and sides say nothing',
    apply: (completion) => {
      for (const message of messagesOf(completion))
        if (objects(message['reasoning_details']).length === 0) delete message['reasoning_details'];
      for (const choice of choicesOf(completion)) {
        const sides = Object.values((choice['logprobs'] ?? {}) as Json);
        if (sides.every((side) => side === null)) choice['logprobs'] = null;
      }
    },
  },
  {
    name: 'finish_reason',
    why: 'one of the official words, and one at all',
    apply: (completion) => {
      for (const choice of choicesOf(completion)) {
        const hasCalls = objects((choice['message'] as Json)['tool_calls']).length > 0;
        const words: Json = { null: hasCalls ? 'tool_calls' : 'stop', function_call: 'tool_calls', eos: 'stop' };
        choice['finish_reason'] = words[String(choice['finish_reason'])] ?? choice['finish_reason'];
      }
    },
  },
];

function normalised(completion: Json): Json {
  for (const { apply } of NORMALISATIONS) apply(completion);
  return completion;
}

describe.each(streams)('identity of $file', ({ file }) => {
  const payloads: Json[] = [];
  const events = decodeChat(readRecording(file), (payload) => payloads.push(payload));
  const frames = encodeChat(events);
  const isError = events.at(-1)?.type === 'error';

  test('keeps the grammar', () => {
    expect(ChatGrammar.check(frames)).toBe(isError ? 'error' : 'done');
  });

  test('keeps the grammar without usage', () => {
    const request = { model: 'asked', messages: [], parameters: {} };
    const quiet = encodeChat(events, chatContext({ request }));
    expect(ChatGrammar.check(quiet, false)).toBe(isError ? 'error' : 'done');
  });

  if (!isError)
    test('gives back everything', () => {
      expect(completionOf(chunksOf(frames))).toEqual(normalised(completionOf(payloads)));
    });
});

test.each(NORMALISATIONS)('$name is normalised for a reason', ({ why }) => {
  expect(why.length).toBeGreaterThan(20);
});
