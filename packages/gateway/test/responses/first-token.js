/** Measures the time from a request to its first token over WebSocket and over HTTP, by turns. bench/nightly/first-token.js runs it. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { Agent, createServer, request } from 'node:http';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { WebSocket } from 'ws';

const BIN = fileURLToPath(new URL('../../bin/sluice.js', import.meta.url));
const WARM_UP = 200;
const INPUT = 'text '.repeat(2000);
const BODY = { model: 'up/m', store: false, input: INPUT };

/** Milliseconds of each round: two requests over HTTP, whose difference is the noise, and one over WebSocket. */
export async function measureFirstTokens(folder, rounds) {
  const upstream = createServer((_, response) => response.writeHead(200, { 'content-type': 'text/event-stream' }).end(ANSWER));
  upstream.listen(0, '127.0.0.1');
  await once(upstream, 'listening');
  const gateway = await startGateway(folder, `http://127.0.0.1:${upstream.address().port}/v1`);
  const socket = new WebSocket(`ws://127.0.0.1:${gateway.port}/v1/responses`);
  const agent = new Agent({ keepAlive: true });
  const samples = { http: [], httpAgain: [], webSocket: [] };
  const ways = {
    http: () => askHttp(gateway.port, agent),
    httpAgain: () => askHttp(gateway.port, agent),
    webSocket: () => askSocket(socket),
  };
  try {
    await once(socket, 'open');
    for (let round = 0; round < rounds + WARM_UP; round++)
      for (const name of rotate(Object.keys(ways), round)) {
        const ms = await ways[name]();
        if (round >= WARM_UP) samples[name].push(ms);
      }
  } finally {
    socket.terminate();
    agent.destroy();
    gateway.child.kill('SIGTERM');
    upstream.closeAllConnections();
    upstream.close();
  }
  return samples;
}

const CHUNKS = [{ role: 'assistant', content: '' }, ...Array.from({ length: 20 }, (_, i) => ({ content: `word ${i} ` }))];
const encode = (delta, finish) =>
  `data: ${JSON.stringify({ id: 'c', object: 'chat.completion.chunk', created: 1, model: 'm', choices: [{ index: 0, delta, finish_reason: finish }] })}\n\n`;
const ANSWER = `${CHUNKS.map((delta) => encode(delta, null)).join('')}${encode({}, 'stop')}data: [DONE]\n\n`;

/** No way is always the first of its round. */
const rotate = (names, round) => names.map((_, i) => names[(i + round) % names.length]);

async function startGateway(folder, url) {
  const config = join(folder, 'sluice.json');
  const provider = { protocol: 'openai-chat', base_url: url, api_key: 'k' };
  writeFileSync(config, JSON.stringify({ providers: { up: provider }, listen: { host: '127.0.0.1', port: 0 } }), { mode: 0o600 });
  const child = spawn(process.execPath, [BIN, 'serve', '--config', config, '--data', join(folder, 'data')], {
    // The log has a line for each request.
    stdio: ['ignore', 'pipe', 'ignore'],
  });
  let text = '';
  for await (const data of child.stdout) {
    text += data;
    const [, port] = /http:\/\/127\.0\.0\.1:(\d+)/.exec(text) ?? [];
    if (port) {
      child.stdout.resume();
      return { child, port: Number(port) };
    }
  }
  throw new Error(`the gateway did not start: ${text}`);
}

const TOKEN = 'response.output_text.delta';

/** Ends the response before it returns, so that responses do not overlap. */
function askHttp(port, agent) {
  return new Promise((resolve, reject) => {
    const begun = performance.now();
    let ms;
    const body = JSON.stringify({ ...BODY, stream: true });
    const headers = { 'content-type': 'application/json', 'content-length': Buffer.byteLength(body) };
    const asked = request({ port, host: '127.0.0.1', path: '/v1/responses', method: 'POST', agent, headers }, (response) => {
      let text = '';
      response.on('data', (data) => {
        text += data;
        if (ms === undefined && text.includes(TOKEN)) ms = performance.now() - begun;
      });
      response.on('end', () => (ms === undefined ? reject(new Error(text.slice(0, 500))) : resolve(ms)));
    });
    asked.on('error', reject);
    asked.end(body);
  });
}

function askSocket(socket) {
  return new Promise((resolve, reject) => {
    const begun = performance.now();
    let ms;
    const onMessage = (data) => {
      const text = String(data);
      if (ms === undefined && text.includes(TOKEN)) ms = performance.now() - begun;
      const isEnd = text.includes('"type":"response.completed"');
      if (!isEnd && !text.includes('"type":"error"')) return;
      socket.off('message', onMessage);
      if (isEnd) resolve(ms);
      else reject(new Error(text.slice(0, 500)));
    };
    socket.on('message', onMessage);
    socket.send(JSON.stringify({ type: 'response.create', ...BODY }));
  });
}
