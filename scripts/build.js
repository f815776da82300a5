/**
 * Builds the packages: `npm run build`. Does nothing when the builds are newer than the sources; `--force` builds anyway.
 *
 * tsc checks the sources and writes each module to `packages/*\/out`. From there rolldown bundles the code and
 * rollup-plugin-dts the declarations into `packages/*\/dist`, which is what is published. vite bundles the console into the gateway.
 */
import { execFileSync } from 'node:child_process';
import { accessSync, constants, existsSync, mkdirSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join, relative, sep } from 'node:path';
import { parseArgs } from 'node:util';
import { renameFile, toSlashes } from './build/files.js';
import { isFresh, markBuilt } from './build/freshness.js';
import { withLock } from './build/lock.js';
import { CONSOLE, listEntries, PACKAGES, ROOT } from './build/packages.js';

const { values: options } = parseArgs({ options: { force: { type: 'boolean', default: false } } });

/** Why nothing can be built; empty when it is printed already. */
class BuildError extends Error {}

/** What is built, in order, each with its steps. A step begins with one line, because some take as long as a request. */
const TARGETS = {
  packages: [
    { title: 'check and compile the sources', run: compile },
    ...PACKAGES.map((target) => ({ title: `bundle ${target.name}`, run: () => bundlePackage(target) })),
  ],
  console: [
    { title: 'bundle the console', run: bundleConsole },
    { title: 'bundle the page of "sluice inspect"', run: bundleInspectPage },
  ],
};

/** Files of the console, which are published together. */
const consoleFiles = [];

const consoleConfig = join(ROOT, CONSOLE.folder, 'vite.config.ts');

const onWait = () => say('another process builds this checkout; waiting …');

// A build that is up to date writes nothing, so that users who may only read a checkout can use it.
if (options.force || !isFresh()) {
  try {
    requireReady();
    await withLock(build, onWait);
  } catch (error) {
    // Not process.exit(), which would leave the lock.
    process.exitCode = 1;
    if (!(error instanceof BuildError)) throw error;
    if (error.message !== '') say(error.message);
  }
}

async function build() {
  const stale = Object.keys(TARGETS).filter((name) => options.force || !isFresh(name));
  if (stale.length === 0) return;
  const count = stale.flatMap((name) => TARGETS[name]).length;
  const startedAt = Date.now();
  say(`building this checkout … (${count} steps)`);
  let step = 0;
  for (const name of stale) {
    const targetStartedAt = Date.now();
    for (const { title, run } of TARGETS[name]) {
      say(`${++step} of ${count}: ${title} (${formatSeconds(startedAt)})`);
      await run();
    }
    markBuilt(name, targetStartedAt);
  }
  say(`built in ${formatSeconds(startedAt)}`);
}

/** All output goes to stderr: stdout belongs to the command that needs the build. */
function say(message) {
  process.stderr.write(`sluice: ${message}\n`);
}

function requireReady() {
  if (!existsSync(join(ROOT, 'node_modules/typescript')))
    throw new BuildError('the dependencies are not installed; run "npm ci" first');
  try {
    accessSync(ROOT, constants.W_OK);
  } catch {
    throw new BuildError(
      `this checkout is not built, or its sources are newer than its build, and you may not write to ${ROOT}; run "npm ci && npm run build" as the user who owns it`,
    );
  }
}

function formatSeconds(since) {
  return `${Math.round((Date.now() - since) / 1000)} s`;
}

async function bundlePackage(target) {
  // Imported late: a build that is up to date needs no bundler (0.3 s).
  const { bundleCode } = await import('./build/bundle.js');
  const { bundleDeclarations } = await import('./build/declarations.js');
  const entries = listEntries(target.folder);
  const files = await Promise.all([bundleCode(target, entries), bundleDeclarations(target, entries)]);
  publish(join(ROOT, target.folder, 'dist'), files.flat());
}

/** Loads vite for production. Types are checked by `npm run types`. */
function loadVite() {
  // Tests set another value, with which vite would add names of files for debugging.
  process.env.NODE_ENV = 'production';
  return import('vite');
}

async function bundleConsole() {
  const { build: bundle } = await loadVite();
  const { output } = await bundle({ configFile: consoleConfig, build: { write: false } });
  const files = output.map((file) => ({ name: file.fileName, text: file.type === 'chunk' ? file.code : file.source }));
  consoleFiles.push(...files);
}

async function bundleInspectPage() {
  const { build: bundle } = await loadVite();
  const { buildInspectPage } = await import('./build/inspect-page.js');
  consoleFiles.push({ name: CONSOLE.inspectPage, text: await buildInspectPage(bundle, consoleConfig) });
  publish(join(ROOT, CONSOLE.published), consoleFiles);
}

function compile() {
  const tsc = join(dirname(createRequire(import.meta.url).resolve('typescript/package.json')), 'bin/tsc');
  try {
    execFileSync(process.execPath, [tsc, '-b', ...PACKAGES.map(({ folder }) => folder)], { cwd: ROOT, stdio: ['ignore', 2, 2] });
  } catch {
    // The compiler has printed why.
    throw new BuildError('');
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
