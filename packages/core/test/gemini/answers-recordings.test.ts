import { describe, expect, test } from 'vitest';
import { readCases, readManifest, readRecording } from '../../../../test/corpus.ts';
import {
  decodeGemini,
  encodeGemini,
  fragmentsOf,
  geminiContext,
  hear,
  type Json,
  piecesOf,
  SDKS,
} from '../../../../test/sdk/gemini.ts';
import type { TextBlock } from '../../src/canonical/message.ts';
import { CodecError } from '../../src/canonical/notes.ts';
import { createFramer } from '../../src/engine/stream.ts';
import { geminiCodec } from '../../src/protocols/gemini/codec.ts';
import { GeminiGrammar } from '../../src/protocols/gemini/grammar.ts';
import { decodeResponse, encodeResponse } from '../../src/protocols/gemini/response.ts';
import { fold } from './fold.ts';
import { NORMALISATIONS, normalForm, used } from './normal-form.ts';
import { run } from './run.ts';

/** Not answers of generateContent, or a body that its own source cut short. */
const ODD = new Set(['gemini/google-03c2ad7a.json', 'gemini/google-vertex-d2b3fed2.json', 'gemini/google-13e74bde.json']);

const recordings = readManifest().filter(({ protocol, file }) => protocol === 'gemini' && !ODD.has(file));
const streams = recordings.filter(({ stream }) => stream);
const bodies = recordings.filter(({ stream, status }) => !stream && status < 400);

/** Parts of a call that came in pieces are one call: no reader of whole parts can compare them. */
const isPieced = (payloads: readonly Json[]): boolean => /"(willContinue|partialArgs)"/.test(JSON.stringify(payloads));

const asArray = (frames: ReturnType<typeof encodeGemini>): string => {
  const array = createFramer(geminiCodec, 'json-array');
  return frames.map(array.frame).join('') + array.end();
};

describe.each(streams)('identity of $file', ({ file }) => {
  const bytes = readRecording(file);
  const payloads: Json[] = [];
  const events = decodeGemini(bytes, (payload) => payloads.push(structuredClone(payload)));
  const frames = encodeGemini(events);
  const isError = events.at(-1)?.type === 'error';

  test('keeps the grammar', () => {
    expect(GeminiGrammar.check(frames, true)).toBe(isError ? 'error' : 'done');
  });

  if (!isError && !isPieced(payloads))
    test('gives back everything', () => {
      expect(normalForm(fold(fragmentsOf(frames)))).toEqual(normalForm(fold(payloads)));
    });

  if (!isError)
    test('is read again as the same message, also as a JSON list', () => {
      const { message } = run(bytes);
      expect(run(piecesOf(frames).join('')).message).toEqual(sameMessage(message));
      expect(run(asArray(frames)).message).toEqual(sameMessage(message));
      expect(JSON.parse(asArray(frames))).toEqual(fragmentsOf(frames));
    });

  test.each(SDKS)('is read by $name', async ({ stream }) => {
    if (isError) return expect(stream(piecesOf(frames))).rejects.toThrow();
    const original = hear(payloads as never);
    const heard = hear(await stream(piecesOf(frames)));
    expect(heard.text).toBe(original.text);
    expect(heard.thoughts).toBe(original.thoughts);
    expect(heard.finish).toBe(original.finish);
    if (isPieced(payloads)) return;
    expect(heard.calls).toMatchObject(original.calls.map(({ id, ...call }) => (id === undefined ? call : { id, ...call })));
  });
});

/** Counts that the wire left out are written, so that the raw usage has them. Logprobs stand in the last fragment, away from their texts. */
function sameMessage({ content, ...rest }: ReturnType<typeof run>['message']): unknown {
  const message = { ...rest, content: content.map((block) => (block.type === 'text' ? withoutLogprobs(block) : block)) };
  const { usage } = message;
  return usage ? { ...message, usage: { ...usage, extensions: { gemini: expect.objectContaining({}) } } } : message;
}

const withoutLogprobs = ({ logprobs: _, ...block }: TextBlock): TextBlock => block;

describe.each(bodies)('identity of $file', ({ file }) => {
  const body = [JSON.parse(readRecording(file).toString())].flat() as Json[];

  test('decode + encode gives back everything', () => {
    const context = geminiContext();
    const encoded = encodeResponse(decodeResponse(body, context), context);
    expect(normalForm(encoded)).toEqual(normalForm(fold(body)));
  });

  test.each(SDKS)('is read by $name', async ({ generate }) => {
    const encoded = encodeResponse(decodeResponse(body, geminiContext()), geminiContext());
    const heard = hear([await generate(200, JSON.stringify(encoded))]);
    const original = hear([normalForm(fold(body))]);
    expect({ ...heard, calls: [], usage: undefined }).toEqual({ ...original, calls: [], usage: undefined });
    expect(heard.calls.map(({ name, args }) => ({ name, args }))).toEqual(
      original.calls.map(({ name, args = {} }) => ({ name, args })),
    );
  });
});

test.each(recordings.filter(({ status }) => status >= 400))('$file is an error', ({ file }) => {
  const body: unknown = JSON.parse(readRecording(file).toString());
  expect(() => decodeResponse(body, geminiContext())).toThrow(CodecError);
});

test('every normalisation is needed', () => {
  for (const { file } of bodies) normalForm(fold([JSON.parse(readRecording(file).toString())].flat() as Json[]));
  expect(NORMALISATIONS.map(({ name }) => name).filter((name) => !used.has(name))).toEqual([]);
});

const cases = readCases().filter(({ protocol }) => protocol === 'gemini');

describe.each(cases)('case $id', ({ raw }) => {
  const bytes = new TextEncoder().encode(raw);
  const frames = encodeGemini(decodeGemini(bytes));
  const result = run(raw);

  test('keeps the grammar and its meaning', () => {
    const isError = result.error !== null || !result.complete;
    expect(GeminiGrammar.check(frames, true)).toBe(isError ? 'error' : 'done');
    const again = run(piecesOf(frames).join(''));
    if (isError) {
      expect(again.error).toMatchObject({ message: result.error?.message ?? expect.any(String) });
      return;
    }
    expect({ text: again.text, reasoning: again.reasoning, stop: again.message.stop_reason }).toEqual({
      text: result.text,
      reasoning: result.reasoning,
      stop: result.message.stop_reason,
    });
    expect(again.message.usage?.input_tokens).toBe(result.message.usage?.input_tokens);
    expect(again.message.usage?.output_tokens).toBe(result.message.usage?.output_tokens);
  });

  test.each(SDKS)('is read by $name', async ({ stream }) => {
    if (GeminiGrammar.check(frames, true) === 'error') return expect(stream(piecesOf(frames))).rejects.toThrow();
    const heard = hear(await stream(piecesOf(frames)));
    expect(heard.text).toBe(result.text);
    expect(heard.thoughts).toBe(result.reasoning);
    expect(heard.calls.map(({ name }) => name)).toEqual(expect.arrayContaining(result.calls.map(({ name }) => name)));
  });
});
