import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

/** Variables of the system that tests may see. All others are removed: API keys, proxies, settings of a gateway, folders of the user. */
const SYSTEM =
  /^(PATH|PATHEXT|SYSTEMROOT|COMSPEC|TMPDIR|TEMP|TMP|LANG|LC_\w+|TZ|TERM|COLUMNS|NO_COLOR|FORCE_COLOR|LD_LIBRARY_PATH|CI|NODE_OPTIONS|NODE_V8_COVERAGE|npm_(?!config_cache$)\w+)$/i;

/** Variables that choose what the tests do. */
export const TEST_OPTIONS: ReadonlySet<string> = new Set([
  'CHROMIUM',
  'PROVE',
  'PROVE_FOLDER',
  'PROVE_REPORT',
  'PROVE_SEED',
  'SLUICE_ALL_STREAMS',
  'SLUICE_CAPTURE_ALL',
  'SLUICE_CORPUS',
  'SLUICE_EVERY_BYTE',
  'SLUICE_FULL',
  'SLUICE_KILL_SCHEDULES',
  'SLUICE_MUTATED_STREAMS',
  'SLUICE_NIGHT',
  'SLUICE_POOLER',
  'SLUICE_POSTGRES',
  'SLUICE_REQUIRE',
  'SLUICE_SCHEDULE',
  'SLUICE_SCHEDULES',
  'SLUICE_SDK',
  'SLUICE_SEED',
  'SLUICE_SHARED',
  'SLUICE_TEST_SCHEME',
  'UPDATE_SESSION',
]);

/** Loaded into the threads of tests and into the node processes that they start. */
const GUARD = fileURLToPath(new URL('./default-port.cjs', import.meta.url));

/**
 * Gives this process an environment that does not depend on the user: no keys, an empty home, and a data folder of this run. To be called
 * before tests start; their threads and processes inherit it.
 */
export function cleanEnvironment(): void {
  for (const name of Object.keys(process.env)) if (!SYSTEM.test(name) && !TEST_OPTIONS.has(name)) delete process.env[name];
  const folder = mkdtempSync(join(tmpdir(), 'sluice-tests-'));
  process.once('exit', () => rmSync(folder, { recursive: true, force: true }));
  mkdirSync(join(folder, 'home'));
  process.env['HOME'] = join(folder, 'home');
  process.env['USERPROFILE'] = join(folder, 'home');
  process.env['XDG_DATA_HOME'] = join(folder, 'data');
  process.env['NODE_OPTIONS'] = `${process.env['NODE_OPTIONS'] ?? ''} --require ${JSON.stringify(GUARD)}`.trim();
}
