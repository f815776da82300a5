/** The whole suite five times in random order on a busy machine. */
import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';

const script = fileURLToPath(new URL('../../scripts/stable.js', import.meta.url));
const { status } = spawnSync(process.execPath, [script, '--only', 'loaded', '--times', '5'], { stdio: 'inherit' });
process.exitCode = status ?? 1;
