/** The clients of the proof with many clients: on raw sockets, because thousands of them should cost their process little. */
import { once } from 'node:events';
import { connect } from 'node:net';

const BODY = { model: 'up/m', max_tokens: 100, messages: [{ role: 'user', content: 'hi' }] };

function write(path, key, body) {
  const text = body === undefined ? '' : JSON.stringify(body);
  const length = body === undefined ? '' : `content-type: application/json\r\ncontent-length: ${text.length}\r\n`;
  return `${body === undefined ? 'GET' : 'POST'} ${path} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${key}\r\nconnection: close\r\n${length}\r\n${text}`;
}

/** Also after an error. */
const untilClosed = (socket) => new Promise((resolve) => socket.once('close', resolve));

/** A connection that says nothing. */
export async function openIdle(port) {
  const socket = connect(port, '127.0.0.1');
  socket.on('error', () => undefined).resume();
  await once(socket, 'connect');
  return socket;
}

/** One request, whose connection ends with its response: a chat, or another path. */
export async function send(port, key, path) {
  const socket = connect(port, '127.0.0.1');
  let text = '';
  socket
    .on('error', () => undefined)
    .on('data', (data) => {
      text += data;
    });
  socket.write(path === undefined ? write('/v1/chat/completions', key, BODY) : write(path, key));
  await untilClosed(socket);
  const [head, ...body] = text.split('\r\n\r\n');
  const isChunked = /^transfer-encoding: chunked/im.test(head);
  return { status: readStatus(text), text: isChunked ? join(body.join('\r\n\r\n')) : body.join('\r\n\r\n') };
}

const join = (text) =>
  text
    .split(/\r\n/)
    .filter((_, index) => index % 2 === 1)
    .join('');

const readStatus = (text) => Number(/^HTTP\/1\.1 (\d+)/.exec(text)?.[1]);

/** A streaming chat whose first content has arrived, or that was refused. `next` waits for the next content. */
export async function openStream(port, key) {
  const socket = connect(port, '127.0.0.1');
  let text = '';
  let wake = () => undefined;
  socket
    .on('error', () => undefined)
    .on('data', (data) => {
      text += data;
      if (text.includes('word', seen)) wake();
    });
  let seen = 0;
  const closed = untilClosed(socket);
  const next = () =>
    new Promise((resolve) => {
      wake = () => {
        seen = text.indexOf('word', seen) + 4;
        wake = () => undefined;
        resolve();
      };
      if (text.includes('word', seen)) wake();
    });
  socket.write(write('/v1/chat/completions', key, { ...BODY, stream: true }));
  await Promise.race([next(), closed]);
  return { socket, next, status: readStatus(text), ended: closed.then(() => text) };
}
