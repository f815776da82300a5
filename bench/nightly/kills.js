/**
 * Kills the store with SIGKILL in the middle of acknowledged writes of 200 exchanges at a time, 500 times (`--kills 20` for fewer). Exit code
 * 1 when an acknowledged write is lost, an exchange stays open, or a roll-up differs from the sum over its rows.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { proveKills } from '../../packages/gateway/test/store/kills.js';

const { values: options } = parseArgs({ options: { kills: { type: 'string', default: '500' } } });
const folder = mkdtempSync(join(tmpdir(), 'sluice-kills-'));
try {
  const { kills, exchanges, writes, rows, crashed, violations } = await proveKills(folder, Number(options.kills));
  for (const violation of violations.slice(0, 20)) console.log(violation);
  console.log(
    `${kills} kills, ${exchanges} exchanges with ${writes} acknowledged writes, ${rows} rows, ${crashed} crashed, ${violations.length} violations`,
  );
  process.exitCode = violations.length === 0 ? 0 : 1;
} finally {
  rmSync(folder, { recursive: true, force: true });
}
