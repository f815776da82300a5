import { describe, expect, test } from 'vitest';
import type { ProtocolId } from '../../packages/core/src/index.ts';
import type { Failure } from '../../packages/lab/src/prove/failure.ts';
import { checkPair, smallest } from '../../packages/lab/src/prove/prove-body.ts';
import { PROTOCOL_IDS } from '../../packages/lab/src/prove/wire.ts';
import { readCases } from '../corpus.ts';
import { protocolOf } from '../run.ts';
import { anyTold, portableTold } from './generate/events.ts';
import { overGenerated } from './generated.ts';
import { SETTLED_LATE } from './late.ts';
import { openReason } from './open.ts';
import { checkCommute, checkGeneratedPair, checkRecut, checkWritten } from './properties/answers.ts';
import { recordedBodies } from './recordings.ts';
import { SEED, scale, Tally } from './tally.ts';
import { PAIRS } from './wire.ts';

describe.each(PROTOCOL_IDS)('%s', (protocol: ProtocolId) => {
  test.each([
    ['grammar', checkWritten],
    ['streamed or whole', checkCommute],
    ['re-chunking', checkRecut],
  ] as const)('%s', (property, check) => {
    const tally = new Tally();
    const runs = scale(60, 3000);
    tally.generated(
      property,
      protocol,
      SEED,
      overGenerated(anyTold(protocol), runs, (told) => check(protocol, told)),
    );
    expect(tally.finish(`pairs-${property.replaceAll(' ', '-')}-${protocol}`)).toEqual([]);
  });
});

test.each(PAIRS)('$name: generated responses, there and back', ({ from, to, name }) => {
  const tally = new Tally();
  const runs = scale(40, 1500);
  const onNote = tally.noteCounter('there and back', name);
  const outcome = overGenerated(portableTold, runs, (told) => checkGeneratedPair(from, to, told, onNote));
  tally.generated('there and back', name, SEED, outcome);
  expect(tally.finish(`pairs-generated-${from}-${to}`)).toEqual([]);
});

describe('recordings', () => {
  test.each(PAIRS)('$name: recorded responses, there and back', ({ from, to, name }) => {
    const tally = new Tally();
    const recorded = recordedBodies().filter(({ protocolId }) => protocolId === from);
    const onNote = tally.noteCounter('recorded, there and back', name);
    for (const { bytes, file } of recorded.slice(0, scale(12, recorded.length)))
      tally.check('recorded, there and back', name, shrunk(from, to, bytes, titled(file, checkPair(from, to, [bytes], onNote))));
    expect(tally.finish(`pairs-recorded-${from}-${to}`)).toEqual([]);
  });
});

const reported = readCases().map(({ id, protocol, raw }) => ({
  id,
  from: protocolOf(protocol).id,
  chunks: [new TextEncoder().encode(raw)],
}));

test.each(PAIRS)('$name: reported responses, there and back', ({ from, to, name }) => {
  const tally = new Tally();
  const onNote = tally.noteCounter('reported, there and back', name);
  for (const { id, chunks } of reported.filter((row) => row.from === from && !Object.hasOwn(SETTLED_LATE, row.id)))
    tally.check('reported, there and back', name, titled(id, checkPair(from, to, chunks, onNote)));
  expect(tally.finish(`pairs-reported-${from}-${to}`)).toEqual([]);
});

/** What is known to fail need not be made smaller. */
const shrunk = (from: ProtocolId, to: ProtocolId, bytes: Uint8Array, failure: Failure | undefined): Failure | undefined =>
  failure && openReason(failure) === undefined
    ? { ...smallest(bytes, failure, (fewer) => checkPair(from, to, [fewer])), ...(failure.title && { title: failure.title }) }
    : failure;

const titled = (title: string, failure: Failure | undefined): Failure | undefined => failure && { ...failure, title };

test.each(Object.keys(SETTLED_LATE))('%s is settled late', (id) => {
  const row = reported.find((one) => one.id === id);
  expect(row && PROTOCOL_IDS.some((to) => checkPair(row.from, to, row.chunks))).toBe(true);
});
