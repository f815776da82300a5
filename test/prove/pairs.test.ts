import { describe, expect, test } from 'vitest';
import type { Note, ProtocolId } from '../../packages/core/src/index.ts';
import { SHARED } from '../shared.ts';
import { anyTold, portableTold } from './generate/events.ts';
import { overGenerated } from './generated.ts';
import { checkCommute, checkGeneratedPair, checkPair, checkRecut, checkWritten } from './properties/pairs.ts';
import { recordedStreams } from './recordings.ts';
import { SEED, scale, Tally } from './tally.ts';
import { PROTOCOL_IDS } from './wire.ts';

const pairs = PROTOCOL_IDS.flatMap((from) => PROTOCOL_IDS.map((to) => ({ from, to, name: `${from} → ${to}` })));

const counter = (tally: Tally, property: string, subject: string) => {
  const { seen } = tally.add(property, subject, 0);
  return ({ code, feature }: Note): void => {
    const key = `${code} ${feature}`;
    seen[key] = (seen[key] ?? 0) + 1;
  };
};

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

test.each(pairs)('$name: generated answers, there and back', ({ from, to, name }) => {
  const tally = new Tally();
  const runs = scale(40, 1500);
  const onNote = counter(tally, 'there and back', name);
  const outcome = overGenerated(portableTold, runs, (told) => checkGeneratedPair(from, to, told, onNote));
  tally.generated('there and back', name, SEED, outcome);
  expect(tally.finish(`pairs-generated-${from}-${to}`)).toEqual([]);
});

describe.skipIf(!SHARED)('recordings', () => {
  test.each(pairs)('$name: recorded answers, there and back', ({ from, to, name }) => {
    const tally = new Tally();
    const recorded = recordedStreams().filter(({ protocolId }) => protocolId === from);
    const onNote = counter(tally, 'recorded, there and back', name);
    for (const { bytes } of recorded.slice(0, scale(12, recorded.length)))
      tally.check('recorded, there and back', name, checkPair(from, to, [bytes], onNote));
    expect(tally.finish(`pairs-recorded-${from}-${to}`)).toEqual([]);
  });
});
