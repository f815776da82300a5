import { execFileSync } from 'node:child_process';
import { copyFileSync, existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { listEntries } from '../../scripts/build/packages.js';
import { installPacked, listPacked, ROOT } from './packed.ts';

// What users get: the tarballs, and an installation of them.

/** What `identity.js` prints. */
interface Identity {
  shared: number;
  copies: string[];
  renamed: string[];
  thrown: [boolean, string];
}

const FOLDERS = {
  '@sluice/core': 'packages/core',
  '@sluice/ai-sdk': 'packages/ai-sdk',
  '@sluice/langchain': 'packages/langchain',
  sluice: 'packages/gateway',
} as const;
/** Small packages on top of the core. */
const ADAPTERS: ReadonlySet<string> = new Set(['packages/ai-sdk', 'packages/langchain']);
const isAdapter = (name: string): boolean => name.startsWith('@sluice/') && !name.startsWith('@sluice/core');
const ENTRIES = Object.entries(FOLDERS).flatMap(([name, folder]) =>
  listEntries(folder).map(({ subpath }) => name + subpath.slice(1)),
);

const readManifest = (folder: string): Record<string, unknown> =>
  JSON.parse(readFileSync(join(ROOT, folder, 'package.json'), 'utf8')) as Record<string, unknown>;

/** What the command, worker threads and child processes start. */
const PROGRAMS = ['dist/cli/main.js', 'dist/config/check-worker.js', 'dist/store/sqlite/task.js', 'dist/store/sqlite/worker.js'];

/** Chunks have no public names; in the gateway they follow its dynamic imports. */
const CHUNK = /^dist\/chunks\/[\w-]+\.(js|d\.ts)$/;

/** Files of the console have a hash in their names. */
const CONSOLE = /^dist\/console\/(index\.html|page\/inspect\.html|[\w-]+\.(js|css|svg))$/;

describe.each(Object.entries(FOLDERS))('the tarball of %s', (_, folder) => {
  const files = listPacked(folder);

  test('has the entry points, their chunks and the pages that npm shows, and nothing else', () => {
    const entries = listEntries(folder).flatMap(({ module }) => [`dist/${module}.js`, `dist/${module}.d.ts`]);
    const isGateway = folder === 'packages/gateway';
    const own = isGateway ? ['bin/sluice.js', ...PROGRAMS, 'doctor.schema.json', 'prices.json', 'sluice.schema.json'] : [];
    expect(files.filter((file) => !CHUNK.test(file) && !CONSOLE.test(file))).toEqual(
      [...entries, ...own, 'LICENSE', 'README.md', 'package.json'].toSorted(),
    );
    expect(files.some((file) => CHUNK.test(file))).toBe(true);
    expect(files.includes('dist/console/index.html')).toBe(isGateway);
  });

  test('has the licence of the repository', () => {
    expect(readFileSync(join(ROOT, folder, 'LICENSE'), 'utf8')).toBe(readFileSync(join(ROOT, 'LICENSE'), 'utf8'));
  });
});

test('@sluice/core has at most 49 files in dist', () => {
  const files = listPacked('packages/core').filter((file) => file.startsWith('dist/'));
  expect(files.length).toBeLessThanOrEqual(49);
});

test('published packages depend on nothing that is private, and have the same version', () => {
  const manifests = Object.values(FOLDERS).map(readManifest);
  const { version } = readManifest('.');
  for (const manifest of [...manifests, readManifest('packages/lab'), readManifest('bench')])
    expect(manifest['version']).toBe(version);
  for (const { private: isPrivate, dependencies = {}, ...rest } of manifests) {
    expect(isPrivate).toBeUndefined();
    expect(Object.keys(dependencies as object)).not.toContain('@sluice/lab');
    expect(rest).toMatchObject({ publishConfig: { access: 'public' }, homepage: expect.any(String), bugs: expect.any(Object) });
  }
  for (const manifest of manifests.slice(1)) expect(manifest['dependencies']).toMatchObject({ '@sluice/core': version });
});

describe.each(Object.values(FOLDERS))('the bundle in %s', (folder) => {
  const dist = join(ROOT, folder, 'dist');
  const files = readdirSync(dist, { recursive: true, encoding: 'utf8' }).filter((file) => file.endsWith('.js'));

  test('has every module once', () => {
    const modules = files.flatMap((file) =>
      [...readFileSync(join(dist, file), 'utf8').matchAll(/^\/\/ (packages\/\S+\.js)$/gm)].map(([, module]) => module),
    );
    expect(modules.length).toBeGreaterThan(ADAPTERS.has(folder) ? 0 : 50);
    expect(modules.filter((module, i) => modules.indexOf(module) !== i)).toEqual([]);
  });

  test('has no path of this machine', () => {
    for (const file of files) expect(readFileSync(join(dist, file), 'utf8')).not.toContain(ROOT);
  });
});

describe('an installation', () => {
  let project: string;
  beforeAll(() => {
    project = installPacked(FOLDERS);
    writeFileSync(join(project, 'package.json'), JSON.stringify({ type: 'module' }));
  }, 60_000);
  afterAll(() => rmSync(project, { recursive: true }));

  const node = (args: string[]): string => execFileSync(process.execPath, args, { cwd: project, encoding: 'utf8' });

  test('sluice --version prints the version, and builds nothing', () => {
    const bin = join(project, 'node_modules/sluice/bin/sluice.js');
    expect(node([bin, '--version']).trim()).toBe(readManifest('packages/gateway')['version']);
    expect(existsSync(join(project, '.cache'))).toBe(false);
  });

  test('every entry point can be imported', () => {
    const code = `for (const name of ${JSON.stringify(ENTRIES)}) {
      if (Object.keys(await import(name)).length === 0) throw new Error(name);
    }`;
    node(['--input-type=module', '-e', code]);
  });

  test('all entry points share their classes, and an error of one is an instance of the class of another', () => {
    const script = join(project, 'identity.js');
    copyFileSync(new URL('./identity.js', import.meta.url), script);
    const { shared, ...found } = JSON.parse(node([script, ...ENTRIES])) as Identity;
    expect(found).toEqual({ copies: [], renamed: [], thrown: [true, 'CodecError'] });
    expect(shared).toBeGreaterThan(3);
  });

  test.each([
    { of: 'the core and the gateway', entries: ENTRIES.filter((name) => !isAdapter(name)), skipLibCheck: false },
    // The declarations of the frameworks have errors of their own.
    { of: 'the adapters', entries: ENTRIES.filter(isAdapter), skipLibCheck: true },
  ])('every entry point of $of has types under strict TypeScript', ({ entries, skipLibCheck }) => {
    const lines = entries.map((specifier, i) => `import * as entry${i} from '${specifier}';\nvoid entry${i};`);
    const use = `import { accumulate, CodecError } from '@sluice/core';
import { ToolCallAssembler } from '@sluice/core/tool-calls';
import { createGateway } from 'sluice';
export const text: Promise<string> = accumulate('').then((message) => message.text);
export const size: number = new ToolCallAssembler().size;
export const url: string | undefined = createGateway().url;
export const isOurs = (error: unknown): error is CodecError => error instanceof CodecError;
// @ts-expect-error a number is no stream
void accumulate(1);
`;
    writeFileSync(join(project, 'use.ts'), `${lines.join('\n')}\n${use}`);
    const options = {
      strict: true,
      exactOptionalPropertyTypes: true,
      skipLibCheck,
      noEmit: true,
      module: 'NodeNext',
      target: 'ES2023',
      lib: ['ES2023', 'DOM', 'DOM.AsyncIterable'],
      types: ['node'],
    };
    writeFileSync(join(project, 'tsconfig.json'), JSON.stringify({ compilerOptions: options, files: ['use.ts'] }));
    const tsc = join(ROOT, 'node_modules/typescript/bin/tsc');
    expect(() => node([tsc, '-p', '.'])).not.toThrow();
  });
});
