/**
 * The gate in a runtime without sockets of its own (workers, edge functions, a route of a web framework): `fetch(Request)` in, `Response` out.
 * Here a node server stands around it, so that it can be tried: node examples/worker.js, then point any client at http://127.0.0.1:4242.
 */
import { createServer } from 'node:http';
import { Readable } from 'node:stream';
import { createFetchHandler } from '@sluice/core';

const PROVIDERS = {
  openai: {
    id: 'openai',
    protocol: 'openai-chat',
    base_url: 'https://api.openai.com/v1',
    api_key: process.env.OPENAI_API_KEY ?? '',
  },
  local: { id: 'local', protocol: 'openai-chat', base_url: process.env.LOCAL_URL ?? 'http://127.0.0.1:11434/v1' },
};

/** `openai/gpt-5` is gpt-5 of OpenAI; every other name is that of the local server. */
const resolve = (model) =>
  model.startsWith('openai/')
    ? { provider: PROVIDERS.openai, model: model.slice('openai/'.length) }
    : { provider: PROVIDERS.local };

const handler = createFetchHandler({ resolve });
export default { fetch: handler };

const server = createServer(async (request, response) => {
  const { method = 'GET', url = '/', headers } = request;
  const body = method === 'GET' ? undefined : Readable.toWeb(request);
  const answer = await handler(new Request(`http://127.0.0.1${url}`, { method, headers, body, duplex: 'half' }));
  response.writeHead(answer.status, Object.fromEntries(answer.headers));
  if (answer.body) Readable.fromWeb(answer.body).pipe(response);
  else response.end();
});
server.listen(4242, '127.0.0.1', () => console.log('http://127.0.0.1:4242'));
