/** Runs `sluice doctor FILE` twice and writes the files that the second run visits: the first one loads the modules. */
import { writeFileSync } from 'node:fs';
import { register } from 'node:module';
import { listVisited } from './coverage.js';

// The core as modules: a bundle would be one file.
register('./unbundled.js', import.meta.url);
const { main } = await import('../../packages/gateway/out/cli/main.js');

const [file, output] = process.argv.slice(2);
const run = () => main(['doctor', file]);
await run();
writeFileSync(output, JSON.stringify(await listVisited(run)));
