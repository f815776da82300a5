/**
 * The load generator: one process for a whole run, because a new one would be cold. Reads one JSON command a line, writes one JSON result a line.
 * Every response is compared with what the upstream sent.
 *
 * A target is `{ port, path, body, key, headers, protocol, model, isExact }`: `isExact` when the body must be the bytes of the upstream. `%k` in
 * `path` and `body` is the number of the stream.
 */
import { connect } from 'node:net';
import { createInterface } from 'node:readline';
import { quantile } from '../method/statistics.js';
import { ResponseReader } from './http-reader.js';
import { CLIENT_PROTOCOLS, MARK_LENGTH, parseModel, readClock, UPSTREAM_PROTOCOLS } from './script.js';

const COMMANDS = { whole, rate, streams, hold, window: readWindow, drop, stall };

createInterface({ input: process.stdin }).on('line', async (line) => {
  const { command, ...options } = JSON.parse(line);
  try {
    write({ result: await COMMANDS[command](options) });
  } catch (error) {
    write({ error: String(error.stack) });
  }
});

const write = (value) => process.stdout.write(`${JSON.stringify(value)}\n`);
const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

/** The bytes of a request. The key is in the headers of all protocols. */
function buildRequest({ port, path, body, protocol, key = 'k', headers = [] }, connection, number = 0) {
  const text = body.includes('%k') ? body.replace('%k', String(number)) : body;
  const head = [
    `POST ${path.replace('%k', String(number))} HTTP/1.1`,
    `host: 127.0.0.1:${port}`,
    'content-type: application/json',
    `authorization: Bearer ${key}`,
    `x-api-key: ${key}`,
    ...(protocol === 'anthropic-messages' ? ['anthropic-version: 2023-06-01'] : []),
    `content-length: ${Buffer.byteLength(text)}`,
    `connection: ${connection}`,
    ...headers,
  ];
  return Buffer.from(`${head.join('\r\n')}\r\n\r\n${text}`);
}

const open = (port) => connect({ port, host: '127.0.0.1', noDelay: true }).on('error', () => undefined);

/** Compares whole responses. Bytes that were right once are right again, so that few responses are parsed. */
class WholeCheck {
  wrong = 0;
  note = '';
  #known;
  #target;

  constructor(target) {
    this.#target = target;
  }

  check(status, body) {
    if (status === 200 && this.#known?.equals(body)) return;
    const fault = status === 200 ? this.#findFault(body) : `status ${status}: ${body.toString('utf8', 0, 300)}`;
    if (fault === undefined) this.#known = Buffer.from(body);
    else {
      this.wrong++;
      this.note ||= fault;
    }
  }

  #findFault(body) {
    const { protocol, model, isExact } = this.#target;
    const { text } = parseModel(model);
    if (isExact) {
      const sent = UPSTREAM_PROTOCOLS[protocol].whole(text);
      return body.equals(Buffer.from(sent)) ? undefined : `other bytes than the upstream sent: ${body.toString('utf8', 0, 300)}`;
    }
    try {
      return CLIENT_PROTOCOLS[protocol].readText(JSON.parse(body)) === text
        ? undefined
        : `other text: ${body.toString('utf8', 0, 300)}`;
    } catch (error) {
      return `${error.message}: ${body.toString('utf8', 0, 300)}`;
    }
  }
}

/** A connection that sends one request after the other. `request()` resolves when the response has ended. */
class Connection {
  #socket;
  #reader;
  #parts = [];
  #resolve;

  constructor(port) {
    this.#socket = open(port);
    this.#socket.on('data', (data) => this.#receive(data));
    this.#socket.on('close', () => this.#fail('the connection was closed'));
  }

  get isOpen() {
    return !this.#socket.destroyed;
  }

  request(bytes) {
    this.#reader = new ResponseReader();
    this.#parts = [];
    return new Promise((resolve) => {
      this.#resolve = resolve;
      if (this.isOpen) this.#socket.write(bytes);
      else this.#fail('the connection was closed');
    });
  }

  close() {
    this.#resolve = undefined;
    this.#socket.destroy();
  }

  #fail(reason) {
    this.#reader = undefined;
    this.#resolve?.({ status: 0, body: Buffer.from(reason) });
    this.#socket.destroy();
  }

  #receive(data) {
    if (!this.#reader) return;
    try {
      for (const part of this.#reader.push(data)) this.#parts.push(part);
    } catch (error) {
      this.#fail(error.message);
      return;
    }
    if (!this.#reader.isWhole) return;
    const body = this.#parts.length === 1 ? this.#parts[0] : Buffer.concat(this.#parts);
    const { status } = this.#reader;
    this.#reader = undefined;
    this.#resolve({ status, body });
  }
}

/** Idle connections by port: the next slice goes on with those of the last, as clients do. */
const idleByPort = new Map();
/** Servers close idle connections after some seconds. */
const MAX_IDLE_MS = 2000;

function takeConnection(port) {
  const idle = idleByPort.get(port) ?? [];
  for (let found = idle.pop(); found !== undefined; found = idle.pop()) {
    if (found.connection.isOpen && performance.now() - found.since < MAX_IDLE_MS) return found.connection;
    found.connection.close();
  }
  return new Connection(port);
}

function giveConnection(port, connection) {
  if (!idleByPort.has(port)) idleByPort.set(port, []);
  idleByPort.get(port).push({ connection, since: performance.now() });
}

/** Closed loop: each connection sends the next request as soon as it has its response; `count` requests, or for `seconds`. */
async function whole({ target, connections = 32, count = Infinity, seconds = Infinity }) {
  const request = buildRequest(target, 'keep-alive');
  const check = new WholeCheck(target);
  const begun = performance.now();
  let left = count;
  let requests = 0;
  const work = async () => {
    const connection = takeConnection(target.port);
    while (left-- > 0 && performance.now() - begun < seconds * 1000) {
      const { status, body } = await connection.request(request);
      check.check(status, body);
      requests++;
      if (!connection.isOpen) return;
    }
    giveConnection(target.port, connection);
  };
  await Promise.all(Array.from({ length: connections }, work));
  return { requests, seconds: (performance.now() - begun) / 1000, wrong: check.wrong, note: check.note };
}

/** Open loop: requests are sent at a fixed rate, whether or not the ones before have their responses. Times are milliseconds. */
async function rate({ target, rate: perSecond, seconds }) {
  const request = buildRequest(target, 'keep-alive');
  const check = new WholeCheck(target);
  const times = [];
  const lateness = [];
  const all = [];
  const send = async () => {
    const connection = takeConnection(target.port);
    const sent = performance.now();
    const { status, body } = await connection.request(request);
    times.push(performance.now() - sent);
    check.check(status, body);
    if (connection.isOpen) giveConnection(target.port, connection);
  };
  const begun = performance.now();
  for (let i = 0; i < perSecond * seconds; i++) {
    const due = begun + (i * 1000) / perSecond;
    const wait = due - performance.now();
    if (wait > 0) await sleep(wait);
    lateness.push(performance.now() - due);
    all.push(send());
  }
  await Promise.all(all);
  const at = (share) => quantile(times, share);
  return {
    p50: at(0.5),
    p90: at(0.9),
    p99: at(0.99),
    requests: times.length,
    late: quantile(lateness, 0.99),
    wrong: check.wrong,
    note: check.note,
  };
}

/** Reads one stream and checks every mark of it: its number, that no chunk is missing, doubled or out of order, and its end. */
class StreamCheck {
  chunks = 0;
  fault = '';
  #reader = new ResponseReader();
  #text = '';
  #number;
  #end;
  #hasEnd = false;

  constructor({ protocol }, number) {
    this.#number = number;
    this.#end = CLIENT_PROTOCOLS[protocol].streamEnd;
  }

  get isWhole() {
    return this.#reader.isWhole;
  }

  /** Calls `onChunk` with the nanoseconds since every chunk was sent. */
  push(data, onChunk) {
    try {
      for (const part of this.#reader.push(data)) this.#text += part.latin1Slice();
    } catch (error) {
      this.fault ||= error.message;
      return;
    }
    if (this.#reader.status !== 0 && this.#reader.status !== 200)
      this.fault ||= `status ${this.#reader.status}: ${this.#text.slice(0, 300)}`;
    let from = 0;
    for (let at = this.#text.indexOf('t='); at >= 0; at = this.#text.indexOf('t=', from)) {
      if (this.#text.length < at + MARK_LENGTH) break;
      from = this.#text.charCodeAt(at + MARK_LENGTH - 1) === 59 ? this.#readMark(at, onChunk) : at + 2;
    }
    this.#hasEnd ||= this.#text.includes(this.#end, Math.max(0, from - 1));
    this.#text = this.#text.slice(Math.max(from, this.#text.length - Math.max(MARK_LENGTH, this.#end.length)));
  }

  #readMark(at, onChunk) {
    const stream = Number(this.#text.slice(at + 2, at + 8));
    const chunk = Number(this.#text.slice(at + 8, at + 14));
    if (stream !== this.#number || chunk !== this.chunks)
      this.fault ||= `chunk ${chunk} of stream ${stream} in place of ${this.chunks} of ${this.#number}`;
    this.chunks++;
    onChunk(this.#text.slice(at + 14, at + 30));
    return at + MARK_LENGTH;
  }

  /** What is wrong with the ended stream. */
  findFault(chunks) {
    if (this.fault) return this.fault;
    if (this.chunks !== chunks) return `${this.chunks} of ${chunks} chunks`;
    if (!this.isWhole || !this.#hasEnd) return 'the stream has no end';
    return undefined;
  }
}

const readDelay = (now, sent) => Number(now - BigInt(sent)) / 1e6;

/** Streams from beginning to end, so many at a time, each on a connection of its own. `firsts`: milliseconds to the first text. */
async function streams({ target, streams: count, atOnce = 1 }) {
  const { chunks } = parseModel(target.model.replace('%k', '0'));
  const firsts = [];
  const found = { chunks: 0, wrong: 0, note: '' };
  let next = 0;
  const work = async () => {
    while (next < count) {
      const { fault, first, chunks: seen } = await readStream(target, next++, chunks);
      if (first !== undefined) firsts.push(first);
      found.chunks += seen;
      if (fault === undefined) continue;
      found.wrong++;
      found.note ||= fault;
    }
  };
  await Promise.all(Array.from({ length: atOnce }, work));
  return { ...found, streams: count, firsts };
}

function readStream(target, number, chunks) {
  const request = buildRequest(target, 'close', number);
  const check = new StreamCheck(target, number);
  const socket = open(target.port);
  const begun = performance.now();
  let first;
  return new Promise((resolve) => {
    socket.on('connect', () => socket.write(request));
    socket.on('data', (data) => {
      check.push(data, () => undefined);
      if (first === undefined && check.chunks > 0) first = performance.now() - begun;
      if (check.isWhole) socket.destroy();
    });
    socket.on('close', () => resolve({ fault: check.findFault(chunks), first, chunks: check.chunks }));
  });
}

/** Streams that stay open until `drop`. What came of them since the last window: */
let held = [];
let seen = { chunks: 0, delays: [] };
/** Streams that broke, each of which is counted once. */
let broken = new Set();

const MAX_START_MS = 20_000;

/** Opens streams over `ramp` milliseconds; resolves `settle` milliseconds after each of them has had a chunk. */
async function hold({ target, streams: count, ramp, settle = 500 }) {
  const begun = performance.now();
  for (let i = 0; i < count; i++) {
    const wait = begun + (i * ramp) / count - performance.now();
    if (wait > 1) await sleep(wait);
    held.push(holdStream(target, i));
  }
  const deadline = performance.now() + MAX_START_MS;
  while (performance.now() < deadline && held.some(({ check }) => check.chunks === 0)) await sleep(50);
  await sleep(settle);
  readWindow();
  return {};
}

function holdStream(target, number) {
  const socket = open(target.port);
  const check = new StreamCheck(target, number);
  socket.on('connect', () => socket.write(buildRequest(target, 'close', number)));
  socket.on('data', (data) => {
    const now = readClock();
    check.push(data, (sent) => {
      seen.chunks++;
      seen.delays.push(readDelay(now, sent));
    });
  });
  const stream = { socket, check };
  socket.on('close', () => {
    check.fault ||= 'the stream was closed';
  });
  return stream;
}

function readWindow() {
  const { chunks, delays } = seen;
  seen = { chunks: 0, delays: [] };
  const faulty = held.filter((stream) => stream.check.fault && !broken.has(stream));
  for (const stream of faulty) broken.add(stream);
  const at = (share) => quantile(delays, share);
  return {
    chunks,
    p50: at(0.5),
    p90: at(0.9),
    p99: at(0.99),
    max: at(1),
    wrong: faulty.length,
    note: faulty[0]?.check.fault ?? '',
  };
}

async function drop() {
  for (const { socket } of held) socket.destroy();
  held = [];
  broken = new Set();
  return {};
}

/** The first request waits until the streams are accepted. */
const LEAST_TIMED = 6;

/** Requests streams and reads nothing of them; meanwhile sends one small request after another, each on a new connection, and times them. */
async function stall({ target, small, streams: count, seconds }) {
  const stalled = Array.from({ length: count }, (_, i) => {
    const socket = open(target.port);
    socket.on('connect', () => socket.write(buildRequest(target, 'close', i)));
    return socket.pause();
  });
  const check = new WholeCheck(small);
  const deadline = performance.now() + seconds * 1000;
  const times = [];
  while (performance.now() < deadline || times.length < LEAST_TIMED) {
    const connection = new Connection(small.port);
    const begun = performance.now();
    const { status, body } = await Promise.race([
      connection.request(buildRequest(small, 'close')),
      sleep(Math.max(0, deadline - begun) + 5000).then(() => ({ status: 0, body: Buffer.from('no response in time') })),
    ]);
    times.push(performance.now() - begun);
    check.check(status, body);
    connection.close();
    await sleep(100);
  }
  for (const socket of stalled) socket.destroy();
  return {
    first: times[0],
    p50: quantile(times.slice(1), 0.5),
    max: quantile(times.slice(1), 1),
    wrong: check.wrong,
    note: check.note,
  };
}
