/** The soak's upstream: answers in all four protocols with what the prompt asks for. Tells its parent what is open when it is asked. */
import { createServer } from 'node:http';
import { framesOf, protocolAt, readPrompt, wholeOf } from './soak-wire.js';

const stats = { requests: 0, completed: 0, cut: 0, open: 0, sockets: 0 };

const server = createServer((request, response) => {
  stats.requests++;
  stats.open++;
  response.once('close', () => {
    stats.open--;
    if (response.writableFinished) stats.completed++;
    else stats.cut++;
  });
  const pieces = [];
  request.on('data', (data) => pieces.push(data));
  request.on('end', () => answer(request.url, Buffer.concat(pieces).toString('utf8'), response));
});

function answer(path, body, response) {
  const { protocol, stream } = protocolAt(path, body);
  const [k, delay] = readPrompt(body) ?? [];
  if (k === undefined) {
    response.writeHead(400).end('{"error":{"message":"no prompt"}}');
    return;
  }
  if (stream) sendStream(response, framesOf(protocol, k), delay);
  else wait(delay, () => response.writeHead(200, { 'content-type': 'application/json' }).end(wholeOf(protocol, k)));
}

function sendStream(response, frames, delay) {
  response.writeHead(200, { 'content-type': 'text/event-stream' });
  let at = 0;
  const step = () => {
    if (response.destroyed) return;
    response.write(frames[at++]);
    if (at === frames.length) response.end();
    else wait(delay, step);
  };
  step();
}

/** Without a delay, frames come in different turns of the event loop, and often in different reads. */
const wait = (delay, next) => (delay === 0 ? setImmediate(next) : setTimeout(next, delay));

server.on('connection', (socket) => {
  stats.sockets++;
  socket.once('close', () => stats.sockets--);
});
server.keepAliveTimeout = 60_000;
process.on('message', () => process.send(stats));
process.on('disconnect', () => process.exit(0));
server.listen(0, '127.0.0.1', () => process.send({ port: server.address().port }));
