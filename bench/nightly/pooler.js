/** The tests with PostgreSQL, with a PgBouncer in transaction mode between the gateway and the server. Needs the package `pgbouncer`. */
import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';

const FOLDERS = ['store', 'admission', 'migrate', 'ledger/nodes'].map((name) => `packages/gateway/test/${name}`);

const { status } = spawnSync('npx', ['vitest', 'run', '--reporter=dot', ...FOLDERS], {
  cwd: fileURLToPath(new URL('../..', import.meta.url)),
  env: { ...process.env, SLUICE_POOLER: '1', SLUICE_REQUIRE: 'postgres,redis' },
  stdio: 'inherit',
});
console.log('store, limits, nodes and migrations behind PgBouncer');
process.exitCode = status ?? 1;
