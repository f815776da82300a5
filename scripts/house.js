/**
 * Prints the figures of the code base's structure: `npm run house` (builds first). docs/architecture.md quotes them.
 *
 * `--importers` also lists the files with one importer in the same folder, `--undocumented` the exports without a doc comment,
 * `--walks` the files that each walk visits.
 */
import { execFileSync } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, relative, resolve } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { parseArgs } from 'node:util';
import { listVisited } from './house/coverage.js';
import { exportsWithoutComment, findCycles, readImports } from './house/sources.js';

const root = fileURLToPath(new URL('..', import.meta.url));
const { values: options } = parseArgs({
  options: { importers: { type: 'boolean' }, undocumented: { type: 'boolean' }, walks: { type: 'boolean' } },
});

const PACKAGES = readdirSync(join(root, 'packages'));
const PROTOCOLS = ['openai-chat', 'anthropic-messages', 'openai-responses', 'gemini'];
const files = PACKAGES.flatMap((name) => sources(join(root, 'packages', name, 'src')));
const imports = new Map(files.map((file) => [file, readImports(file)]));

const rows = [
  ['source files', files.length],
  ['lines per file: median / p90 / max', lineCounts()],
  ['files in the protocol folders, distinct names', protocolFiles()],
  ['files with one importer', singleImporters().length],
  ['folders in an import cycle (parent and child aside)', findCycles(folderGraph()).flat().length],
  ...(await walks()),
  ['values exported by @sluice/core', await exportedValues()],
  ["modules loaded by import '@sluice/core'", loadedModules()],
  ['exports without a doc comment', undocumentedShare()],
];
for (const [name, figure] of rows) console.log(`${String(name).padEnd(56)} ${figure}`);
if (options.importers) for (const file of singleImporters()) console.log(`one importer: ${relative(root, file)}`);
if (options.undocumented)
  for (const file of files)
    for (const name of exportsWithoutComment(file).missing) console.log(`no comment: ${relative(root, file)} ${name}`);
for (const folder of findCycles(folderGraph())) console.log(`cycle: ${folder.join(' -> ')}`);

function sources(folder) {
  return readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .filter((file) => file.endsWith('.ts'))
    .map((file) => join(folder, file))
    .sort();
}

function lineCounts() {
  const counts = files.map((file) => readFileSync(file, 'utf8').trimEnd().split('\n').length).sort((a, b) => a - b);
  const at = (share) => counts[Math.min(counts.length - 1, Math.floor(counts.length * share))];
  return `${at(0.5)} / ${at(0.9)} / ${at(1)}`;
}

function protocolFiles() {
  const names = PROTOCOLS.flatMap((protocol) => readdirSync(join(root, 'packages/core/src/protocols', protocol)));
  return `${names.length}, ${new Set(names).size}`;
}

/** Files that one other file imports. Entry points have none and do not count. */
function singleImporters() {
  const importers = new Map(files.map((file) => [file, 0]));
  for (const targets of imports.values())
    for (const target of new Set(targets)) importers.set(target, (importers.get(target) ?? 0) + 1);
  return files.filter((file) => importers.get(file) === 1);
}

/** Folder to the folders that its files import; a folder and its own parents do not count as two. */
function folderGraph() {
  const graph = new Map();
  for (const [file, targets] of imports) {
    const from = relative(root, dirname(file));
    const edges = graph.get(from) ?? new Set();
    graph.set(from, edges);
    for (const target of targets) {
      const to = relative(root, dirname(target));
      const isRelated = from === to || from.startsWith(`${to}/`) || to.startsWith(`${from}/`);
      if (!isRelated) edges.add(to);
    }
  }
  return graph;
}

async function walks() {
  // Modules, not bundles: the walks count files.
  const core = await import(pathToFileURL(join(root, 'packages/core/out/index.js')).href);
  return [
    ['files visited: one chunk, chat to Anthropic', show(await listVisited(chunkWalk(core)))],
    ['files visited: one request, Anthropic to Gemini', show(await listVisited(requestWalk(core)))],
    ['files visited: sluice doctor FILE', show(doctorWalk())],
  ];
}

function show(found) {
  if (options.walks) for (const file of found) console.log(`  ${file}`);
  return found.length;
}

function chunkWalk(core) {
  const converter = core.createStreamConverter({ from: 'openai-chat', to: 'anthropic-messages' });
  const chunk = (delta) =>
    Buffer.from(
      `data: ${JSON.stringify({ id: 'c', object: 'chat.completion.chunk', created: 1, model: 'm', choices: [{ index: 0, delta }] })}\n\n`,
    );
  converter.push(chunk({ role: 'assistant', content: '' }));
  // The first text: later chunks repeat all but the text, and are not parsed.
  return () => converter.push(chunk({ content: 'Hello' }));
}

function requestWalk(core) {
  const body = {
    model: 'claude-sonnet-5',
    max_tokens: 100,
    system: 'Be brief.',
    messages: [{ role: 'user', content: 'What is the weather in Oslo?' }],
    tools: [
      {
        name: 'weather',
        description: 'Weather of a city',
        input_schema: { type: 'object', properties: { city: { type: 'string' } } },
      },
    ],
  };
  const convert = () => core.convertRequest(body, { from: 'anthropic-messages', to: 'gemini', model: 'gemini-3-pro' });
  convert();
  return convert;
}

function doctorWalk() {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-house-'));
  try {
    const file = join(folder, 'stream.sse');
    const { raw } = JSON.parse(readFileSync(join(root, 'fixtures/cases.jsonl'), 'utf8').split('\n')[0]);
    writeFileSync(file, raw);
    const output = join(folder, 'visited.json');
    const script = fileURLToPath(new URL('./house/doctor-walk.js', import.meta.url));
    execFileSync(process.execPath, [script, file, output], { stdio: 'ignore' });
    return JSON.parse(readFileSync(output, 'utf8'));
  } finally {
    rmSync(folder, { recursive: true });
  }
}

async function exportedValues() {
  return Object.keys(await import(pathToFileURL(join(root, 'packages/core/dist/index.js')).href)).length;
}

/** The source modules reached from the root entry point, types left out. */
function loadedModules() {
  const seen = new Set();
  const visit = (file) => {
    if (seen.has(file)) return;
    seen.add(file);
    for (const match of readFileSync(file, 'utf8').matchAll(/(?:from|import) '(\.[^']+)'/g))
      visit(resolve(dirname(file), match[1]));
  };
  visit(join(root, 'packages/core/out/index.js'));
  return seen.size;
}

function undocumentedShare() {
  const counts = files.map(exportsWithoutComment);
  const missing = counts.reduce((sum, count) => sum + count.missing.length, 0);
  const total = counts.reduce((sum, count) => sum + count.total, 0);
  return `${missing} of ${total} (${((100 * missing) / total).toFixed(1)} %)`;
}
