import { createExchange, type Exchange, type ProtocolId } from '@sluice/core';
import { CODECS } from '@sluice/core/engine';
import { StreamValidator } from '@sluice/core/internal';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { Continuation, type JoinMode } from '../../src/exchange/continuation.ts';
import { OverlapFinder } from '../../src/exchange/join.ts';
import { ANSWER, framesOf, questionOf, readStream } from '../gateway/dialects.ts';

// How two responses become one, without sockets. SLUICE_EVERY_BYTE=1 (nightly) cuts at every byte instead of every thirteenth, for every fallback.

const EVERY_BYTE = process.env['SLUICE_EVERY_BYTE'] === '1';
const STEP = EVERY_BYTE ? 1 : 13;
const PROTOCOLS: readonly ProtocolId[] = ['openai-chat', 'anthropic-messages', 'openai-responses', 'gemini'];

const MODES: readonly JoinMode[] = ['prefill', 'restart'];

const known = new Map<string, Buffer>();

/** The response of a good upstream. */
function bytesOf(protocol: ProtocolId, text: string): Buffer {
  const key = `${protocol} ${text}`;
  const bytes =
    known.get(key) ??
    Buffer.from(framesOf(protocol, { ...ANSWER, content: text === '' ? [] : [{ type: 'text', text }] }).join(''));
  known.set(key, bytes);
  return bytes;
}

function exchangeOf(client: ProtocolId, upstream: ProtocolId): Exchange {
  const provider = { id: 'p', protocol: upstream, base_url: 'http://127.0.0.1' };
  const exchange = createExchange(CODECS[client], CODECS[upstream], { provider, model: 'm', stream: true, tap: 'usage' });
  exchange.request({ method: 'POST', ...questionOf(client, 'm', true) });
  return exchange;
}

interface Cut {
  client: ProtocolId;
  upstream: ProtocolId;
  fallback: ProtocolId;
  text: string;
  /** Bytes of the first response that arrive. */
  at: number;
  mode: JoinMode;
  /** Sizes of the pieces in which bytes arrive. */
  piece?: number;
}

const piecesOf = (bytes: Buffer, size: number): Buffer[] =>
  Array.from({ length: Math.ceil(bytes.length / size) }, (_, i) => bytes.subarray(i * size, (i + 1) * size));

/** What a client reads of a response that is cut and continued. Every event that it gets follows the stream rules. */
function joinStreams({ client, upstream, fallback, text, at, mode, piece = 1e6 }: Cut): ReturnType<typeof readStream> {
  const continuation = new Continuation();
  const validator = new StreamValidator();
  const splice = {
    push: (event: Parameters<Continuation['push']>[0]) => continuation.push(event).flatMap((joined) => validator.push(joined)),
    get isCut() {
      return continuation.isCut;
    },
  };
  const out: Uint8Array[] = [];
  const first = exchangeOf(client, upstream).stream({ splice });
  continuation.output = first;
  for (const chunk of piecesOf(bytesOf(upstream, text).subarray(0, at), piece)) out.push(...first.push(chunk));
  out.push(...first.end());
  if (continuation.isCut) {
    const [block] = continuation.prefill?.content ?? [];
    const prefill = mode === 'prefill' && block?.type === 'text' ? block.text : '';
    continuation.join(prefill === '' ? 'restart' : mode);
    const second = exchangeOf(client, fallback).stream({ splice, onto: continuation.output });
    for (const chunk of piecesOf(bytesOf(fallback, text.slice(prefill.length)), piece)) out.push(...second.push(chunk));
    out.push(...second.end());
  }
  return readStream(client, Buffer.concat(out));
}

const TEXT = 'Zwölf Boxkämpfer jagen\n\n  🐫 Viktor.';

/** Where a response has content and no stop reason: before it another target is asked as usual, after it nothing is lost. */
function expectJoined(cut: Cut): void {
  const read = joinStreams(cut);
  const hasText = read.text !== '';
  if (hasText || read.error === null)
    expect({ at: cut.at, text: read.text, error: read.error, complete: read.complete }).toEqual({
      at: cut.at,
      text: cut.text,
      error: null,
      complete: true,
    });
}

describe.each(PROTOCOLS)('%s: text is neither lost nor repeated, wherever the first response is cut', (client) => {
  const triples = PROTOCOLS.flatMap((upstream, i) =>
    PROTOCOLS.filter((_, j) => EVERY_BYTE || j === (i + PROTOCOLS.indexOf(client)) % PROTOCOLS.length).map((fallback) => ({
      upstream,
      fallback,
    })),
  );
  test.each(triples)(
    '$upstream, then $fallback',
    ({ upstream, fallback }) => {
      const { length } = bytesOf(upstream, TEXT);
      for (let at = 0, turn = 0; at < length; at += STEP, turn++)
        for (const mode of MODES)
          if (EVERY_BYTE || mode === MODES[turn % 2]) expectJoined({ client, upstream, fallback, text: TEXT, at, mode });
    },
    600_000,
  );
});

test('any text, cut anywhere, in pieces of any size', () => {
  const protocol = fc.constantFrom(...PROTOCOLS);
  fc.assert(
    fc.property(
      fc.record({
        client: protocol,
        upstream: protocol,
        fallback: protocol,
        // Words that differ: the end of a text that repeats itself looks like an overlap.
        text: fc
          .uniqueArray(fc.string({ unit: 'grapheme', minLength: 3, maxLength: 12 }), { minLength: 2, maxLength: 12 })
          .map((words) => words.map((word, i) => `${i}${word.trim()}`).join(' ')),
        share: fc.double({ min: 0, max: 1, noNaN: true }),
        mode: fc.constantFrom(...MODES),
        piece: fc.integer({ min: 1, max: 500 }),
      }),
      ({ share, ...cut }) => expectJoined({ ...cut, at: Math.floor(share * bytesOf(cut.upstream, cut.text).length) }),
    ),
    { numRuns: EVERY_BYTE ? 5000 : 200 },
  );
});

describe('the overlap of a continuation', () => {
  const SENT = 'one two three four five six seven ';
  test.each([
    ['exact continuation', 'eight nine ten eleven', 'eight nine ten eleven'],
    ['the white space that the prefill lacks', ' eight nine ten eleven', 'eight nine ten eleven'],
    ['at least 16 characters that end at the cut', 'four five six seven eight nine', 'eight nine'],
    ['the whole response again', 'one two three four five six seven eight nine', 'eight nine'],
    ['15 characters are kept', 'ive six seven eight', 'ive six seven eight'],
    ['what does not end at the cut is kept', 'two three four five eight', 'two three four five eight'],
    ['a short answer', 'eight', 'eight'],
    ['an empty answer', '', ''],
  ])('%s', (_, next, rest) => {
    for (const size of [1, 3, 100]) {
      const finder = new OverlapFinder(SENT);
      let out = '';
      let isFound = false;
      for (const [piece] of next.matchAll(new RegExp(`.{1,${size}}`, 'g'))) {
        const found: string | undefined = isFound ? piece : finder.push(piece);
        isFound ||= found !== undefined;
        out += found ?? '';
      }
      expect(isFound ? out : finder.end()).toBe(rest);
    }
  });
});
