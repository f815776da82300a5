import { describe, expect, test } from 'vitest';
import { BARE, LENIENT, type Row, STANDARD } from '../../packages/core/test/sse/rows.ts';
import { seededRandom } from '../../packages/lab/src/mutate/random.ts';
import type { Failure } from '../../packages/lab/src/prove/failure.ts';
import { randomPieces } from '../../packages/lab/src/prove/prove-body.ts';
import { bytesOf, splitAt, splitEvery } from '../run.ts';
import { DELIBERATE, differsFromOracle, type Framed, framed } from './framing.ts';
import { soup } from './generate/soup.ts';
import { overGenerated } from './generated.ts';
import { recordedBodies } from './recordings.ts';
import { SEED, scale, Tally } from './tally.ts';

const ORACLE = 'eventsource-parser 3.1';

const failureOf = (id: string, message: string | undefined): Failure | undefined =>
  message === undefined ? undefined : { property: 'framing', id: `framing/${id}`, message };

/** Whole, byte by byte, and at every place or at random ones: the same frames, and those of the oracle. */
function check(bytes: Uint8Array, cuts: Iterable<Iterable<Uint8Array>>): string | undefined {
  const whole = framed([bytes]);
  const isSame = (other: Framed): boolean => JSON.stringify(other) === JSON.stringify(whole);
  if (!isSame(framed(splitEvery(bytes, 1)))) return 'otherwise byte by byte';
  for (const pieces of cuts) if (!isSame(framed(pieces))) return 'otherwise in pieces';
  return differsFromOracle(bytes, whole);
}

const everyCut = (bytes: Uint8Array): Uint8Array[][] => Array.from(bytes, (_, at) => splitAt(bytes, [at]));
const inputOf = ({ input }: Row): Uint8Array => (typeof input === 'string' ? bytesOf(input) : input);

const TABLES = { 'format of the standard': STANDARD, 'beyond the standard': [...LENIENT, ...BARE] };

test.each(Object.entries(TABLES))('%s', (property, rows) => {
  const tally = new Tally();
  for (const row of rows) tally.check(property, ORACLE, failureOf(row.name, check(inputOf(row), everyCut(inputOf(row)))));
  expect(tally.finish(`framing-${property.replaceAll(' ', '-')}`)).toEqual([]);
});

test('the cases of the standard have no exceptions', () => {
  const excused = STANDARD.filter((row) => framed([inputOf(row)]).rules.some((rule) => rule in DELIBERATE));
  expect(excused.map(({ name }) => name)).toEqual(['data before final empty line']);
});

test('generated bodies', () => {
  const tally = new Tally();
  const outcome = overGenerated(soup, scale(500, 20_000), (bytes) => {
    const random = seededRandom(bytes.length);
    return failureOf('generated', check(bytes, bytes.length > 0 ? [randomPieces(bytes, random)] : []));
  });
  tally.generated('generated bodies', ORACLE, SEED, outcome);
  expect(tally.finish('framing-generated')).toEqual([]);
});

describe('recordings', () => {
  test('recorded bodies', () => {
    const tally = new Tally();
    for (const { bytes, file } of recordedBodies().filter((_, at) => at % scale(10, 1) === 0))
      tally.check('framing of recordings', ORACLE, failureOf(file, differsFromOracle(bytes, framed([bytes]))));
    expect(tally.finish('framing-recorded')).toEqual([]);
  });
});
