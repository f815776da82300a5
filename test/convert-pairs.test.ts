import { afterAll, describe, expect, test } from 'vitest';
import { CodecError, convertRequest, decodeRequest } from '../packages/core/src/index.ts';
import { NORMAL_FORM, UNREFUSED } from './convert-normal-form.ts';
import { clientRequests, recordedRequests, sampled } from './convert-sources.ts';
import { attempt, falseNotes, homeOf, isInPlace, isRefusal, lostOn, sourceOptions, trips, used } from './convert-trip.ts';
import { SHARED } from './shared.ts';

function raise(message: string): never {
  throw new Error(message);
}

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

describe.skipIf(!SHARED).each(rows)('$name', (trip) => {
  const { source, to } = trip;
  const options = { ...sourceOptions(source), to };

  test('nothing is lost but what the notes name', () => {
    let lost: string[] = [];
    try {
      lost = lostOn(trip, originals.get(source) ?? raise('not read'));
    } catch (error) {
      if (!isRefusal(error)) throw error;
    }
    expect(lost.join('\n')).toBe('');
  });

  test('every loss that the notes name is one', () => {
    expect(attempt(() => falseNotes(trip)) ?? []).toEqual([]);
  });

  test('P130: the same each time, every note in its place, and strict refuses what they tell', () => {
    const told = attempt(() => convertRequest(source.body, options));
    if (!told) return; // refused in any case
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

afterAll(() => {
  const idle = NORMAL_FORM.filter(({ name }) => !used.has(name)).map(({ name }) => name);
  if (SHARED) expect(idle, 'every rule is needed').toEqual([]);
});

test.each(NORMAL_FORM)('$name has a reason', ({ reason }) => expect(reason.length).toBeGreaterThan(20));
