/** Installs JavaScript runtimes, which are npm packages with a lockfile of their own, without their scripts into .cache/runtimes. */
import { execFileSync } from 'node:child_process';
import { copyFileSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { ROOT } from '../build/packages.js';

const HERE = fileURLToPath(new URL('.', import.meta.url));

/** Where the runtimes are installed. */
export const CACHE = join(ROOT, '.cache/runtimes');

/**
 * Installs these packages of the lockfile, if they are missing; by default all. Others are left out: all of them are 1.2 GB.
 * @param {readonly string[] | undefined} names
 */
export function installRuntimes(names) {
  mkdirSync(CACHE, { recursive: true });
  for (const file of ['package.json', 'package-lock.json']) copyIfChanged(join(HERE, file), join(CACHE, file));
  copyIfChanged(join(ROOT, '.npmrc'), join(CACHE, '.npmrc'));
  const { devDependencies } = JSON.parse(readFileSync(join(HERE, 'package.json'), 'utf8'));
  const needed = new Set(names ?? Object.keys(devDependencies));
  const missing = [...needed].filter((name) => !isInstalled(name, devDependencies[name]));
  if (missing.length === 0) return;
  console.log(`installing ${missing.join(', ')} …`);
  if (names === undefined) npm(['ci'], CACHE);
  else for (const name of missing) installAlone(name, devDependencies[name]);
}

/** A runtime alone is a binary without dependencies: its version is exact, and its hash is that of the lockfile. */
function installAlone(name, version) {
  const lock = JSON.parse(readFileSync(join(HERE, 'package-lock.json'), 'utf8'));
  const entry = lock.packages[`node_modules/${name}`];
  const folder = join(CACHE, 'alone', name);
  mkdirSync(folder, { recursive: true });
  const manifest = { private: true, version: '1.0.0', name: 'alone', devDependencies: { [name]: version } };
  const packages = { '': manifest, [`node_modules/${name}`]: entry };
  writeFileSync(join(folder, 'package.json'), JSON.stringify(manifest));
  writeFileSync(join(folder, 'package-lock.json'), JSON.stringify({ ...manifest, lockfileVersion: 3, requires: true, packages }));
  npm(['ci'], folder);
}

function npm(args, cwd) {
  execFileSync('npm', [...args, '--ignore-scripts', '--no-audit', '--no-fund', '--loglevel=error'], {
    cwd,
    stdio: ['ignore', 'ignore', 'inherit'],
  });
}

function isInstalled(name, version) {
  const manifest = join(findPackage(name), 'package.json');
  return existsSync(manifest) && version.endsWith(JSON.parse(readFileSync(manifest, 'utf8')).version);
}

/**
 * The folder of an installed package.
 * @param {string} name
 */
export function findPackage(name) {
  const alone = join(CACHE, 'alone', name, 'node_modules', name);
  return existsSync(alone) ? alone : join(CACHE, 'node_modules', name);
}

function copyIfChanged(from, to) {
  if (!existsSync(to) || readFileSync(from, 'utf8') !== readFileSync(to, 'utf8')) copyFileSync(from, to);
}
