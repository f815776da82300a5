/** Whole answers over raw sockets, each connection asking again as soon as it is answered. env: PORT PATH_ BODY CONNECTIONS SECONDS. Prints one JSON line. */
import net from 'node:net';

const { PORT, PATH_, BODY, CONNECTIONS = '64', SECONDS = '4' } = process.env;
const REQUEST = Buffer.from(
  `POST ${PATH_} HTTP/1.1\r\nhost: 127.0.0.1:${PORT}\r\ncontent-type: application/json\r\nauthorization: Bearer k\r\nx-api-key: k\r\nanthropic-version: 2023-06-01\r\ncontent-length: ${Buffer.byteLength(BODY)}\r\n\r\n${BODY}`,
);
const times = [];
let failures = 0;
const until = performance.now() + Number(SECONDS) * 1000;

await Promise.all(Array.from({ length: Number(CONNECTIONS) }, ask));
times.sort((a, b) => a - b);
console.log(
  JSON.stringify({
    requests: times.length,
    failures,
    p50: times[times.length >> 1],
    p99: times[Math.floor(times.length * 0.99)],
  }),
);

function ask() {
  return new Promise((resolve) => {
    const socket = net.connect({ port: Number(PORT), host: '127.0.0.1', noDelay: true });
    let text = '';
    let sent = 0;
    const send = () => {
      if (performance.now() > until) {
        socket.destroy();
        return;
      }
      text = '';
      sent = performance.now();
      socket.write(REQUEST);
    };
    socket.on('connect', send);
    socket.on('data', (data) => {
      text += data.latin1Slice();
      if (!isWhole(text)) return;
      times.push(performance.now() - sent);
      if (!text.startsWith('HTTP/1.1 200')) failures++;
      send();
    });
    socket.on('error', () => failures++);
    socket.on('close', resolve);
  });
}

function isWhole(text) {
  const end = text.indexOf('\r\n\r\n');
  if (end < 0) return false;
  const length = /content-length: *(\d+)/i.exec(text);
  return length ? text.length >= end + 4 + Number(length[1]) : text.endsWith('\r\n0\r\n\r\n');
}
