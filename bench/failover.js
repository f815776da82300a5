/**
 * The Failover Bench: sixteen faults of a scripted upstream (the wall) through a real gateway, in real time, with
 * `examples/failover-bench.yaml` and with the defaults: `npm run bench:failover [-- --write]`. `--write` puts the table into docs/reliability.md.
 * Takes about 150 seconds, because an upstream that stalls is given up after 120 s by default.
 */
import { spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { parseArgs } from 'node:util';
import { build } from 'esbuild';

const { values: options } = parseArgs({ options: { write: { type: 'boolean' } } });
const here = (path) => fileURLToPath(new URL(path, import.meta.url));
const EXAMPLE = readFileSync(here('../examples/failover-bench.yaml'), 'utf8');
const PAGE = here('../docs/reliability.md');
/** Pass, partial, safe, fail, as published; not measured here. */
const PUBLISHED = { Portkey: [11, 2, 0, 3], LiteLLM: [9, 3, 4, 0], bifrost: [9, 3, 3, 1] };

const folder = mkdtempSync(join(tmpdir(), 'sluice-failover-'));
try {
  const { Wall, SCENARIOS, runScenario, REAL_CLOCK } = await loadTests();
  const [tuned, usual] = await Promise.all([measure('example', EXAMPLE), measure('defaults', removeSettings(EXAMPLE))]);
  const table = formatTable(tuned, usual);
  console.log(table);
  if (options.write) writeTable(table);
  process.exitCode = tuned.every(({ grade }) => grade === 'pass') ? 0 : 1;

  /** All faults at the same time: each has its own model. */
  async function measure(name, config) {
    const wall = await Wall.start();
    const gateway = await startGateway(name, config, wall.port);
    const bench = { url: gateway.url, wall, clock: REAL_CLOCK };
    try {
      return await Promise.all(SCENARIOS.map((scenario) => runScenario(scenario, bench)));
    } finally {
      gateway.child.kill();
      await wall.stop();
    }
  }

  function formatTable(tuned, usual) {
    const totals = { 'Sluice, `examples/failover-bench.yaml`': countGrades(tuned), 'Sluice, defaults': countGrades(usual) };
    const rows = SCENARIOS.map(({ id, title }, i) => `| ${id} | ${title} | ${show(tuned[i])} | ${show(usual[i])} |`);
    const scores = Object.entries({ ...totals, ...PUBLISHED }).map(([name, grades]) => `| ${name} | ${grades.join(' | ')} |`);
    return [
      '| gateway | pass | partial | safe | fail |',
      '|---|--:|--:|--:|--:|',
      ...scores,
      '',
      '| | fault and what a pass needs | `examples/failover-bench.yaml` | defaults |',
      '|---|---|---|---|',
      ...rows,
    ].join('\n');
  }
} finally {
  rmSync(folder, { recursive: true, force: true });
}

/** The wall and the scenarios are TypeScript, which CI runs, too. */
async function loadTests() {
  const outfile = join(folder, 'failover.mjs');
  const contents = ['wall', 'scenarios'].map((name) => `export * from '../packages/gateway/test/failover/${name}.ts';`);
  contents.push("export { REAL_CLOCK } from '../packages/gateway/src/http/clock.ts';");
  const stdin = { contents: contents.join('\n'), resolveDir: here('.'), loader: 'ts' };
  await build({ stdin, outfile, bundle: true, format: 'esm', platform: 'node', logLevel: 'error' });
  return import(pathToFileURL(outfile).href);
}

/** The routes of the example with the default of every setting. */
function removeSettings(text) {
  const [routes] = text.split(/^recovery:/m);
  return routes.replaceAll(/^ {4}(?!protocol|base_url|api_key)\w.*\n/gm, '').replaceAll(/^model_in_answer:.*\n/gm, '');
}

async function startGateway(name, config, wallPort) {
  const file = join(folder, `${name}.yaml`);
  writeFileSync(file, config);
  const child = spawn(process.execPath, [here('../packages/gateway/bin/sluice.js'), 'serve', '--config', file, '--port', '0'], {
    env: { ...process.env, WALL_PORT: String(wallPort) },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let output = '';
  const url = await new Promise((resolve, reject) => {
    const read = (data) => {
      output += data;
      const [found] = /http:\/\/127\.0\.0\.1:\d+/.exec(output) ?? [];
      if (found) resolve(found);
    };
    child.stdout.on('data', read);
    child.stderr.on('data', read);
    child.once('close', (code) => reject(new Error(`the gateway ended with ${code}: ${output}`)));
  });
  return { child, url };
}

function countGrades(results) {
  return ['pass', 'partial', 'safe', 'fail'].map((name) => results.filter(({ grade }) => grade === name).length);
}

function show({ grade, reason }) {
  return reason === '' ? grade : `${grade}: ${reason.replaceAll('|', '\\|')}`;
}

function writeTable(table) {
  const [begin, end] = ['<!-- failover -->', '<!-- /failover -->'];
  const text = readFileSync(PAGE, 'utf8');
  const [from, to] = [text.indexOf(begin) + begin.length, text.indexOf(end)];
  if (from < begin.length || to < from) throw new Error(`${PAGE}: has no ${begin}`);
  writeFileSync(PAGE, `${text.slice(0, from)}\n${table}\n${text.slice(to)}`);
}
