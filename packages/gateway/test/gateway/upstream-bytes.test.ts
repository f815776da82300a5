import type { ProtocolId } from '@sluice/core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { SDK_READERS } from '../../../../test/doctor/sdk-readers.ts';
import { expectAnswered, expectBrokenOff, expectRefused } from './check.ts';
import { cutAfter, framesOf, readStream, readWhole, TEXT, wholeOf } from './dialects.ts';
import { Faultd } from './faultd.ts';
import { chunk, LAST_CHUNK, type Reply, streamHead, whole } from './http.ts';
import { modelOf, PAIRS, type Pair, providersAt } from './pairs.ts';
import { streamOf } from './scripts.ts';
import { ask, type Started, startGateway } from './start.ts';
import { TestClock } from './test-clock.ts';

// docs/reliability.md, Upstreams: the bytes of a response.

const clock = new TestClock();
let faultd: Faultd;
let gateway: Started;

beforeAll(async () => {
  faultd = await Faultd.start();
  gateway = await startGateway({
    clock,
    config: { providers: providersAt(faultd), limits: { retries_per_provider: 0, stream_bytes: '16MiB', answer_bytes: '16MiB' } },
  });
});

afterAll(async () => {
  await gateway.close();
  await faultd.stop();
});

const askPair = (pair: Pair, stream: boolean): Promise<Reply> =>
  clock.until(ask(gateway.url, { client: pair.client, model: modelOf(pair), stream }));

const expectText = (pair: Pair, reply: Reply): void => expectAnswered(pair, true, reply);

/** The stream that stands there in the place of a whole answer, collected. */
const expectCollected = async (pair: Pair): Promise<void> => expectAnswered(pair, false, await askPair(pair, false));

describe.each([
  ['is not JSON', 'data: {"oops": \n\n'],
  ['is plain text', 'data: Internal Server Error\n\n'],
])('an event whose data %s', (_, frame) => {
  test.each(PAIRS)('ends the stream with an error and is not forwarded: $name', async (pair) => {
    const { before, after } = cutAfter(pair.upstream, 'two');
    faultd.play(streamOf(before.join(''), frame + after.join('')));
    const reply = await askPair(pair, true);
    expectBrokenOff(pair.client, reply, 'One two', 'not JSON');
    expect(await gateway.ended(reply.headers['x-sluice-request-id'])).toMatchObject({ ending: 'upstream_malformed' });
  });

  test.each(PAIRS)('as the first event is an error: $name', async (pair) => {
    faultd.play(streamOf(frame + framesOf(pair.upstream).join('')));
    expectRefused(pair.client, await askPair(pair, true), 502, 'not JSON');
  });

  test.each(PAIRS)('instead of a whole response is an error: $name', async (pair) => {
    const { before, after } = cutAfter(pair.upstream, 'two');
    faultd.play(streamOf(before.join(''), frame + after.join('')));
    expectRefused(pair.client, await askPair(pair, false), 502, 'not JSON');
  });
});

test.each(PAIRS)('a whole response that is not JSON is an error: $name', async (pair) => {
  for (const body of [wholeOf(pair.upstream).slice(0, -2), '{"oops": ', 'null', '7', '"text"']) {
    faultd.play([{ send: whole(200, body) }]);
    const reply = await askPair(pair, false);
    expect(reply.status).toBeGreaterThanOrEqual(500);
    expectRefused(pair.client, reply, reply.status);
    expect(await gateway.ended(reply.headers['x-sluice-request-id'])).toMatchObject({ ending: 'upstream_error' });
  }
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
  ['fields of data without colon', (body) => `data\n\n${body}`],
  ['a NUL in a comment', (body) => `: a\0b\n\n${body}`],
  ['an id with a NUL', (body) => `id: a\0b\n${body}`],
  ['no blank line at the end', (body) => body.trimEnd()],
];

describe.each(FRAMINGS)('%s', (_, change) => {
  test.each(PAIRS)('$name', async (pair) => {
    const body = Buffer.from(change(framesOf(pair.upstream).join('')));
    faultd.play(streamOf(body));
    const reply = await askPair(pair, true);
    expectText(pair, reply);
    if (pair.isPassing) expect(reply.body.subarray(0, body.length).equals(body)).toBe(true);
    await expectCollected(pair);
  });
});

// Who passes bytes through passes this on: only its client can know what to make of it.
test.each(PAIRS.filter(({ isPassing }) => !isPassing))('a stream without blank lines is read: $name', async (pair) => {
  faultd.play(
    streamOf(
      framesOf(pair.upstream)
        .join('')
        .replace(/(\r?\n){2}/g, '\n'),
    ),
  );
  expectText(pair, await askPair(pair, true));
  await expectCollected(pair);
});

describe('characters', () => {
  test.each(PAIRS)('that are not UTF-8 do not end a stream: $name', async (pair) => {
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

  test.each(PAIRS)('that are not UTF-8 do not fail a whole response: $name', async (pair) => {
    const [before = '', after = ''] = wholeOf(pair.upstream).split(' two');
    faultd.play([
      { send: whole(200, Buffer.concat([Buffer.from(before), Buffer.from([0xff, 0xfe]), Buffer.from(` two${after}`)])) },
    ]);
    const reply = await askPair(pair, false);
    expect(readWhole(pair.client, reply.body).content).toMatchObject([{ text: TEXT.replace(' two', '\uFFFD\uFFFD two') }]);
  });

  test.each(PAIRS)('truncated at the end become U+FFFD: $name', async (pair) => {
    faultd.play(streamOf(framesOf(pair.upstream).join(''), Buffer.from([0xf0, 0x9f])));
    expectText(pair, await askPair(pair, true));
    await expectCollected(pair);
  });
});

const mended = (protocol: ProtocolId, ended: string) => ({
  client: protocol,
  upstream: protocol,
  isPassing: false,
  name: `${protocol} <- ${protocol}`,
  ended,
});

/** Protocols that mark the end of every part, with the end of a last one. */
const MENDED = [
  mended('anthropic-messages', '"type":"content_block_stop"'),
  mended('openai-responses', '"type":"response.output_item.done"'),
];

describe('the end', () => {
  const LAST: Record<ProtocolId, number> = { 'openai-chat': 1, 'anthropic-messages': 1, 'openai-responses': 0, gemini: 0 };

  test.each(PAIRS)('sent twice, with more after it, is sent once: $name', async (pair) => {
    const frames = framesOf(pair.upstream);
    const more = pair.upstream === 'gemini' ? '' : frames.at(-1);
    faultd.play(streamOf(`${frames.join('')}${more}data: [DONE]\n\n${pair.upstream === 'gemini' ? '' : frames[1]}`));
    const reply = await askPair(pair, true);
    expect(readStream(pair.client, reply.body)).toMatchObject({ text: TEXT, complete: true, error: null });
    // Clients of the same protocol read no further than the first one.
    if (pair.client !== pair.upstream && pair.client !== 'gemini')
      expect(reply.body.toString().match(/\[DONE\]|"type":"message_stop"|^event: response\.completed/gm)).toHaveLength(1);
    await expectCollected(pair);
  });

  test.each(PAIRS)('missing after a finish reason, the response is complete: $name', async (pair) => {
    const frames = framesOf(pair.upstream);
    faultd.play(streamOf(frames.slice(0, frames.length - LAST[pair.upstream]).join('')));
    expectText(pair, await askPair(pair, true));
    await expectCollected(pair);
  });

  test.each(PAIRS.filter(({ upstream, isPassing }) => isPassing && LAST[upstream] > 0))(
    'missing or truncated after a finish reason, the marker is added to passed-through bytes: $name',
    async (pair) => {
      const frames = framesOf(pair.upstream);
      const marker = frames.at(-1) ?? '';
      const content = frames.slice(0, -1).join('');
      for (const cut of [0, 1, marker.indexOf(':') + 3, marker.length - 3]) {
        const pieces = [content, marker.slice(0, cut)].filter((piece) => piece !== '');
        for (const end of [{ send: LAST_CHUNK }, { fin: true } as const, { reset: true } as const]) {
          faultd.play([{ send: streamHead() }, ...pieces.map((piece) => ({ send: chunk(piece) })), end]);
          const reply = await askPair(pair, true);
          expect({ body: reply.body.toString(), isWhole: reply.isWhole }).toEqual({ body: frames.join(''), isWhole: true });
          for (const { read } of SDK_READERS[pair.client])
            expect(await read([reply.body.toString()])).toEqual({ text: TEXT, calls: [] });
        }
      }
    },
  );

  test.each(PAIRS)('missing without a finish reason, the response is an error: $name', async (pair) => {
    faultd.play(streamOf(cutAfter(pair.upstream, 'five.').before.join('')));
    const reply = await askPair(pair, true);
    expectBrokenOff(pair.client, reply, TEXT);
    expect(await gateway.ended(reply.headers['x-sluice-request-id'])).toMatchObject({ ending: 'upstream_truncated' });
    expectRefused(pair.client, await askPair(pair, false), 502);
  });

  test.each(MENDED)(
    'missing although every part has ended, the stream stays as it came, and is recorded as truncated: $name',
    async (pair) => {
      const body = cutAfter(pair.upstream, pair.ended).before.join('');
      faultd.play(streamOf(body));
      const reply = await askPair(pair, true);
      expect(reply.body.toString().replaceAll(/"model":"[^"]*"/g, '')).toBe(body.replaceAll(/"model":"[^"]*"/g, ''));
      expect(reply.isWhole).toBe(true);
      expect(await gateway.ended(reply.headers['x-sluice-request-id'])).toMatchObject({ ending: 'upstream_truncated' });
    },
  );

  /** Usage that is told again, in the frames that protocols have for it. */
  const USAGE_AGAIN: Partial<Record<ProtocolId, string>> = {
    'openai-chat':
      'data: {"id":"answer-1","choices":[],"usage":{"prompt_tokens":11,"completion_tokens":5,"total_tokens":16}}\n\n',
    'anthropic-messages': 'event: message_delta\ndata: {"type":"message_delta","delta":{},"usage":{"output_tokens":5}}\n\n',
    gemini: 'data: {"usageMetadata":{"promptTokenCount":11,"candidatesTokenCount":5,"totalTokenCount":16}}\r\n\r\n',
  };

  test.each(PAIRS.filter(({ upstream }) => USAGE_AGAIN[upstream]))(
    'usage that is sent twice counts once: $name',
    async (pair) => {
      const frames = framesOf(pair.upstream);
      const at = frames.length - LAST[pair.upstream];
      faultd.play(streamOf([...frames.slice(0, at), USAGE_AGAIN[pair.upstream], ...frames.slice(at)].join('')));
      for (const stream of [true, false]) {
        const reply = await askPair(pair, stream);
        expectAnswered(pair, stream, reply);
        expect(await gateway.ended(reply.headers['x-sluice-request-id'])).toMatchObject({ input_tokens: 11, output_tokens: 5 });
      }
    },
  );

  // Streams of Gemini have no other end than that of the body.
  test.each(PAIRS.filter(({ upstream }) => upstream !== 'gemini'))(
    'followed by silence completes the response: $name',
    async (pair) => {
      faultd.play([{ send: streamHead() }, { send: chunk(framesOf(pair.upstream).join('')) }, { hang: true }]);
      const reply = ask(gateway.url, { client: pair.client, model: modelOf(pair), stream: true });
      expectText(pair, await clock.after(1000, reply));
    },
  );
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
      const reply = await askPair(pair, true);
      const { text, complete, error } = readStream(pair.client, reply.body);
      expect(text.startsWith('One two')).toBe(true);
      // Either it could be read, and everything is there, or the stream says that it could not.
      if (error === null) expect(complete && text.endsWith(' three four five.')).toBe(true);
      expect(({} as Record<string, unknown>)['polluted']).toBeUndefined();
    },
  );
});

/** The same in whole answers: one field of a good one is something else. */
const WILD_FIELDS: Record<ProtocolId, readonly string[]> = {
  'openai-chat': ['choices', 'usage', 'id', 'model'],
  'anthropic-messages': ['content', 'usage', 'stop_reason', 'id'],
  'openai-responses': ['output', 'usage', 'status', 'id'],
  gemini: ['candidates', 'usageMetadata', 'modelVersion'],
};
const WILD_VALUES = ['1e9', '-1', '"__proto__"', '{"__proto__":{"polluted":1}}', '[[[]]]', 'null', '[{"index":1e9}]'];

test.each(PAIRS)('wild values in a whole response: $name', async (pair) => {
  for (const field of WILD_FIELDS[pair.upstream])
    for (const value of WILD_VALUES) {
      const body = `${wholeOf(pair.upstream).slice(0, -1)},"${field}":${value},"__proto__":{"polluted":1}}`;
      faultd.play([{ send: whole(200, body) }]);
      const reply = await askPair(pair, false);
      // It is an answer, or it is none and the client is told so; it is never a fault of ours.
      if (reply.status !== 200) expectRefused(pair.client, reply, 502);
      expect(({} as Record<string, unknown>)['polluted']).toBeUndefined();
    }
});

test.each(PAIRS)('an endlessly nested whole response is an error: $name', async (pair) => {
  const body = `${wholeOf(pair.upstream).slice(0, -1)},"x":${'['.repeat(100_000)}${']'.repeat(100_000)}}`;
  faultd.play([{ send: whole(200, body) }]);
  const reply = await askPair(pair, false);
  if (reply.status !== 200) expectRefused(pair.client, reply, 502);
});
