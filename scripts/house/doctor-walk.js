/** Runs `sluice doctor FILE` twice and writes the files that the second run visits: the first one loads the modules. */
import { writeFileSync } from 'node:fs';
import { main } from '../../packages/gateway/dist/cli/main.js';
import { listVisited } from './coverage.js';

const [file, output] = process.argv.slice(2);
const run = () => main(['doctor', file]);
await run();
writeFileSync(output, JSON.stringify(await listVisited(run)));
