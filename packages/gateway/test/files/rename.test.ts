import { describe, expect, test } from 'vitest';
import { DELAYS_MS, renameFile, renameFileSync, tryRenameFileSync } from '../../src/files/rename.ts';

/** A file system whose renames fail with these codes, one after the other, and then succeed. Pauses are recorded, not waited for. */
function createTools(codes: readonly string[]) {
  const left = [...codes];
  const calls: string[] = [];
  const pauses: number[] = [];
  return {
    calls,
    pauses,
    rename: (from: string, to: string): void => {
      calls.push(`${from} ${to}`);
      const code = left.shift();
      if (code !== undefined) throw Object.assign(new Error(code), { code });
    },
    sleep: (ms: number): void => void pauses.push(ms),
  };
}

const ALWAYS = DELAYS_MS.length + 1;

const WAYS = {
  renameFile,
  renameFileSync: async (...args: Parameters<typeof renameFileSync>): Promise<void> => renameFileSync(...args),
};

describe.each(Object.entries(WAYS))('%s', (_, rename) => {
  test.each<[what: string, codes: string[], calls: number, error?: string]>([
    ['succeeds at once', [], 1],
    ['tries again while the target is open', ['EPERM', 'EPERM'], 3],
    ['tries again while a scanner reads the file', ['EBUSY', 'EACCES', 'EPERM'], 4],
    ['succeeds with the last attempt', Array(DELAYS_MS.length).fill('EACCES'), ALWAYS],
    ['gives up with the error of the system', Array(ALWAYS).fill('EBUSY'), ALWAYS, 'EBUSY'],
    ['does not repeat other errors', ['ENOENT'], 1, 'ENOENT'],
    ['does not repeat an error that follows', ['EPERM', 'ENOSPC'], 2, 'ENOSPC'],
  ])('%s', async (_name, codes, calls, code) => {
    const tools = createTools(codes);
    const result = rename('a', 'b', tools);
    if (code === undefined) await result;
    else await expect(result).rejects.toMatchObject({ code });
    expect(tools.calls).toEqual(Array(calls).fill('a b'));
    expect(tools.pauses).toEqual(DELAYS_MS.slice(0, calls - 1));
  });
});

test('all attempts together take between one and two seconds', () => {
  const total = DELAYS_MS.reduce((sum, ms) => sum + ms, 0);
  expect(total).toBeGreaterThan(1000);
  expect(total).toBeLessThan(2000);
});

test('a rename that is tried once reports a file in use, and throws other errors', () => {
  const tools = createTools(['EPERM', 'ENOENT']);
  expect(tryRenameFileSync('a', 'b', tools)).toBe(false);
  expect(() => tryRenameFileSync('a', 'b', tools)).toThrow('ENOENT');
  expect(tryRenameFileSync('a', 'b', tools)).toBe(true);
});
