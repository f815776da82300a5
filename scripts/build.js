/**
 * Builds the packages: `npm run build`. Does nothing when the builds are newer than the sources; `--force` builds anyway.
 *
 * tsc checks the sources and writes each module to `packages/*\/out`. From there rolldown bundles the code and
 * rollup-plugin-dts the declarations into `packages/*\/dist`, which is what is published. vite bundles the console into the gateway.
 */
import { execFileSync } from 'node:child_process';
import { accessSync, constants, mkdirSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join, relative, sep } from 'node:path';
import { parseArgs } from 'node:util';
import { renameFile, toSlashes } from './build/files.js';
import { isFresh, markBuilt } from './build/freshness.js';
import { withLock } from './build/lock.js';
import { CONSOLE, listEntries, PACKAGES, ROOT } from './build/packages.js';

const { values: options } = parseArgs({ options: { force: { type: 'boolean', default: false } } });

// A build that is up to date writes nothing, so that users who may only read a checkout can use it.
if (options.force || !isFresh()) {
  requireWritable();
  await withLock(async () => {
    if (options.force || !isFresh('packages')) await buildPackages();
    if (options.force || !isFresh('console')) await buildConsole();
  });
}

function requireWritable() {
  try {
    accessSync(ROOT, constants.W_OK);
  } catch {
    console.error(
      `this checkout is not built, or its sources are newer than its build, and you may not write to ${ROOT}; run "npm ci && npm run build" as the user who owns it`,
    );
    process.exit(1);
  }
}

async function buildPackages() {
  const startedAt = Date.now();
  compile();
  // Imported late: a build that is up to date needs no bundler (0.3 s).
  const { bundleCode } = await import('./build/bundle.js');
  const { bundleDeclarations } = await import('./build/declarations.js');
  for (const target of PACKAGES) {
    const entries = listEntries(target.folder);
    const files = await Promise.all([bundleCode(target, entries), bundleDeclarations(target, entries)]);
    publish(join(ROOT, target.folder, 'dist'), files.flat());
  }
  markBuilt('packages', startedAt);
}

/** Bundles the console into the gateway. Types are checked by `npm run types`. */
async function buildConsole() {
  const startedAt = Date.now();
  // Tests set another value, with which vite would add names of files for debugging.
  process.env.NODE_ENV = 'production';
  const { build } = await import('vite');
  const { buildInspectPage } = await import('./build/inspect-page.js');
  const configFile = join(ROOT, CONSOLE.folder, 'vite.config.ts');
  const { output } = await build({ configFile, build: { write: false } });
  const files = output.map((file) => ({ name: file.fileName, text: file.type === 'chunk' ? file.code : file.source }));
  publish(join(ROOT, CONSOLE.published), [
    ...files,
    { name: CONSOLE.inspectPage, text: await buildInspectPage(build, configFile) },
  ]);
  markBuilt('console', startedAt);
}

function compile() {
  const tsc = join(dirname(createRequire(import.meta.url).resolve('typescript/package.json')), 'bin/tsc');
  try {
    execFileSync(process.execPath, [tsc, '-b', ...PACKAGES.map(({ folder }) => folder)], { cwd: ROOT, stdio: ['ignore', 2, 2] });
  } catch {
    process.exit(1);
  }
}

/** Replaces the files one by one, each at once: whoever runs the old build never meets half a file. */
function publish(folder, files) {
  for (const { name, text } of files) {
    const path = join(folder, name);
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(`${path}.new`, text);
  }
  for (const { name } of files) renameFile(join(folder, `${name}.new`), join(folder, name));
  const names = new Set(files.map(({ name }) => name));
  // The console is published apart, inside of the gateway's folder.
  const published = join(ROOT, CONSOLE.published);
  const isKept = (path) => folder !== published && path.startsWith(join(published, sep));
  for (const entry of readdirSync(folder, { recursive: true, withFileTypes: true })) {
    const path = join(entry.parentPath, entry.name);
    if (entry.isFile() && !names.has(toSlashes(relative(folder, path))) && !isKept(path)) rmSync(path);
  }
  removeEmptyFolders(folder);
}

function removeEmptyFolders(folder) {
  for (const entry of readdirSync(folder, { withFileTypes: true })) {
    if (!entry.isDirectory()) continue;
    const path = join(folder, entry.name);
    removeEmptyFolders(path);
    if (readdirSync(path).length === 0) rmSync(path, { recursive: true });
  }
}
