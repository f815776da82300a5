/**
 * Random schedules of the life of an exchange, with new seeds: 100,000 in this process and 1,000 with kills of a gateway
 * (`--schedules 1000`, `--kills 10` for fewer, `--seed 1` to repeat a run), shared by `--processes 2`. Exit code 1 when one fails, which is
 * printed with the command that plays it again.
 */
import { spawn } from 'node:child_process';
import { randomInt } from 'node:crypto';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';

const root = fileURLToPath(new URL('../..', import.meta.url));
const VITEST = fileURLToPath(new URL('../../node_modules/vitest/vitest.mjs', import.meta.url));
const TEST = 'packages/gateway/test/exchange/life.test.ts';

const { values: options } = parseArgs({
  options: {
    schedules: { type: 'string', default: '100000' },
    kills: { type: 'string', default: '1000' },
    processes: { type: 'string', default: '2' },
    seed: { type: 'string', default: String(randomInt(2 ** 30)) },
  },
});
const processes = Number(options.processes);
const seed = Number(options.seed);
const share = (total) => Math.ceil(Number(total) / processes);
/** Each part of a process has a seed of its own: far more than its parts are between two processes. */
const SEEDS_EACH = 1_000_000;

function play(index) {
  const env = {
    ...process.env,
    SLUICE_SEED: String(seed + index * SEEDS_EACH),
    SLUICE_SCHEDULES: String(share(options.schedules)),
    SLUICE_KILL_SCHEDULES: String(share(options.kills)),
  };
  const child = spawn(process.execPath, [VITEST, 'run', '--disableConsoleIntercept', TEST], { cwd: root, env, stdio: 'inherit' });
  return new Promise((resolve) => child.once('close', (code) => resolve(code ?? 1)));
}

const began = performance.now();
const codes = await Promise.all(Array.from({ length: processes }, (_, index) => play(index)));
const seconds = (performance.now() - began) / 1000;
const failed = codes.filter((code) => code !== 0).length;
const rate = (Number(options.schedules) + Number(options.kills)) / seconds;
console.log(
  `${options.schedules} schedules and ${options.kills} with kills from seed ${seed}, ${seconds.toFixed(0)} s, ${rate.toFixed(1)} schedules a second, ${failed} of ${processes} processes failed`,
);
process.exitCode = failed === 0 ? 0 : 1;
