/** The scripted upstream, in the process of the check: the name of the model decides what it sends. */
import { once } from 'node:events';
import { createServer } from 'node:net';

const WHOLE = JSON.stringify({
  id: 'chatcmpl-1',
  object: 'chat.completion',
  created: 1731690000,
  model: 'm',
  choices: [
    {
      index: 0,
      message: { role: 'assistant', content: 'Hello there, this is a short reply.' },
      logprobs: null,
      finish_reason: 'stop',
    },
  ],
  usage: { prompt_tokens: 10, completion_tokens: 9, total_tokens: 19 },
});
const META = { id: 'chatcmpl-1', object: 'chat.completion.chunk', created: 1731690000, model: 'm', system_fingerprint: 'fp_1' };

/** The text of the last chunk before a stream is held. */
export const HELD_TEXT = 'and now wait';

function frame(delta, finish_reason = null) {
  const event = `data: ${JSON.stringify({ ...META, choices: [{ index: 0, delta, logprobs: null, finish_reason }] })}\n\n`;
  return `${event.length.toString(16)}\r\n${event}\r\n`;
}

/** A connection for each stream: how many are left for the next one would depend on time. */
const STREAM_HEAD =
  'HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\nconnection: close\r\n\r\n';
const BEGIN = [
  STREAM_HEAD + frame({ role: 'assistant', content: '' }),
  frame({ content: 'Hello ' }),
  frame({ content: 'there, ' }),
];
const DONE = 'data: [DONE]\n\n';
const LAST_CHUNK = '0\r\n\r\n';

/** What is sent for each model, each part with a write of its own. */
const PARTS = {
  whole: [`HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: ${WHOLE.length}\r\n\r\n${WHOLE}`],
  ended: [...BEGIN, frame({}, 'stop'), `${DONE.length.toString(16)}\r\n${DONE}\r\n${LAST_CHUNK}`],
  held: [...BEGIN, frame({ content: HELD_TEXT })],
};
/** Between two parts, so that they reach the gateway one by one. */
const PAUSE_MS = 10;

/** Sends the parts, unless the connection is closed in between. */
function respond(socket, [part, ...rest]) {
  if (socket.destroyed) return;
  socket.write(part);
  if (part.endsWith(LAST_CHUNK)) socket.end();
  if (rest.length > 0) setTimeout(respond, PAUSE_MS, socket, rest);
}

/** The gateway sends one request at a time on a connection, with a length. */
function serve(socket) {
  let text = '';
  socket.on('data', (data) => {
    text += data.latin1Slice();
    const end = text.indexOf('\r\n\r\n');
    const [, length] = /content-length: *(\d+)/i.exec(text) ?? [];
    if (end < 0 || length === undefined || text.length < end + 4 + Number(length)) return;
    const { model } = JSON.parse(text.slice(end + 4));
    text = '';
    respond(socket, PARTS[model] ?? ['HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n']);
  });
  socket.on('error', () => undefined);
}

/** Listens on a free port of loopback. */
export async function startUpstream() {
  const sockets = new Set();
  const server = createServer({ noDelay: true }, (socket) => {
    sockets.add(socket);
    socket.once('close', () => sockets.delete(socket));
    serve(socket);
  });
  server.listen({ port: 0, host: '127.0.0.1', backlog: 4096 });
  await once(server, 'listening');
  const stop = () => {
    server.close();
    for (const socket of sockets) socket.destroy();
  };
  return { port: server.address().port, stop };
}
