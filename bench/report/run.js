/**
 * `npm run bench:report`: writes docs/performance.md, its charts and the section of README.md from bench/results.
 * `--gateway FILE` and `--library FILE` read other runs; `--out DIR` writes below another folder.
 */
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { ROOT } from '../method/commits.js';
import { buildReport, IMAGES, isChart, PAGE, README } from './report.js';

const { values } = parseArgs({ options: { gateway: { type: 'string' }, library: { type: 'string' }, out: { type: 'string' } } });
const out = resolve(values.out ?? ROOT);

/** The run of a file, which must exist when it is named; without one, the run of the repository. */
function readResults(kind) {
  const file = values[kind] ?? join(ROOT, `bench/results/${kind}.json`);
  if (values[kind] === undefined && !existsSync(file)) {
    console.log(`${kind}: no results yet (${file})`);
    return undefined;
  }
  return JSON.parse(readFileSync(file, 'utf8'));
}

const texts = Object.fromEntries([PAGE, README].map((file) => [file, readFileSync(join(ROOT, file), 'utf8')]));
const files = buildReport({ gateway: readResults('gateway'), library: readResults('library') }, texts);

mkdirSync(join(out, IMAGES), { recursive: true });
for (const name of readdirSync(join(out, IMAGES))) {
  if (isChart(name) && !(`${IMAGES}/${name}` in files)) rmSync(join(out, IMAGES, name));
}
for (const [path, text] of Object.entries(files)) {
  mkdirSync(dirname(join(out, path)), { recursive: true });
  writeFileSync(join(out, path), text);
  console.log(`wrote ${path}`);
}
