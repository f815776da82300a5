import { afterAll, describe, expect, test } from 'vitest';
import { decodeRequest } from '../packages/core/src/engine/index.ts';
import { CodecError, convertRequest } from '../packages/core/src/index.ts';
import { NORMAL_FORM, UNREFUSED } from './convert-normal-form.ts';
import { clientRequests, codecs, recordedRequests, sampled } from './convert-sources.ts';
import {
  attempt,
  falseNotes,
  homeOf,
  isInPlace,
  lostOn,
  outcomeOf,
  refusalOf,
  sourceOptions,
  trips,
  used,
} from './convert-trip.ts';
import { CORPUS } from './corpus.ts';

const everything = [...recordedRequests(), ...clientRequests()];
/** What is no request of its protocol at all is tested where it is refused. */
const readable = everything.flatMap((source) => {
  const original = attempt(() => decodeRequest(source.body, sourceOptions(source)));
  return original && attempt(() => homeOf(source)) ? [{ source, original }] : [];
});
const originals = new Map(readable.map(({ source, original }) => [source, original]));
const rows = trips(
  sampled(
    readable.map(({ source }) => source),
    1,
  ),
);

/** Requests that ask for what only their protocol has. A new refusal is a loss to clients: it has to be meant. */
const REFUSED: Readonly<Record<string, number>> = Object.fromEntries(
  [
    { from: 'anthropic-messages', count: 1 },
    { from: 'gemini', count: CORPUS === 'recordings' ? 2 : 1 },
    { from: 'openai-responses', count: CORPUS === 'recordings' ? 4 : 1 },
  ].flatMap(({ from, count }) =>
    codecs.filter(({ id }) => id !== from).map(({ id }) => [`${from} to ${id}, refused there`, count]),
  ),
);

const travelled = rows.map((trip) => ({ trip, name: trip.name, outcome: outcomeOf(trip) }));

test('the number of rejected requests per pair and direction is unchanged', () => {
  const counts: Record<string, number> = {};
  for (const { trip, outcome } of travelled) {
    if (outcome === 'arrived') continue;
    const pair = `${trip.source.codec.id} to ${trip.to.id}, ${outcome}`;
    counts[pair] = (counts[pair] ?? 0) + 1;
  }
  expect(counts).toEqual(REFUSED);
});

describe.each(travelled.filter(({ outcome }) => outcome === 'arrived'))('$name', ({ trip }) => {
  test('every loss has a note', () => {
    const original = originals.get(trip.source);
    if (!original) throw new Error('not read');
    expect(lostOn(trip, original).join('\n')).toBe('');
  });

  test('every note describes a real loss', () => {
    expect(falseNotes(trip)).toEqual([]);
  });
});

describe.each(travelled.filter(({ outcome }) => outcome !== 'refused there'))('$name', ({ trip: { source, to } }) => {
  const options = { ...sourceOptions(source), to };

  test('P130: deterministic, every note has its path, and strict mode rejects every loss', () => {
    const told = convertRequest(source.body, options);
    expect(JSON.stringify(convertRequest(source.body, options).body)).toBe(JSON.stringify(told.body));
    expect(told.notes.filter((note) => !isInPlace(note, source.body))).toEqual([]);
    const strict = () => convertRequest(source.body, { ...options, policy: { strict: true } });
    const lost = told.notes
      .filter(({ code, feature }) => code === 'DROPPED' && !UNREFUSED.has(feature))
      .map(({ feature }) => feature);
    if (lost.length > 0) expect(strict, lost.join()).toThrow(CodecError);
    else if (told.notes.length === 0) expect(strict().body).toEqual(told.body);
  });
});

describe.each(travelled.filter(({ outcome }) => outcome === 'refused there'))('$name', ({ trip: { source, to } }) => {
  test('is rejected with its path', () => {
    const error = refusalOf(() => convertRequest(source.body, { ...sourceOptions(source), to }));
    expect(error?.error).toMatchObject({ http_status: 400, param: expect.stringMatching(/./) });
  });
});

afterAll(() => {
  const idle = NORMAL_FORM.filter(({ name }) => !used.has(name)).map(({ name }) => name);
  expect(idle, 'every rule is needed').toEqual([]);
});

test.each(NORMAL_FORM)('$name has a reason', ({ reason }) => expect(reason.length).toBeGreaterThan(20));
