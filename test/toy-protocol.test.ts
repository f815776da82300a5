import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';
import { accept } from '../packages/core/src/codec/grammar.ts';
import {
  CODECS,
  convertModels,
  convertResponseToStream,
  convertStreamToResponse,
  findRoute,
  readRequestTarget,
} from '../packages/core/src/engine/index.ts';
import { Router } from '../packages/core/src/engine/routes.ts';
import {
  accumulate,
  convertError,
  convertRequest,
  convertResponse,
  createExchange,
  createStreamConverter,
  Examiner,
  PROTOCOLS,
} from '../packages/core/src/index.ts';
import { accumulate as accumulateWith } from '../packages/core/src/io/index.ts';
import { createSseDecoder } from '../packages/core/src/sse/index.ts';
import { bytesOf } from './run.ts';
import { toyCodec } from './toy-protocol/codec.ts';
import { toy } from './toy-protocol/index.ts';

// A protocol is a folder and its registration. Here the registration is the value that callers pass.

const REGISTERED = Object.values(CODECS);
const others = REGISTERED.map((codec) => ({ id: codec.id, codec }));

const CALL = { id: 'c1', name: 'weather', input: { city: 'Oslo' } };
const REQUEST = {
  toy: 1,
  model: 'm',
  system: 'Be brief.',
  turns: [
    { by: 'user', parts: [{ text: 'Weather in Oslo?' }] },
    { by: 'model', parts: [{ text: 'One moment.' }, { call: CALL }] },
    { by: 'tool', parts: [{ result: { id: 'c1', output: 'rain' } }] },
  ],
  tools: [{ name: 'weather', schema: { type: 'object', properties: { city: { type: 'string' } } } }],
  limit: 100,
};
const RESPONSE = {
  toy: 1,
  id: 'r1',
  model: 'm',
  parts: [{ text: 'Hello' }, { call: CALL }],
  end: 'call',
  used: { in: 3, out: 5 },
};
/** The other protocols prefix ids of their own. */
const RETURNED = { ...RESPONSE, id: expect.stringContaining('r1') };
const EVENTS = [
  { toy: 1, id: 'r1', model: 'm' },
  { toy: 1, parts: [{ text: 'Hel' }] },
  { toy: 1, parts: [{ text: 'lo' }] },
  { toy: 1, parts: [{ call: CALL }] },
  { toy: 1, end: 'call', used: { in: 3, out: 5 } },
];
const STREAM = bytesOf(EVENTS.map((event) => `data: ${JSON.stringify(event)}\n\n`).join(''));
const ERROR = { toy: 1, error: { code: 'slow-down', message: 'too many requests' } };

const convert = (bytes: Uint8Array, options: Parameters<typeof createStreamConverter>[0]): Uint8Array => {
  const converter = createStreamConverter(options);
  return Buffer.concat([...converter.push(bytes), ...converter.end()]);
};

const expectMessage = (bytes: Uint8Array, protocol: typeof toy) =>
  expect(accumulateWith(bytes, { protocol })).resolves.toMatchObject({
    text: 'Hello',
    complete: true,
    tool_calls: [{ name: 'weather', arguments: '{"city":"Oslo"}' }],
    usage: { input_tokens: 3, output_tokens: 5 },
  });

test('a stream is accumulated, and recognised among the registered protocols', async () => {
  await expectMessage(STREAM, toy);
  const { protocol, text } = await accumulateWith(STREAM, { protocol: [...Object.values(PROTOCOLS), toy] });
  expect({ protocol, text }).toEqual({ protocol: 'toy', text: 'Hello' });
  await expect(accumulate(STREAM, { protocol: toyCodec })).resolves.toMatchObject({ text: 'Hello' });
});

test('a stream is examined', () => {
  const examiner = new Examiner({ protocol: toyCodec });
  examiner.push(STREAM);
  expect(examiner.end().findings).toEqual([]);
});

test('one line in the list of protocols routes its requests, and those of the others as before', () => {
  const router = new Router([CODECS['openai-chat'], ...REGISTERED.slice(1), toyCodec]);
  expect(router.find('/toy/chat', {})).toEqual({ client: toyCodec, type: 'CHAT', path: '/toy/chat' });
  expect(router.find('/toy/other?x=1', {})).toMatchObject({ client: toyCodec, type: 'PASSTHROUGH' });
  for (const path of ['/v1/chat/completions', '/v1/messages', '/v1/responses', '/v1beta/models/m:generateContent', '/v1/models'])
    expect(router.find(path, {})).toEqual(findRoute(path, {}));
});

describe.each(others)('toy and $id', ({ codec }) => {
  test('requests in both directions', () => {
    const there = convertRequest(REQUEST, { from: toyCodec, to: codec });
    expect(there.notes).toEqual([]);
    const back = convertRequest(there.body, { from: codec, to: toyCodec, path: there.path });
    expect(back.body).toEqual(REQUEST);
  });

  test('a field that only the toy has is dropped with a note that points to it', () => {
    const { notes } = convertRequest({ ...REQUEST, colour: 'red' }, { from: toyCodec, to: codec });
    expect(notes).toEqual([
      { code: 'DROPPED', path: '/colour', feature: 'unknown.colour', message: 'field "colour" is specific to toy; dropped' },
    ]);
  });

  test('responses in both directions', () => {
    const there = convertResponse(RESPONSE, { from: toyCodec, to: codec });
    expect(convertResponse(there.body, { from: codec, to: toyCodec }).body).toEqual(RETURNED);
  });

  test('streams in both directions', async () => {
    const there = convert(STREAM, { from: toyCodec, to: codec });
    await expectMessage(there, codec);
    const back = convert(there, { from: codec, to: toyCodec });
    await expectMessage(back, toy);
    const decoder = createSseDecoder();
    expect(accept(toyCodec.grammar(), [...decoder.push(back), ...decoder.end()])).toBe('done');
  });

  test('whole responses as streams, and streams as whole responses', async () => {
    await expectMessage(convertResponseToStream(RESPONSE, { from: toyCodec, to: codec }).body, codec);
    const { body } = convertStreamToResponse([STREAM], { from: toyCodec, to: codec });
    expect(convertResponse(body, { from: codec, to: toyCodec }).body).toEqual(RETURNED);
  });

  test('errors in both directions', () => {
    const there = convertError({ status: 429, body: ERROR }, { from: toyCodec, to: codec });
    expect(there.status).toBe(429);
    expect(convertError(there, { from: codec, to: toyCodec })).toMatchObject({ status: 429, body: ERROR });
  });

  test('an early end of a stream is an error in the other protocol', async () => {
    const bytes = convert(STREAM.subarray(0, 60), { from: toyCodec, to: codec });
    await expect(accumulateWith(bytes, { protocol: codec })).resolves.toMatchObject({ error: { message: expect.any(String) } });
  });

  test('lists of models in both directions', () => {
    const there = convertModels({ toy: 1, models: ['m'] }, { from: toyCodec, to: codec });
    expect(convertModels(there.body, { from: codec, to: toyCodec }).body).toEqual({ toy: 1, models: ['m'] });
  });

  test('an exchange with the toy as client and as upstream', () => {
    const provider = { id: 'p', protocol: codec.id, base_url: 'http://localhost' };
    const wire = { method: 'POST', path: '/toy/chat', headers: {}, body: REQUEST };
    const client = createExchange(toyCodec, codec, { provider, model: 'm2' });
    expect(client.request(wire).url).toMatch(/^http:\/\/localhost\//);
    const { body, path } = convertRequest(REQUEST, { from: toyCodec, to: codec });
    const upstream = createExchange(codec, toyCodec, { provider: { ...provider, protocol: toy.id }, model: 'm2' });
    expect(upstream.request({ ...wire, path, body })).toMatchObject({ url: 'http://localhost/toy/chat', body: { model: 'm2' } });
  });
});

test('the model of a request is read by the codec', () => {
  const wire = { method: 'POST', path: '/toy/chat', headers: {}, body: { ...REQUEST, stream: true } };
  expect(readRequestTarget(toyCodec, wire)).toEqual({ model: 'm', isStream: true });
});

test('nothing outside the folder mentions the toy protocol', () => {
  const source = fileURLToPath(new URL('../packages', import.meta.url));
  const files = ['core/src', 'gateway/src'].flatMap((folder) =>
    readdirSync(join(source, folder), { recursive: true, encoding: 'utf8' }).map((file) => join(source, folder, file)),
  );
  for (const file of files.filter((name) => name.endsWith('.ts')))
    expect(readFileSync(file, 'utf8')).not.toMatch(/'toy'|toy-protocol/);
});
