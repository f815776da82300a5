/**
 * Writes fixtures/corpus from recordings of real providers: shapes of bodies and requests, without their texts. Only maintainers have
 * the recordings; everybody has the shapes.
 *
 *   npm run build && node scripts/derive-corpus.js [--recordings FOLDER] [--clients FOLDER] [--count 500]
 *
 * A shape is written only if its rendering is read exactly like the recording: same rules, events, stop reason, usage and repairs.
 */
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import * as core from '@sluice/core';
import * as engine from '@sluice/core/engine';
import { render } from '../fixtures/corpus/render.js';
import { isFree, NAME_MAPS } from './corpus/classes.js';
import { deriveShape } from './corpus/derive.js';
import { digest } from './corpus/digest.js';
import { CAPTURED_PROMPT, readCaptures, readRecordings } from './corpus/recordings.js';
import { select } from './corpus/select.js';
import { readVocabulary } from './corpus/vocabulary.js';

const root = fileURLToPath(new URL('..', import.meta.url));
const shared = process.env.SLUICE_SHARED ?? join(root, '../shared');
const { values: options } = parseArgs({
  options: {
    recordings: { type: 'string', default: join(shared, 'recordings') },
    clients: { type: 'string', default: join(shared, 'clients') },
    count: { type: 'string', default: '500' },
  },
});
const vocabulary = readVocabulary();
const out = join(root, 'fixtures/corpus');

/** Shapes that tests mention by name. */
const ALWAYS = new Set([
  'anthropic-messages/anthropic-3d7a0ba0',
  'anthropic-messages/anthropic-bc10f231',
  'anthropic-messages/openrouter-485803f7',
  'anthropic-messages/anthropic-1ecb9f64',
  'anthropic-messages/anthropic-286a983b',
  'gemini/google-03c2ad7a',
  'gemini/google-1f232ece',
  'gemini/google-13e74bde',
  'gemini/google-vertex-d2b3fed2',
  'openai-chat/huggingface-71a7f7cc',
  'openai-chat/huggingface-ebf19a24',
  'openai-chat/hyperbolic-21623554',
  'openai-chat/openai-12265766',
  'openai-chat/openai-121202a6',
  'openai-chat/openai-2b5802dc',
  'openai-chat/openai-593f8e2b',
  'openai-chat/openai-790b35c1',
  'openai-chat/openrouter-9e6476a4',
  'openai-chat/portkey-595c1325',
  'openai-chat/portkey-bfe91304',
  'openai-responses/chatgpt-codex-8d8fd637',
  'openai-responses/chatgpt-codex-ecc5ca74',
  'openai-responses/openai-33d3ade1',
  'openai-responses/openai-a3b1988e',
  'openai-responses/openai-ce072e1f',
  'openai-responses/openai-e0f00585',
  'openai-responses/xai-cf25b756',
]);

/** Where the prompt stands in the request of a client: tests put their own there. */
const PROMPT = '<prompt>';

/** Headers of clients that say which protocol a request has. */
const KEPT_HEADERS = ['anthropic-version', 'anthropic-beta', 'content-type', 'accept'];

if (!existsSync(options.recordings)) {
  console.error(`${options.recordings} is missing: name the folder with --recordings, or set SLUICE_SHARED`);
  process.exit(2);
}
const candidates = readRecordings(options.recordings).map(readCandidate);
const faithful = candidates.filter(({ isFaithful }) => isFaithful);
const chosen = select(faithful, { always: ALWAYS, count: Number(options.count) });
for (const protocol of new Set(chosen.map((one) => one.protocol)))
  writeLines(
    `${protocol}.jsonl`,
    chosen.filter((one) => one.protocol === protocol).map(({ shape }) => shape),
  );
writeLines('clients.jsonl', deriveClients());
writeNotice();
report();

function readCandidate(recording) {
  const { file, protocol, provider, stream } = recording;
  const body = readFileSync(join(options.recordings, file), 'utf8');
  const request = recording.request && readFileSync(join(options.recordings, recording.request), 'utf8');
  const shape = { ...describe(recording), ...deriveShape({ body, request, isStream: stream }, vocabulary) };
  const recorded = digest({ core, engine }, protocol, Buffer.from(body));
  const rendered = digest({ core, engine }, protocol, Buffer.from(render(shape).body));
  return {
    name: shape.name,
    file,
    protocol,
    provider,
    stream,
    shape,
    source: recording.source.repo,
    size: JSON.stringify(shape).length,
    isFaithful: JSON.stringify(recorded) === JSON.stringify(rendered),
    facts: listFacts(recording, recorded, shape, { body, request }),
  };
}

/** What is known of a recording beside its bytes. */
function describe({
  name,
  protocol,
  provider,
  model,
  stream,
  status,
  features,
  quirks,
  framing,
  json,
  capture,
  recorder,
  reads,
}) {
  return {
    name,
    protocol,
    provider,
    ...(vocabulary.hasFact('model', model) && { model }),
    stream,
    status,
    features,
    ...(quirks && { quirks }),
    framing,
    json,
    capture,
    ...(recorder.length > 0 && { recorder }),
    ...(reads && { reads }),
  };
}

/** Everything that at least one chosen shape must show. */
function listFacts(
  { protocol, provider, stream, status, features, quirks = [], framing },
  read,
  { escapes, reads },
  { body, request },
) {
  const events = new Set(read.events.flatMap((event) => event.filter(([length]) => length === 4).map(([, type]) => type)));
  return new Set(
    [
      `provider ${provider} ${stream}`,
      ...features.map((feature) => `feature ${feature} ${stream}`),
      ...quirks.map((quirk) => `quirk ${quirk}`),
      ...read.rules.map(([[, rule]]) => `rule ${rule} ${stream}`),
      ...[...events].map((type) => `event ${type}`),
      `stop ${JSON.stringify(read.stop)}`,
      `status ${status}`,
      `framing ${framing}`,
      `escapes ${escapes}`,
      `reads ${reads !== undefined}`,
      ...listPlaces(parseObjects(body)).map((place) => `response ${place} ${stream}`),
      ...listPlaces(parseRequest(request)).map((place) => `request ${place}`),
      ...(status < 400 ? listAccepted(parseRequest(request)).map((field) => `accepted ${field} ${provider}`) : []),
    ].map((fact) => `${protocol} ${fact}`),
  );
}

function parseRequest(request) {
  return request === undefined || !/^\s*\{/.test(request) ? {} : JSON.parse(request);
}

/** The objects of a body: itself, or those of the data lines of a stream. Broken ones have no places. */
function parseObjects(body) {
  const texts = body.trimStart().startsWith('{') ? [body] : body.split(/\r?\n/).map((line) => line.replace(/^data: ?/, ''));
  return texts.filter((text) => text.startsWith('{')).flatMap(parseObject);
}

function parseObject(text) {
  try {
    return [JSON.parse(text)];
  } catch {
    return [];
  }
}

/** Fields of a request, and of the responses that it replays: a provider accepts them. */
function listAccepted({ messages, ...request }) {
  const replayed = (Array.isArray(messages) ? messages : []).filter(({ role }) => role === 'assistant');
  return [...Object.keys(request), ...replayed.flatMap((message) => Object.keys(message).map((key) => `assistant.${key}`))];
}

/** Converters treat empty texts and small limits in their own way. */
function describeValue(value) {
  if (value === null || value === '') return JSON.stringify(value);
  return typeof value === 'number' && value < 16 ? 'small number' : typeof value;
}

/** Every place of a request with the type of its value, except below what users name. */
function listPlaces(value, path = []) {
  if (Array.isArray(value)) return [...new Set(value.flatMap((member) => listPlaces(member, [...path, 0])))];
  const place = path.filter((step) => step !== 0).join('.');
  if (typeof value !== 'object' || value === null) return [`${place}: ${describeValue(value)}`];
  if (isFree([...path, '']) || NAME_MAPS.has(path.at(-1))) return [`${place}: object`];
  return Object.entries(value).flatMap(([key, member]) => listPlaces(member, [...path, key]));
}

/** Requests of real clients. */
function deriveClients() {
  return readCaptures(options.clients).map(({ name, method, path, headers, body }) => ({
    name,
    method,
    path,
    headers: Object.fromEntries(Object.entries(headers).filter(([header]) => KEPT_HEADERS.includes(header))),
    ...(body !== undefined && deriveRequest(JSON.stringify(body).replaceAll(CAPTURED_PROMPT, PROMPT))),
  }));
}

function deriveRequest(text) {
  const { strings, request, escapes } = deriveShape({ body: '', request: text, isStream: true }, vocabulary);
  return { ...(escapes && { escapes }), strings, request };
}

function writeLines(file, shapes) {
  writeFileSync(join(out, file), shapes.map((shape) => `${JSON.stringify(shape)}\n`).join(''));
}

function writeNotice() {
  const repos = [...new Set(chosen.map(({ source }) => source.replace('github.com/', '')))].toSorted((a, b) =>
    a.localeCompare(b),
  );
  const text = [
    'The shapes in this folder were derived from recordings in these public repositories. They hold no text of the recordings: frames,',
    'keys, numbers and lengths only, and words of the protocols (vocabulary.json). The texts are generated from words of this project.',
    '',
    ...repos.map((repo) => `- ${repo}`),
    '',
  ];
  writeFileSync(join(out, 'NOTICE'), text.join('\n'));
}

/** How much of what is in the recordings the chosen shapes show. */
function report() {
  const all = new Set(candidates.flatMap(({ facts }) => [...facts]));
  const shown = new Set(chosen.flatMap(({ facts }) => [...facts]));
  const kindOf = (fact) => fact.split(' ')[1];
  for (const kind of new Set([...all].map(kindOf))) {
    const own = [...all].filter((fact) => kindOf(fact) === kind);
    const missing = own.filter((fact) => !shown.has(fact));
    console.log(
      `${kind}: ${own.length - missing.length} of ${own.length}${missing.length > 0 ? `; missing: ${missing.slice(0, 5).join(', ')}` : ''}`,
    );
  }
  for (const { file } of candidates.filter(({ isFaithful }) => !isFaithful)) console.log(`read differently: ${file}`);
  const bytes = readdirSync(out)
    .filter((file) => file.endsWith('.jsonl'))
    .reduce((sum, file) => sum + readFileSync(join(out, file)).length, 0);
  console.log(`${chosen.length} shapes of ${candidates.length} recordings, ${(bytes / 1e6).toFixed(2)} MB`);
}
