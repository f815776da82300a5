/**
 * Runs the core in every runtime, and the gateway in every release of node: `npm run runtimes [-- --only node-22,bun]`. Exit code 1 when one fails.
 *
 * The runtimes are npm packages with a lockfile of their own, installed without their scripts into .cache/runtimes; Chromium is the one of the
 * machine (CHROMIUM, by default /usr/bin/chromium).
 */
import { copyFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { parseArgs } from 'node:util';
import { rolldown } from 'rolldown';
import { ROOT } from '../build/packages.js';
import { RUNTIMES } from './hosts.js';
import { CACHE, findPackage, installRuntimes } from './install.js';
import { createData } from './samples.js';

const { values: options } = parseArgs({ options: { only: { type: 'string' } } });
const HERE = fileURLToPath(new URL('.', import.meta.url));

const chosen = chooseRuntimes();
installRuntimes(chosen.length === RUNTIMES.length ? undefined : chosen.flatMap(({ packages }) => packages));
const expected = await prepare();
const rows = [];
for (const { name, run } of chosen) rows.push(await runOne(name, run));
console.log(format(rows));
if (rows.some(({ failures }) => failures.length > 0)) process.exitCode = 1;

function chooseRuntimes() {
  const names = options.only?.split(',');
  const unknown = names?.filter((name) => !RUNTIMES.some((one) => one.name === name)) ?? [];
  if (unknown.length > 0) {
    console.error(`--only: unknown runtime ${unknown.join(', ')}; known: ${RUNTIMES.map(({ name }) => name).join(', ')}`);
    process.exit(2);
  }
  return RUNTIMES.filter(({ name }) => !names || names.includes(name));
}

/** Writes the bundle and its data; resolves with what this process makes of them. */
async function prepare() {
  const programs = join(HERE, 'programs');
  const bundle = await rolldown({
    input: { checks: join(programs, 'checks.js'), 'ai-next': join(programs, 'ai-next.js') },
    external: ['ai', '@ai-sdk/openai-compatible', /data\.mjs$/],
    platform: 'neutral',
    cwd: ROOT,
    tsconfig: false,
  });
  await bundle.write({ dir: CACHE, format: 'esm', entryFileNames: '[name].mjs', chunkFileNames: 'shared.mjs' });
  await bundle.close();
  const data = await createData();
  writeFileSync(join(CACHE, 'data.mjs'), `export default ${JSON.stringify(data)};\n`);
  for (const name of ['main.mjs', 'worker.mjs']) copyFileSync(join(programs, name), join(CACHE, name));
  const { runChecks } = await import(pathToFileURL(join(CACHE, 'checks.mjs')).href);
  return (await runChecks(data)).outputs;
}

async function runOne(name, run) {
  const from = performance.now();
  try {
    const { version, counts, failures, outputs } = await run({ cache: CACHE, findPackage });
    const differing = Object.keys(outputs ?? {}).filter((pair) => outputs[pair] !== expected[pair]);
    const all = [...failures, ...differing.map((pair) => `${pair}: the output differs from that of node ${process.version}`)];
    return { name, version, counts, failures: all, seconds: (performance.now() - from) / 1000 };
  } catch (error) {
    return {
      name,
      version: '',
      counts: {},
      failures: [String(error?.stderr || error)],
      seconds: (performance.now() - from) / 1000,
    };
  }
}

function format(list) {
  const lines = list.map(({ name, version, counts, failures, seconds }) => {
    const done = Object.entries(counts).map(([group, count]) => `${count} ${group}`);
    return `${name.padEnd(10)} ${version.padEnd(20)} ${done.join(', ').padEnd(44)} ${failures.length === 0 ? 'ok' : `${failures.length} FAILED`}, ${seconds.toFixed(1)} s`;
  });
  const details = list.flatMap(({ name, failures }) =>
    failures.slice(0, 20).map((failure) => `${name}: ${failure.slice(0, 500)}`),
  );
  return [...lines, ...details].join('\n');
}
