import { readFileSync } from 'node:fs';
import { dirname, relative, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';
import { COMMANDS } from '../src/cli/commands.ts';

const source = fileURLToPath(new URL('../src', import.meta.url));

/** Template literals quote programs that have imports, too. */
const stripTemplates = (text: string): string => text.replace(/`(?:[^`\\]|\\.)*`/gs, '``');

/** What a file loads at once: the values that it imports. Types are erased, and `import()` waits. */
const listImports = (file: string): string[] =>
  [...stripTemplates(readFileSync(file, 'utf8')).matchAll(/^(?:import|export) (?!type\b)[^;]*?from '([^']+)';/gms)]
    .filter(([text]) => !/^import \{(?:\s*type \w+,?)+\s*\} from/.test(text))
    .map(([, specifier = '']) => specifier);

/** Everything that a file loads: own files by their paths, packages by their names. */
function listLoaded(path: string): { files: string[]; packages: string[] } {
  const [files, packages] = [new Set<string>(), new Set<string>()];
  const visit = (file: string): void => {
    if (files.has(file)) return;
    files.add(file);
    for (const specifier of listImports(file)) {
      if (specifier.startsWith('.')) visit(resolve(dirname(file), specifier));
      else if (!specifier.startsWith('node:')) packages.add(specifier);
    }
  };
  visit(resolve(source, path));
  return { files: [...files].map((file) => relative(source, file)).sort(), packages: [...packages].sort() };
}

test('help, version and wrong usage load neither the core nor a command', () => {
  const { files, packages } = listLoaded('cli/main.ts');
  expect(packages).toEqual(['@sluice/lab/text', 'picocolors']);
  expect(files).toEqual([
    'cli/command.ts',
    'cli/commands.ts',
    'cli/help.ts',
    'cli/main.ts',
    'cli/tables/gateway.ts',
    'cli/tables/options.ts',
    'cli/tables/streams.ts',
    'cli/tables/usage.ts',
    'files/rename.ts',
    'terminal/errors.ts',
    'terminal/io.ts',
    'terminal/text.ts',
  ]);
});

/** What each command may load beside the core and the texts of the lab. */
const PACKAGES: Readonly<Record<string, readonly string[]>> = {
  serve: ['pino'],
  init: ['yaml', 'zod'],
  import: ['yaml', 'zod'],
  config: ['yaml', 'zod'],
  prices: ['yaml', 'zod'],
  usage: ['@photostructure/sqlite'],
  log: ['@photostructure/sqlite'],
  keys: ['@photostructure/sqlite'],
  audit: ['@photostructure/sqlite'],
  route: ['@photostructure/sqlite', '@sluice/lab/demo', '@sluice/lab/mutate', '@sluice/lab/replay', 'yaml', 'zod'],
  backup: ['@photostructure/sqlite'],
  restore: ['@photostructure/sqlite'],
  migrate: ['@photostructure/sqlite'],
  prove: ['@sluice/lab/prove'],
  diff: ['@sluice/lab/tape'],
  shrink: ['@sluice/lab/shrink'],
  record: ['@sluice/lab/tape', 'undici'],
  replay: ['@sluice/lab/mutate', '@sluice/lab/replay', '@sluice/lab/tape', 'undici'],
};

describe('a command loads its own packages only', () => {
  test.each(Object.keys(COMMANDS))('%s', (name) => {
    const isCommon = (specifier: string): boolean => /^@sluice\/core(\/|$)|^@sluice\/lab\/text$|^picocolors$/.test(specifier);
    const { packages } = listLoaded(`cli/commands/${name}.ts`);
    expect(packages.filter((specifier) => !isCommon(specifier))).toEqual(PACKAGES[name] ?? []);
  });
});
