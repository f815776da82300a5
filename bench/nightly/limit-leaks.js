/**
 * 10,000 clients (`--cycles 500` for fewer) that connect and leave at random points, with a key that has every kind of limit. Exit code 1
 * when a slot or a reservation is left, when a budget and the ledger disagree, or when memory keeps growing.
 */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { ROOMY, startLimited } from '../gateway/with-limits.mjs';

const { values: options } = parseArgs({ options: { cycles: { type: 'string', default: '10000' } } });
const cycles = Number(options.cycles);
const CLIENTS = 20;
const BODY = JSON.stringify({ model: 'up/m', stream: true, max_tokens: 100, messages: [{ role: 'user', content: 'hi' }] });
const REQUEST = `POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\ncontent-length: ${BODY.length}\r\n\r\n${BODY}`;

/** About the length of a response with its headers. */
const RESPONSE_CHARS = 1500;

/** What is in use after garbage collection. */
function measureHeap() {
  setFlagsFromString('--expose-gc');
  runInNewContext('gc')();
  return process.memoryUsage().heapUsed;
}

const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

/** Some words, a few milliseconds apart, and then the end. */
const upstream = createServer(async (incoming, response) => {
  incoming.resume();
  response.on('error', () => undefined);
  response.writeHead(200, { 'content-type': 'text/event-stream' });
  const build = (fields) =>
    `data: ${JSON.stringify({ id: 'c', object: 'chat.completion.chunk', created: 1, model: 'm', ...fields })}\n\n`;
  for (const word of ['One', ' two', ' three']) {
    if (response.destroyed) return;
    response.write(build({ choices: [{ index: 0, delta: { content: word } }] }));
    await sleep(3);
  }
  response.write(build({ choices: [{ index: 0, delta: {}, finish_reason: 'stop' }] }));
  response.write(build({ choices: [], usage: { prompt_tokens: 10, completion_tokens: 3, total_tokens: 13 } }));
  response.end('data: [DONE]\n\n');
});
await new Promise((resolve) => upstream.listen(0, '127.0.0.1', resolve));

const folder = mkdtempSync(join(tmpdir(), 'sluice-limits-'));
const config = join(folder, 'sluice.yaml');
writeFileSync(
  config,
  `log: { level: silent }
default_price: { input: 1, output: 1 }
providers: { up: { protocol: openai-chat, base_url: "http://127.0.0.1:${upstream.address().port}/v1", api_key: some-key } }
`,
);
const policy = { ...ROOMY, concurrency: CLIENTS };
const { url, gateway, services, store } = await startLimited(config, 0, null, { id: 'k', name: 'k', tags: [], policy });
const { hostname, port } = new URL(url);

const outcomes = { left: 0, whole: 0, refused: 0 };

/** Leaves before the request is complete, when it is sent, a moment later, after some bytes of the response, or after its end. */
function visit() {
  return new Promise((resolve) => {
    let text = '';
    const chance = Math.random();
    const enough = chance < 0.4 ? 1 : chance < 0.8 ? Math.random() * RESPONSE_CHARS : Number.POSITIVE_INFINITY;
    const socket = connect(Number(port), hostname, () => {
      const isCut = chance < 0.1;
      socket.write(isCut ? REQUEST.slice(0, Math.floor(Math.random() * REQUEST.length)) : REQUEST, () => {
        if (chance < 0.2) socket.destroy();
        else if (chance < 0.3) setTimeout(() => socket.destroy(), Math.random() * 50);
      });
    });
    socket.on('data', (data) => {
      text += data;
      if (text.length >= enough || text.includes('[DONE]') || text.includes(' 429 ')) socket.destroy();
    });
    socket.on('error', () => undefined);
    socket.on('close', () => {
      outcomes[text.includes(' 429 ') ? 'refused' : text.includes('[DONE]') ? 'whole' : 'left']++;
      resolve();
    });
  });
}

async function run(count) {
  let next = 0;
  await Promise.all(
    Array.from({ length: CLIENTS }, async () => {
      while (next++ < count) await visit();
    }),
  );
  for (let turn = 0; turn < 500 && services.streams.count > 0; turn++) await sleep(10);
}

const problems = [];
await run(Math.min(1000, cycles));
const before = measureHeap();
await run(cycles - Math.min(1000, cycles));
await store.flush();
const grown = (measureHeap() - before) / 2 ** 20;
const budgets = await services.gate.list([]);
const ledger = await store.spending({ by: 'key', of: 'k', since: 0 });
if (services.streams.count > 0) problems.push(`${services.streams.count} requests are still running`);
for (const { period, reserved, spent } of budgets) {
  if (reserved !== 0) problems.push(`${reserved} micro-dollars are still reserved per ${period}`);
  if (spent !== ledger) problems.push(`the budget per ${period} has spent ${spent}, the ledger ${ledger}`);
}
// Every slot is free: as many requests as there are slots run at the same time.
const slots = Array.from({ length: CLIENTS }, (_, index) =>
  services.gate.admit({
    id: `s${index}`,
    rules: services.gate.findRules({ caller: { id: 'k', name: 'k', tags: [], policy }, tags: [], budgets: [], at: 0 }),
    demand: undefined,
  }),
);
await Promise.all(slots).catch((error) => problems.push(`not all slots are free: ${error.message}`));
if (cycles >= 5000 && grown > 8) problems.push(`the heap grew by ${grown.toFixed(1)} MB`);
for (const problem of problems) console.log(problem);
console.log(
  `${cycles} clients: ${outcomes.left} left, ${outcomes.whole} read to the end, ${outcomes.refused} refused; ${ledger} micro-dollars spent; heap +${grown.toFixed(1)} MB; ${problems.length} problems`,
);
services.gate.close();
await gateway.close(0);
await store.close();
upstream.closeAllConnections();
upstream.close();
rmSync(folder, { recursive: true, force: true });
process.exitCode = problems.length === 0 ? 0 : 1;
