import { describe, expect, test } from 'vitest';
import { decodeRequest } from '../packages/core/src/engine/index.ts';
import {
  type CanonicalRequest,
  type Codec,
  CodecError,
  convertRequest,
  convertResponse,
  createStreamConverter,
} from '../packages/core/src/index.ts';
import type { Field } from '../scripts/fields/fields.js';
import { bodyWith, sampleOf } from '../scripts/fields/sample.js';
import { readFields } from '../scripts/fields/sources.js';
import { clientRequests, codecOf, codecs, recordedRequests, type Source } from './convert-sources.ts';
import { sourceOptions } from './convert-trip.ts';
import { readManifest, readRecording } from './corpus.ts';
import { deviations, EXCEPTIONS, PUBLISHED, type Published, type PublishedProtocol, usedExceptions } from './published/types.ts';
import { validate } from './published/validate.ts';

type Json = Record<string, unknown>;

const requests = [...recordedRequests(), ...clientRequests()];
const byName = new Map(requests.map((source) => [source.name, source]));
const recordings = readManifest().filter(({ status }) => status < 400);

/** Undefined where the conversion is refused, which other tests cover. */
function accepted<T>(run: () => T): T | undefined {
  try {
    return run();
  } catch (error) {
    if (error instanceof CodecError) return undefined;
    throw error;
  }
}

const sent = (source: Source, to: Codec): unknown => convertRequest(source.body, { ...sourceOptions(source), to }).body;

/** The request of a recording as a client of another protocol would have sent it. */
function requestIn(to: Codec, file: string | undefined): CanonicalRequest | undefined {
  const source = file === undefined ? undefined : byName.get(file.replace('.request.json', ''));
  return source && accepted(() => decodeRequest(sent(source, to), { from: to }));
}

const payloadsIn = (bytes: Buffer): unknown[] =>
  bytes
    .toString()
    .split(/\r?\n/)
    .filter((line) => /^data: ?\{/.test(line))
    .map((line) => JSON.parse(line.slice(line.indexOf('{'))) as unknown);

/** Chat has no chunk for an error: the body of an error takes its place. */
const isErrorBody = (to: Codec, payload: unknown): boolean =>
  to.id === 'openai-chat' && typeof payload === 'object' && payload !== null && 'error' in payload;

const isJson = (bytes: Buffer): boolean => bytes.toString().trimStart().startsWith('{');

interface Converted {
  file: string;
  /** What went in: deviations of an upstream's or client's own body stay when the protocol is the same. */
  before: readonly unknown[];
  after: readonly unknown[];
}

/** What every recording becomes; the three parts of the published types. */
const CONVERSIONS: Record<keyof Published, (from: Codec, to: Codec) => Converted[]> = {
  request: (from, to) =>
    requests
      .filter(({ codec }) => codec.id === from.id)
      .flatMap((source) => {
        const body = accepted(() => sent(source, to));
        return body === undefined ? [] : [{ file: source.name, before: [source.body], after: [body] }];
      }),
  response: (from, to) =>
    recordings
      .filter(({ stream, protocol, file }) => !stream && protocol === from.id && isJson(readRecording(file)))
      .flatMap(({ file, request }) => {
        const body: unknown = JSON.parse(readRecording(file).toString());
        const converted = accepted(() => convertResponse(body, { from, to, request: requestIn(to, request) }).body);
        return converted === undefined ? [] : [{ file, before: [body], after: [converted] }];
      }),
  stream: (from, to) =>
    recordings
      .filter(({ stream, protocol, file }) => stream && protocol === from.id && !isJson(readRecording(file)))
      .map(({ file, request }) => {
        const bytes = readRecording(file);
        const converter = createStreamConverter({ from, to, request: requestIn(to, request) });
        const out = Buffer.concat([...converter.push(bytes), ...converter.end()]);
        return { file, before: payloadsIn(bytes), after: payloadsIn(out).filter((payload) => !isErrorBody(to, payload)) };
      }),
};

/** Requests of the same protocol go on as they came. */
const pairs = codecs.flatMap((from) =>
  (Object.keys(PUBLISHED) as PublishedProtocol[]).flatMap((id) => {
    const to = codecOf(id);
    if (!to) return [];
    const parts = (Object.keys(CONVERSIONS) as (keyof Published)[]).filter((part) => part !== 'request' || from.id !== id);
    return parts.map((part) => ({ from, to, id, part }));
  }),
);

const objectOf = (value: unknown): Json => (typeof value === 'object' && value !== null ? (value as Json) : {});

/** Fields that the Open Responses schema requires beyond the SDK's types. */
const OPEN_RESPONSES: Readonly<Record<string, (value: unknown, response: Json) => boolean>> = {
  temperature: (value) => typeof value === 'number',
  top_p: (value) => typeof value === 'number',
  presence_penalty: (value) => typeof value === 'number',
  frequency_penalty: (value) => typeof value === 'number',
  top_logprobs: (value) => typeof value === 'number',
  service_tier: (value) => typeof value === 'string',
  completed_at: (value) => value === null || Number.isInteger(value),
  store: (value) => typeof value === 'boolean',
  background: (value) => typeof value === 'boolean',
  status: (value) => typeof value === 'string',
  truncation: (value) => value === 'auto' || value === 'disabled',
  text: (value) => objectOf(objectOf(value)['format'])['type'] !== undefined,
  reasoning: (value) => typeof value === 'object',
  usage: (value, { status }) => typeof value === 'object' && (value !== null || status !== 'completed'),
  max_output_tokens: (value) => value === null || Number.isInteger(value),
  max_tool_calls: (value) => value === null || Number.isInteger(value),
  previous_response_id: (value) => value === null || typeof value === 'string',
  safety_identifier: (value) => value === null || typeof value === 'string',
  prompt_cache_key: (value) => value === null || typeof value === 'string',
  tools: (value) => Array.isArray(value) && value.map(objectOf).every(isOpenTool),
};

const isOpenTool = (tool: Json): boolean =>
  tool['type'] !== 'function' || ['description', 'parameters', 'strict'].every((name) => tool[name] !== undefined);

const missing = (response: Json): string[] =>
  Object.entries(OPEN_RESPONSES).flatMap(([name, isValid]) => (isValid(response[name], response) ? [] : [name]));

test.each(pairs)('$from.id as $to.id: $part follows the types of the SDK', ({ from, to, id, part }) => {
  const rows = CONVERSIONS[part](from, to);
  expect(rows.length).toBeGreaterThan(10);
  const found = rows.flatMap(({ file, before, after }) => {
    const isOwn = from.id === id;
    const kept = new Set(isOwn ? before.flatMap((value) => deviations(id, part, value, isOwn)) : []);
    const ours = new Set(after.flatMap((value) => deviations(id, part, value, isOwn)));
    return [...ours].filter((one) => !kept.has(one)).map((one) => `${file}: ${one}`);
  });
  expect(found).toEqual([]);
});

test('custom calls are among the chunks and completions that are checked', () => {
  const [from, to] = [codecOf('openai-responses'), codecOf('openai-chat')];
  if (!from || !to) throw new Error('no codec');
  const types = (part: 'response' | 'stream'): string => JSON.stringify(CONVERSIONS[part](from, to).map(({ after }) => after));
  expect(types('stream')).toMatch(/"type":"custom","custom":\{"name":"\w+","input":""\}/);
  expect(types('response')).toMatch(/"type":"custom","custom":\{"name":"\w+","input":"[^"]/);
});

const foreign = pairs.filter(({ from, id, part }) => id === 'openai-responses' && from.id !== id && part !== 'request');

test.each(foreign)('$from.id as $to.id: $part has what Open Responses requires', ({ from, to, part }) => {
  const responses = CONVERSIONS[part](from, to).flatMap(({ file, after }) =>
    after.map((value) => ({ file, response: objectOf(part === 'stream' ? objectOf(value)['response'] : value) })),
  );
  const found = responses.flatMap(({ file, response }) =>
    response['object'] === 'response' && missing(response).length > 0 ? [`${file}: ${missing(response).join()}`] : [],
  );
  expect([...new Set(found)]).toEqual([]);
});

test('every exception is needed, and OpenAI sends the listed values', () => {
  expect(EXCEPTIONS.filter((exception) => !usedExceptions.has(exception))).toEqual([]);
  const bodies = recordings
    .filter(({ provider, protocol }) => provider === 'openai' && protocol === 'openai-responses')
    .flatMap(({ file, stream }) => {
      const bytes = readRecording(file);
      const part: keyof Published = stream ? 'stream' : 'response';
      return (isJson(bytes) ? [JSON.parse(bytes.toString()) as unknown] : payloadsIn(bytes)).map((value) => ({ part, value }));
    });
  const fields = new Set(
    bodies.flatMap(({ part, value }) =>
      validate(PUBLISHED['openai-responses'][part], value).map(({ field }) => field.replace(/^response\./, '')),
    ),
  );
  expect(EXCEPTIONS.filter(({ sentByOpenAI, field }) => sentByOpenAI && !fields.has(field))).toEqual([]);
});

/** Another declared type accepts a body without these: any object is a filter, and `mcp` alone is a choice of tools. */
const REPLACEABLE = /\(CompoundFilter\)\.filters\[|tool_choice\(mcp\)\.server_label/;

const isTyped = ({ shapes }: Field): boolean => !shapes.some(({ kind }) => kind === 'any' || kind === 'code');

describe.each(Object.keys(PUBLISHED) as PublishedProtocol[])('the validator for %s', (protocol) => {
  const noSamples = () => undefined;

  test.each(['response', 'stream'] as const)('rejects a %s without one of its required fields or with a wrong type', (part) => {
    const place = PUBLISHED[protocol][part];
    const problemsWith = (field: Field, value: unknown): number => validate(place, bodyWith(field, value, noSamples)).length;
    const required = readFields(protocol, part).filter(({ optional, path }) => !optional && !REPLACEABLE.test(path));
    const undetected = required.flatMap((field) => [
      ...(problemsWith(field, sampleOf(field, 0, noSamples)) === 0 ? [] : [`${field.path}: refused although valid`]),
      ...(problemsWith(field, undefined) > 0 ? [] : [`${field.path}: removed`]),
      ...(problemsWith(field, () => {}) > 0 || !isTyped(field) ? [] : [`${field.path}: of another type`]),
    ]);
    expect(required.length).toBeGreaterThan(20);
    expect(undetected).toEqual([]);
  });

  test('rejects undeclared literals and fields', () => {
    const [field] = readFields(protocol, 'response').filter(({ path }) => path === 'object');
    const body = field ? bodyWith(field, 'surprise', noSamples) : {};
    expect(validate(PUBLISHED[protocol].response, { ...body, surprise: 1 }).map((one) => one.path)).toEqual([
      '/object',
      '/surprise',
    ]);
  });
});
