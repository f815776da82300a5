// The program of node, Bun and Deno. Copied beside the bundle.
import { runChecks } from './checks.mjs';
import data from './data.mjs';

console.log(JSON.stringify(await runChecks(data)));
