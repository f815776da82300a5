/**
 * Prints a digest of every output of the library over all cases and the corpus, and over recordings and captured requests where they
 * are: messages, events, findings, converted requests, responses, streams and errors, in every pair of protocols. Two builds that print
 * the same lines behave the same:
 *
 *   node scripts/outputs.js > before.txt        # at the old commit, after npm run build
 *   node scripts/outputs.js --against before.txt
 *
 * `--core FILE` names another build than packages/core/dist/index.js. `--only TEXT` takes inputs whose name contains TEXT.
 */
import { createHash } from 'node:crypto';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { parseArgs } from 'node:util';
import { render } from '../fixtures/corpus/render.js';

const root = fileURLToPath(new URL('..', import.meta.url));
const { values: options } = parseArgs({
  options: { core: { type: 'string' }, against: { type: 'string' }, only: { type: 'string' } },
});
const file = resolve(options.core ?? join(root, 'packages/core/dist/index.js'));
const core = await import(pathToFileURL(file).href);
const engine = await import(pathToFileURL(join(dirname(file), 'engine/index.js')).href);
const shared = process.env.SLUICE_SHARED ?? join(root, '../shared');
const hasRecordings = existsSync(shared);
if (!hasRecordings) console.error(`without recordings: ${shared} is missing (set SLUICE_SHARED to their folder)`);

const IDS = ['openai-chat', 'anthropic-messages', 'openai-responses', 'gemini'];
const PROVIDERS = ['openai', 'anthropic', 'gemini', 'groq', 'mistral', 'deepseek', 'openrouter', 'own'];
const lines = [];

for (const input of [...cases(), ...corpus(), ...(hasRecordings ? [...recordings(), ...requests()] : [])]) {
  if (options.only === undefined || input.name.includes(options.only)) describe(input);
}

if (options.against === undefined) for (const line of lines) console.log(line);
else compare(readFileSync(options.against, 'utf8').trim().split('\n'));

function describe({ name, kind, protocol, bytes, status, model }) {
  if (kind === 'request') return requestOutputs(name, protocol, bytes, model);
  for (const size of [Number.POSITIVE_INFINITY, 17]) {
    const pieces = split(bytes, size);
    const label = size === 17 ? `${name} in pieces` : name;
    add(label, 'events', () => events(protocol, pieces));
    add(label, 'message', () => message([core.PROTOCOLS[protocol]], pieces));
    add(label, 'detected message', () => message(Object.values(core.PROTOCOLS), pieces));
    add(label, 'findings', () => findings(protocol, pieces));
    for (const to of IDS) {
      add(label, `stream to ${to}`, () => stream({ from: protocol, to }, pieces));
      add(label, `collected to ${to}`, () => engine.convertStreamToResponse(pieces, pair(protocol, to)));
    }
  }
  const body = parse(bytes);
  if (body === undefined) return;
  for (const to of IDS) {
    add(name, `response to ${to}`, () => core.convertResponse(body, { from: protocol, to }));
    add(name, `replay to ${to}`, () => text(engine.convertResponseToStream(body, pair(protocol, to))));
    add(name, `error to ${to}`, () => core.convertError({ status: status < 400 ? 500 : status, body }, { from: protocol, to }));
  }
}

function requestOutputs(name, from, bytes, model) {
  const body = parse(bytes);
  if (body === undefined) return;
  for (const to of IDS) {
    for (const id of PROVIDERS) {
      const provider = { id, protocol: to, baseUrl: 'http://127.0.0.1:1' };
      add(name, `request to ${to} of ${id}`, () => core.convertRequest(body, { from, to, provider, model }));
    }
  }
}

function* cases() {
  for (const file of ['cases.jsonl', 'cases-own.jsonl']) {
    for (const line of readFileSync(join(root, 'fixtures', file), 'utf8')
      .trim()
      .split('\n')) {
      const { id, protocol, raw } = JSON.parse(line);
      yield { name: id, protocol: protocol === 'sse' ? 'openai-chat' : protocol, bytes: Buffer.from(raw), status: 200 };
    }
  }
}

function* corpus() {
  const readShapes = (name) =>
    readFileSync(join(root, `fixtures/corpus/${name}.jsonl`), 'utf8')
      .trim()
      .split('\n')
      .map(JSON.parse);
  for (const shape of IDS.flatMap(readShapes)) {
    const { name, protocol, status, model = 'unknown' } = shape;
    const { body, request } = render(shape);
    yield { name, protocol, bytes: Buffer.from(body), status };
    if (request !== undefined) yield { name: `${name} request`, kind: 'request', protocol, bytes: Buffer.from(request), model };
  }
  for (const shape of readShapes('clients')) {
    const { request } = render(shape);
    if (request !== undefined) yield* clientRequest(shape.name, shape.path, shape.headers, JSON.parse(request));
  }
}

/** A request of a client, if it belongs to a conversation. */
function* clientRequest(name, path, headers, body) {
  const protocol = IDS.find((id) => engine.CODECS[id].detectInterface(path, headers) === 'CHAT');
  const model = typeof body?.model === 'string' ? body.model : 'mock-model';
  if (protocol) yield { name, kind: 'request', protocol, bytes: Buffer.from(JSON.stringify(body)), model };
}

function* recordings() {
  const seen = new Set();
  for (const { file, request, protocol, status, model } of JSON.parse(read('recordings/manifest.json'))) {
    yield { name: file, protocol, bytes: read(`recordings/${file}`), status };
    if (request === undefined || seen.has(request)) continue;
    seen.add(request);
    yield { name: request, kind: 'request', protocol, bytes: read(`recordings/${request}`), model };
  }
}

function* requests() {
  for (const folder of ['requests-shape', 'requests-more']) {
    for (const file of readdirSync(join(shared, 'clients', folder))) {
      const { requests: sent } = JSON.parse(read(`clients/${folder}/${file}`));
      for (const [i, { path, headers, body }] of sent.entries()) yield* clientRequest(`${file}#${i}`, path, headers, body);
    }
  }
}

function events(protocol, pieces) {
  const found = [];
  const examiner = new core.Examiner({
    protocol: core.PROTOCOLS[protocol],
    onEvent: (event) => void found.push(structuredClone(event)),
  });
  for (const piece of pieces) examiner.push(piece);
  examiner.end();
  return found;
}

function message(protocol, pieces) {
  const accumulator = new engine.StreamAccumulator({ protocol });
  for (const piece of pieces) accumulator.push(piece);
  return accumulator.finish();
}

function findings(protocol, pieces) {
  const examiner = new core.Examiner({ protocol: core.PROTOCOLS[protocol] });
  for (const piece of pieces) examiner.push(piece);
  return examiner.end();
}

/** The codecs of a conversion, which the engine takes instead of names. */
function pair(from, to) {
  return { from: engine.findCodec(from), to: engine.findCodec(to) };
}

function stream(names, pieces) {
  const converter = core.createStreamConverter(names);
  const out = [];
  for (const piece of pieces) out.push(...converter.push(piece));
  out.push(...converter.end());
  const { notes, usage, error } = converter;
  return { body: Buffer.concat(out).toString(), notes, usage, error };
}

function text({ body, ...rest }) {
  return { ...rest, body: body instanceof Uint8Array ? Buffer.from(body).toString() : body };
}

function add(name, what, run) {
  let result;
  try {
    result = run();
  } catch (error) {
    result = { thrown: error.name, message: error.message, ...error };
  }
  const written = JSON.stringify(result) ?? 'undefined';
  lines.push(`${createHash('sha256').update(written).digest('hex').slice(0, 16)} ${name}: ${what}`);
}

function compare(before) {
  const known = new Set(before);
  const wanted = new Set(lines);
  const changed = lines.filter((line) => !known.has(line));
  const missing = options.only === undefined ? before.filter((line) => !wanted.has(line)) : [];
  for (const line of [...changed.map((text) => `now    ${text}`), ...missing.map((text) => `before ${text}`)].slice(0, 100))
    console.log(line);
  console.log(`${lines.length} outputs, ${changed.length} differ, ${missing.length} of before are gone`);
  process.exitCode = changed.length + missing.length === 0 ? 0 : 1;
}

function split(bytes, size) {
  if (bytes.length <= size) return [bytes];
  return Array.from({ length: Math.ceil(bytes.length / size) }, (_, i) => bytes.subarray(i * size, (i + 1) * size));
}

function parse(bytes) {
  try {
    return JSON.parse(bytes.toString());
  } catch {
    return undefined;
  }
}

function read(path) {
  return readFileSync(join(shared, path));
}
