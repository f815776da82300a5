/**
 * Makes a fixture of an earlier version, from which today's gateway must be able to start: `node scripts/make-upgrade-fixture.js COMMIT NAME`.
 * Checks the commit out, builds it, lets its own gateway write a data folder (`upgrade/scenario.js`), and writes that and what it contains to
 * `fixtures/upgrade/NAME`. A configuration that is there already stays, and is read by that version.
 */
import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { runNpm } from './build/npm.js';
import { ROOT } from './build/packages.js';
import { packFolder, readSums } from './upgrade/folder.js';
import { Program } from './upgrade/program.js';
import { buildConfig, LAST_START, play } from './upgrade/scenario.js';
import { readSettings } from './upgrade/settings.js';

const [revision, name] = process.argv.slice(2);
if (name === undefined || !/^[\w.-]+$/.test(name)) {
  console.error('usage: node scripts/make-upgrade-fixture.js COMMIT NAME');
  process.exit(2);
}

const git = (...args) => execFileSync('git', args, { cwd: ROOT, maxBuffer: 2 ** 30 });

const commit = git('rev-parse', '--verify', `${revision}^{commit}`).toString().trim();
const root = buildCheckout(commit);
const fixture = join(ROOT, 'fixtures/upgrade', name);
const schema = JSON.parse(readFileSync(join(root, 'packages/gateway/sluice.schema.json'), 'utf8'));
const has = (file) => existsSync(join(root, 'packages/gateway/out', file));

const config = join(fixture, 'sluice.yaml');
mkdirSync(fixture, { recursive: true });
if (!existsSync(config)) writeFileSync(config, buildConfig(schema));
const settings = await readSettings(root, config);
const facts = has('store/index.js') ? await makeFolder() : {};
writeFileSync(join(fixture, 'expected.json'), `${JSON.stringify({ commit, ...facts, settings }, null, 2)}\n`);
console.log(`wrote ${fixture}`);

/** An earlier commit, built in a folder that is used again. */
function buildCheckout(id) {
  const folder = join(ROOT, '.cache/upgrade', id);
  const ready = join(folder, '.ready');
  if (existsSync(ready)) return folder;
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  execFileSync('tar', ['-x', '-C', folder], { input: git('archive', id) });
  runNpm(['ci', '--prefer-offline', '--no-audit', '--no-fund'], { cwd: folder });
  execFileSync(process.execPath, ['scripts/build.js'], { cwd: folder, stdio: 'inherit' });
  writeFileSync(ready, '');
  return folder;
}

/** Lets the gateway of that version write a data folder, and describes it. */
async function makeFolder() {
  const home = mkdtempSync(join(tmpdir(), 'sluice-upgrade-'));
  const data = join(home, 'data');
  try {
    const played = await play({
      createProgram: (now) => new Program({ root, home, now }),
      config,
      data,
      hasKeys: has('cli/commands/keys.js'),
      hasStore: Object.hasOwn(schema.properties, 'responses'),
    });
    for (const old of ['data', 'sluice.sql']) rmSync(join(fixture, old), { recursive: true, force: true });
    packFolder(data, fixture);
    return { last_start: LAST_START, ...readSums(data), ...played };
  } finally {
    rmSync(home, { recursive: true, force: true });
  }
}
