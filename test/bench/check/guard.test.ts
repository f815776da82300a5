import { describe, expect, test } from 'vitest';
import { recordLimits, runChecks } from '../../../bench/check/guard.js';
import { type Measured, type Part, selectParts } from '../../../bench/check/parts.js';

const NODE = 'v20.20.2';

/** A part with one check, whose measurements have these values. */
function buildPart(name: string, kind: string, values: readonly (number | Measured | Error)[], more = {}) {
  const left = [...values];
  const measure = async (): Promise<Record<string, Measured>> => {
    const value = left.shift();
    if (value === undefined) throw new Error(`${name} is measured more often than expected`);
    if (value instanceof Error) throw value;
    return { [name]: typeof value === 'number' ? { value } : value };
  };
  return { checks: [{ name, kind }], recordings: values.length, measure, ...more };
}

interface Guarded {
  parts: readonly Part[];
  recorded: Record<string, number>;
  node?: string;
  required?: readonly string[];
}

async function run({ parts, recorded, node = NODE, required = [] }: Guarded) {
  const lines: string[] = [];
  const limits = { node: '20.20', recorded };
  const isWithin = await runChecks({ parts, limits, node, required, print: (line: string) => lines.push(line) });
  return { isWithin, lines, text: lines.join('\n') };
}

describe('the guard', () => {
  test('passes when all values are within their limits, each measured once', async () => {
    const parts = [buildPart('a', 'closures', [100]), buildPart('b', 'ratio', [1.1])];
    const { isWithin, lines } = await run({ parts, recorded: { a: 100, b: 1 } });
    expect(isWithin).toBe(true);
    expect(lines.slice(0, 2)).toEqual(['a         100  limit      100.5  ok', 'b         1.1  limit       1.15  ok']);
    expect(lines.at(-1)).toMatch(/^bench:check: 2 ok of 2 checks in \d+ s; sizes of bundles are checked by `npm run size`$/);
  });

  test('fails with the same values when a limit is lower', async () => {
    const parts = [buildPart('a', 'closures', [100, 100]), buildPart('b', 'ratio', [1.1])];
    const { isWithin, text } = await run({ parts, recorded: { a: 99, b: 1 } });
    expect(isWithin).toBe(false);
    expect(text).toContain('FAILED: above its record of 99 (1.0 %); measured again: 100');
    expect(text).toContain('If it is meant, run `npm run bench:check -- --write`, and give the reason in the commit message.');
    expect(text).toContain('bench:check: 1 ok, 1 FAILED of 2 checks');
  });

  test.each(['objects', 'bytes, unoptimized', 'ledger files', 'ratio'])(
    'fails for %s when a second measurement agrees',
    async (kind) => {
      expect(await run({ parts: [buildPart('a', kind, [20, 20])], recorded: { a: 10 } })).toMatchObject({ isWithin: false });
      expect(await run({ parts: [buildPart('a', kind, [20, 10])], recorded: { a: 10 } })).toMatchObject({ isWithin: true });
    },
  );

  test('measures only the checks of a part again that are above their limits', async () => {
    const measured: string[][] = [];
    const part = {
      checks: [
        { name: 'a', kind: 'files' },
        { name: 'b', kind: 'files' },
      ],
      recordings: 1,
      measure: async (checks: readonly { name: string }[]) => {
        measured.push(checks.map(({ name }) => name));
        return Object.fromEntries(checks.map(({ name }) => [name, { value: 5 }]));
      },
    };
    expect(await run({ parts: [part], recorded: { a: 5, b: 4 } })).toMatchObject({ isWithin: false });
    expect(measured).toEqual([['a', 'b'], ['b']]);
  });

  test('a check without a record fails, and shows its value', async () => {
    const { isWithin, lines } = await run({ parts: [buildPart('new', 'files', [7])], recorded: {} });
    expect([isWithin, lines[0]]).toEqual([false, 'new           7  limit          –  FAILED: has no recorded value']);
  });

  test('values clearly below their record are listed with the command that lowers it', async () => {
    const { isWithin, text } = await run({ parts: [buildPart('a', 'heap', [8000])], recorded: { a: 10_000 } });
    expect(isWithin).toBe(true);
    expect(text).toContain('More than 10 % below the record: a. `npm run bench:check -- --write` lowers the limits');
  });
});

describe('a part that cannot be measured', () => {
  test('fails with the reason after a second attempt', async () => {
    const { isWithin, text } = await run({
      parts: [buildPart('a', 'files', [new Error('slow'), new Error('no gateway')])],
      recorded: { a: 1 },
    });
    expect([isWithin, text.includes('a           –  limit          –  FAILED: cannot be measured: no gateway')]).toEqual([
      false,
      true,
    ]);
  });

  test('is ok when the second attempt succeeds', async () => {
    expect(await run({ parts: [buildPart('a', 'files', [new Error('slow'), 1])], recorded: { a: 1 } })).toMatchObject({
      isWithin: true,
    });
  });

  const lacking = () => buildPart('calls', 'sends', [], { needs: 'strace', findObstacle: () => 'strace is missing' });

  test('is skipped with the reason where strace is missing', async () => {
    const { isWithin, lines } = await run({ parts: [lacking()], recorded: { calls: 2 } });
    expect([isWithin, lines[0]]).toEqual([true, 'calls           –  limit          –  skipped: strace is missing']);
  });

  test.each(['all', 'strace'])('fails where strace is missing and SLUICE_REQUIRE has "%s"', async (name) => {
    const { isWithin, text } = await run({ parts: [lacking()], recorded: { calls: 2 }, required: ['postgres', name] });
    expect([isWithin, text.includes('FAILED: strace is missing; SLUICE_REQUIRE')]).toEqual([false, true]);
  });

  test('is skipped when SLUICE_REQUIRE has other programs only', async () => {
    expect(await run({ parts: [lacking()], recorded: {}, required: ['postgres', ''] })).toMatchObject({ isWithin: true });
  });
});

describe('on a machine that is too busy', () => {
  const busy = (value: number): Measured => ({ value, doubt: 'its process had 9 % of a core' });

  test('a ratio above its limit is not judged, and the line has the reason', async () => {
    const { isWithin, lines } = await run({ parts: [buildPart('a', 'ratio', [busy(3), 2.9])], recorded: { a: 2 } });
    expect(isWithin).toBe(true);
    expect(lines[0]).toMatch(/not judged: above its record of 2 .*; the machine was too busy: its process had 9 % of a core$/);
    expect(lines.at(-1)).toContain('bench:check: 1 not judged of 1 checks');
  });

  test('a ratio within its limit is ok, and one without a record fails', async () => {
    const { isWithin, text } = await run({ parts: [buildPart('a', 'ratio', [busy(2)])], recorded: { a: 2 } });
    expect([isWithin, text.includes('1 ok of 1 checks')]).toEqual([true, true]);
    expect(await run({ parts: [buildPart('a', 'ratio', [busy(2)])], recorded: {} })).toMatchObject({ isWithin: false });
  });
});

describe('another version of Node', () => {
  test('of another major: values are printed and not judged, once each', async () => {
    const { isWithin, lines } = await run({ parts: [buildPart('a', 'closures', [900])], recorded: { a: 100 }, node: 'v22.1.0' });
    expect(isWithin).toBe(true);
    expect(lines[0]).toBe('The limits were recorded on Node 20.20, and this is Node 22.1: nothing is judged.');
    expect(lines[1]).toBe('a         900  limit      100.5  not judged');
    expect(lines[2]).toContain('bench:check: 1 not judged of 1 checks');
  });

  test('of the same major: values are judged', async () => {
    expect(await run({ parts: [buildPart('a', 'closures', [900, 900])], recorded: { a: 100 }, node: 'v20.19.0' })).toMatchObject({
      isWithin: false,
    });
  });

  test('a program that is required fails there as well', async () => {
    const part = buildPart('calls', 'sends', [], { needs: 'strace', findObstacle: () => 'strace is missing' });
    expect(await run({ parts: [part], recorded: {}, node: 'v24.0.0', required: ['all'] })).toMatchObject({ isWithin: false });
  });
});

describe('recorded limits', () => {
  const limits = { node: '20.20', recorded: { old: 5, b: 7, a: 1 } };
  const print = () => undefined;
  const names = ['a', 'b'];

  test('are medians of several measurements, in the order of the checks, and only of checks that exist', async () => {
    const parts = [buildPart('b', 'heap', [36_000.4]), buildPart('a', 'ratio', [3.00049, 1, 9])];
    const written = await recordLimits({ parts, names, limits, node: 'v20.21.1', print });
    expect(written).toEqual({ node: '20.21', recorded: { a: 3, b: 36_000 } });
    expect(Object.keys(written.recorded)).toEqual(names);
  });

  test('of some checks keep the records of all others', async () => {
    const written = await recordLimits({ parts: [buildPart('a', 'ratio', [2])], names, limits, node: 'v20.21.1', print });
    expect(written).toEqual({ node: '20.20', recorded: { a: 2, b: 7 } });
  });

  test('are saved after each part, so that an interrupted run keeps what it has measured', async () => {
    const saved: object[] = [];
    const parts = [buildPart('a', 'ratio', [2]), buildPart('b', 'heap', [new Error('ended'), new Error('ended')])];
    const save = (found: object): unknown => saved.push(found);
    await expect(recordLimits({ parts, names, limits, node: NODE, save, print })).rejects.toThrow('ended');
    expect(saved).toEqual([{ node: '20.20', recorded: { a: 2, b: 7 } }]);
  });

  test('of another major replace all others, which is impossible with some checks only', async () => {
    const [a, b] = [buildPart('a', 'ratio', [2]), buildPart('b', 'sends', [], { findObstacle: () => 'strace is missing' })];
    expect(await recordLimits({ parts: [a, b], names, limits, node: 'v22.5.1', print })).toEqual({
      node: '22.5',
      recorded: { a: 2 },
    });
    await expect(recordLimits({ parts: [b], names, limits, node: 'v22.5.1', print })).rejects.toThrow(
      'use --write without --only',
    );
  });

  test('stay as they are where a program is missing', async () => {
    const parts = [buildPart('a', 'sends', [], { findObstacle: () => 'strace is missing' })];
    expect(await recordLimits({ parts, names, limits, node: NODE, print })).toEqual({ node: '20.20', recorded: { a: 1, b: 7 } });
  });

  test('print how they were measured, and where the machine was too busy', async () => {
    const lines: string[] = [];
    const parts = [buildPart('a', 'ratio', [{ value: 2, doubt: 'its process had 9 % of a core' }, 3, 4])];
    await recordLimits({ parts, names, limits, node: NODE, print: (line: string) => lines.push(line) });
    expect(lines).toEqual([
      'a: 3 (was 1; measured 2, 3, 4); record it again on a less busy machine: its process had 9 % of a core',
    ]);
  });
});

test('parts are selected by the names of their checks', () => {
  const parts = [buildPart('ratio, a', 'ratio', []), buildPart('start, a', 'files', [])];
  expect(selectParts(parts, 'ratio').map(({ checks }) => checks)).toEqual([[{ name: 'ratio, a', kind: 'ratio' }]]);
  expect(selectParts(parts, 'no such check')).toEqual([]);
  expect(selectParts(parts)).toEqual(parts);
});
