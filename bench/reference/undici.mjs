// The limit for a proxy in Node: node:http in front, undici's dispatch behind, bytes passed on as they come. The undici of the gateway.
import http from 'node:http';
import { createRequire } from 'node:module';
const { Pool } = createRequire(new URL('../../packages/gateway/package.json', import.meta.url))('undici');

const pool = new Pool(process.env.UPSTREAM, { connections: null, pipelining: 1, bodyTimeout: 0, headersTimeout: 0 });
const HOP = new Set(['transfer-encoding', 'connection', 'keep-alive']);

function readBody(request, done) {
  let first = null;
  let parts = null;
  request.on('data', (data) => {
    if (first === null) first = data;
    else (parts ??= [first]).push(data);
  });
  request.on('end', () => done(parts ? Buffer.concat(parts) : first));
}

function pass(request, response, body) {
  const headers = { 'content-type': request.headers['content-type'] ?? 'application/json' };
  pool.dispatch(
    { path: request.url, method: request.method, headers, body },
    {
      onConnect() {},
      onHeaders(status, raw) {
        const found = {};
        for (let i = 0; i < raw.length; i += 2) {
          const name = raw[i].latin1Slice().toLowerCase();
          if (!HOP.has(name)) found[name] = raw[i + 1].latin1Slice();
        }
        response.writeHead(status, found);
        return true;
      },
      onData(data) {
        response.write(data);
        return true;
      },
      onComplete() {
        response.end();
      },
      onError() {
        response.destroy();
      },
    },
  );
}

http
  .createServer((request, response) => readBody(request, (body) => pass(request, response, body)))
  .listen({ port: Number(process.env.PORT), host: '127.0.0.1', backlog: 4096 });
