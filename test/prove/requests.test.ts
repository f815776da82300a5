import { describe, expect, test } from 'vitest';
import { convertRequest } from '../../packages/core/src/engine/request.ts';
import {
  type CanonicalRequest,
  CodecError,
  type Note,
  type ProtocolId,
  type RequestOptions,
  type WireRequest,
} from '../../packages/core/src/index.ts';
import type { Failure } from '../../packages/lab/src/prove/failure.ts';
import { sortKeys } from '../../packages/lab/src/prove/normal.ts';
import { PROTOCOL_IDS } from '../../packages/lab/src/prove/wire.ts';
import { request } from './generate/request.ts';
import { overGenerated } from './generated.ts';
import { recordedRequests } from './recordings.ts';
import { SEED, scale, Tally } from './tally.ts';
import { CODECS, contextOf, PAIRS } from './wire.ts';

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
    const [a, b] = [first, again].map(({ path, body }) => JSON.stringify(sortKeys([path, body])));
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

/** What stands inside of a JSON text is escaped once more. */
const unescaped = (json: string): string => json.replaceAll('\\', '');

/** Whatever is asked, the other protocol can ask it, or says why not; and asks the same thing each time. */
function checkConverted(
  id: string,
  asked: () => { body: unknown; options: RequestOptions },
  onNote: (note: Note) => void,
): Failure | undefined {
  const failure = (message: string): Failure => ({ property: 'request conversion', id: `request/${id}`, message });
  try {
    const { body, options } = asked();
    const [once, twice] = [convertRequest(body, options), convertRequest(body, options)];
    for (const note of once.notes) onNote(note);
    const said = JSON.stringify(once.body);
    if (said !== JSON.stringify(twice.body)) return failure('the same request gave another body');
    const lost = textsOf(body).filter((text) => !unescaped(said).includes(unescaped(JSON.stringify(text).slice(1, -1))));
    const isTold = once.notes.some(({ code }) => code === 'DROPPED' || code === 'APPROXIMATED');
    return lost.length === 0 || isTold ? undefined : failure(`lost without a word: ${JSON.stringify(lost)}`);
  } catch (error) {
    return error instanceof CodecError ? undefined : failure(`threw ${error}`);
  }
}

test.each(PAIRS)('$name: no request field is lost silently', ({ from, to, name }) => {
  const tally = new Tally();
  const runs = scale(20, 1000);
  const onNote = tally.noteCounter('request conversion', name);
  const outcome = overGenerated(request, runs, (asked) =>
    checkConverted(
      `${from}/${to}`,
      () => {
        const { body, path } = encodeWith(from, asked);
        return { body, options: { from: CODECS[from], to: CODECS[to], path, model: 'model-b' } };
      },
      onNote,
    ),
  );
  tally.generated('request conversion', name, SEED, outcome);
  expect(tally.finish(`requests-${from}-${to}`)).toEqual([]);
});

describe('recordings', () => {
  test.each(PAIRS)('$name: recorded requests', ({ from, to, name }) => {
    const tally = new Tally();
    const onNote = tally.noteCounter('recorded requests', name);
    const recorded = recordedRequests().filter(({ protocolId }) => protocolId === from);
    for (const { file, body, model, provider } of recorded.slice(0, scale(20, recorded.length))) {
      const options = { from: CODECS[from], to: CODECS[to], model };
      tally.check(
        'recorded requests',
        name,
        checkConverted(`${file}/${to}`, () => ({ body, options }), onNote),
      );
      if (from !== to) continue;
      const { seen } = tally.add('requests', from, 1);
      seen[provider] = (seen[provider] ?? 0) + 1;
    }
    expect(tally.finish(`requests-recorded-${from}-${to}`)).toEqual([]);
  });
});
