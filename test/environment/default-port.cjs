/**
 * Keeps tests away from a gateway of the user: in this process, connections to the default port are refused, and nothing listens there.
 * Node processes that it starts load this file, too, even when their environment is given.
 */
const { ChildProcess } = require('node:child_process');
const net = require('node:net');

const DEFAULT_PORT = 4141;

const OPTION = `NODE_OPTIONS=--require ${JSON.stringify(__filename)}`;

/** The port among the arguments of `connect` or `listen`, which `node:net` may have put into an array. */
function findPort([first]) {
  if (Array.isArray(first)) return findPort(first);
  return Number(typeof first === 'object' && first !== null ? first.port : first);
}

function refuse(socket) {
  const error = new Error(`connect ECONNREFUSED 127.0.0.1:${DEFAULT_PORT}`);
  const details = { code: 'ECONNREFUSED', syscall: 'connect', address: '127.0.0.1', port: DEFAULT_PORT };
  process.nextTick(() => socket.destroy(Object.assign(error, details)));
  return socket;
}

function install() {
  const { connect } = net.Socket.prototype;
  net.Socket.prototype.connect = function (...args) {
    return findPort(args) === DEFAULT_PORT ? refuse(this) : connect.apply(this, args);
  };
  const { listen } = net.Server.prototype;
  net.Server.prototype.listen = function (...args) {
    if (findPort(args) === DEFAULT_PORT) throw new Error(`tests must not listen on port ${DEFAULT_PORT}; use port 0`);
    return listen.apply(this, args);
  };
  const { spawn } = ChildProcess.prototype;
  ChildProcess.prototype.spawn = function (options) {
    const isGuarded = options.file !== process.execPath || options.envPairs?.some((pair) => pair.startsWith('NODE_OPTIONS='));
    return spawn.call(this, isGuarded ? options : { ...options, envPairs: [...(options.envPairs ?? []), OPTION] });
  };
}

// Vitest loads it for every file of a thread.
const INSTALLED = Symbol.for('sluice.default-port');
if (!globalThis[INSTALLED]) {
  globalThis[INSTALLED] = true;
  install();
}
