import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  buildMark,
  CLIENT_PROTOCOLS,
  MARK_LENGTH,
  parseModel,
  readClock,
  TEXTS,
  UPSTREAM_PROTOCOLS,
} from '../../bench/gateway/script.js';

/** As the load generator finds marks. */
const MARK = /t=(\d{6})(\d{6})(\d{16});/;
const numbers = fc.integer({ min: 0, max: 999_999 });
const protocols = fc.constantFrom(...(Object.keys(UPSTREAM_PROTOCOLS) as (keyof typeof UPSTREAM_PROTOCOLS)[]));

describe('marks', () => {
  test('all have the same length, and are read as they were built', () => {
    fc.assert(
      fc.property(numbers, numbers, (stream, chunk) => {
        const mark = buildMark(stream, chunk);
        expect(mark).toHaveLength(MARK_LENGTH);
        const [whole, foundStream, foundChunk] = MARK.exec(mark) ?? [];
        expect([whole, Number(foundStream), Number(foundChunk)]).toEqual([mark, stream, chunk]);
      }),
    );
  });

  test('the time is that of a clock that only grows', () => {
    const before = readClock();
    const [, , , time = ''] = MARK.exec(buildMark(0, 0)) ?? [];
    expect(BigInt(time) >= before && BigInt(time) <= readClock()).toBe(true);
  });

  test('events of every protocol contain the mark as it is', () => {
    fc.assert(
      fc.property(protocols, numbers, numbers, (protocol, stream, chunk) => {
        const mark = buildMark(stream, chunk);
        expect(UPSTREAM_PROTOCOLS[protocol].text(mark)).toContain(mark);
      }),
    );
  });

  test('what surrounds the text of a stream has no mark', () => {
    for (const { begin, end } of Object.values(UPSTREAM_PROTOCOLS))
      expect([MARK.test(begin), MARK.test(end)]).toEqual([false, false]);
  });
});

describe('models', () => {
  test('a stream has its delay, chunks and number', () => {
    expect(parseModel('mock-d50-n20-k7')).toEqual({ kind: 'stream', delay: 50, chunks: 20, number: 7 });
    expect(parseModel('mock-d0-n3')).toEqual({ kind: 'stream', delay: 0, chunks: 3, number: 0 });
  });

  test('a whole response has its text, and an unknown model the short one', () => {
    expect(parseModel('mock-large')).toEqual({ kind: 'whole', text: TEXTS['mock-large'] });
    expect(parseModel('gpt-5')).toEqual({ kind: 'whole', text: TEXTS['mock-whole'] });
    expect(parseModel('mock-endless')).toEqual({ kind: 'endless' });
  });

  test('the large text has about 100 KB, and characters that JSON escapes', () => {
    expect(TEXTS['mock-large'].length / 1000).toBeCloseTo(98, 0);
    expect(JSON.stringify(TEXTS['mock-large']).length).toBeGreaterThan(TEXTS['mock-large'].length + 1000);
  });
});

describe('a client reads what the upstream sends', () => {
  test.each(['openai-chat', 'anthropic-messages'] as const)(
    '%s: the text of a whole response, and the end of a stream',
    (protocol) => {
      const [upstream, client] = [UPSTREAM_PROTOCOLS[protocol], CLIENT_PROTOCOLS[protocol]];
      for (const text of Object.values(TEXTS)) expect(client.readText(JSON.parse(upstream.whole(text)))).toBe(text);
      expect(upstream.end).toContain(client.streamEnd);
      expect(upstream.begin + upstream.text('a')).not.toContain(client.streamEnd);
    },
  );

  test('a response that did not come to its end has no text', () => {
    const whole = JSON.parse(UPSTREAM_PROTOCOLS['openai-chat'].whole('a'));
    whole.choices[0].finish_reason = 'length';
    expect(CLIENT_PROTOCOLS['openai-chat'].readText(whole)).toBeUndefined();
  });
});
