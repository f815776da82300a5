/**
 * Kills a gateway process with SIGKILL, again and again, while streams are running, and compares its ledger with what the upstream
 * served and what the clients saw. Plain JavaScript on the build, because the nightly proof runs it, too.
 */
import { spawn } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { createServer, request } from 'node:http';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { DatabaseSync } from '@photostructure/sqlite';
import { openStore } from '../../out/store/index.js';
import { endWithTests } from '../real-parts/programs.js';

const SLUICE = fileURLToPath(new URL('../../bin/sluice.js', import.meta.url));

/** Kills the gateway `kills` times under this many live streams and returns what was found. `violations` must be empty. */
export async function proveGatewayKills(folder, kills, streams, random = Math.random) {
  const upstream = await startUpstream();
  const config = join(folder, 'sluice.yaml');
  writeFileSync(config, buildConfig(upstream.address().port));
  const seen = [];
  const next = { number: 0 };
  try {
    for (let kill = 0; kill < kills; kill++) {
      const gateway = await startGateway(config, '--data', folder);
      const clients = Array.from({ length: streams }, () => askUntilKilled(gateway, next, seen));
      // From before the first response to after the last one of the first requests.
      await waitForEnds(seen, seen.filter(({ hasEnd }) => hasEnd).length + Math.floor(random() * streams * 1.5));
      await sleep(random() * 100);
      gateway.isKilled = true;
      gateway.child.kill('SIGKILL');
      await Promise.all([gateway.closed, ...clients]);
    }
  } finally {
    upstream.closeAllConnections();
    upstream.close();
  }
  const store = await openStore({ folder, ballastBytes: 0 });
  await store.close();
  const db = new DatabaseSync(join(folder, 'sluice.db'), { readOnly: true });
  const found = await inspect(async (text) => db.prepare(text).all(), upstream.served, seen);
  db.close();
  return { kills, requests: next.number, ...found };
}

export const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

/** Waits until clients have seen this many ends of responses. */
export async function waitForEnds(seen, count) {
  for (let turn = 0; turn < 3000 && seen.filter(({ hasEnd }) => hasEnd).length < count; turn++) await sleep(10);
}

/** The configuration of a gateway in front of the upstream. */
export const buildConfig = (port) => `log: { level: error }
default_price: { input: "0.15", output: "0.61" }
providers:
  up: { protocol: openai-chat, base_url: "http://127.0.0.1:${port}/v1", api_key: some-key-0123456789, repair: false }
  an: { protocol: anthropic-messages, base_url: "http://127.0.0.1:${port}", api_key: some-key-0123456789 }
`;

/** Starts a gateway process. */
export async function startGateway(config, ...options) {
  const port = options.includes('--port') ? [] : ['--port', '0'];
  const args = [SLUICE, 'serve', '--config', config, ...port, '--json', ...options];
  const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'pipe'] });
  endWithTests(child);
  const closed = new Promise((resolve) => child.once('close', resolve));
  const url = await new Promise((resolve, reject) => {
    let text = '';
    child.stdout.on('data', (data) => {
      text += data;
      const found = /"url": ?"([^"]+)"/.exec(text);
      if (found) resolve(found[1]);
    });
    void closed.then(() => reject(new Error(`the gateway ended before it listened: ${text}`)));
  });
  const gateway = { child, closed, url, isKilled: false, isLate: false };
  child.stderr.on('data', (data) => {
    gateway.isLate ||= data.includes(LATE);
    process.stderr.write(data);
  });
  return gateway;
}

/** The gateway says so when a response does not wait for the store any longer, which took more than 5 s. */
const LATE = 'usage could not be recorded before the response was sent';

// ---- the upstream: what a request uses follows from its number, which is in its message

const usageOf = (number) => ({ input: 1000 + number, output: 1 + (number % 97) });

const costOf = ({ input, output }) => Math.floor((15 * input + 61 * output + 50) / 100);

/** Starts the upstream. */
export function startUpstream() {
  const server = createServer((incoming, response) => {
    let body = '';
    incoming.on('data', (data) => {
      body += data;
    });
    incoming.on('end', () => {
      const number = Number(/#(\d+)#/.exec(body)?.[1]);
      server.served.push(number);
      const frames = incoming.url.endsWith('/messages') ? listMessagesFrames(number) : listChatFrames(number);
      void play(response, frames, JSON.parse(body).stream);
    });
  });
  server.served = [];
  return new Promise((resolve) => {
    server.listen(0, '127.0.0.1', () => resolve(server));
  });
}

async function play(response, { frames, whole }, isStream) {
  response.on('error', () => undefined);
  if (!isStream) return void response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(whole));
  response.writeHead(200, { 'content-type': 'text/event-stream' });
  for (const frame of frames) {
    if (response.destroyed) return;
    response.write(frame);
    await sleep(5);
  }
  response.end();
}

function listChatFrames(number) {
  const { input, output } = usageOf(number);
  const usage = { prompt_tokens: input, completion_tokens: output, total_tokens: input + output };
  const build = (fields) => ({ id: 'c', object: 'chat.completion.chunk', created: 1, model: 'm', choices: [], ...fields });
  const delta = (content, reason = null) => build({ choices: [{ index: 0, delta: { content }, finish_reason: reason }] });
  const events = [...['One', ' two', ' three', ' four'].map((word) => delta(word)), delta('', 'stop'), build({ usage })];
  const message = { role: 'assistant', content: 'One two' };
  return {
    frames: [...events.map((event) => `data: ${JSON.stringify(event)}\n\n`), 'data: [DONE]\n\n'],
    whole: { ...build({ usage, choices: [{ index: 0, message, finish_reason: 'stop' }] }), object: 'chat.completion' },
  };
}

function listMessagesFrames(number) {
  const { input, output } = usageOf(number);
  const message = {
    id: 'm',
    type: 'message',
    role: 'assistant',
    model: 'm',
    content: [],
    stop_reason: null,
    stop_sequence: null,
  };
  const usage = { input_tokens: input, output_tokens: output };
  const text = (word) => ({ type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text: word } });
  const events = [
    { type: 'message_start', message: { ...message, usage: { ...usage, output_tokens: 1 } } },
    { type: 'content_block_start', index: 0, content_block: { type: 'text', text: '' } },
    ...['One', ' two', ' three', ' four'].map(text),
    { type: 'content_block_stop', index: 0 },
    { type: 'message_delta', delta: { stop_reason: 'end_turn', stop_sequence: null }, usage },
    { type: 'message_stop' },
  ];
  return {
    frames: events.map((event) => `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`),
    whole: { ...message, content: [{ type: 'text', text: 'One two' }], stop_reason: 'end_turn', usage },
  };
}

// ---- the clients

/** Sends one request after the other until the gateway is gone. */
export async function askUntilKilled(gateway, next, seen) {
  while (!gateway.isKilled) {
    const number = next.number++;
    const entry = { number, id: undefined, hasContent: false, hasEnd: false, gateway };
    seen.push(entry);
    await ask(gateway.url, entry);
  }
}

/** Both protocols to both upstreams, as a stream and whole. Resolves when the connection is over. */
export function ask(url, entry) {
  const { number } = entry;
  const isStream = number % 8 !== 0;
  const path = number % 2 === 0 ? '/v1/chat/completions' : '/v1/messages';
  const model = number % 4 < 2 ? 'up/m' : 'an/m';
  const messages = [{ role: 'user', content: `#${number}#` }];
  const body = JSON.stringify({ model, stream: isStream, max_tokens: 500, messages });
  return new Promise((resolve) => {
    const outgoing = request(`${url}${path}`, { method: 'POST', headers: { 'content-type': 'application/json' } }, (response) => {
      let text = '';
      entry.id = response.headers['x-sluice-request-id'];
      entry.status = response.statusCode;
      response.on('data', (data) => {
        text += data;
        entry.hasContent ||= text.includes('One');
        entry.hasEnd ||= text.includes('[DONE]') || text.includes('message_stop');
      });
      response.on('end', () => {
        entry.hasEnd = true;
      });
      response.on('close', resolve);
      response.on('error', () => undefined);
    });
    outgoing.on('error', () => resolve(undefined));
    outgoing.end(body);
  });
}

// ---- the comparison

/** Compares a ledger with what the upstream served and what the clients saw. `read` runs a query. */
export async function inspect(read, served, seen) {
  const violations = [
    ...(await findViolations(read, seen)),
    ...(await findOpenRows(read)),
    ...(await findWrongAttempts(read, served)),
    ...(await findWrongSums(read)),
  ];
  const [{ rows, crashed }] = await read(
    "SELECT count(*) AS rows, sum(CASE WHEN state = 'crashed' THEN 1 ELSE 0 END) AS crashed FROM exchanges",
  );
  const count = (name) => seen.filter((entry) => entry[name]).length;
  const figures = {
    lost: violations.filter((text) => text.endsWith(LOST)).length,
    doubled: violations.filter((text) => text.endsWith(DOUBLED)).length,
    open: violations.filter((text) => text.endsWith(OPEN)).length,
  };
  const late = new Set(seen.map(({ gateway }) => gateway).filter(({ isLate }) => isLate)).size;
  return { rows, crashed, late, ...figures, contents: count('hasContent'), ends: count('hasEnd'), violations };
}

// Violations that figures name.
const LOST = 'saw a response, which has no row';
const DOUBLED = 'has two rows';
const OPEN = 'is still open';

async function findViolations(read, seen) {
  const rows = new Map((await read('SELECT * FROM exchanges')).map((row) => [row.request_id, row]));
  const answered = await read("SELECT exchange_id, count(*) AS n FROM attempts WHERE ending = 'answered' GROUP BY exchange_id");
  const answers = new Map(answered.map(({ exchange_id, n }) => [exchange_id, n]));
  return seen.flatMap((entry) => {
    const found = entry.hasContent || entry.hasEnd ? findViolation(entry, rows.get(entry.id), answers) : undefined;
    return found ?? [];
  });
}

function findViolation({ number, hasEnd, gateway }, row, answers) {
  const { input, output } = usageOf(number);
  if (!row) return `the client of ${number}${gateway.isLate ? ', whose node had a slow store,' : ''} ${LOST}`;
  // A reused connection that the upstream closes is replaced, by a second attempt.
  if (row.attempts !== 1 && answers.get(row.id) > 1) return `the client of ${number} saw content of ${row.attempts} attempts`;
  if (hasEnd && row.state === 'crashed' && gateway.isLate) return undefined;
  if (hasEnd && (row.state !== 'settled' || row.input_tokens !== input || row.output_tokens !== output))
    return `the client of ${number} saw the end, which is ${row.state} with ${row.input_tokens} and ${row.output_tokens} tokens`;
  if (hasEnd && row.cost_micros !== costOf({ input, output })) return `${number} cost ${row.cost_micros}`;
  // Usage that was reported before the content is written beside it, so a crash may come first.
  if (row.state === 'crashed' && row.input_tokens !== null && row.input_tokens !== input)
    return `${number} has crashed with ${row.input_tokens} tokens`;
  return undefined;
}

/** Nothing is open, and no request has two rows. */
async function findOpenRows(read) {
  const open = await read(
    "SELECT id FROM exchanges WHERE state = 'open' UNION ALL SELECT exchange_id FROM attempts WHERE state = 'open'",
  );
  const twice = await read('SELECT request_id AS id FROM exchanges GROUP BY request_id HAVING count(*) > 1');
  return [...open.map(({ id }) => `${id} ${OPEN}`), ...twice.map(({ id }) => `${id} ${DOUBLED}`)];
}

/** No more attempts than were sent, apart from those that were killed on their way. */
async function findWrongAttempts(read, served) {
  const found = [];
  const [{ settled }] = await read("SELECT count(*) AS settled FROM attempts WHERE ending = 'answered'");
  if (settled > served.length) found.push(`${settled} attempts are answered, but the upstream served ${served.length}`);
  if (new Set(served).size !== served.length) found.push('a request was sent twice');
  const [orphans] = await read('SELECT count(*) AS n FROM attempts WHERE exchange_id NOT IN (SELECT id FROM exchanges)');
  if (orphans.n > 0) found.push(`${orphans.n} attempts have no exchange`);
  return found;
}

/** Every settled and crashed exchange is in the roll-ups, once. */
async function findWrongSums(read) {
  const sums = 'sum(input_tokens) AS input, sum(output_tokens) AS output, sum(cost_micros) AS cost';
  const [rows] = await read(`SELECT count(*) AS requests, ${sums} FROM exchanges`);
  const [stored] = await read(`SELECT sum(requests) AS requests, ${sums} FROM usage_rollups WHERE rollup = 1`);
  const isSame = JSON.stringify(stored) === JSON.stringify(rows);
  return isSame ? [] : [`the roll-ups have ${JSON.stringify(stored)}, the rows ${JSON.stringify(rows)}`];
}
