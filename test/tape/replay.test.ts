import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { ProtocolId } from '@sluice/core';
import { afterEach, describe, expect, test } from 'vitest';
import { EXCHANGE_HEADER, FAULT_HEADER, type Served } from '../../packages/gateway/src/tape/replayer.ts';
import { questionOf, readStream, readWhole } from '../../packages/gateway/test/gateway/dialects.ts';
import { RawClient, requestText } from '../../packages/gateway/test/gateway/raw-client.ts';
import { type Asking, ask, eventually } from '../../packages/gateway/test/gateway/start.ts';
import { parseFaults } from '../../packages/lab/src/replay/faults.ts';
import { splitReads } from '../../packages/lab/src/replay/play.ts';
import type { Facts } from '../../packages/lab/src/tape/format.ts';
import { readTape } from '../../packages/lab/src/tape/read.ts';
import { startReplayer, temporaryFolder } from './tapes.ts';

const PROTOCOLS: readonly ProtocolId[] = ['openai-chat', 'anthropic-messages', 'openai-responses', 'gemini'];

const chunkOf = (delta: object, finish: string | null = null) =>
  `data: ${JSON.stringify({ id: 'c1', object: 'chat.completion.chunk', created: 1, model: 'gpt-5', choices: [{ index: 0, delta, finish_reason: finish }] })}\n\n`;

const streamOf = (text: string): string =>
  [
    chunkOf({ role: 'assistant', content: '' }),
    ...[...text].map((content) => chunkOf({ content })),
    chunkOf({}, 'stop'),
    'data: [DONE]\n\n',
  ].join('');

const wholeOf = (text: string): string =>
  JSON.stringify({
    id: 'c2',
    object: 'chat.completion',
    created: 1,
    model: 'gpt-5',
    choices: [{ index: 0, message: { role: 'assistant', content: text }, finish_reason: 'stop' }],
  });

type Changes = Partial<Omit<Facts, 'request' | 'response'>> & {
  asked?: object;
  answer?: string;
  status?: number;
  reads?: [number, number][];
  type?: string;
  path?: string;
};

/** Writes a tape by hand, as docs/tapes.md says. */
function tapeOf(...exchanges: readonly Changes[]): string {
  const folder = temporaryFolder();
  exchanges.forEach((changes, at) => {
    const { asked, answer, status = 200, reads = [], type, path, ...facts } = changes;
    const isStream = facts.stream ?? true;
    const own = join(folder, `000${at + 1}-x`);
    mkdirSync(own);
    const response = {
      status,
      headers: { 'content-type': type ?? (isStream ? 'text/event-stream' : 'application/json') },
      body: 'response.sse',
      reads,
    };
    const exchange = {
      tape: 1,
      protocol: 'openai-chat',
      model: 'gpt-5',
      stream: isStream,
      end: 'complete',
      ...facts,
      request: { method: 'POST', path: path ?? '/v1/chat/completions', ...(asked && { body: 'request.json' }) },
      response: answer === undefined ? null : response,
    };
    writeFileSync(join(own, 'exchange.json'), JSON.stringify(exchange));
    if (asked) writeFileSync(join(own, 'request.json'), JSON.stringify(asked));
    if (answer !== undefined) writeFileSync(join(own, 'response.sse'), answer);
  });
  return folder;
}

let closing: (() => Promise<void>) | undefined;

afterEach(() => closing?.());

async function start(
  tape: string,
  options: Parameters<typeof startReplayer>[1] = {},
): Promise<{ url: string; served: Served[] }> {
  const served: Served[] = [];
  const replayer = await startReplayer(tape, { onServed: (one) => served.push(one), ...options });
  closing = () => replayer.close();
  return { url: replayer.url, served };
}

const asking = (client: ProtocolId, stream: boolean, more: Partial<Asking> = {}): Asking => ({
  client,
  model: 'gpt-5',
  stream,
  ...more,
});

describe('in all protocols', () => {
  const HELLO = 'Hello, wörld 🦢';
  const KINDS = [
    ['a recorded stream', { answer: streamOf(HELLO) }],
    ['a recorded whole answer', { answer: wholeOf(HELLO), stream: false }],
  ] as const;

  test.each(KINDS)('%s, streamed and whole', async (_, changes) => {
    const { url } = await start(tapeOf(changes));
    for (const client of PROTOCOLS) {
      const streamed = await ask(url, asking(client, true));
      expect(readStream(client, streamed.body), client).toMatchObject({
        text: HELLO,
        complete: true,
        error: null,
        diagnostics: [],
      });
      const whole = await ask(url, asking(client, false));
      expect(readWhole(client, whole.body).content, client).toEqual([expect.objectContaining({ type: 'text', text: HELLO })]);
      if (client !== 'openai-chat') expect(readWhole(client, whole.body).model).toBe('gpt-5');
    }
  });

  test('errors, with their status', async () => {
    const { url } = await start(
      tapeOf({ answer: '{"error":{"message":"slow down","type":"rate_limit"}}', status: 429, type: 'application/json' }),
    );
    for (const client of PROTOCOLS) {
      const reply = await ask(url, asking(client, true));
      expect(reply.status, client).toBe(429);
      expect(reply.body.toString(), client).toContain('slow down');
    }
  });

  test('the bytes of the tape in its own protocol, unless they are to be repaired', async () => {
    const odd = streamOf('x').replaceAll('\n', '\r\n').replace('data: [DONE]', ': a comment\r\n\r\ndata:[DONE]');
    const tape = tapeOf({ answer: odd });
    const asItWas = await start(tape);
    expect((await ask(asItWas.url, asking('openai-chat', true))).body.toString()).toBe(odd);
    await closing?.();
    const repaired = await start(tape, { repair: true });
    const { body } = await ask(repaired.url, asking('openai-chat', true));
    expect(body.toString()).not.toContain('\r');
    expect(readStream('openai-chat', body)).toMatchObject({ text: 'x', complete: true });
  });

  test('the list of models, and counts', async () => {
    const { url } = await start(tapeOf({ answer: streamOf('a') }, { answer: streamOf('b'), model: 'gpt-6' }));
    expect(await (await fetch(`${url}/v1/models`)).json()).toMatchObject({ data: [{ id: 'gpt-5' }, { id: 'gpt-6' }] });
    const counted = await fetch(`${url}/v1/messages/count_tokens`, {
      method: 'POST',
      body: JSON.stringify({ model: 'gpt-5', messages: [{ role: 'user', content: 'hi' }] }),
    });
    expect(await counted.json()).toEqual({ input_tokens: expect.any(Number) });
  });
});

describe('which exchange', () => {
  const question = questionOf('openai-chat', 'gpt-5', true).body;
  const tape = () =>
    tapeOf(
      { answer: streamOf('one') },
      { answer: streamOf('same'), asked: { ...question, user: 'somebody' } },
      { answer: streamOf('two') },
      { answer: wholeOf('whole'), stream: false },
      { answer: streamOf('other'), model: 'gpt-6' },
    );
  const textsOf = async (url: string, ...asked: readonly Partial<Asking>[]): Promise<string[]> => {
    const texts: string[] = [];
    for (const more of asked)
      texts.push(readStream('openai-chat', (await ask(url, asking('openai-chat', true, more))).body).text);
    return texts;
  };
  const OTHER = { body: { temperature: 0.5 } };

  test.each<[string, Partial<Asking>[], string[]]>([
    ['the same request, whoever asks', [{ body: { user: 'you' } }, { body: { user: 'me' } }], ['same', 'same']],
    ['the same model, in order and then again', [OTHER, OTHER, OTHER, OTHER], ['one', 'same', 'two', 'one']],
    ['another model', [{ ...OTHER, model: 'gpt-6' }], ['other']],
    ['the one that is named', [{ headers: { [EXCHANGE_HEADER]: '0003-x' } }], ['two']],
  ])('%s', async (_, asked, expected) => {
    const { url } = await start(tape());
    expect(await textsOf(url, ...asked)).toEqual(expected);
  });

  test('the next in order for an unknown model; an error with --strict', async () => {
    const lax = await start(tape());
    expect(await textsOf(lax.url, { model: 'unknown' })).toEqual(['one']);
    await eventually(() => lax.served[0]?.why === 'next in order');
    await closing?.();
    const { url } = await start(tape(), { isStrict: true });
    const reply = await ask(url, asking('anthropic-messages', true, { model: 'unknown' }));
    expect(reply.status).toBe(404);
    expect(JSON.parse(reply.body.toString())).toMatchObject({
      type: 'error',
      error: { type: 'not_found_error', message: expect.stringContaining('gpt-6') },
    });
  });

  test('unknown names and paths get an error', async () => {
    const { url } = await start(tape());
    const unnamed = await ask(url, asking('openai-chat', true, { headers: { [EXCHANGE_HEADER]: '%zz' } }));
    expect(unnamed.status).toBe(404);
    expect((await fetch(`${url}/v1/audio/speech`, { method: 'POST', body: '{}' })).status).toBe(404);
  });
});

describe('faults on request', () => {
  const answer = streamOf('a longer text with words');
  const length = Buffer.byteLength(answer);

  test.each(['flag', 'header', 'model'] as const)('is requested by %s', async (way) => {
    const fault = 'cut=100';
    const { url } = await start(tapeOf({ answer }), way === 'flag' ? { faults: parseFaults(fault) } : {});
    const more = { header: { headers: { [FAULT_HEADER]: fault } }, model: { model: `gpt-5!${fault}` }, flag: {} }[way];
    const reply = await ask(url, asking('openai-chat', true, more));
    expect(reply).toMatchObject({ status: 200, isWhole: true });
    expect(reply.body.toString()).toBe(answer.slice(0, 100));
  });

  test('Gemini has the model in the path', async () => {
    const { url } = await start(tapeOf({ answer }));
    const reply = await ask(url, asking('gemini', true, { model: 'gpt-5!sse/bom,cut=100' }));
    expect(reply.body).toHaveLength(100);
    expect(reply.body.subarray(0, 3)).toEqual(Buffer.from([0xef, 0xbb, 0xbf]));
  });

  test.each([
    ['cut=0', 0, true],
    ['none', length, true],
    [`cut=${length}`, length, true],
    [`cut=${length + 1}`, length, true],
    ['cut=1', 1, true],
    ['reset=10', undefined, false],
    ['reset', undefined, false],
  ])('%s', async (fault, bytes, isWhole) => {
    const { url } = await start(tapeOf({ answer }));
    const client = await RawClient.open(url);
    client.send(requestText('POST', '/v1/chat/completions', { [FAULT_HEADER]: fault }, '{"model":"gpt-5","stream":true}'));
    const reply = await client.reply().catch(() => undefined); // a reset may take with it what came before
    if (bytes !== undefined) expect(reply?.body.length).toBe(bytes);
    expect(reply?.isWhole ?? false).toBe(isWhole);
    client.leave();
  });

  test('a stall lasts until the client leaves', async () => {
    const { url, served } = await start(tapeOf({ answer }));
    const client = await RawClient.open(url);
    client.send(requestText('POST', '/v1/chat/completions', { [FAULT_HEADER]: 'stall=50' }, '{"model":"gpt-5","stream":true}'));
    await client.sees(answer.slice(0, 40));
    expect(served).toEqual([]);
    client.leave();
    await eventually(() => served[0]?.faults === 'stall=50');
  });

  test('a wrong content-length is detected', async () => {
    const tape = tapeOf({ answer: wholeOf('x'), stream: false });
    const { url } = await start(tape, { repair: true });
    const reply = await ask(url, asking('openai-chat', false, { headers: { [FAULT_HEADER]: 'cut=20' } }));
    expect(reply).toMatchObject({ isWhole: false, status: 200 });
    expect(reply.body).toHaveLength(20);
  });

  test('429 first, then the due response', async () => {
    const { url } = await start(tapeOf({ answer: streamOf('one') }, { answer: streamOf('two') }), {
      faults: parseFaults('status=429,times=2'),
    });
    const statuses: number[] = [];
    const texts: string[] = [];
    for (let turn = 0; turn < 4; turn++) {
      const { status, body } = await ask(url, asking('openai-chat', true));
      statuses.push(status);
      if (status === 200) texts.push(readStream('openai-chat', body).text);
    }
    expect(statuses).toEqual([429, 429, 200, 200]);
    expect(texts).toEqual(['one', 'two']);
  });

  test.each(PROTOCOLS)('%s: an error has the format of the protocol', async (client) => {
    const { url } = await start(tapeOf({ answer }));
    const reply = await ask(url, asking(client, true, { headers: { [FAULT_HEADER]: 'status=503' } }));
    expect(reply.status).toBe(503);
    expect(JSON.parse(reply.body.toString())).toHaveProperty('error');
  });

  test('a page of a proxy', async () => {
    const { url } = await start(tapeOf({ answer }));
    const reply = await ask(url, asking('openai-chat', true, { headers: { [FAULT_HEADER]: 'page=502' } }));
    expect(reply).toMatchObject({ status: 502, headers: { 'content-type': 'text/html' } });
  });

  test('dialects apply where they fit, otherwise the log reports it', async () => {
    const { url, served } = await start(tapeOf({ answer }));
    const fault = { headers: { [FAULT_HEADER]: 'sse/crlf,no-done' } };
    const chat = (await ask(url, asking('openai-chat', true, fault))).body.toString();
    expect(chat).toContain('\r\n\r\n');
    expect(chat).not.toContain('[DONE]');
    const anthropic = (await ask(url, asking('anthropic-messages', true, fault))).body.toString();
    expect(anthropic).toContain('\r\n\r\n');
    await ask(url, asking('openai-chat', false, fault));
    await eventually(() => served.length === 3);
    expect(served.map(({ skipped }) => skipped)).toEqual([[], ['chat/no-done'], ['sse/crlf', 'chat/no-done']]);
  });

  test.each([
    ['chat/no-dune', 'chat/no-done'],
    ['cutt=3', 'cut'],
    ['cut=-1', 'from 0'],
    ['cut=1e9', 'from 0'],
    ['status=200', 'from 400'],
    ['times', 'times=N'],
  ])('%s is rejected with a suggestion', async (fault, hint) => {
    expect(() => parseFaults(fault)).toThrow(hint);
    const { url } = await start(tapeOf({ answer }));
    const reply = await ask(url, asking('gemini', true, { headers: { [FAULT_HEADER]: fault } }));
    expect(reply.status).toBe(400);
    expect(reply.body.toString()).toContain(hint);
  });
});

describe('recorded timing', () => {
  test('with the recorded reads', async () => {
    const answer = streamOf('abc');
    const reads: [number, number][] = [
      [30, 10],
      [40, 100],
      [900_000, 7],
    ];
    const { url } = await start(tapeOf({ answer, reads }));
    const client = await RawClient.open(url);
    const reply = await client.send(requestText('POST', '/v1/chat/completions', {}, '{"model":"gpt-5","stream":true}')).reply();
    expect(reply.body.toString()).toBe(answer);
    const sizes = [...client.received.toString('latin1').matchAll(/\r\n([0-9a-f]+)\r\n(?=data|ata|[^\r]{1,9}\S)/g)].map(
      ([, size]) => Number.parseInt(size ?? '', 16),
    );
    expect(sizes.slice(0, 3)).toEqual([10, 100, 7]);
    client.leave();
  });

  test.each<[string, number, [number, number][], [number, number][]]>([
    [
      'the delays of then',
      1,
      [
        [400, 2],
        [900, 3],
      ],
      [
        [400, 2],
        [500, 3],
        [0, 5],
      ],
    ],
    [
      'a part of them',
      4,
      [
        [400, 2],
        [900, 8],
      ],
      [
        [100, 2],
        [125, 8],
      ],
    ],
    [
      'none',
      0,
      [
        [400, 2],
        [900, 8],
      ],
      [
        [0, 2],
        [0, 8],
      ],
    ],
    [
      'reads that are too many',
      1,
      [
        [1, 4],
        [2, 100],
        [3, 5],
      ],
      [
        [1, 4],
        [1, 6],
      ],
    ],
    [
      'times that run backwards',
      1,
      [
        [10, 4],
        [5, 6],
      ],
      [
        [10, 4],
        [0, 6],
      ],
    ],
    ['no reads', 1, [], [[0, 10]]],
  ])('%s', (_, speed, reads, expected) => {
    const pieces = [...splitReads(new Uint8Array(10), reads, speed)];
    expect(pieces.map(({ waitMs, bytes }) => [waitMs, bytes.length])).toEqual(expected);
  });

  test.each(['upstream_cut', 'client_gone', 'too_large'] as const)(
    '%s: the connection breaks where the tape ends',
    async (end) => {
      const answer = streamOf('abc').slice(0, 200);
      const { url } = await start(tapeOf({ answer, end }));
      for (const client of PROTOCOLS) {
        const reply = await ask(url, asking(client, true));
        expect(reply.isWhole, client).toBe(false);
        if (client === 'openai-chat') expect(reply.body.toString()).toBe(answer);
      }
    },
  );

  test('an exchange without a response', async () => {
    const { url } = await start(tapeOf({ end: 'unreachable' }));
    await expect(ask(url, asking('openai-chat', true))).rejects.toThrow('no answer');
  });
});

describe('tapes from others', () => {
  const write = (facts: unknown): string => {
    const folder = temporaryFolder();
    mkdirSync(join(folder, '0001-x'));
    writeFileSync(join(folder, '0001-x', 'exchange.json'), typeof facts === 'string' ? facts : JSON.stringify(facts));
    return folder;
  };
  const GOOD = { tape: 1, end: 'complete', request: {}, response: { status: 200 } };

  test.each<[string, unknown, string]>([
    ['no JSON', '{', 'not JSON'],
    ['a list', [], 'object'],
    ['another version', { ...GOOD, tape: 2 }, 'the tape version'],
    ['a way out of the folder', { ...GOOD, response: { status: 200, body: '../../../etc/passwd' } }, 'response.body'],
    ['a hidden file', { ...GOOD, request: { body: '.env' } }, 'request.body'],
    ['a header that is none', { ...GOOD, response: { status: 200, headers: { 'a\r\nb': 'c' } } }, 'response.headers'],
    ['a header with lines', { ...GOOD, response: { status: 200, headers: { a: 'b\r\nc: d' } } }, 'response.headers'],
    ['a status that is none', { ...GOOD, response: { status: 99 } }, 'response.status'],
    ['reads that are none', { ...GOOD, response: { status: 200, reads: [[1, 'x']] } }, 'response.reads'],
    ['a protocol that is none', { ...GOOD, protocol: '__proto__' }, 'protocol'],
    ['an end that is none', { ...GOOD, end: 'constructor' }, 'end'],
    ['no request', { ...GOOD, request: null }, 'request'],
  ])('%s', async (_, facts, message) => {
    await expect(readTape(write(facts))).rejects.toThrow(message);
  });

  test.each<[string, unknown]>([
    ['a way out', [{ file: '../x.sse', protocol: 'gemini', model: '', stream: true, status: 200 }]],
    ['a way to the root', [{ file: '/etc/passwd', protocol: 'gemini', model: '', stream: true, status: 200 }]],
    ['no list', {}],
    ['nothing', [null]],
  ])('a manifest with %s', async (_, manifest) => {
    const folder = temporaryFolder();
    writeFileSync(join(folder, 'manifest.json'), JSON.stringify(manifest));
    await expect(readTape(folder)).rejects.toThrow('manifest.json');
  });

  test('an empty folder', async () => {
    await expect(readTape(temporaryFolder())).rejects.toThrow('contains no exchanges');
    await expect(readTape('/nowhere/at/all')).rejects.toThrow('no such tape');
  });

  test('saved streams can be replayed', async () => {
    const folder = temporaryFolder();
    writeFileSync(join(folder, 'b.sse'), streamOf('b'));
    writeFileSync(join(folder, 'a.sse'), streamOf('a'));
    expect((await readTape(folder)).map(({ name, protocol, model }) => [name, protocol, model])).toEqual([
      ['a.sse', 'openai-chat', 'gpt-5'],
      ['b.sse', 'openai-chat', 'gpt-5'],
    ]);
    expect(await readTape(join(folder, 'b.sse'))).toHaveLength(1);
  });

  test.each([
    ['a page of somebody else', { origin: 'https://evil.example' }],
    ['a name of somebody else', { host: 'evil.example' }],
    ['a name of the local network', { host: 'machine.local' }],
  ])('%s is rejected', async (_, headers) => {
    const { url } = await start(tapeOf({ answer: streamOf('private') }));
    const client = await RawClient.open(url);
    const reply = await client.send(requestText('POST', '/v1/chat/completions', headers, '{}')).reply();
    expect(reply.status).toBe(403);
    expect(reply.body.toString()).not.toContain('private');
    client.leave();
  });
});
