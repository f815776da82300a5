/**
 * Kills one of two gateways on one PostgreSQL database with SIGKILL under 200 live streams, 50 times (`--kills 5` and `--streams 20` for
 * fewer). Exit code 1 when a row is wrong or stays open, or a request of the other gateway fails. Needs the binaries of PostgreSQL.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { proveNodeKills } from '../../packages/gateway/test/ledger/node-proofs.js';
import { PostgresServer } from '../../packages/gateway/test/real-parts/postgres.js';

const { values: options } = parseArgs({
  options: { kills: { type: 'string', default: '50' }, streams: { type: 'string', default: '200' } },
});
const folder = mkdtempSync(join(tmpdir(), 'sluice-node-kills-'));
const server = await PostgresServer.start();
try {
  const place = { server, url: await server.createDatabase(), folder };
  const found = await proveNodeKills(place, Number(options.kills), Number(options.streams));
  const { requests, contents, ends, rows, crashed, lost, doubled, open, late, violations } = found;
  for (const violation of violations.slice(0, 20)) console.log(violation);
  console.log(
    `${options.kills} kills, ${requests} requests, ${contents} with content, ${ends} with their end, ${rows} rows, ${crashed} crashed, ${lost} lost, ${doubled} doubled, ${open} open, ${late} gateways whose store was slow, ${violations.length} violations`,
  );
  process.exitCode = violations.length === 0 ? 0 : 1;
} finally {
  await server.stop();
  rmSync(folder, { recursive: true, force: true });
}
