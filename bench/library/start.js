/** What the library costs before it does anything: the time of its imports, and the size of its bundles. */
import { execFileSync } from 'node:child_process';
import { pathToFileURL } from 'node:url';
import { buildRow } from '../method/results.js';
import { alternate } from '../method/slices.js';
import { measureSizes } from '../sizes.js';
import { readEntries } from './load.js';

const BARE = 'node alone';
/** Entry points that programs begin with; `most` milliseconds in addition to node alone. */
const IMPORTS = [
  { entry: '.', most: 40 },
  { entry: './engine' },
  { entry: './openai-chat', most: 10 },
  { entry: './accumulate' },
  { entry: './sse' },
];

/** CPU milliseconds of all threads of a process that imports a file, from its start on. */
function timeImport(file) {
  const load = file ? `await import(${JSON.stringify(pathToFileURL(file).href)});` : '';
  const code = `${load} const { user, system } = process.cpuUsage(); console.log((user + system) / 1000);`;
  return Number(execFileSync(process.execPath, ['--input-type=module', '-e', code], { encoding: 'utf8' }));
}

/** One row an entry point: CPU time in addition to that of node alone, slice by slice. */
export async function measureImports(slices) {
  const files = readEntries();
  const subjects = [{ entry: BARE }, ...IMPORTS];
  const [bare, ...samples] = await alternate(subjects, slices, async ({ entry }, slice) => ({
    process: slice,
    value: timeImport(files[entry]),
  }));
  return IMPORTS.map(({ entry, most }, i) =>
    buildRow({
      id: `import ${entry}`,
      group: 'import',
      title: `import '@sluice/core${entry.slice(1)}', in addition to node alone`,
      unit: 'ms',
      kind: 'cpu',
      found: [
        {
          subject: 'Sluice',
          samples: samples[i].map((sample, slice) => ({ ...sample, value: sample.value - bare[slice].value })),
        },
      ],
      goals: most === undefined ? [] : [{ subject: 'Sluice', most }],
    }),
  );
}

/** One row a bundle: kilobytes, gzipped. */
export async function measureBundles() {
  const sizes = await measureSizes();
  return sizes.map(({ name, gzipped, limit }) =>
    buildRow({
      id: `size ${name}`,
      group: 'size',
      title: name,
      unit: 'KB gzipped',
      kind: 'count',
      found: [{ subject: 'Sluice', samples: [{ slice: 0, process: 0, value: gzipped / 1000 }] }],
      goals: [{ subject: 'Sluice', most: limit / 1000 }],
    }),
  );
}
