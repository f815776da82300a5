/**
 * Whole answers over raw sockets: each connection asks again as soon as it is answered. Prints one JSON line.
 * Environment: PORT, PATH_, BODY, HEADERS (lines that end in CRLF), CONNECTIONS, COUNT (requests, all connections together).
 */
import net from 'node:net';
import { percentile, requestOf } from './load.js';

const { PORT, BODY, CONNECTIONS, COUNT } = process.env;
const REQUEST = requestOf(BODY, 'keep-alive');
const times = [];
let left = Number(COUNT);
let failures = 0;

const begun = performance.now();
await Promise.all(Array.from({ length: Number(CONNECTIONS) }, ask));
const seconds = (performance.now() - begun) / 1000;
console.log(JSON.stringify({ requests: times.length, seconds, failures, p50: percentile(times, 0.5) }));

function ask() {
  return new Promise((resolve) => {
    const socket = net.connect({ port: Number(PORT), host: '127.0.0.1', noDelay: true });
    let text = '';
    let sent = 0;
    const send = () => {
      if (left-- <= 0) {
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
