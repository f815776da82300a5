import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { countCommands, findMissingLine, readSection, readSteps } from '../scripts/guides/steps.js';

// `npm run guides` follows the guides; here is how it reads them.

const fence = (info: string, code: string): string => `\`\`\`${info}\n${code}\n\`\`\``;

test.each([
  ['sh', 'sluice --version', { kind: 'run', code: 'sluice --version\n', exit: 0 }],
  ['sh run exit=1', 'sluice doctor x', { kind: 'run', code: 'sluice doctor x\n', exit: 1 }],
  ['sh terminal', 'sluice', { kind: 'terminal', code: 'sluice\n' }],
  ['sh needs=docker', 'docker ps', { kind: 'skip', code: 'docker ps\n', needs: 'docker' }],
  ['yaml', '# sluice.yaml\na: 1', { kind: 'file', name: 'sluice.yaml', code: '# sluice.yaml\na: 1\n' }],
  ['js', '// app.mjs\nx();', { kind: 'file', name: 'app.mjs', code: '// app.mjs\nx();\n' }],
])('a block %s is a step', (info, code, step) => {
  expect(readSteps(`Text\n\n${fence(info, code)}\n`)).toEqual([{ ...step, line: 3 }]);
});

test('a block without a name of a file is an illustration', () => {
  expect(readSteps(`${fence('yaml', 'a: 1')}\n${fence('text', '# not.yaml')}`)).toEqual([]);
});

test('what a step needs is used when it is available', () => {
  expect(readSteps(fence('sh needs=docker', 'docker ps'), new Set(['docker']))).toMatchObject([{ kind: 'run' }]);
});

test('a console block has several commands, each with what it prints', () => {
  expect(readSteps(fence('console', '$ one\nfirst\nsecond\n\n$ two\n$ three\nthird'))).toMatchObject([
    { code: 'one', prints: 'first\nsecond' },
    { code: 'two' },
    { code: 'three', prints: 'third' },
  ]);
});

test.each([
  ['one', 1],
  ['one\n# a comment\n\ntwo # text', 2],
  ['one \\\n  --long \\\n  --longer\ntwo', 2],
])('the commands of %j: %i', (code, count) => {
  expect(countCommands(code)).toBe(count);
});

describe('what a command prints', () => {
  test.each([
    ['Created key "alice" (id DL5JMm2AxewLZBJa).', 'x\nCreated key "alice" (id AAAA-bbbb_CCCC11).\n'],
    ['ec23ffbe4ce2  2026-11-17 06:46:53Z  200  15 ms', 'aaaaaaaaaaaa 2027-01-02 03:04:05Z 200  1234 ms'],
    ['402 … too low: limit 0.01 USD per day, …', '402 billing: too low: limit 0.01 USD per day, spent 1'],
    ['a (b) [c] $1.5', 'a (b) [c] $1.5'],
  ])('%j is shown for %j', (shown, printed) => expect(findMissingLine(shown, printed)).toBeUndefined());

  test.each([
    ['alice 3 1', 'alice 3 2'],
    ['total $0.002328', 'total $0.002329'],
    ['Revoked key "alice".', 'Revoked key "bob".'],
    ['first\nsecond', 'first'],
    ['a.c', 'abc'],
    ['short', 'short and more'],
  ])('%j is not shown for %j', (shown, printed) => expect(findMissingLine(shown, printed)).toBe(shown.split('\n').at(-1)));
});

const readGuide = (name: string): string => readFileSync(new URL(`../docs/${name}.md`, import.meta.url), 'utf8');

test.each(['start-broken-stream', 'start-agent', 'start-team', 'teams'])('docs/%s.md has steps to follow', (name) => {
  const kinds = readSteps(readGuide(name)).map(({ kind }) => kind);
  expect(kinds).toContain('run');
  expect(kinds).not.toContain('skip');
});

test.each([
  ['One gateway with compose', 'docker'],
  ['Two gateways with compose', 'docker'],
  ['Kubernetes', 'kubectl'],
  ['systemd', 'systemd'],
])('the steps of "%s" in docs/deploy.md need %s', (section, needs) => {
  const steps = readSteps(readSection(readGuide('deploy'), section));
  expect(steps.length).toBeGreaterThan(0);
  expect(steps.filter((step) => step.kind !== 'skip' || step.needs !== needs)).toEqual([]);
});

test('lines of a section have the numbers of the page', () => {
  const [first] = readSteps(readSection(`# A\n\n## B\n${fence('sh', 'b')}\n## C\n${fence('sh', 'c')}\n## D\n`, 'C'));
  expect(first).toMatchObject({ code: 'c\n', line: 8 });
  expect(() => readSection('# A', 'C')).toThrow('no section is called "C"');
});
