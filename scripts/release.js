/**
 * A dry run of a release: `npm run release`. Packs each package twice, checks it, measures it, writes an SBOM beside the tarballs and prints a
 * table. Nothing is published.
 */
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { PACKAGES, ROOT, readManifest } from './build/packages.js';
import { buildSbom } from './sbom.js';

const FOLDER = join(ROOT, 'dist/release');

/** Runs a check; its output is shown only when it fails. */
function passes(command, args, cwd = ROOT) {
  try {
    execFileSync(command, args, { cwd, encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] });
    return 'ok';
  } catch ({ stdout = '', stderr = '' }) {
    console.error(`${command} ${args.join(' ')}\n${stdout}${stderr}`);
    return 'FAILED';
  }
}

function pack(folder, destination) {
  mkdirSync(destination, { recursive: true });
  const args = ['pack', '--json', '--ignore-scripts', '--pack-destination', destination];
  const [packed] = JSON.parse(
    execFileSync('npm', args, { cwd: join(ROOT, folder), encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] }),
  );
  const path = join(destination, packed.filename);
  return { ...packed, path, hash: createHash('sha256').update(readFileSync(path)).digest('hex') };
}

/** Bundles again even if nothing changed, so that the second tarball shows whether the bundles are reproducible, too. tsc stays incremental. */
const build = () => execFileSync('node', ['scripts/build.js', '--force'], { cwd: ROOT, stdio: ['ignore', 'ignore', 'inherit'] });

rmSync(FOLDER, { recursive: true, force: true });
build();
const first = PACKAGES.map(({ folder }) => pack(folder, FOLDER));
build();
const second = PACKAGES.map(({ folder }) => pack(folder, join(FOLDER, 'again')));
rmSync(join(FOLDER, 'again'), { recursive: true });

const lock = JSON.parse(readFileSync(join(ROOT, 'package-lock.json'), 'utf8'));
const rows = PACKAGES.map(({ name, folder }, i) => {
  const { path, hash, size, unpackedSize, entryCount, filename } = first[i];
  const sbom = buildSbom(readManifest(folder), lock, folder);
  writeFileSync(path.replace(/\.tgz$/, '.cdx.json'), `${JSON.stringify(sbom, null, 2)}\n`);
  return {
    package: `${name} ${readManifest(folder).version}`,
    'tarball kB': Math.round(size / 1000),
    'unpacked kB': Math.round(unpackedSize / 1000),
    files: entryCount,
    components: sbom.components.length,
    publint: passes('npx', ['publint', '--strict', folder]),
    attw: passes('npx', ['attw', path, '--profile', 'esm-only']),
    reproducible: hash === second[i].hash ? 'ok' : 'FAILED',
    sha256: hash,
    tarball: filename,
  };
});
const size = passes('node', ['bench/size.js']);

console.table(Object.fromEntries(rows.map(({ package: name, sha256: _hash, tarball: _file, ...row }) => [name, row])));
for (const { sha256, tarball } of rows) console.log(`${sha256}  ${tarball}`);
console.log(`bundle sizes: ${size} (npm run size)`);
console.log('Tarballs and SBOMs (CycloneDX) are in dist/release. Nothing was published.');
process.exitCode = [size, ...rows.flatMap(Object.values)].includes('FAILED') ? 1 : 0;
