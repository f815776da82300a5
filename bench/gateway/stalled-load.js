/** Asks for streams and reads nothing of them until it is ended. Environment: PORT, PATH_, BODY, HEADERS, STREAMS. */
import net from 'node:net';
import { requestOf } from './load.js';

const { PORT, BODY, STREAMS } = process.env;
const request = requestOf(BODY, 'close');
for (let i = 0; i < Number(STREAMS); i++) {
  const socket = net.connect({ port: Number(PORT), host: '127.0.0.1' }, () => socket.write(request));
  socket.pause();
  socket.on('error', () => undefined);
}
// Sockets that are not read keep no process alive.
setInterval(() => undefined, 1000);
