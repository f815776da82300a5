import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join, relative, resolve, sep } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';
import { CODECS } from '../packages/core/src/engine/index.ts';
import type { Codec } from '../packages/core/src/index.ts';
import { findCycles } from '../scripts/house/sources.js';
import { toyCodec } from './toy-protocol/codec.ts';

const root = fileURLToPath(new URL('..', import.meta.url));

/** The layers of each package, lowest first: a folder imports itself and what stands before it. */
const LAYERS = {
  core: [
    'json',
    'canonical',
    'rules',
    'sse',
    'accumulate',
    'passes',
    'codec',
    'protocols',
    'engine',
    'doctor',
    'repair',
    'io',
    'fetch',
    'tool-calls',
    'internal',
    'index',
  ],
  'ai-sdk': ['fetch', 'calls', 'part-stream', 'middleware', 'provider', 'index'],
  langchain: ['concat', 'index'],
  lab: ['text', 'mutate', 'tape', 'prove', 'replay', 'shrink', 'demo'],
  gateway: [
    'files',
    'providers',
    'terminal',
    'clients',
    'http',
    'keys',
    'store',
    'config',
    'migrate',
    'prices',
    'upstream',
    'observe',
    'admission',
    'doctor',
    'routing',
    'exchange',
    'responses',
    'tape',
    'capture',
    'admin',
    'server',
    'cli',
    'index',
  ],
  console: ['css.d', 'lib', 'ui', 'inspector', 'manage', 'exchanges', 'playground', 'pages', 'login', 'app', 'main'],
} as const satisfies Record<string, readonly string[]>;

type Package = keyof typeof LAYERS;

/** What the code of each package may import beside its own files. */
const IMPORTED = {
  core: /^(?!)/,
  'ai-sdk': /^(@sluice\/core\/fetch|@ai-sdk\/provider|@ai-sdk\/openai-compatible)$/,
  langchain: /^(@sluice\/core\/fetch|@langchain\/core\/messages(\/tool)?)$/,
  lab: /^(@sluice\/core(\/[\w-]+)*$|node:)/,
  gateway:
    /^(@sluice\/core(\/[\w-]+)*$|@sluice\/lab\/\w+$|node:|@photostructure\/sqlite$|ioredis$|kysely$|pg$|picocolors$|pino$|prom-client$|undici$|ws$|yaml$|zod$)/,
  // Of the gateway, types and pure modules only: the language of filters, names of sums, CSV, sections, and the derivation of streams.
  console:
    /^(preact(\/hooks)?$|@preact\/signals$|uplot(\/dist\/uPlot\.min\.css)?$|@sluice\/core(\/engine)?$|@gateway\/(admin\/(types|sections)|store\/(csv|filter|rollups)|capture\/json|capture\/inspect\/\w+)$)/,
} as const satisfies Record<Package, RegExp>;

const folderOf = (name: Package): string => join(root, 'packages', name, 'src');

const listSources = (folder: string): string[] =>
  readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .filter((file) => /\.tsx?$/.test(file))
    .map((file) => join(folder, file));

const readImports = (file: string): string[] => {
  // Template literals may quote programs with imports of their own.
  const text = readFileSync(file, 'utf8').replace(/`(?:[^`\\]|\\.)*`/gs, '``');
  return [...text.matchAll(/^(?:import|export)\b[^;]*?from '([^']+)';|^import '([^']+)';|\bimport\('([^']+)'\)/gms)].map(
    (match) => match[1] ?? match[2] ?? match[3] ?? '',
  );
};

/** Code without comments and strings, which may name what code must not use. */
const readCode = (file: string): string =>
  readFileSync(file, 'utf8').replace(/\/\*[\s\S]*?\*\/|\/\/.*$|'(?:[^'\\\n]|\\.)*'/gm, "''");

const findLayer = (name: Package, file: string): number => {
  const layers: readonly string[] = LAYERS[name];
  return layers.indexOf(
    relative(folderOf(name), file)
      .split(sep)[0]
      ?.replace(/\.tsx?$/, '') ?? '',
  );
};

describe.each(Object.keys(LAYERS) as Package[])('%s', (name) => {
  const files = listSources(folderOf(name)).map((file) => ({ file, path: relative(folderOf(name), file) }));

  test.each(files)('$path imports only its own layer and lower ones', ({ file }) => {
    expect(findLayer(name, file), 'the layer is listed').toBeGreaterThanOrEqual(0);
    for (const specifier of readImports(file)) {
      if (!specifier.startsWith('.')) expect(specifier).toMatch(IMPORTED[name]);
      else expect(findLayer(name, resolve(dirname(file), specifier)), specifier).toBeLessThanOrEqual(findLayer(name, file));
    }
  });

  test.each(LAYERS[name])('the layer %s has files', (layer) => {
    expect(files.some(({ path }) => [`${layer}.ts`, `${layer}.tsx`].includes(path) || path.startsWith(`${layer}/`))).toBe(true);
  });

  test('no folders import each other', () => {
    const graph = new Map<string, Set<string>>();
    for (const { file } of files) {
      const from = dirname(file);
      const edges = graph.get(from) ?? new Set();
      graph.set(from, edges);
      for (const specifier of readImports(file).filter((text) => text.startsWith('.'))) {
        const to = dirname(resolve(dirname(file), specifier));
        if (!`${from}/`.startsWith(`${to}/`) && !`${to}/`.startsWith(`${from}/`)) edges.add(to);
      }
    }
    expect(findCycles(graph)).toEqual([]);
  });

  test('its tests import other packages by their public names', () => {
    for (const file of listSources(join(root, 'packages', name, 'test'))) {
      const outside = readImports(file).filter((specifier) => {
        const target = relative(root, resolve(dirname(file), specifier));
        return specifier.startsWith('.') && !target.startsWith(`packages/${name}/`) && !/^(test|scripts)\//.test(target);
      });
      expect(outside, relative(root, file)).toEqual([]);
    }
  });
});

describe.each(listSources(folderOf('core')).map((file) => ({ file, path: relative(folderOf('core'), file) })))(
  'core/$path',
  ({ file }) => {
    const code = readCode(file);

    test('uses no runtime API', () => {
      expect(code).not.toMatch(/(?<![#.\w])(import\(|require\(|process\.|Buffer\b)/);
    });

    test('has no clock, no randomness, no timers', () => {
      expect(code).not.toMatch(/\bDate\b|\bMath\.random\b|\bcrypto\b|\bperformance\b|\bset(Timeout|Interval|Immediate)\b/);
    });

    test('awaits nothing below io', () => {
      if (LAYERS.core[findLayer('core', file)] !== 'io') expect(code).not.toMatch(/\bawait\b|\basync\b|\bPromise\b/);
    });
  },
);

describe('protocol folders', () => {
  /** What every protocol has, and what it has only as a protocol of clients. */
  const FILES = [
    ...['index', 'codec', 'wire', 'endpoints', 'profiles', 'request-encode', 'settings', 'tools', 'blocks'],
    ...['stream-decode', 'content-decode', 'response', 'outcome', 'models', 'violations'],
  ];
  const OF_CLIENTS = ['request-decode', 'stream-encode', 'content-encode', 'grammar', 'repair'];
  /** Output items of Responses are written and read as units of their own, which servers name in several ways. */
  const MORE: Readonly<Record<string, readonly string[]>> = { 'openai-responses': ['output-items', 'item-identity'] };

  const expectedFiles = ({ id, roles }: Codec): string[] =>
    [...FILES, ...(roles.includes('client') ? OF_CLIENTS : []), ...(MORE[id] ?? [])].map((name) => `${name}.ts`).sort();

  const codecs = Object.values(CODECS);
  const folder = ({ id }: Codec): string => join(folderOf('core'), 'protocols', id);

  test.each(codecs)('$id has exactly the files of its roles', (codec) => {
    expect(readdirSync(folder(codec)).sort()).toEqual(expectedFiles(codec));
  });

  test('the toy protocol of the tests has exactly these files', () => {
    expect(readdirSync(join(root, 'test/toy-protocol')).sort()).toEqual(expectedFiles(toyCodec));
  });

  test.each(codecs)('$id imports no other protocol', (codec) => {
    const others = codecs.filter((other) => other !== codec);
    for (const file of listSources(folder(codec)))
      for (const specifier of readImports(file)) for (const { id } of others) expect(specifier).not.toContain(`/${id}/`);
  });
});

describe('files on every system', () => {
  const listCode = (folder: string): string[] =>
    readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' })
      .filter((path) => /\.(tsx?|m?js)$/.test(path) && !/(^|[\\/])(node_modules|dist|out|\.cache)[\\/]/.test(path))
      .map((path) => join(root, folder, path));

  /** Windows refuses to rename files in use, so that these modules try again. */
  const RENAMING = ['packages/gateway/src/files/rename.ts', 'scripts/build/files.js'].map((path) => join(root, path));

  test('the pathname of a file URL is never used as a path: on Windows it is /C:/…', () => {
    const found = ['packages', 'scripts', 'bench', 'site', 'test', 'examples']
      .flatMap(listCode)
      .filter((file) => /\bimport\.meta\.url\)+\.pathname/.test(readFileSync(file, 'utf8')));
    expect(found).toEqual([]);
  });

  test('files are renamed by one module of the gateway and one of the scripts', () => {
    const found = [...Object.keys(LAYERS).map((name) => `packages/${name}/src`), 'packages/gateway/bin', 'scripts']
      .flatMap(listCode)
      .filter((file) => /\brename(Sync)?\b[^;]*from 'node:fs(\/promises)?'|\bfs\w*\.rename/.test(readFileSync(file, 'utf8')));
    expect(found.sort()).toEqual(RENAMING);
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

test('no lockfile contains a registry host', () => {
  for (const file of ['package-lock.json', 'test/sdk-next/package-lock.json', 'scripts/runtimes/package-lock.json'])
    expect(readFileSync(join(root, file), 'utf8')).not.toMatch(/"resolved":\s*"https?:/);
});
