/**
 * Proofs that take too long for every commit, one after the other: `npm run nightly`, or `npm run nightly -- --only soak`.
 * Prints the seconds and the last line of figures of each. Exit code 1 when one fails.
 *
 * A proof is a script that prints what it measures, ends with one line of figures, and exits with another code than 0 when it fails.
 */
import { spawn } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';

const PROOFS = [
  { name: 'linear', script: '../linear.js', flags: ['--expose-gc', '--min-semi-space-size=256', '--max-semi-space-size=256'] },
  { name: 'reloads', script: './reloads.js' },
  { name: 'properties', script: './properties.js' },
  { name: 'schedules', script: './schedules.js' },
  { name: 'differential', script: './differential.js' },
  { name: 'continuation', script: './continuation.js' },
  { name: 'background', script: './background.js' },
  { name: 'first-token', script: './first-token.js' },
  { name: 'captures', script: './captures.js' },
  { name: 'key-timing', script: './key-timing.js' },
  { name: 'response-timing', script: './response-timing.js' },
  { name: 'unauthenticated', script: './unauthenticated.js' },
  { name: 'kills', script: './kills.js' },
  { name: 'gateway-kills', script: './gateway-kills.js' },
  { name: 'node-kills', script: './node-kills.js' },
  { name: 'node-restarts', script: './node-restarts.js' },
  { name: 'pooler', script: './pooler.js' },
  { name: 'limit-leaks', script: './limit-leaks.js' },
  { name: 'clients', script: './clients.js' },
  { name: 'attacks', script: '../../scripts/attacks.js' },
  { name: 'soak', script: './soak.js' },
  { name: 'adapters', script: './adapters.js' },
  { name: 'long-tests', script: './long-tests.js' },
  { name: 'chart', script: './chart.js' },
  { name: 'guides', script: '../../scripts/check-guides.js' },
  { name: 'site', script: './site.js' },
  { name: 'loaded-tests', script: './loaded-tests.js' },
];

const { values: options } = parseArgs({ options: { only: { type: 'string' } } });
const chosen = PROOFS.filter(({ name }) => !options.only || name.includes(options.only));
if (chosen.length === 0) {
  console.error(`no proof is called "${options.only}"; known: ${PROOFS.map(({ name }) => name).join(', ')}`);
  process.exit(2);
}

const results = [];
for (const proof of chosen) {
  console.log(`== ${proof.name}`);
  results.push(await prove(proof));
}
for (const { name, code, seconds, figures } of results)
  console.log(`${code === 0 ? 'ok    ' : 'FAILED'} ${name}, ${seconds.toFixed(1)} s: ${figures}`);
process.exitCode = results.every(({ code }) => code === 0) ? 0 : 1;

async function prove({ name, script, flags = [] }) {
  const begun = performance.now();
  const child = spawn(process.execPath, [...flags, fileURLToPath(new URL(script, import.meta.url))], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  let figures = '';
  child.stdout.on('data', (data) => {
    process.stdout.write(data);
    figures = String(data).trim().split('\n').at(-1) || figures;
  });
  const code = await new Promise((resolve) => child.once('close', (status) => resolve(status ?? 1)));
  return { name, code, seconds: (performance.now() - begun) / 1000, figures };
}
