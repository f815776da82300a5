import { expect, test } from 'vitest';
import { convertRequest } from '../../packages/core/src/engine/convert-request.ts';
import {
  type CanonicalRequest,
  CodecError,
  type Note,
  type ProtocolId,
  type WireRequest,
} from '../../packages/core/src/index.ts';
import type { Failure } from './case.ts';
import { request } from './generate/request.ts';
import { overGenerated } from './generated.ts';
import { sorted } from './normal.ts';
import { SEED, scale, Tally } from './tally.ts';
import { CODECS, contextOf, PROTOCOL_IDS } from './wire.ts';

const pairs = PROTOCOL_IDS.flatMap((from) => PROTOCOL_IDS.map((to) => ({ from, to, name: `${from} → ${to}` })));

const encodeWith = (protocol: ProtocolId, asked: CanonicalRequest): WireRequest =>
  CODECS[protocol].request.encode(asked, { ...contextOf(protocol), trace: true });

/** The texts of a body, in their order, wherever they stand: what the model gets to read. */
function textsOf(body: unknown): string[] {
  const texts: string[] = [];
  JSON.stringify(body, (key, value: unknown) => {
    if (typeof value === 'string' && (key === 'text' || key === 'content' || key === 'output' || key === 'instructions'))
      texts.push(value);
    return value;
  });
  return texts.toSorted();
}

/** A request that its own protocol reads and writes again is the same request; keys that were kept as they came stand before the others. */
function checkFixpoint(protocol: ProtocolId, asked: CanonicalRequest): Failure | undefined {
  const failure = (message: string): Failure => ({ property: 'request identity', id: `request/${protocol}`, message });
  try {
    const first = encodeWith(protocol, asked);
    const again = encodeWith(protocol, CODECS[protocol].request.decode(first, contextOf(protocol)));
    const [a, b] = [first, again].map(({ path, body }) => JSON.stringify(sorted([path, body])));
    return a === b ? undefined : failure(`${b} is not ${a}`);
  } catch (error) {
    return error instanceof CodecError ? undefined : failure(`threw ${error}`);
  }
}

test.each(PROTOCOL_IDS)('%s: a request read and written again is the same', (protocol) => {
  const tally = new Tally();
  const runs = scale(40, 2000);
  tally.generated(
    'request identity',
    protocol,
    SEED,
    overGenerated(request, runs, (asked) => checkFixpoint(protocol, asked)),
  );
  expect(tally.finish(`requests-${protocol}`)).toEqual([]);
});

/** Whatever is asked, the other protocol can ask it, or says why not; and asks the same thing each time. */
function checkConverted(
  from: ProtocolId,
  to: ProtocolId,
  asked: CanonicalRequest,
  onNote: (note: Note) => void,
): Failure | undefined {
  const failure = (message: string): Failure => ({ property: 'request conversion', id: `request/${from}/${to}`, message });
  try {
    const { body, path } = encodeWith(from, asked);
    const options = { from: CODECS[from], to: CODECS[to], path, model: 'model-b' };
    const once = convertRequest(body, options);
    const twice = convertRequest(body, options);
    for (const note of once.notes) onNote(note);
    if (JSON.stringify(once.body) !== JSON.stringify(twice.body)) return failure('the same request gave another body');
    const lost = textsOf(body).filter((text) => !JSON.stringify(once.body).includes(JSON.stringify(text).slice(1, -1)));
    const isTold = once.notes.some(({ code }) => code === 'DROPPED' || code === 'APPROXIMATED');
    return lost.length === 0 || isTold ? undefined : failure(`lost without a word: ${JSON.stringify(lost)}`);
  } catch (error) {
    return error instanceof CodecError ? undefined : failure(`threw ${error}`);
  }
}

test.each(pairs)('$name: nothing asked is lost silently', ({ from, to, name }) => {
  const tally = new Tally();
  const runs = scale(20, 1000);
  const { seen } = tally.add('request conversion', name, 0);
  const outcome = overGenerated(request, runs, (asked) =>
    checkConverted(from, to, asked, ({ code, feature }) => {
      seen[`${code} ${feature}`] = (seen[`${code} ${feature}`] ?? 0) + 1;
    }),
  );
  tally.generated('request conversion', name, SEED, outcome);
  expect(tally.finish(`requests-${from}-${to}`)).toEqual([]);
});
