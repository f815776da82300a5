/**
 * Requests streams and reads nothing of them; meanwhile, sends one small request after another, each on a connection of its own, and times
 * them. Prints one JSON line. Environment: PORT, PATH_, BODY, HEADERS, STREAMS, SECONDS, SMALL_BODY (the body of the small requests).
 */
import net from 'node:net';
import { percentile, requestOf } from './load.js';

const { PORT, BODY, STREAMS, SECONDS, SMALL_BODY } = process.env;
const PAUSE_MS = 100;
const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
const open = (request) => {
  const socket = net.connect({ port: Number(PORT), host: '127.0.0.1' }, () => socket.write(request));
  return socket.on('error', () => undefined);
};

for (let i = 0; i < Number(STREAMS); i++) open(requestOf(BODY, 'close')).pause();
const deadline = performance.now() + Number(SECONDS) * 1000;
const times = [];
let failures = 0;
while (performance.now() < deadline) {
  await Promise.race([askSmall(), sleep(deadline - performance.now())]);
  await sleep(PAUSE_MS);
}
const [first = Number(SECONDS) * 1000, ...later] = times;
console.log(JSON.stringify({ first, median: percentile(later, 0.5), slowest: percentile(later, 1), failures }));
process.exit(0);

async function askSmall() {
  const sent = performance.now();
  const socket = open(requestOf(SMALL_BODY, 'close'));
  let text = '';
  socket.on('data', (data) => {
    text += data.latin1Slice();
  });
  await new Promise((resolve) => socket.once('close', resolve));
  times.push(performance.now() - sent);
  if (!text.startsWith('HTTP/1.1 200')) failures++;
}
