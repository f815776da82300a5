import { brotliCompressSync, constants, createGzip, deflateRawSync, deflateSync, gzipSync } from 'node:zlib';
import type { ProtocolId } from '@sluice/core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { expectAnswered, expectBrokenOff, expectRefused } from './check.ts';
import { cutAfter, framesOf, readStream, readWhole, TEXT, wholeOf } from './dialects.ts';
import { Faultd } from './faultd.ts';
import { chunk, LAST_CHUNK, type Reply, streamHead, whole } from './http.ts';
import { modelOf, PAIRS, type Pair, providersAt } from './pairs.ts';
import { RawClient } from './raw-client.ts';
import { streamOf } from './scripts.ts';
import { ask, askText, type Started, startGateway } from './start.ts';

// RELIABILITY 5.1: what stands in the bytes of an answer, and how they are packed.

let faultd: Faultd;
let gateway: Started;

beforeAll(async () => {
  faultd = await Faultd.start();
  gateway = await startGateway({
    config: { providers: providersAt(faultd), limits: { retries_per_provider: 0, stream_bytes: '16MiB', answer_bytes: '16MiB' } },
  });
});

afterAll(async () => {
  await gateway.close();
  await faultd.stop();
});

const askPair = (pair: Pair, stream: boolean): Promise<Reply> =>
  ask(gateway.url, { client: pair.client, model: modelOf(pair), stream });

const expectText = (pair: Pair, reply: Reply): void => expectAnswered(pair, true, reply);

describe.each([
  ['is not JSON', 'data: {"oops": \n\n'],
  ['is plain text', 'data: Internal Server Error\n\n'],
])('an event whose data %s', (_, frame) => {
  test.each(PAIRS)('ends the stream, and is not passed on: $name', async (pair) => {
    const { before, after } = cutAfter(pair.upstream, 'two');
    faultd.play(streamOf(before.join(''), frame + after.join('')));
    const reply = await askPair(pair, true);
    expectBrokenOff(pair.client, reply, 'One two', 'not JSON');
    expect(await gateway.ended(reply.headers['x-sluice-request-id'])).toMatchObject({ ending: 'upstream_malformed' });
  });

  test.each(PAIRS)('in the first place: $name', async (pair) => {
    faultd.play(streamOf(frame + framesOf(pair.upstream).join('')));
    expectRefused(pair.client, await askPair(pair, true), 502, 'not JSON');
  });
});

/** What servers do to a stream, and every reader should bear. */
const FRAMINGS: readonly (readonly [what: string, change: (body: string) => string | Uint8Array])[] = [
  ['line ends that are CRLF', (body) => body.replace(/\r?\n/g, '\r\n')],
  ['line ends that are CR', (body) => body.replace(/\r?\n/g, '\r')],
  ['a byte order mark', (body) => `\uFEFF${body}`],
  ['comments', (body) => `: hello\n\n${body.replaceAll('\n\n', '\n\n: ping\n\n')}`],
  ['unknown fields', (body) => body.replaceAll('data: ', 'colour: red\ndata: ')],
  ['fields without colon', (body) => body.replaceAll('data: ', 'retry\ndata: ')],
  ['no space behind the colon', (body) => body.replaceAll('data: ', 'data:')],
  ['no blank line at the end', (body) => body.trimEnd()],
];

describe.each(FRAMINGS)('%s', (_, change) => {
  test.each(PAIRS)('$name', async (pair) => {
    const body = Buffer.from(change(framesOf(pair.upstream).join('')));
    faultd.play(streamOf(body));
    const reply = await askPair(pair, true);
    expectText(pair, reply);
    if (pair.isPassing) expect(reply.body.subarray(0, body.length).equals(body)).toBe(true);
  });
});

describe('characters', () => {
  test.each(PAIRS)('that are no UTF-8 do not end a stream: $name', async (pair) => {
    const bytes = Buffer.concat(
      framesOf(pair.upstream).map((frame) => {
        const at = frame.indexOf(' two');
        return at < 0 || frame.includes('One')
          ? Buffer.from(frame)
          : Buffer.concat([Buffer.from(frame.slice(0, at)), Buffer.from([0xff, 0xfe]), Buffer.from(frame.slice(at))]);
      }),
    );
    faultd.play(streamOf(bytes));
    const reply = await askPair(pair, true);
    expect(reply.status).toBe(200);
    expect(readStream(pair.client, reply.body)).toMatchObject({ text: TEXT.replace(' two', '\uFFFD\uFFFD two'), complete: true });
  });

  test.each(PAIRS)('cut at the end: $name', async (pair) => {
    faultd.play(streamOf(framesOf(pair.upstream).join(''), Buffer.from([0xf0, 0x9f])));
    expectText(pair, await askPair(pair, true));
  });
});

describe('the end', () => {
  const LAST: Record<ProtocolId, number> = { 'openai-chat': 1, 'anthropic-messages': 1, 'openai-responses': 0, gemini: 0 };

  test.each(PAIRS)('said twice, and followed by more, is said once: $name', async (pair) => {
    const frames = framesOf(pair.upstream);
    const more = pair.upstream === 'gemini' ? '' : frames.at(-1);
    faultd.play(streamOf(`${frames.join('')}${more}data: [DONE]\n\n${pair.upstream === 'gemini' ? '' : frames[1]}`));
    const reply = await askPair(pair, true);
    expect(readStream(pair.client, reply.body)).toMatchObject({ text: TEXT, complete: true, error: null });
    if (!pair.isPassing && pair.client !== 'gemini')
      expect(reply.body.toString().match(/\[DONE\]|"type":"message_stop"|^event: response\.completed/gm)).toHaveLength(1);
  });

  test.each(PAIRS)('left out, with a reason to stop, is an end: $name', async (pair) => {
    const frames = framesOf(pair.upstream);
    faultd.play(streamOf(frames.slice(0, frames.length - LAST[pair.upstream]).join('')));
    expectText(pair, await askPair(pair, true));
  });

  test.each(PAIRS)('followed by silence is an end: $name', async (pair) => {
    if (pair.upstream === 'gemini') return; // its streams have no other end than that of the body
    faultd.play([{ send: streamHead() }, { send: chunk(framesOf(pair.upstream).join('')) }, { hang: true }]);
    const began = performance.now();
    expectText(pair, await askPair(pair, true));
    expect(performance.now() - began).toBeLessThan(4000);
  });
});

/** Places and names that would harm a careless reader. */
const WILD: Partial<Record<ProtocolId, readonly string[]>> = {
  'openai-chat': [
    '{"choices":[{"index":1e9,"delta":{"content":"x"}}]}',
    '{"choices":[{"index":0,"delta":{"tool_calls":[{"index":1e9,"id":"a","function":{"name":"f","arguments":"{}"}}]}}]}',
    '{"__proto__":{"polluted":1},"choices":[{"index":0,"delta":{"__proto__":{"polluted":1}}}]}',
  ],
  'anthropic-messages': [
    '{"type":"content_block_delta","index":1e9,"delta":{"type":"text_delta","text":"x"}}',
    '{"type":"content_block_delta","index":"__proto__","delta":{"type":"text_delta","text":"x"}}',
    '{"type":"content_block_stop","index":-1}',
  ],
  'openai-responses': [
    '{"type":"response.output_text.delta","output_index":1e9,"content_index":1e9,"item_id":"__proto__","delta":"x"}',
  ],
  gemini: ['{"candidates":[{"index":1e9,"content":{"parts":[{"text":"x"}]}}],"__proto__":{"polluted":1}}'],
};

describe('wild indexes and names', () => {
  test.each(PAIRS.flatMap((pair) => (WILD[pair.upstream] ?? []).map((payload) => ({ ...pair, payload }))))(
    '$name: $payload',
    async ({ payload, ...pair }) => {
      const { before, after } = cutAfter(pair.upstream, 'two');
      const event = pair.upstream === 'openai-chat' || pair.upstream === 'gemini' ? '' : `event: ${JSON.parse(payload).type}\n`;
      faultd.play(streamOf(before.join(''), `${event}data: ${payload}\n\n`, after.join('')));
      const began = performance.now();
      const reply = await askPair(pair, true);
      expect(performance.now() - began).toBeLessThan(1000);
      const { text, complete, error } = readStream(pair.client, reply.body);
      expect(text.startsWith('One two')).toBe(true);
      // Either it could be read, and everything is there, or the stream says that it could not.
      if (error === null) expect(complete && text.endsWith(' three four five.')).toBe(true);
      expect(({} as Record<string, unknown>)['polluted']).toBeUndefined();
    },
  );
});

describe('packed although plain was asked for', () => {
  const PACKINGS: readonly (readonly [coding: string, pack: (body: string) => Buffer])[] = [
    ['gzip', gzipSync],
    ['x-gzip', gzipSync],
    ['br', brotliCompressSync],
    ['deflate', deflateSync],
    ['deflate', deflateRawSync],
    ['identity', Buffer.from],
  ];

  test.each(PACKINGS)('%s is unpacked', async (coding, pack) => {
    for (const pair of PAIRS) {
      faultd.play([
        { send: streamHead({ 'content-encoding': coding }) },
        { send: chunk(pack(framesOf(pair.upstream).join(''))) },
        { send: LAST_CHUNK },
      ]);
      expectText(pair, await askPair(pair, true));
      expect(faultd.served[0]?.headers['accept-encoding']).toBe('identity');
      faultd.play([{ send: whole(200, pack(wholeOf(pair.upstream)), { 'content-encoding': coding }) }]);
      const reply = await askPair(pair, false);
      expect(readWhole(pair.client, reply.body).content).toMatchObject([{ text: TEXT }]);
      expect(reply.headers['content-encoding']).toBeUndefined();
    }
  });

  test.each(['zstd', 'gzip, gzip', 'gzip, br', 'compress', '<evil>'])('%s is refused', async (coding) => {
    for (const pair of PAIRS) {
      faultd.play([{ send: whole(200, gzipSync(gzipSync(wholeOf(pair.upstream))), { 'content-encoding': coding }) }]);
      for (const stream of [true, false]) expectRefused(pair.client, await askPair(pair, stream), 502, 'packed its answer');
    }
  });

  test.each(PAIRS)('a stream is told as it comes: $name', async (pair) => {
    const gzip = createGzip({ flush: constants.Z_SYNC_FLUSH });
    const { before, after } = cutAfter(pair.upstream, 'two');
    const packed = (text: string): Promise<Buffer> =>
      new Promise((resolve) => {
        gzip.write(text);
        gzip.flush(() => resolve(gzip.read()));
      });
    const [one, two] = [await packed(before.join('')), await packed(after.join(''))];
    let release: () => void = () => undefined;
    const seen = new Promise<void>((resolve) => (release = resolve));
    faultd.play([
      { send: streamHead({ 'content-encoding': 'gzip' }) },
      { send: chunk(one) },
      { run: () => seen },
      { send: chunk(two) },
      { send: LAST_CHUNK },
    ]);
    const client = await RawClient.open(gateway.url);
    client.send(askText({ client: pair.client, model: modelOf(pair), stream: true }));
    await client.sees('two');
    release();
    expectText(pair, await client.reply());
    client.leave();
  });

  test.each(PAIRS.slice(3, 6))('a bomb is stopped: $name', async (pair) => {
    // 64 MiB of spaces in 64 KiB: a thousand to one.
    const bomb = gzipSync(Buffer.alloc(64 * 1024 * 1024, ' '), { level: 9 });
    faultd.play([{ send: whole(200, bomb, { 'content-encoding': 'gzip' }) }]);
    const before = process.memoryUsage.rss();
    expectRefused(pair.client, await askPair(pair, false), 502, 'too large');
    expectRefused(pair.client, await askPair(pair, true), 502, 'too large');
    expect(process.memoryUsage.rss() - before).toBeLessThan(48 * 1024 * 1024);
  });

  test.each(PAIRS)('what cannot be unpacked is no answer: $name', async (pair) => {
    faultd.play([{ send: whole(200, 'not packed at all', { 'content-encoding': 'gzip' }) }]);
    for (const stream of [true, false]) expectRefused(pair.client, await askPair(pair, stream), 502, 'cannot be read');
  });

  test.each(PAIRS)('a packed stream that breaks off is seen to break off: $name', async (pair) => {
    const packed = gzipSync(cutAfter(pair.upstream, 'two').before.join(''));
    faultd.play([{ send: streamHead({ 'content-encoding': 'gzip' }) }, { send: chunk(packed) }, { wait: 20 }, { reset: true }]);
    expectBrokenOff(pair.client, await askPair(pair, true), 'One two', 'connection to the upstream failed');
  });
});
