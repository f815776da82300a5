import type { ProtocolId } from '@sluice/core';
import { beforeEach, expect, test, vi } from 'vitest';
import { below, listMutations, PLAIN_FRAMING, seededRandom, writeStream } from '../../packages/lab/src/mutate/index.ts';
import { assemble, decodeBody, PROTOCOL_IDS, readFrames } from '../../packages/lab/src/prove/wire.ts';
import { readCases, readManifest, readRecording } from '../corpus.ts';
import { bytesOf, protocolOf } from '../run.ts';
import { type Comparison, compareReaders, type Difference, describeDifference, EXPECTED, OTHER_READERS } from './differential.ts';

interface Stream {
  name: string;
  protocol: ProtocolId;
  raw: string;
}

const idOf = (protocol: string): ProtocolId => protocolOf(protocol).id as ProtocolId;

const streams: Stream[] = [
  ...readCases().map(({ id, protocol, raw }) => ({ name: id, protocol: idOf(protocol), raw })),
  ...readManifest()
    .filter(({ stream }) => stream)
    .map(({ file, protocol }) => ({ name: file, protocol: idOf(protocol), raw: readRecording(file).toString() })),
];

/** How many mutated streams of all protocols are read: `npm run nightly -- --only differential` reads 100,000. */
const MUTATED = Number(process.env['SLUICE_MUTATED_STREAMS'] ?? 200);

const SEED = Number(process.env['SLUICE_SEED'] ?? 20261119);

/** The SDKs log what they cannot read, which is the subject here. */
beforeEach(() => {
  for (const method of ['log', 'info', 'warn', 'error'] as const) vi.spyOn(console, method).mockImplementation(() => undefined);
});

interface Compared extends Comparison {
  stream: Stream;
}

const compared = new Map<ProtocolId, Promise<Compared[]>>();

/** The cases and recordings of a protocol, compared once. */
function compareStreams(protocol: ProtocolId): Promise<Compared[]> {
  const known = compared.get(protocol) ?? compareAll(streams.filter((stream) => stream.protocol === protocol));
  compared.set(protocol, known);
  return known;
}

async function compareAll(chosen: readonly Stream[]): Promise<Compared[]> {
  const found: Compared[] = [];
  for (const stream of chosen) found.push({ stream, ...(await compareReaders(stream.protocol, stream.name, stream.raw)) });
  return found;
}

const differencesOf = (found: readonly Comparison[]): Difference[] =>
  found.flatMap(({ difference }) => (difference ? [difference] : []));

const describeUnexpected = (found: readonly Comparison[]): string[] =>
  differencesOf(found)
    .filter((difference) => !Object.values(EXPECTED).some(({ is }) => is(difference)))
    .map(describeDifference);

test.each(PROTOCOL_IDS)('%s: what all others read in a stream, Sluice reads, or names a rule', async (protocol) => {
  const found = await compareStreams(protocol);
  expect(describeUnexpected(found)).toEqual([]);
  expect(found.filter(({ isAgreed, readers }) => isAgreed && readers > 1).length).toBeGreaterThan(15);
});

/** A stream with a violation; undefined when there is no place for it in the stream. */
function mutate({ name, protocol, raw }: Stream, seed: number): Stream | undefined {
  const random = seededRandom(seed);
  const mutations = listMutations(protocol);
  const mutation = mutations[below(random, mutations.length)];
  const clean = { protocol, frames: readFrames(bytesOf(raw)), framing: PLAIN_FRAMING };
  const mutated = mutation?.apply(clean, random) ?? clean;
  if (mutated === clean) return undefined;
  return { name: `${name} with ${mutation?.id}, seed ${seed}`, protocol, raw: decodeBody(writeStream(mutated, random)) };
}

test.each(PROTOCOL_IDS)('%s: the same of mutated streams', { timeout: 60_000 + MUTATED * 100 }, async (protocol) => {
  // A reader that fails on a stream as it is does not show what a violation does to it.
  const clean = (await compareStreams(protocol)).filter(
    ({ isAgreed, readers, difference }) => isAgreed && !difference && readers === OTHER_READERS[protocol].length,
  );
  const mutated: Stream[] = [];
  for (let seed = SEED; mutated.length < MUTATED / PROTOCOL_IDS.length; seed++) {
    const made = clean.slice(seed % clean.length, (seed % clean.length) + 1).flatMap(({ stream }) => mutate(stream, seed) ?? []);
    mutated.push(...made);
  }
  const found = await compareAll(mutated);
  expect(describeUnexpected(found)).toEqual([]);
  expect(found.filter(({ isAgreed, readers }) => isAgreed && readers > 1).length).toBeGreaterThan(found.length / 3);
});

test('every exception still occurs', async () => {
  const found = differencesOf((await Promise.all(PROTOCOL_IDS.map(compareStreams))).flat());
  expect(Object.entries(EXPECTED).filter(([, { is }]) => !found.some(is))).toEqual([]);
});

test.each(PROTOCOL_IDS)('%s: a reader of ours that loses a character differs', async (protocol) => {
  const forgetful: typeof assemble = (id, chunks) => {
    const message = assemble(id, chunks);
    return { ...message, text: message.text.slice(1) };
  };
  const found: Difference[] = [];
  for (const { stream, readers } of await compareStreams(protocol)) {
    if (readers === OTHER_READERS[protocol].length && found.length === 0)
      found.push(...differencesOf([await compareReaders(protocol, stream.name, stream.raw, forgetful)]));
  }
  expect(found.map(({ theirs, ours }) => theirs?.text.slice(1) === ours.text)).toEqual([true]);
});
