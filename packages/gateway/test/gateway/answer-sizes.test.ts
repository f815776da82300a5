import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { expectAnswered, expectBrokenOff, expectRefused } from './check.ts';
import { cutAfter, errorOf, framesOf, wholeOf } from './dialects.ts';
import { Faultd } from './faultd.ts';
import { type Reply, whole } from './http.ts';
import { modelOf, PAIRS, type Pair, providersAt, waysOf } from './pairs.ts';
import { streamOf } from './scripts.ts';
import { ask, eventually, type Started, startGateway } from './start.ts';

// docs/reliability.md, Limits: response sizes to the byte, what is buffered, and how often a request is retried.

const KIB = 1024;
const EVENT = 8 * KIB;
const ANSWER = 16 * KIB;
const STREAM = 32 * KIB;
const ERROR = 4 * KIB;

let faultd: Faultd;
let gateway: Started;

beforeAll(async () => {
  faultd = await Faultd.start();
  const limits = {
    event_bytes: EVENT,
    answer_bytes: ANSWER,
    stream_bytes: STREAM,
    error_bytes: ERROR,
    retries_per_provider: 0,
    upstream_keep_alive: '500ms',
  };
  gateway = await startGateway({ config: { providers: providersAt(faultd), limits } });
});

afterAll(async () => {
  await gateway.close();
  await faultd.stop();
});

const askPair = (pair: Pair, stream: boolean): Promise<Reply> =>
  ask(gateway.url, { client: pair.client, model: modelOf(pair), stream });

describe.each(PAIRS)('$name', (pair) => {
  test('answer_bytes', async () => {
    for (const extra of [-1, 0, 1]) {
      faultd.play([{ send: whole(200, wholeOf(pair.upstream).padEnd(ANSWER + extra)) }]);
      const reply = await askPair(pair, false);
      if (extra > 0) expectRefused(pair.client, reply, 502, /sent a response of more than \d+ bytes/);
      else expectAnswered(pair, false, reply);
    }
  });

  test('stream_bytes', async () => {
    const { before, after } = cutAfter(pair.upstream, 'two');
    const length = [...before, ...after].join('').length;
    for (const extra of [-1, 0, 1]) {
      const blankLines = '\n'.repeat(STREAM + extra - length);
      faultd.play(streamOf(before.join(''), blankLines, after.join('')));
      const reply = await askPair(pair, true);
      if (extra > 0) expectBrokenOff(pair.client, reply, 'One two', /sent a response of more than \d+ bytes/);
      else expectAnswered(pair, true, reply);
    }
  });

  test('event_bytes', async () => {
    const { before, after } = cutAfter(pair.upstream, 'two');
    for (const extra of [-1, 0, 1]) {
      // White space at the end of a line of data.
      const [first = '', ...rest] = after;
      const line = /^data: .*$/m.exec(first.replaceAll('\r', ''))?.[0] ?? '';
      const long = first.replace(
        line,
        line
          .replace(/\}$/, '')
          .padEnd(EVENT + extra - 1)
          .concat('}'),
      );
      faultd.play(streamOf(before.join(''), long, rest.join('')));
      const reply = await askPair(pair, true);
      if (extra > 0) expectBrokenOff(pair.client, reply, 'One two', 'longer than allowed');
      else expectAnswered(pair, true, reply);
    }
  });

  test.each([true, false])('error_bytes: stream %s', async (stream) => {
    const { body } = errorOf(pair.upstream, { code: 'INVALID_INPUT', message: 'words of the upstream', http_status: 400 });
    faultd.play([{ send: whole(400, body.padEnd(ERROR)) }]);
    expectRefused(pair.client, await askPair(pair, stream), 400, 'words of the upstream');
    // What is not read to its end has no words; its status is told all the same.
    faultd.play([{ send: whole(400, body.padStart(ERROR + 1)) }]);
    const reply = await askPair(pair, stream);
    expectRefused(pair.client, reply, reply.status);
    expect(reply.status).toBeGreaterThanOrEqual(400);
  });
});

test.each(waysOf(PAIRS.slice(3, 6)))(
  'upstream_keep_alive: an idle connection is reused, then closed: $name',
  async ({ pair, stream }) => {
    faultd.play(stream ? streamOf(framesOf(pair.upstream).join('')) : [{ send: whole(200, wholeOf(pair.upstream)) }]);
    for (let i = 0; i < 3; i++) expectAnswered(pair, stream, await askPair(pair, stream));
    expect(new Set(faultd.served.map(({ connection }) => connection)).size).toBeLessThan(3);
    await eventually(() => faultd.openSockets === 0);
    expectAnswered(pair, stream, await askPair(pair, stream));
  },
);

test.each(waysOf(PAIRS.slice(4, 6)))(
  'retries: limits the attempts of one request across all upstreams: $name',
  async ({ pair, stream }) => {
    const models = { many: ['mend', 'spare', 'pass'].map((way) => `${way}-${pair.upstream}/m`) };
    for (const retries of [0, 1, 2, 9]) {
      const strict = await startGateway({
        config: { providers: providersAt(faultd), models, limits: { retries, retries_per_provider: 0 } },
      });
      faultd.play([{ send: whole(500, errorOf(pair.upstream, { code: 'UPSTREAM_ERROR', message: 'broken' }).body) }]);
      expectRefused(pair.client, await ask(strict.url, { client: pair.client, model: 'many', stream }), 500, 'broken');
      expect(faultd.served).toHaveLength(Math.min(retries + 1, 3));
      await strict.close();
    }
  },
);
