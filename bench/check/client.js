/** Clients over raw sockets: one connection with requests one after the other, and streams that are held open. */
import { connect } from 'node:net';
import { HELD_TEXT } from './upstream.js';

const messages = [{ role: 'user', content: 'Hi' }];

/** A Chat client is passed through to the Chat upstream; an Anthropic client is converted. */
export const WAYS = {
  passing: { path: '/v1/chat/completions', body: (model, stream) => ({ model, stream, messages }) },
  converting: { path: '/v1/messages', body: (model, stream) => ({ model, stream, max_tokens: 100, messages }) },
};

function buildRequest({ path, body }, model, stream) {
  const text = JSON.stringify(body(`pass/${model}`, stream));
  const head = [
    `POST ${path} HTTP/1.1`,
    'host: 127.0.0.1',
    'content-type: application/json',
    'authorization: Bearer k',
    'x-api-key: k',
    'anthropic-version: 2023-06-01',
    `content-length: ${Buffer.byteLength(text)}`,
    'connection: keep-alive',
  ];
  return Buffer.from(`${head.join('\r\n')}\r\n\r\n${text}`, 'latin1');
}

const RESPONSE_MS = 20_000;

/** A connection whose `read(isWhole)` resolves with the text since the last call as soon as it is whole. */
function openConnection(port) {
  return new Promise((resolve, reject) => {
    const socket = connect({ port, host: '127.0.0.1', noDelay: true });
    let text = '';
    let waiting;
    let problem;
    const check = () => {
      if (!waiting) return;
      if (problem) waiting.reject(problem);
      else if (waiting.isWhole(text)) waiting.resolve(text);
      else return;
      clearTimeout(waiting.timer);
      waiting = undefined;
      text = '';
    };
    const fail = (error) => {
      problem ??= error;
      check();
      reject(error);
    };
    const read = (isWhole) =>
      new Promise((resolve, reject) => {
        const timer = setTimeout(
          () => fail(new Error(`no whole response after ${RESPONSE_MS / 1000} s: ${text.slice(-300)}`)),
          RESPONSE_MS,
        );
        waiting = { isWhole, resolve, reject, timer };
        check();
      });
    socket.on('connect', () => resolve({ read, send: (bytes) => socket.write(bytes), close: () => socket.destroy() }));
    socket.on('data', (data) => {
      text += data.latin1Slice();
      check();
    });
    socket.on('error', fail);
    socket.on('close', () => fail(new Error(`the gateway closed the connection: ${text.slice(0, 300)}`)));
  });
}

function isWholeJson(text) {
  const end = text.indexOf('\r\n\r\n');
  if (end < 0) return false;
  const length = /content-length: *(\d+)/i.exec(text);
  return length ? text.length >= end + 4 + Number(length[1]) : text.endsWith('\r\n0\r\n\r\n');
}

const isWholeStream = (text) => text.endsWith('\r\n0\r\n\r\n');

function expectSuccess(text) {
  if (!text.startsWith('HTTP/1.1 200')) throw new Error(`the gateway rejected a request: ${text.slice(0, 300)}`);
}

/** One connection that sends requests one after the other. */
export async function openSequence(port, way) {
  const bytes = buildRequest(WAYS[way], 'whole', false);
  const { send, read, close } = await openConnection(port);
  const run = async (count) => {
    for (let i = 0; i < count; i++) {
      send(bytes);
      expectSuccess(await read(isWholeJson));
    }
  };
  return { run, close };
}

/** Streams that end, at most `atOnce` at a time. */
export async function runStreams(port, way, { streams, atOnce }) {
  const bytes = buildRequest(WAYS[way], 'ended', true);
  let left = streams;
  const runSome = async () => {
    while (left-- > 0) {
      const { send, read, close } = await openConnection(port);
      send(bytes);
      expectSuccess(await read((text) => isWholeStream(text) || isRejected(text)));
      close();
    }
  };
  await Promise.all(Array.from({ length: atOnce }, runSome));
}

/** Holds streams open: resolves when each has had its last chunk, so that no chunk is on its way through the gateway. */
export async function holdStreams(port, way, count) {
  const bytes = buildRequest(WAYS[way], 'held', true);
  const hold = async () => {
    const { send, read, close } = await openConnection(port);
    send(bytes);
    expectSuccess(await read((text) => text.includes(HELD_TEXT) || isRejected(text)));
    return { close };
  };
  const held = await Promise.all(Array.from({ length: count }, hold));
  return {
    close: () => {
      for (const { close } of held) close();
    },
  };
}

const isRejected = (text) => /^HTTP\/1\.1 [^2]/.test(text) && text.includes('\r\n\r\n');
