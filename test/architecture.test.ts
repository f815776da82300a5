import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join, relative, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';

const root = fileURLToPath(new URL('..', import.meta.url));
const core = join(root, 'packages/core/src');
const gateway = join(root, 'packages/gateway/src');

const sources = (folder: string): string[] =>
  readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .filter((file) => file.endsWith('.ts'))
    .map((file) => join(folder, file));

const importsOf = (file: string): string[] =>
  [...readFileSync(file, 'utf8').matchAll(/^(?:import|export)[^;]*?from '([^']+)';/gms)].map((match) => match[1] ?? '');

/** Comments and texts may name what code must not use. */
const codeOf = (file: string): string =>
  readFileSync(file, 'utf8').replace(/\/\*[\s\S]*?\*\/|\/\/.*$|'(?:[^'\\\n]|\\.)*'/gm, "''");

/** What each layer of core may import: itself and what stands before it. `doctor/rules` is data that anyone may import. */
const LAYERS = ['json', 'canonical', 'stage', 'sse', 'accumulate', 'passes', 'protocols', 'engine', 'doctor', 'io', 'index'];
const RANK: Record<string, number> = {
  json: -1,
  canonical: 0,
  stage: 1,
  sse: 1,
  accumulate: 2,
  passes: 2,
  protocols: 3,
  engine: 4,
  doctor: 4,
  io: 5,
  index: 6,
};

const layerOf = (file: string): string => relative(core, file).split('/')[0]?.replace(/\.ts$/, '') ?? '';
const isRules = (file: string): boolean => relative(core, file).startsWith('doctor/rules');

describe.each(sources(core).map((file) => ({ file, name: relative(core, file) })))('core/$name', ({ file }) => {
  const code = codeOf(file);

  test('imports only what stands below it', () => {
    expect(LAYERS).toContain(layerOf(file));
    for (const specifier of importsOf(file)) {
      const target = resolve(dirname(file), specifier);
      if (isRules(target)) continue;
      expect(RANK[layerOf(target)], `${specifier} in ${relative(root, file)}`).toBeLessThanOrEqual(RANK[layerOf(file)] ?? -1);
    }
  });

  test('imports no package and no runtime', () => {
    for (const specifier of importsOf(file)) expect(specifier).toMatch(/^\.\.?\/.*\.ts$/);
    expect(code).not.toMatch(/(?<![#.\w])(import\(|require\(|process\.|Buffer\b)/);
  });

  test('has no clock, no randomness, no timers', () => {
    expect(code).not.toMatch(/\bDate\b|\bMath\.random\b|\bcrypto\b|\bperformance\b|\bset(Timeout|Interval|Immediate)\b/);
  });

  test('awaits nothing below io', () => {
    if (layerOf(file) !== 'io') expect(code).not.toMatch(/\bawait\b|\basync\b|\bPromise\b/);
  });
});

describe('protocols', () => {
  const names = ['openai-chat', 'anthropic-messages', 'openai-responses', 'gemini'];

  test.each(names)('%s imports no other protocol', (name) => {
    const others = names.filter((other) => other !== name);
    for (const file of sources(join(core, 'protocols', name))) {
      for (const specifier of importsOf(file)) for (const other of others) expect(specifier).not.toContain(`/${other}/`);
    }
  });

  test.each(names)('%s has the files that every protocol has', (name) => {
    const files = readdirSync(join(core, 'protocols', name));
    expect(files).toEqual(
      expect.arrayContaining(['index.ts', 'wire.ts', 'stream-decode.ts', 'stop.ts', 'usage.ts', 'errors.ts', 'blocks.ts']),
    );
  });
});

test('core has no dependency', () => {
  const manifest = JSON.parse(readFileSync(join(root, 'packages/core/package.json'), 'utf8'));
  expect([manifest.dependencies, manifest.peerDependencies, manifest.optionalDependencies]).toEqual([
    undefined,
    undefined,
    undefined,
  ]);
});

test('core never imports the gateway, and the gateway only the public core', () => {
  for (const file of sources(gateway)) for (const specifier of importsOf(file)) expect(specifier).not.toMatch(/core\/(src|dist)/);
});

test('the lockfile names no registry', () => {
  expect(readFileSync(join(root, 'package-lock.json'), 'utf8')).not.toMatch(/"resolved":\s*"https?:/);
});
