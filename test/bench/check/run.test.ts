/** The program, and the parts that take less than a second. */
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { afterAll, describe, expect, test } from 'vitest';
import { closeAll } from '../../../bench/check/gateway.js';
import { runChecks } from '../../../bench/check/guard.js';
import { buildParts, listChecks, selectParts } from '../../../bench/check/parts.js';
import { needs } from '../../needs/needs.ts';
import { eventually } from '../../wait.ts';

const PROGRAM = fileURLToPath(new URL('../../../bench/check/run.js', import.meta.url));
const LIMITS = JSON.parse(readFileSync(new URL('../../../bench/check/limits.json', import.meta.url), 'utf8'));
const NAMES: string[] = listChecks(buildParts({ port: 1 })).map(({ name }) => name);

const run = (...args: string[]) => spawnSync(process.execPath, [PROGRAM, ...args], { encoding: 'utf8' });

afterAll(closeAll);

test('every check has a recorded value, and every recorded value a check', () => {
  expect(Object.keys(LIMITS.recorded)).toEqual(NAMES);
  expect(new Set(NAMES).size).toBe(NAMES.length);
});

test('--only without a match exits with 2 and lists the known names', () => {
  const { status, stderr, stdout } = run('--only', 'no such check');
  expect([status, stdout]).toEqual([2, '']);
  expect(stderr.split('\n')[0]).toBe('--only: no check has "no such check" in its name; known:');
  for (const name of NAMES) expect(stderr).toContain(`  ${name}\n`);
});

test('an unknown option exits with 2 and shows the usage', () => {
  const { status, stderr } = run('--quick');
  expect(status).toBe(2);
  expect(stderr).toContain("Unknown option '--quick'");
  expect(stderr).toContain('usage: npm run bench:check -- [--only TEXT] [--write]');
});

describe('files at start', needs('build'), () => {
  const parts = selectParts(buildParts({ port: 1 }), 'start, sluice --help: files');
  const [name = ''] = listChecks(parts).map((check) => check.name);

  async function check(recorded: number) {
    const lines: string[] = [];
    const limits = { node: process.version, recorded: { [name]: recorded } };
    const isWithin = await runChecks({ parts, limits, node: process.version, print: (line: string) => lines.push(line) });
    return { isWithin, lines };
  }

  test('are within their recorded value, and fail when it is one file less', async () => {
    const measured = await parts[0]?.measure(parts[0].checks);
    const files = measured?.[name]?.value ?? 0;
    expect(files).toBeGreaterThan(1);
    expect(await check(files)).toMatchObject({ isWithin: true });
    const { isWithin, lines } = await check(files - 1);
    expect([isWithin, lines[0]]).toEqual([false, expect.stringContaining(`measured again: ${files}`)]);
  });
});

describe('a signal', needs('build', 'linux'), () => {
  test('ends the check and the gateways that it started', async () => {
    const child = spawn(process.execPath, [PROGRAM, '--only', 'held stream, passing: objects']);
    const closed = once(child, 'close');
    const gateway = await eventually(() => listChildren(child.pid).find((pid) => readCommand(pid).includes('sluice.js')));
    child.kill('SIGTERM');
    expect(await closed).toEqual([143, null]);
    await eventually(() => readCommand(gateway) === '');
  });
});

const listChildren = (pid = 0): number[] =>
  readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').split(' ').filter(Boolean).map(Number);

/** The command line of a process; empty when it ended, also when it is not removed from the table of processes yet. */
function readCommand(pid: number): string {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'utf8');
  } catch {
    return '';
  }
}
