/**
 * Programs that tests use beside the gateway. Without one, its tests are skipped, and a line says so. `SLUICE_REQUIRE=postgres` makes
 * that an error; `all` names every program.
 */
import { findNginx } from './nginx.js';
import { findPostgres } from './postgres.js';
import { findProgram } from './programs.js';
import { findRedis } from './redis.js';

/** `.ci/run` installs the packages. */
const PARTS = [
  { name: 'postgres', package: 'postgresql', find: findPostgres },
  { name: 'redis', package: 'redis-server', find: findRedis },
  { name: 'nginx', package: 'nginx-light', find: findNginx },
  { name: 'promtool', package: 'prometheus', find: () => findProgram('promtool') },
];

/** Called once before all tests. */
export default function setup() {
  const required = (process.env['SLUICE_REQUIRE'] ?? '').split(',');
  const missing = PARTS.filter((part) => part.find() === undefined);
  const failed = missing.filter(({ name }) => required.includes(name) || required.includes('all'));
  if (failed.length > 0)
    throw new Error(
      `tests need ${failed.map(({ name }) => name).join(', ')}; install ${failed.map((part) => part.package).join(' ')}`,
    );
  if (missing.length > 0)
    process.stderr.write(
      `skipped: the tests with ${missing.map(({ name }) => name).join(', ')} (install ${missing.map((part) => part.package).join(' ')})\n`,
    );
}
