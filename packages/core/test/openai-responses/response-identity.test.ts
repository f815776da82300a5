import { describe, expect, test } from 'vitest';
import { readManifest, readRecording } from '../../../../test/corpus.ts';
import { protocolOf } from '../../../../test/run.ts';
import { decodeBody, encodeResponses, type Json, responseOf, responsesContext } from '../../../../test/sdk/responses.ts';
import { ResponsesGrammar } from '../../src/protocols/openai-responses/grammar.ts';
import { decodeResponse, encodeResponse } from '../../src/protocols/openai-responses/response.ts';
import { isSilent, NORMALISATIONS, normalForm, settled } from './response-normal-form.ts';

const recordings = readManifest().filter(({ protocol }) => protocol === 'openai-responses');
const protocol = protocolOf('openai-responses');

/** Still in progress, they say: whoever asked has to come back for the end. */
const UNFINISHED = new Set(['openai-responses/chatgpt-codex-8d8fd637.json', 'openai-responses/chatgpt-codex-ecc5ca74.json']);

const whole = recordings.filter(({ stream, status, file }) => !stream && status === 200 && !UNFINISHED.has(file));

describe('a whole response to canonical and back is the same', () => {
  test.each(whole)('$file', ({ file }) => {
    const source = JSON.parse(readRecording(file).toString()) as Json;
    const context = responsesContext();
    expect(settled(encodeResponse(decodeResponse(source, context), context))).toEqual(normalForm(source));
  });
});

describe('a response without an end is refused', () => {
  test.each([...UNFINISHED])('%s', (file) => {
    expect(() => decodeResponse(JSON.parse(readRecording(file).toString()), responsesContext())).toThrow('is not finished');
  });
});

describe('a stream to canonical and back is the same', () => {
  test.each(recordings.filter(({ stream }) => stream))('$file', ({ file }) => {
    const events = decodeBody(protocol, readRecording(file));
    const frames = encodeResponses(events, responsesContext({ source: 'openai-responses' }));
    const outcome = ResponsesGrammar.check(frames);
    expect(outcome === 'failed').toBe(events.at(-1)?.type === 'error');
    if (outcome === 'failed') return;
    const last = responseOf(frames);
    expect(asStreamed(settled(last))).toEqual(asStreamed(normalForm(wholeOf(readRecording(file)))));
  });
});

/**
 * The response at the end of a stream, as the stream showed it: its items where the end lists none, ids as they were first (GitHub Copilot
 * changes them), ciphertexts as the item was done (OpenAI encrypts again for the end), tokens as the deltas had them (rounded otherwise).
 */
function wholeOf(bytes: Buffer): Json {
  const payloads = payloadsIn(bytes);
  const of = (name: string): Json[] => payloads.filter(({ type }) => type === name);
  const terminal = payloads.findLast(({ type }) => type === 'response.completed' || type === 'response.incomplete') ?? {};
  const { type: _, sequence_number: __, response, ...around } = terminal;
  const whole = response as Json;
  const added = new Map(of('response.output_item.added').map(({ output_index: at, item }) => [at, item as Json]));
  const done = new Map(of('response.output_item.done').map(({ output_index: at, item }) => [at, item as Json]));
  const listed = whole['output'] as Json[] | undefined;
  const output = listed?.length ? listed : [...done.values()];
  return {
    ...whole,
    ...around,
    id: (of('response.created')[0]?.['response'] as Json | undefined)?.['id'] ?? whole['id'],
    output: output.map((item, at) => {
      const shown = done.get(at);
      const isSame = shown?.['type'] === item['type'] && added.get(at)?.['type'] === item['type'];
      if (!shown || !isSame) return item;
      const { encrypted_content: cipher } = shown;
      const { id } = item['type'] === 'reasoning' ? shown : (added.get(at) ?? {});
      return { ...item, id, ...(cipher ? { encrypted_content: cipher } : {}) };
    }),
  };
}

function payloadsIn(bytes: Buffer): Json[] {
  const lines = bytes.toString().split(/\r?\n/);
  return lines.filter((line) => line.startsWith('data:') && line.includes('{')).map((line) => JSON.parse(line.slice(5)) as Json);
}

/** The end rounds what the deltas said of each token; that they are as many has to do. That reasoning which went out is done, its end says. */
function asStreamed(response: Json): Json {
  for (const item of response['output'] as Json[]) {
    if (item['type'] === 'reasoning' && item['status'] === 'completed') delete item['status'];
    if (item['type'] === 'message')
      for (const part of item['content'] as Json[])
        if (Array.isArray(part['logprobs'])) part['logprobs'] = part['logprobs'].map(({ token }) => token);
  }
  return response;
}

test('every normalisation is needed', () => {
  for (const { file } of whole) normalForm(JSON.parse(readRecording(file).toString()) as Json);
  const streams = recordings.filter(({ stream }) => stream).map(({ file }) => readRecording(file));
  for (const bytes of streams.filter((stream) => /response\.(completed|incomplete)/.test(stream.toString())))
    normalForm(wholeOf(bytes));
  expect(NORMALISATIONS.filter(isSilent).map(({ name }) => name)).toEqual([]);
});
