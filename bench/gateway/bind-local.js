/** Preloaded: whoever listens on a port does so on this machine alone. */
import { Server } from 'node:net';

const { listen } = Server.prototype;
Server.prototype.listen = function (...args) {
  const [port, ...rest] = args;
  if (typeof port !== 'number') return listen.apply(this, args);
  return listen.call(this, port, '127.0.0.1', ...rest.filter((arg) => typeof arg === 'function'));
};
