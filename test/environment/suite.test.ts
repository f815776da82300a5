import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { TEST_OPTIONS } from './clean.ts';

// What makes tests fail now and then, found in their text.

const root = fileURLToPath(new URL('../..', import.meta.url));

const FOLDERS = ['test', ...['ai-sdk', 'console', 'core', 'gateway', 'lab', 'langchain'].map((name) => `packages/${name}/test`)];

const SOURCES = FOLDERS.flatMap((folder) =>
  readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.ts') && !name.includes('node_modules'))
    .map((name) => ({ file: `${folder}/${name}`, text: readFileSync(join(root, folder, name), 'utf8') })),
);

const find = (pattern: RegExp): string[] => SOURCES.filter(({ text }) => pattern.test(text)).map(({ file }) => file);

test('only test/wait.ts sleeps', () => {
  expect(find(/setTimeout\(resolve\b|import \{[^}]*\bsetTimeout\b[^}]*\} from 'node:timers\/promises'/)).toEqual([
    'test/wait.ts',
  ]);
});

test('tests that replace modules run alone: all others share them', () => {
  const config = readFileSync(join(root, 'vitest.config.ts'), 'utf8');
  expect(find(/^\s*vi\.(mock|doMock|resetModules)\(/m).filter((file) => !config.includes(`'${file}'`))).toEqual([]);
});

test('every variable that tests read is an option of the tests or of the system', () => {
  const names = SOURCES.flatMap(({ text }) => [...text.matchAll(/process\.env\['(\w+)'\]/g)].map(([, name = '']) => name));
  const system = ['CI', 'HOME', 'NODE_OPTIONS', 'PATH', 'TZ', 'USERPROFILE', 'XDG_DATA_HOME'];
  expect([...new Set(names)].filter((name) => !TEST_OPTIONS.has(name) && !system.includes(name))).toEqual([]);
});
