import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { readManifest, readRecording } from '../../../../test/corpus.ts';
import type { JsonObject } from '../../src/json/json.ts';
import { readAsStream, readPlain } from '../../src/protocols/openai-chat/response.ts';
import { bareContext } from './bare-context.ts';

const bodies = readManifest()
  .filter(({ protocol, stream, status }) => protocol === 'openai-chat' && !stream && status < 400)
  .map(({ file }) => ({ file, text: readRecording(file).toString() }))
  .filter(({ text }) => text.trimStart().startsWith('{'))
  .map(({ file, text }) => ({ file, body: JSON.parse(text) as JsonObject }));

type Reader = typeof readPlain;

/** What a reader gives back, tells and reports. */
function readBy(reader: Reader, body: JsonObject) {
  const reports: unknown[] = [];
  const context = bareContext({ report: (...report) => reports.push(report) });
  const response = reader(body, context);
  return { response, keys: JSON.stringify(response), notes: context.notes, reports };
}

function expectSame(body: JsonObject, name?: string): void {
  const plain = readBy(readPlain, body);
  if (plain.response) expect(plain, name).toEqual(readBy(readAsStream, structuredClone(body)));
}

/** A body that mostly is plain, with a field here and there that is not. */
const mostly = <T>(usual: fc.Arbitrary<T>, ...others: unknown[]): fc.Arbitrary<unknown> =>
  fc.oneof({ weight: 24, arbitrary: usual }, { weight: 1, arbitrary: fc.constantFrom<unknown>(null, '', 0, [], {}, ...others) });

const count = fc.nat(50);
const details = fc.dictionary(
  fc.constantFrom('cached_tokens', 'reasoning_tokens', 'audio_tokens', '__proto__'),
  mostly(count, -1),
);
const usage = fc.record(
  {
    prompt_tokens: mostly(count, '5', Number.MAX_VALUE),
    completion_tokens: mostly(count),
    total_tokens: mostly(count),
    prompt_tokens_details: mostly(details, { deep: { deeper: 1 } }),
    completion_tokens_details: mostly(details),
    cost: mostly(fc.double({ noNaN: true }), [1]),
  },
  { requiredKeys: [] },
);
const message = fc.record(
  {
    role: mostly(fc.constant('assistant'), 'user'),
    content: mostly(fc.string({ minLength: 1, unit: 'binary' }), '\ud800', [{ type: 'text', text: 'a' }]),
    refusal: mostly(fc.constant(null), 'no'),
    annotations: mostly(fc.constant([]), [{ type: 'url_citation', url_citation: { url: 'https://example.com' } }]),
    tool_calls: mostly(fc.constant([]), [{ id: 'a', type: 'function', function: { name: 'f', arguments: '{}' } }]),
  },
  { requiredKeys: ['role', 'content'] },
);
const choice = fc.record(
  {
    index: mostly(fc.constant(0), 1, '0'),
    message: mostly(message),
    logprobs: mostly(fc.constant(null), { content: [{ token: 'a', logprob: -1, bytes: null, top_logprobs: [] }] }),
    finish_reason: mostly(fc.constantFrom('stop', 'length'), 'tool_calls', 'eos', 'content_filter'),
  },
  { requiredKeys: ['message', 'finish_reason'] },
);
const body = fc.record(
  {
    id: mostly(fc.string({ minLength: 1 }), 7),
    object: mostly(fc.constant('chat.completion'), 'error'),
    created: mostly(fc.integer({ min: 1 }), '1700000000', -1),
    model: mostly(fc.string()),
    choices: mostly(fc.tuple(choice)),
    usage: mostly(usage),
    service_tier: mostly(fc.string(), 1),
    system_fingerprint: mostly(fc.string(), false),
  },
  { requiredKeys: ['id', 'created', 'model', 'choices'] },
);

describe('plain responses', () => {
  test('are many of those that were recorded, and read as the decoder of streams reads them', () => {
    const plain = bodies.filter(({ body: recorded }) => readPlain(recorded, bareContext()));
    expect(plain.length).toBeGreaterThan(bodies.length / 6);
    for (const { file, body: recorded } of bodies) expectSame(recorded, file);
  });

  test('are read as the decoder of streams reads them, whatever their fields hold', () => {
    let plain = 0;
    fc.assert(
      fc.property(body, (answer) => {
        const parsed = JSON.parse(JSON.stringify(answer)) as JsonObject;
        if (readPlain(parsed, bareContext())) plain++;
        expectSame(parsed);
      }),
      { numRuns: 3000 },
    );
    expect(plain).toBeGreaterThan(300);
  });
});
