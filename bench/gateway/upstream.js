/**
 * The scripted upstream: a raw TCP server, cheap enough not to be the bottleneck. `script.js` has what it sends. Environment: PORT.
 * It stops reading the text of a request where the model is known, so that a request of 1 MB costs it little.
 */
import { createServer } from 'node:net';
import { buildMark, MARK_LENGTH, parseModel, UPSTREAM_PROTOCOLS } from './script.js';

const STREAM_HEAD =
  'HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncache-control: no-cache\r\ntransfer-encoding: chunked\r\n\r\n';
const END_OF_HEAD = Buffer.from('\r\n\r\n');
const END_OF_CHUNKS = Buffer.from('0\r\n\r\n');
/** Where the name of the model is looked for first. */
const NEAR = 2048;

const frame = (text) => `${text.length.toString(16)}\r\n${text}\r\n`;
const memoize = (build) => {
  const known = new Map();
  return (key) => {
    if (!known.has(key)) known.set(key, build(key));
    return known.get(key);
  };
};

/** The bytes of whole responses, and the constant parts of streams, by protocol. */
const SENT = Object.fromEntries(
  Object.entries(UPSTREAM_PROTOCOLS).map(([id, { whole, begin, text, end }]) => {
    const placeholder = '#'.repeat(MARK_LENGTH);
    const [before, after] = frame(text(placeholder)).split(placeholder);
    const buildWhole = (content) => {
      const body = whole(content);
      return Buffer.from(
        `HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: ${Buffer.byteLength(body)}\r\n\r\n${body}`,
      );
    };
    const block = frame(text('0'.repeat(MARK_LENGTH)).repeat(300));
    return [
      id,
      { whole: memoize(buildWhole), begin: STREAM_HEAD + frame(begin), before, after, end: frame(end) + END_OF_CHUNKS, block },
    ];
  }),
);

/** Connections with a paced stream. A gateway may go on reading when its client has left; SIGUSR2 ends such streams, so that they cost the next subject nothing. */
const paced = new Set();
process.on('SIGUSR2', () => {
  for (const socket of paced) socket.destroy();
});

createServer({ noDelay: true }, serve).listen({ port: Number(process.env.PORT), host: '127.0.0.1', backlog: 8192 });

/** Reads one request after the other. */
function serve(socket) {
  let parts = [];
  let length = 0;
  let needed = 0;
  let isBusy = false;
  socket.on('error', () => undefined);
  socket.on('data', (data) => {
    parts.push(data);
    length += data.length;
    if (!isBusy && length >= needed) read();
  });

  function read() {
    const bytes = parts.length === 1 ? parts[0] : Buffer.concat(parts);
    parts = [bytes];
    const request = parseRequest(bytes);
    needed = request?.needed ?? 0;
    if (!request?.isWhole) return;
    parts = bytes.length > request.needed ? [bytes.subarray(request.needed)] : [];
    length = bytes.length - request.needed;
    needed = 0;
    isBusy = true;
    respond(socket, request, () => {
      isBusy = false;
      if (request.isLast) socket.end();
      else if (length > 0) read();
    });
  }
}

/** `needed`: the bytes of the whole request, as far as they are known. */
function parseRequest(bytes) {
  const endOfHead = bytes.indexOf(END_OF_HEAD);
  if (endOfHead < 0) return undefined;
  const head = bytes.latin1Slice(0, endOfHead);
  const start = endOfHead + END_OF_HEAD.length;
  const isChunked = /\r\ntransfer-encoding: *chunked/i.test(head);
  const endOfChunks = isChunked ? bytes.indexOf(END_OF_CHUNKS, start) : -1;
  if (isChunked && endOfChunks < 0) return { needed: bytes.length + 1, isWhole: false };
  const needed = isChunked
    ? endOfChunks + END_OF_CHUNKS.length
    : start + Number(/\r\ncontent-length: *(\d+)/i.exec(head)?.[1] ?? 0);
  if (bytes.length < needed) return { needed, isWhole: false };
  return {
    needed,
    isWhole: true,
    isLast: /\r\nconnection: *close/i.test(head),
    protocol: head.slice(0, head.indexOf('\r\n')).includes('/messages') ? 'anthropic-messages' : 'openai-chat',
    model: findModel(bytes, start, needed),
  };
}

function findModel(bytes, start, end) {
  const near = /mock-[\w-]+/.exec(bytes.latin1Slice(start, Math.min(end, start + NEAR)));
  return (near ?? /mock-[\w-]+/.exec(bytes.latin1Slice(start, end)))?.[0] ?? '';
}

function respond(socket, { protocol, model }, done) {
  const sent = SENT[protocol];
  const asked = parseModel(model);
  switch (asked.kind) {
    case 'whole':
      socket.write(sent.whole(asked.text));
      return done();
    case 'endless':
      socket.write(sent.begin, 'latin1');
      return flood(socket, sent.block);
    case 'stream':
      socket.write(sent.begin, 'latin1');
      return asked.delay === 0 ? sendAtOnce(socket, sent, asked, done) : sendPaced(socket, sent, asked, done);
    default:
      throw new Error(`unknown response ${asked.kind}`);
  }
}

const writeChunk = (socket, sent, number, chunk) => socket.write(sent.before + buildMark(number, chunk) + sent.after, 'latin1');

/** As fast as it is read, one chunk a turn of the event loop. */
function sendAtOnce(socket, sent, { chunks, number }, done) {
  let chunk = 0;
  const step = () => {
    if (socket.destroyed) return;
    if (chunk === chunks) {
      socket.write(sent.end, 'latin1');
      done();
    } else if (writeChunk(socket, sent, number, chunk++)) setImmediate(step);
    else socket.once('drain', step);
  };
  setImmediate(step);
}

function sendPaced(socket, sent, { delay, chunks, number }, done) {
  let chunk = 0;
  paced.add(socket);
  const finish = () => {
    clearInterval(timer);
    paced.delete(socket);
  };
  const timer = setInterval(() => {
    if (socket.destroyed) finish();
    else if (chunk < chunks) writeChunk(socket, sent, number, chunk++);
    else {
      finish();
      socket.write(sent.end, 'latin1');
      done();
    }
  }, delay);
}

function flood(socket, block) {
  while (!socket.destroyed)
    if (!socket.write(block, 'latin1')) {
      socket.once('drain', () => flood(socket, block));
      return;
    }
}
