/**
 * Requests while the configuration file changes. Every good version of the file sends the model name "alias" to another upstream and another
 * model; between them the file is empty, cut, or has only comments. A response is right when it carries the text of the upstream and model
 * of a version that was in force while the request ran, and the request's own marker. A request without a client key must get 401.
 *
 * node bench/nightly/reloads.js [--requests 10000] [--reloads 1000] [--gateway packages/gateway]
 */
import { spawn } from 'node:child_process';
import { mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { writeFigures } from './figures.js';

const FULL_RUN = { requests: 10_000, reloads: 1000 };

const { values: options } = parseArgs({
  options: {
    requests: { type: 'string', default: String(FULL_RUN.requests) },
    reloads: { type: 'string', default: String(FULL_RUN.reloads) },
    gateway: { type: 'string', default: fileURLToPath(new URL('../../packages/gateway', import.meta.url)) },
  },
});
const wanted = { requests: Number(options.requests), reloads: Number(options.reloads) };

const CLIENT_KEY = 'client-key-0123456789';
const WORKERS = 4;
/** Longer than the gateway waits for the file to stop changing (100 ms of quiet, two reads 200 ms apart). */
const SETTLE_MS = 450;

/** What a writer may leave in the file for a moment, or for good. Each must be rejected, or never be read. */
const BROKEN = [
  () => '',
  () => '# only a comment\n',
  () => '---\n',
  () => 'null\n',
  () => '{}\n',
  (text) => text.slice(0, text.length / 2),
  (text) => text.slice(0, text.indexOf('auth:')),
  (text) => text.slice(0, text.indexOf('models:')).trimEnd(),
];

const random = (max) => Math.floor(Math.random() * max);

const folder = mkdtempSync(join(tmpdir(), 'sluice-reloads-'));
const file = join(folder, 'sluice.yaml');
const upstreams = [await startUpstream('a'), await startUpstream('b')];
/** The number of the newest good version of the file. */
let written = 0;
/** The newest version that a finished response came from: later requests must not get an older one. */
let seen = 0;
let isOver = false;
const counts = { requests: 0, streams: 0, withoutKey: 0, reloads: 0, rejected: 0 };
const failures = [];

writeFileSync(file, configText(written));
const gateway = await startGateway();
const begun = performance.now();
try {
  const writing = keepWriting();
  await Promise.all(Array.from({ length: WORKERS }, (_, worker) => keepRequesting(worker)));
  isOver = true;
  await writing;
} finally {
  gateway.child.kill('SIGTERM');
  for (const { server } of upstreams) {
    server.closeAllConnections();
    server.close();
  }
  rmSync(folder, { recursive: true });
}
report();

function configText(version) {
  const [a, b] = upstreams;
  return `# Gateway of the reload check.
# Clients ask for "alias"; every version of this file sends it to another upstream.
listen: { port: 0 }
auth:
  keys: ["${CLIENT_KEY}"]
providers:
  a: { protocol: openai-chat, base_url: "${a.url}/v1", api_key: key-of-a }
  b: { protocol: openai-chat, base_url: "${b.url}/v1", api_key: key-of-b }
models:
  alias: ${upstreams[version % 2].name}/model-${version}
`;
}

/** Answers with its name, the model and the marker of the request. */
async function startUpstream(name) {
  const server = createServer(async (request, response) => {
    let text = '';
    for await (const piece of request) text += piece;
    const { model, messages, stream } = JSON.parse(text);
    const words = [name, '|', model, '|', messages.at(-1).content];
    if (stream) await streamWords(response, model, words);
    else sendWhole(response, model, words.join(''));
  });
  await new Promise((done) => server.listen(0, '127.0.0.1', done));
  return { name, server, url: `http://127.0.0.1:${server.address().port}` };
}

function sendWhole(response, model, content) {
  const message = { role: 'assistant', content };
  const usage = { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 };
  const body = {
    id: 'c',
    object: 'chat.completion',
    created: 1,
    model,
    choices: [{ index: 0, message, finish_reason: 'stop' }],
    usage,
  };
  response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(body));
}

async function streamWords(response, model, words) {
  response.writeHead(200, { 'content-type': 'text/event-stream' });
  const send = (delta, finish_reason = null) => {
    const chunk = { id: 'c', object: 'chat.completion.chunk', created: 1, model, choices: [{ index: 0, delta, finish_reason }] };
    response.write(`data: ${JSON.stringify(chunk)}\n\n`);
  };
  for (const content of words) {
    send({ content });
    await sleep(5); // streams cross reloads
  }
  send({}, 'stop');
  response.end('data: [DONE]\n\n');
}

async function startGateway() {
  const bin = join(resolve(options.gateway), 'bin/sluice.js');
  const child = spawn(process.execPath, [bin, 'serve', '--config', file], {
    stdio: ['ignore', 'pipe', 'pipe'],
    env: { PATH: process.env.PATH },
  });
  const url = await new Promise((done, fail) => {
    let text = '';
    child.stdout.on('data', (piece) => {
      text += piece;
      const found = /http:\/\/127\.0\.0\.1:\d+/.exec(text);
      if (found) done(found[0]);
    });
    child.once('exit', (code) => fail(new Error(`the gateway ended with code ${code}`)));
  });
  child.stderr.on('data', (piece) => {
    counts.reloads += piece.toString().split('"msg":"configuration reloaded"').length - 1;
    counts.rejected += piece.toString().split('"msg":"configuration rejected').length - 1;
  });
  return { child, url };
}

async function keepWriting() {
  for (let round = 0; !isOver; round++) {
    const next = configText(written + 1);
    // A writer that pauses in the middle: too short to be read.
    writeFileSync(file, next.slice(0, random(next.length)));
    await sleep(random(80));
    if (round % 4 === 0) {
      // A writer that fails in the middle: long enough to be read.
      writeFileSync(file, BROKEN[(round / 4) % BROKEN.length](next));
      await sleep(SETTLE_MS);
    }
    written++;
    if (round % 2 === 0) writeFileSync(file, next);
    else {
      writeFileSync(`${file}.new`, next);
      renameSync(`${file}.new`, file);
    }
    await sleep(SETTLE_MS + random(100));
  }
}

async function keepRequesting(worker) {
  for (let i = 0; counts.requests < wanted.requests || counts.reloads < wanted.reloads; i++) {
    if (i % 25 === 24) await requestWithoutKey();
    else await requestAlias(`${worker}-${i}`, i % 2 === 1);
    // Spreads the requests over the reloads.
    await sleep(wanted.requests <= counts.requests ? 50 : random(40 * WORKERS));
  }
}

async function requestAlias(marker, stream) {
  const oldest = seen;
  const response = await post({ authorization: `Bearer ${CLIENT_KEY}` }, marker, stream);
  const text =
    response.status === 200 ? readText(response.text, stream) : `status ${response.status}: ${response.text.slice(0, 200)}`;
  counts.requests++;
  if (stream) counts.streams++;
  const [, name, version, echoed] = /^([ab])\|model-(\d+)\|(.*)$/.exec(text) ?? [];
  const number = Number(version);
  const isRight = echoed === marker && name === upstreams[number % 2].name && number >= oldest && number <= written;
  if (isRight) seen = Math.max(seen, number);
  else failures.push({ marker, stream, oldest, written, text: text.slice(0, 200) });
}

async function requestWithoutKey() {
  const { status } = await post({}, 'no key', false);
  counts.withoutKey++;
  if (status !== 401) failures.push({ marker: 'no key', text: `status ${status}` });
}

async function post(headers, content, stream) {
  const response = await fetch(`${gateway.url}/v1/chat/completions`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...headers },
    body: JSON.stringify({ model: 'alias', stream, messages: [{ role: 'user', content }] }),
  });
  return { status: response.status, text: await response.text() };
}

function readText(body, stream) {
  if (!stream) return JSON.parse(body).choices[0].message.content;
  const events = body.split('\n').filter((line) => line.startsWith('data: {'));
  return events.map((line) => JSON.parse(line.slice(6)).choices[0]?.delta.content ?? '').join('');
}

function report() {
  const seconds = Math.round((performance.now() - begun) / 1000);
  for (const failure of failures.slice(0, 20)) console.log(JSON.stringify(failure));
  const [requests, streams, reloads, rejected] = [counts.requests, counts.streams, counts.reloads, counts.rejected].map((count) =>
    count.toLocaleString('en'),
  );
  const summary =
    `${requests} requests with a key (${streams} of them streams) and ${counts.withoutKey.toLocaleString('en')} without one, ` +
    `${reloads} reloads, ${rejected} files rejected, ${failures.length} wrong; ${seconds} s`;
  const isFullRun = wanted.requests >= FULL_RUN.requests && wanted.reloads >= FULL_RUN.reloads;
  const date = new Date().toISOString().slice(0, 10);
  if (isFullRun && failures.length === 0) writeFigures('reloads', `${summary}; Node ${process.versions.node}, ${date}.`);
  console.log(summary);
  process.exitCode = failures.length > 0 ? 1 : 0;
}
