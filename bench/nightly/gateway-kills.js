/**
 * Kills a gateway with SIGKILL under 200 live streams, 500 times (`--kills 20` and `--streams 20` for fewer). Exit code 1 when a response
 * that a client saw has no row or two, an end that a client saw is not settled exactly, an exchange stays open, or a roll-up is wrong.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { proveGatewayKills } from '../../packages/gateway/test/ledger/kill-gateway.js';

const { values: options } = parseArgs({
  options: { kills: { type: 'string', default: '500' }, streams: { type: 'string', default: '200' } },
});
const folder = mkdtempSync(join(tmpdir(), 'sluice-gateway-kills-'));
try {
  const found = await proveGatewayKills(folder, Number(options.kills), Number(options.streams));
  const { kills, requests, contents, ends, rows, crashed, late, violations } = found;
  for (const violation of violations.slice(0, 20)) console.log(violation);
  console.log(
    `${kills} kills, ${requests} requests, ${contents} with content, ${ends} with their end, ${rows} rows, ${crashed} crashed, ${late} kills of a gateway that had said that its store is slow, ${violations.length} violations`,
  );
  process.exitCode = violations.length === 0 ? 0 : 1;
} finally {
  rmSync(folder, { recursive: true, force: true });
}
