import { describe, expect, test } from 'vitest';
import { decodeRequest } from '../packages/core/src/engine/index.ts';
import {
  type CanonicalRequest,
  type Codec,
  CodecError,
  convertRequest,
  convertResponse,
  type ProtocolId,
} from '../packages/core/src/index.ts';
import { codecOf, codecs, sampled } from './convert-sources.ts';
import { readManifest, readRecording } from './corpus.ts';

type Json = Record<string, unknown>;

interface Turn {
  /** The next request of a client that hands the answer back as its SDK gave it, with a result for every call. */
  next(answer: Json): Json;
}

const QUESTION = 'What now?';

const list = (value: unknown): Json[] => (Array.isArray(value) ? (value as Json[]) : []);

/** What the clients of each protocol do with an answer. */
const TURNS: Record<ProtocolId, Turn> = {
  'openai-chat': {
    next: (answer) => {
      const message = list(answer['choices'])[0]?.['message'] as Json;
      const results = list(message['tool_calls']).map(({ id }) => ({ role: 'tool', tool_call_id: id, content: 'done' }));
      const user = { role: 'user', content: QUESTION };
      return { model: 'm', messages: [user, message, ...results, user] };
    },
  },
  'anthropic-messages': {
    next: (answer) => {
      const content = list(answer['content']);
      const results = content
        .filter(({ type }) => type === 'tool_use')
        .map(({ id }) => ({ type: 'tool_result', tool_use_id: id, content: 'done' }));
      const user = { type: 'text', text: QUESTION };
      const messages = [
        { role: 'user', content: [user] },
        { role: 'assistant', content },
        { role: 'user', content: [...results, user] },
      ];
      return { model: 'm', max_tokens: 4096, messages };
    },
  },
  'openai-responses': {
    next: (answer) => {
      const output = list(answer['output']);
      const results = output
        .filter(({ type }) => type === 'function_call')
        .map(({ call_id }) => ({ type: 'function_call_output', call_id, output: 'done' }));
      const user = { role: 'user', content: QUESTION };
      return { model: 'm', store: false, input: [user, ...output, ...results, user] };
    },
  },
  gemini: {
    next: (answer) => {
      const content = list(answer['candidates'])[0]?.['content'] as Json;
      const results = list(content['parts'])
        .filter(({ functionCall }) => functionCall)
        .map(({ functionCall }) => {
          const { name, id } = functionCall as Json;
          return { functionResponse: { ...(id !== undefined && { id }), name, response: { output: 'done' } } };
        });
      const user = { role: 'user', parts: [{ text: QUESTION }] };
      const answered = { role: 'user', parts: [...results, { text: QUESTION }] };
      return { contents: [user, content, answered] };
    },
  },
};

/** Every signature of the assistant's turn, and what it signs. */
function signaturesOf({ messages }: CanonicalRequest): string[] {
  return messages
    .filter(({ role }) => role === 'assistant')
    .flatMap(({ content }) => content)
    .flatMap((block) => {
      if (!('signature' in block) || !block.signature) return [];
      const signed = block.type === 'tool_use' ? `call of ${block.name}` : block.type;
      return [`${signed}: ${block.signature.value}`];
    });
}

interface Row {
  file: string;
  name: string;
  provider: Codec;
  client: Codec;
  body: Json;
  model: string;
}

/** Some recordings are errors in the place of an answer, or answers that broke off. */
function isAnswer(row: Row): boolean {
  try {
    nextRequest(row);
    return true;
  } catch (error) {
    if (error instanceof CodecError) return false;
    throw error;
  }
}

/** Answers with signatures: thinking of Anthropic, reasoning of OpenAI, thoughts of Gemini. */
const rows: Row[] = sampled(
  readManifest()
    .filter(
      ({ stream, status, protocol, file }) => !stream && status < 400 && protocol !== 'openai-chat' && file.endsWith('.json'),
    )
    .map((recording) => ({ ...recording, name: recording.file })),
  1,
).flatMap(({ file, protocol, model }) => {
  const provider = codecOf(protocol);
  const text = readRecording(file).toString();
  if (!provider || !/"(signature|encrypted_content|thoughtSignature)": ?"[^"]/.test(text)) return [];
  const body = JSON.parse(text) as Json;
  return codecs
    .filter(({ id }) => id !== protocol)
    .map((client) => ({ file, name: `${file} for ${client.id}`, provider, client, body, model }))
    .filter(isAnswer);
});

function nextRequest({ provider, client, body }: Row): Json {
  const answer = convertResponse(body, { from: provider, to: client, provider: 'acme' });
  return TURNS[client.id].next(structuredClone(answer.body) as Json);
}

/** What goes back when client and provider speak one language: all that can be expected. */
function expected({ provider, body, model }: Row): string[] {
  const own = convertResponse(body, { from: provider, to: provider, provider: 'acme' });
  const next = TURNS[provider.id].next(structuredClone(own.body) as Json);
  const sent = convertRequest(next, { from: provider, to: provider, provider: 'acme', model });
  return signaturesOf(decodeRequest(sent.body, { from: provider, path: sent.path }));
}

/** Chat clients get the signature of a Gemini call in Google's own field, which names no issuer. */
const isUnnamed = ({ provider, client }: Row): boolean => provider.id === 'gemini' && client.id === 'openai-chat';

describe.each(rows.map((row) => [row.name.replaceAll('/', ' '), row] as const))('%s', (_, row) => {
  const { provider, client, model } = row;
  const next = nextRequest(row);

  test('signatures return to their issuer on the same blocks', () => {
    const { body, path } = convertRequest(next, { from: client, to: provider, provider: 'acme', model });
    const signatures = signaturesOf(decodeRequest(body, { from: provider, path }));
    expect(signatures).toEqual(expected(row));
  });

  const signatures = expected(row).map((signature) => signature.slice(signature.indexOf(': ') + 2));

  if (!isUnnamed(row) && signatures.length > 0)
    test.each(codecs)('another provider of $id gets no signature', (other) => {
      const sent = convertRequest(next, { from: client, to: other, provider: 'other', model: 'm' });
      const text = JSON.stringify(sent.body);
      expect(signatures.filter((value) => text.includes(value))).toEqual([]);
      expect(text).not.toContain('cv1.');
      expect(sent.notes.filter(({ code }) => code === 'DROPPED')).not.toEqual([]);
    });
});

test('there is something to test', () => {
  expect(rows.length).toBeGreaterThan(20);
});
