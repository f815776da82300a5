// npm run lock: writes package-lock.json and completes it. An argument names another lockfile: node scripts/complete-lock.js site/package-lock.json
//
// Tools with native parts (biome, rolldown, oxc) list one optional package for each platform. A registry that holds only some of them makes `npm install` leave
// the others out of the lockfile, and `npm ci` then refuses it on every machine. They are added here with what `npm ci` needs to skip them elsewhere.
import { readFileSync, writeFileSync } from 'node:fs';

const name = process.argv[2] ?? 'package-lock.json';
const file = new URL(`../${name}`, import.meta.url);
const lock = JSON.parse(readFileSync(file, 'utf8'));
const { packages } = lock;

const OS = ['android', 'darwin', 'freebsd', 'linux', 'openharmony', 'win32', 'aix', 'netbsd', 'openbsd', 'sunos'];
const CPU = {
  arm64: 'arm64',
  arm: 'arm',
  x64: 'x64',
  ia32: 'ia32',
  ppc64: 'ppc64',
  riscv64: 'riscv64',
  s390x: 's390x',
  wasm32: 'wasm32',
  loong64: 'loong64',
};

/** `@scope/binding-linux-arm64-musl` runs on linux, arm64, musl. */
function platformOf(name) {
  const words = name.slice(name.lastIndexOf('/') + 1).split('-');
  const os = OS.find((word) => words.includes(word));
  const cpu = CPU[words.find((word) => Object.hasOwn(CPU, word))];
  const libc = words.some((word) => word.startsWith('musl'))
    ? 'musl'
    : words.some((word) => word.startsWith('gnu'))
      ? 'glibc'
      : undefined;
  return { ...(cpu && { cpu: [cpu] }), ...(libc && os === 'linux' && { libc: [libc] }), ...(os && { os: [os] }) };
}

let added = 0;
for (const [place, { optionalDependencies = {}, dev }] of Object.entries(packages)) {
  for (const [name, version] of Object.entries(optionalDependencies)) {
    // Beside the package that lists it: two versions of one tool each have their own.
    const beside = `${place.slice(0, place.lastIndexOf('node_modules/'))}node_modules/${name}`;
    const isThere = [beside, `${place}/node_modules/${name}`, `node_modules/${name}`].some(
      (at) => packages[at]?.version === version,
    );
    const platform = platformOf(name);
    if (isThere || Object.keys(platform).length === 0) continue;
    packages[beside] = { version, ...(dev && { dev }), optional: true, ...platform };
    added++;
  }
}

lock.packages = Object.fromEntries(Object.entries(packages).sort(([a], [b]) => (a < b ? -1 : 1)));
writeFileSync(file, `${JSON.stringify(lock, null, 2)}\n`);
console.log(`${name}: ${added} packages of other platforms added`);
