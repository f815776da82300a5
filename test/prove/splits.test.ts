import { describe, expect, test } from 'vitest';
import { seededRandom } from '../../packages/lab/src/mutate/random.ts';
import { randomPieces } from '../../packages/lab/src/prove/prove-body.ts';
import { type Body, checkCuts, checkPieces, listCuts } from '../../packages/lab/src/prove/splits.ts';
import { PROTOCOL_IDS } from '../../packages/lab/src/prove/wire.ts';
import { readCases } from '../corpus.ts';
import { protocolOf, splitBy, splitEvery } from '../run.ts';
import { recordedBodies } from './recordings.ts';
import { IS_FULL, SEED, scale, Tally } from './tally.ts';

/** Bodies up to this many bytes are cut at every place. */
const EVERY = scale(1000, 8192);
/** So many times at random places. */
const KWAY = scale(2, 10);

function checkBody(tally: Tally, body: Body, sizes: readonly number[] | undefined): void {
  const { protocol, bytes } = body;
  const { tried, failure } = checkCuts(body, listCuts(bytes, EVERY));
  tally.add('two-way split', protocol, tried - 1);
  tally.check('two-way split', protocol, failure);
  if (IS_FULL || bytes.length < 20_000)
    tally.check('one byte at a time', protocol, checkPieces(body, splitEvery(bytes, 1), 'byte by byte'));
  const random = seededRandom(SEED);
  for (let round = 0; round < KWAY; round++) {
    const pieces = randomPieces(bytes, random);
    tally.check('random split', protocol, checkPieces(body, pieces, `in pieces of ${pieces.map(({ length }) => length).join()}`));
  }
  if (sizes) tally.check('network reads', protocol, checkPieces(body, splitBy(bytes, sizes), 'in the reads of the network'));
}

describe('recordings', () => {
  test.each(PROTOCOL_IDS)('%s: the same however the bytes are split', (protocol) => {
    const tally = new Tally();
    const recorded = recordedBodies().filter(({ protocolId }) => protocolId === protocol);
    const timed = recorded.filter(({ reads }) => reads);
    const chosen = IS_FULL ? recorded : [...recorded.slice(0, 30), ...timed.slice(0, 3)];
    for (const { file, bytes, provider, stream, reads } of chosen) {
      checkBody(tally, { protocol, name: file, bytes }, reads);
      const { seen } = tally.add(stream ? 'recorded streams' : 'recorded bodies', protocol, 1);
      seen[provider] = (seen[provider] ?? 0) + 1;
    }
    expect(tally.finish(`splits-${protocol}`)).toEqual([]);
  });
});

test('reported cases: the same however the bytes are split', () => {
  const tally = new Tally();
  for (const { id, raw, protocol } of readCases()) {
    if (raw.length < scale(2000, 8192))
      checkBody(tally, { protocol: protocolOf(protocol).id, name: id, bytes: new TextEncoder().encode(raw) }, undefined);
  }
  expect(tally.finish('splits-cases')).toEqual([]);
});
