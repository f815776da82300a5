import { expect, test } from 'vitest';
import { listMutations } from '../../packages/lab/src/mutate/index.ts';
import { PROTOCOL_IDS } from '../../packages/lab/src/prove/wire.ts';
import { anyTold, eventsOf, type Told } from './generate/events.ts';
import { overGenerated } from './generated.ts';
import { openReason } from './open.ts';
import { type Clean, checkMutation, cleanOf, shortestMutation } from './properties/mutation.ts';
import { cleanRecording, recordedStreams } from './recordings.ts';
import { SEED, scale, Tally } from './tally.ts';
import { encode, streamOf } from './wire.ts';

/** A generated stream as its own protocol writes it. */
const cleanGenerated = (protocol: (typeof PROTOCOL_IDS)[number], { answer, seed }: Told): Clean | undefined =>
  cleanOf(streamOf(protocol, encode(protocol, eventsOf(answer, seed), [], protocol)));

test.each(PROTOCOL_IDS)('%s: recorded streams in every dialect', (protocol) => {
  const tally = new Tally();
  const recorded = recordedStreams().filter(({ protocolId }) => protocolId === protocol);
  for (const recording of recorded.slice(0, scale(12, recorded.length))) {
    const clean = cleanRecording(recording);
    if (!clean) continue;
    for (const mutation of listMutations(protocol)) {
      const tried = checkMutation(clean, mutation, SEED);
      if (!tried) continue;
      const { failure } = tried;
      tally.check(
        'mutation of recordings',
        protocol,
        failure && openReason(failure) === undefined ? shortestMutation(clean, mutation, SEED) : failure,
      );
    }
  }
  expect(tally.finish(`mutation-recorded-${protocol}`)).toEqual([]);
});

test.each(PROTOCOL_IDS)('%s: generated streams in every dialect', (protocol) => {
  const tally = new Tally();
  const untried = new Set(listMutations(protocol).map(({ id }) => id));
  const { failures } = overGenerated(anyTold(protocol), scale(25, 500), (told, isPassed) => {
    const clean = cleanGenerated(protocol, told);
    if (!clean) return undefined;
    for (const mutation of listMutations(protocol)) {
      if (isPassed(mutation.id)) continue;
      const tried = checkMutation(clean, mutation, told.seed);
      if (tried) untried.delete(mutation.id);
      if (tried?.failure) return tried.failure;
      if (tried) tally.add('mutation of generated streams', protocol, 1, SEED);
    }
    return undefined;
  });
  for (const failure of failures) tally.check('mutation of generated streams', protocol, failure, SEED);
  expect(tally.finish(`mutation-generated-${protocol}`)).toEqual([]);
  expect(untried.size).toBeLessThan(listMutations(protocol).length / 4);
});
