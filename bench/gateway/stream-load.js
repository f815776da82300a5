/**
 * Streams over raw sockets. Every chunk of the upstream says when it was sent, or, for a model `…-k%k`, which one of which stream it is: then
 * the text of every stream is compared with what was sent. Prints one JSON line.
 * Environment: PORT, PATH_, BODY, HEADERS, STREAMS, RAMP (ms over which they begin), AT_ONCE (in place of RAMP: how many at a time), CHUNKS.
 */
import net from 'node:net';
import { percentile, requestOf, Unchunked } from './load.js';

const { PORT, BODY, STREAMS, RAMP = '0', AT_ONCE, CHUNKS = '0' } = process.env;
const isChecked = BODY.includes('%k');
const firsts = [];
const delays = [];
const result = { streams: Number(STREAMS), chunks: 0, errors: 0, wrong: 0, odd: '' };
let next = 0;

const deadline = setTimeout(finish, 60_000);
if (AT_ONCE) await Promise.all(Array.from({ length: Number(AT_ONCE) }, askOn));
else await rampUp();
finish();

function finish() {
  clearTimeout(deadline);
  const times = { first50: percentile(firsts, 0.5), delay50: percentile(delays, 0.5), delay99: percentile(delays, 0.99) };
  console.log(JSON.stringify({ ...result, missing: Number(STREAMS) * Number(CHUNKS) - result.chunks, ...times }));
  process.exit(0);
}

async function askOn() {
  while (next < result.streams) await ask(next++);
}

function rampUp() {
  const perTick = Number(RAMP) === 0 ? result.streams : Math.ceil((result.streams * 5) / Number(RAMP));
  return new Promise((resolve) => {
    const all = [];
    const timer = setInterval(() => {
      for (let i = 0; i < perTick && next < result.streams; i++) all.push(ask(next++));
      if (next < result.streams) return;
      clearInterval(timer);
      resolve(Promise.all(all));
    }, 5);
  });
}

function ask(number) {
  const request = requestOf(BODY.replace('%k', String(number)), 'close');
  const sent = performance.now();
  const body = new Unchunked();
  let isFirst = true;
  let hasContent = false;
  let tail = '';
  let whole = '';
  return new Promise((resolve) => {
    const socket = net.connect({ port: Number(PORT), host: '127.0.0.1', noDelay: true }, () => socket.write(request));
    socket.on('data', (data) => {
      const text = data.latin1Slice();
      if (isFirst) look(text);
      isFirst = false;
      if (isChecked) whole += body.push(text);
      else {
        const before = result.chunks;
        tail = readStamps(tail + body.push(text));
        if (!hasContent && result.chunks > before) firsts.push(performance.now() - sent);
        hasContent ||= result.chunks > before;
      }
      if (text.endsWith('\r\n0\r\n\r\n')) socket.destroy();
    });
    socket.on('error', () => result.errors++);
    socket.on('close', () => {
      if (isChecked) check(whole, number);
      resolve();
    });
  });
}

function look(head) {
  if (!head.startsWith('HTTP/1.1 200')) result.odd = head.slice(0, 300);
}

/** Milliseconds since each stamp; gives back what may be the beginning of another. */
function readStamps(text) {
  const now = process.hrtime.bigint() % 10_000_000_000_000_000n;
  let end = 0;
  for (const match of text.matchAll(/t=(\d{16});/g)) {
    delays.push(Number(now - BigInt(match[1])) / 1e6);
    result.chunks++;
    end = match.index + match[0].length;
  }
  return text.slice(Math.max(end, text.length - 18));
}

/** Every chunk of this stream, in order, none of another, and the end. */
function check(body, number) {
  const said = [...body.matchAll(/t=(\d{6})(\d{10});/g)];
  const isRight = said.every(([, stream, chunk], i) => Number(stream) === number && Number(chunk) === i + 1);
  const hasEnded = body.includes('data: [DONE]') || body.includes('"type":"message_stop"');
  result.chunks += said.length;
  if (!isRight || !hasEnded || said.length !== Number(CHUNKS)) result.wrong++;
}
