import { describe, expect, test } from 'vitest';
import { below, seededRandom } from '../../packages/gateway/src/mutate/random.ts';
import { splitAt, splitBy, splitEvery } from '../run.ts';
import { readCases, SHARED } from '../shared.ts';
import { type Body, checkCuts, checkPieces, placesOf } from './properties/splits.ts';
import { readSizes, recordedStreams } from './recordings.ts';
import { IS_FULL, SEED, scale, Tally } from './tally.ts';
import { CODECS, PROTOCOL_IDS } from './wire.ts';

/** Bodies up to this many bytes are cut at every place. */
const EVERY = scale(1000, 8192);
/** So many times at random places. */
const KWAY = scale(2, 10);

function checkBody(tally: Tally, body: Body, sizes: readonly number[] | undefined): void {
  const { protocol, bytes } = body;
  const { tried, failure } = checkCuts(body, placesOf(bytes, EVERY));
  tally.add('two-way split', protocol, tried - 1);
  tally.check('two-way split', protocol, failure);
  if (IS_FULL || bytes.length < 20_000)
    tally.check('one byte at a time', protocol, checkPieces(body, splitEvery(bytes, 1), 'byte by byte'));
  const random = seededRandom(SEED);
  for (let round = 0; round < KWAY; round++) {
    const cuts = Array.from({ length: 1 + below(random, 30) }, () => below(random, bytes.length));
    tally.check('random split', protocol, checkPieces(body, splitAt(bytes, cuts), `cut at ${cuts.join()}`));
  }
  if (sizes) tally.check('network reads', protocol, checkPieces(body, splitBy(bytes, sizes), 'in the reads of the network'));
}

describe.skipIf(!SHARED)('recordings', () => {
  const sizes = SHARED ? readSizes() : {};
  test.each(PROTOCOL_IDS)('%s: the same however the bytes are split', (protocol) => {
    const tally = new Tally();
    const recorded = recordedStreams().filter(({ protocolId }) => protocolId === protocol);
    for (const { file, bytes, provider } of recorded.slice(0, scale(30, recorded.length))) {
      checkBody(tally, { protocol, name: file, bytes }, sizes[file]);
      const row = tally.add('recordings', protocol, 1);
      row.seen[provider] = (row.seen[provider] ?? 0) + 1;
    }
    expect(tally.finish(`splits-${protocol}`)).toEqual([]);
  });
});

const PROTOCOL_OF_CASE: Record<string, string> = { sse: 'openai-chat', anthropic: 'anthropic-messages' };

test('reported cases: the same however the bytes are split', () => {
  const tally = new Tally();
  for (const { id, raw, protocol } of readCases()) {
    const known = PROTOCOL_IDS.find((one) => one === (PROTOCOL_OF_CASE[protocol] ?? protocol));
    if (!known) throw new Error(`no protocol ${protocol} in ${Object.keys(CODECS).join()}`);
    if (raw.length < scale(2000, 8192))
      checkBody(tally, { protocol: known, name: id, bytes: new TextEncoder().encode(raw) }, undefined);
  }
  expect(tally.finish('splits-cases')).toEqual([]);
});
