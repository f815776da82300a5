/** JavaScript of a package: one file for each entry point, and chunks for what they share. */
import { join } from 'node:path';
import { rolldown } from 'rolldown';
import { ROOT, readManifest } from './packages.js';
import { pureConstants } from './pure-constants.js';

/**
 * Chunks of the core, the smallest entry points first: a module belongs to the first chunk whose entry points reach it. So no
 * module is in two chunks, chunks import only those above, and their number does not grow with the entry points.
 */
const CORE_CHUNKS = {
  sse: ['./sse'],
  'tool-calls': ['./tool-calls'],
  accumulate: ['./accumulate'],
  read: ['./io', './openai-chat', './anthropic-messages', './openai-responses', './gemini'],
  repair: ['./openai-chat/repair', './anthropic-messages/repair', './openai-responses/repair', './gemini/repair'],
  convert: ['./engine', './openai-chat/codec', './anthropic-messages/codec', './openai-responses/codec', './gemini/codec'],
  all: ['.'],
};

/** Bundles the output of tsc (`out`) and resolves with the files: `[{ name: 'index.js', text }]`. */
export async function bundleCode({ folder, programs }, entries) {
  const out = join(ROOT, folder, 'out');
  const moduleFile = (module) => join(out, `${module}.js`);
  const input = Object.fromEntries([...entries.map(({ module }) => module), ...programs].map((name) => [name, moduleFile(name)]));
  const { dependencies = {}, peerDependencies = {} } = readManifest(folder);
  const external = [
    /^node:/,
    ...Object.keys({ ...dependencies, ...peerDependencies }).map((name) => new RegExp(`^${name}(/|$)`)),
  ];
  const isCore = folder === 'packages/core';
  const options = { input, external, platform: isCore ? 'neutral' : 'node', cwd: ROOT, tsconfig: false, onLog: failOnWarning };
  const groups = isCore ? await chunkGroups(options, entries, moduleFile) : [];
  const bundle = await rolldown({ ...options, plugins: isCore ? [pureConstants()] : [] });
  const { output } = await bundle.generate({
    format: 'esm',
    entryFileNames: '[name].js',
    chunkFileNames: 'chunks/[name].js',
    // Names stay: `constructor.name` of an error is part of what people log. Doc comments are in the declarations.
    minify: false,
    comments: { jsdoc: false, legal: true, annotation: true },
    ...(groups.length > 0 && { codeSplitting: { groups } }),
  });
  await bundle.close();
  return output.map(({ fileName, code }) => ({ name: fileName, text: code }));
}

/** On a busy machine, the bundler warns of its own speed. */
function failOnWarning(level, log) {
  if (level === 'warn' && log.code !== 'PLUGIN_TIMINGS') throw new Error(log.message);
}

async function chunkGroups(options, entries, moduleFile) {
  const fileFor = new Map(entries.map(({ subpath, module }) => [subpath, moduleFile(module)]));
  const graph = await readGraph(options);
  const chunks = Object.entries(CORE_CHUNKS).map(([name, subpaths]) => {
    const unknown = subpaths.filter((subpath) => !fileFor.has(subpath));
    if (unknown.length > 0)
      throw new Error(`CORE_CHUNKS in scripts/build/bundle.js names ${unknown}, which package.json does not export`);
    return {
      name,
      files: reach(
        graph,
        subpaths.map((subpath) => fileFor.get(subpath)),
      ),
    };
  });
  const chunkFor = (id) => chunks.find(({ files }) => files.has(id))?.name;
  return chunks.map(({ name }, i) => ({ name, priority: chunks.length - i, test: (id) => chunkFor(id) === name }));
}

/** Module to the modules it imports. */
async function readGraph(options) {
  const graph = new Map();
  const collect = {
    name: 'collect-imports',
    moduleParsed: ({ id, importedIds, dynamicallyImportedIds }) => graph.set(id, [...importedIds, ...dynamicallyImportedIds]),
  };
  const bundle = await rolldown({ ...options, plugins: [collect] });
  await bundle.generate({ format: 'esm' });
  await bundle.close();
  return graph;
}

function reach(graph, starts) {
  const seen = new Set();
  const pending = [...starts];
  while (pending.length > 0) {
    const id = pending.pop();
    if (seen.has(id)) continue;
    seen.add(id);
    pending.push(...(graph.get(id) ?? []));
  }
  return seen;
}
