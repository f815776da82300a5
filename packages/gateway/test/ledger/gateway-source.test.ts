import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, describe, expect, test } from 'vitest';
import { openSource } from '../../src/cli/ledger/open.ts';
import { digestConfig, INSTANCE_HEADER } from '../../src/server/instance.ts';
import type { ExchangeRow } from '../../src/store/index.ts';
import { createNodeIo } from '../../src/terminal/io.ts';
import { jsonLines, type Outcome, run } from '../fake-io.ts';
import { createFolder } from '../store/ledger-fixture.ts';
import { createAttempt, createExchange, createUsage, fill, NIGHT } from './rows.ts';

const servers: Server[] = [];

afterEach(async () => {
  for (const server of servers.splice(0)) {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  }
});

type Handle = (request: IncomingMessage, response: ServerResponse, url: URL) => void;

/** A server that looks like a gateway; `handle` is its admin API. */
async function serve(handle: Handle, { isGateway = true } = {}): Promise<string> {
  const server = createServer((request, response) => {
    const url = new URL(request.url ?? '/', 'http://gateway');
    // As the admin API does, which takes such requests for those of a browser.
    if (url.pathname !== '/health/live' && request.headers['sec-fetch-mode']) return response.writeHead(403).end();
    if (url.pathname !== '/health/live') return handle(request, response, url);
    return response
      .writeHead(200, isGateway ? { 'x-sluice-request-id': '1', [INSTANCE_HEADER]: digestConfig(undefined) } : {})
      .end('live\n');
  });
  servers.push(server);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

const sendJson = (response: ServerResponse, body: unknown, status = 200): void =>
  void response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));

/** A row as the admin API sends it. */
const view = (row: Partial<ExchangeRow> = {}): object => {
  const { ts, settled_ts, boot_id: _, note_codes: __, ...rest } = createExchange(row);
  const settled_at = settled_ts === null ? null : new Date(settled_ts).toISOString();
  return { ...rest, created_at: new Date(ts).toISOString(), settled_at, outcome: 'ok' };
};

const id = (number: number): string => `01a1e799-beaf-7000-8000-${number.toString(16).padStart(12, '0')}`;

test('usage is requested with its range and the key', async () => {
  const seen: unknown[] = [];
  const url = await serve((request, response, { pathname, searchParams }) => {
    seen.push([pathname, Object.fromEntries(searchParams), request.headers.authorization]);
    const { ts: _, ...sums } = createUsage({ group: 'gpt-5', requests: 3, cost_micros: 1_230_000, unpriced: 1 });
    sendJson(response, { by: 'key', usage: [{ ...sums, bucket_at: new Date(NIGHT).toISOString() }] });
  });
  const argv = ['usage', '--by', 'key', '--bucket', 'hour', '--since', '2026-11-01', '--url', url];
  const { code, stdout, stderr } = await run(argv, { env: { SLUICE_ADMIN_KEY: 'secret-key' } });
  expect(code).toBe(0);
  expect(stdout).toMatch(/2026-11-17 03:30 {2}gpt-5 +3 +0 .*\$1\.23 \+ 1 unpriced/);
  expect(stderr).toBe(`sluice: reading the gateway at ${url}\n`);
  expect(seen).toEqual([
    ['/admin/v1/usage', { by: 'key', since: '2026-11-01T00:00:00.000Z', bucket: 'hour' }, 'Bearer secret-key'],
    ['/admin/v1/keys', { limit: '1000' }, 'Bearer secret-key'],
  ]);
});

test('--key overrides the environment', async () => {
  const keys: unknown[] = [];
  const url = await serve((request, response) => {
    keys.push(request.headers.authorization);
    sendJson(response, { usage: [] });
  });
  await run(['usage', '--url', url, '--key', 'k2'], { env: { SLUICE_ADMIN_KEY: 'k1' } });
  expect(keys).toEqual(['Bearer k2']);
});

test('log reads page after page, with the filter as it was typed', async () => {
  const seen: unknown[] = [];
  const url = await serve((_, response, { searchParams }) => {
    seen.push(Object.fromEntries(searchParams));
    const isFirst = !searchParams.has('cursor');
    sendJson(response, { exchanges: [view({ id: id(isFirst ? 2 : 1) })], next: isFirst ? id(2) : null });
  });
  const outcome = await run(['log', '--json', '--limit', '700', 'status:ok', 'since:2h', '--url', url]);
  expect(jsonLines(outcome)).toMatchObject([
    { id: id(2), created_at: '2026-11-17T03:30:00.000Z', settled_at: '2026-11-17T03:30:01.000Z', cost_micros: 12_345 },
    { id: id(1) },
  ]);
  expect(seen).toEqual([
    { filter: 'status:ok since:2h', limit: '500' },
    { filter: 'status:ok since:2h', limit: '500', cursor: id(2) },
  ]);
});

test('log ID shows one exchange', async () => {
  const url = await serve((_, response, { pathname }) => {
    const { ts, ...attempt } = createAttempt();
    const detail = { exchange: view(), attempts: [{ ...attempt, created_at: new Date(ts).toISOString() }] };
    if (pathname === `/admin/v1/exchanges/${createExchange().id}`) sendJson(response, detail);
    else if (pathname === '/admin/v1/exchanges') sendJson(response, { exchanges: [view()], next: null });
    else sendJson(response, { detail: 'no exchange has this id' }, 404);
  });
  for (const word of [createExchange().id, 'a144084cc0df']) {
    const { code, stdout, stderr } = await run(['log', word, '--url', url]);
    expect(stderr).toMatch(new RegExp(`in the console: ${url}/#/exchanges\\?id=[\\w-]+\\n$`));
    expect(code).toBe(0);
    expect(stdout).toContain('1. groq/llama 200 answered');
    expect(stdout).toContain('started after 0 ms');
  }
});

test.each([
  [401, 'requires a key; set SLUICE_ADMIN_KEY or --key (401)'],
  [403, 'the admin API refused access (403): query'],
  [404, 'has no admin API (404)'],
  [400, 'rejected the query (400): query parameter "by": wrong\\u001b[2J'],
  [302, 'failed (302)'],
  [500, 'failed (500)'],
])('a response with %d is reported, and no folder is read instead', async (status, message) => {
  const url = await serve((_, response) => sendJson(response, { detail: 'query parameter "by": wrong\u001b[2J' }, status));
  const { code, stdout, stderr } = await run(['usage', '--url', url]);
  expect({ code, stdout, stderr }).toEqual({ code: 2, stdout: '', stderr: expect.stringContaining(message) });
});

test.each([
  '[]',
  'null',
  '{"exchanges":[null,1,{}],"next":7}',
  '{"exchanges":{"a":1}}',
  '{"exchanges":[{"id":5,"ts":"x","tags":"y"}]}',
])('rows of any shape are read: %s', async (body) => {
  const url = await serve((_, response) => void response.end(body));
  expect(await run(['log', '--url', url])).toMatchObject({ code: 0 });
  expect(await run(['log', '--json', '--url', url])).toMatchObject({ code: 0 });
});

test('a body that is not JSON is an error', async () => {
  const url = await serve((_, response) => void response.end('<html>'));
  expect(await run(['log', '--url', url])).toMatchObject({ code: 2, stderr: expect.stringContaining('sent no JSON') });
});

test('the key is not sent to a server that is not a gateway', async () => {
  let requests = 0;
  const url = await serve(() => requests++, { isGateway: false });
  const { code, stderr } = await run(['usage', '--url', url, '--key', 'k']);
  expect({ code, stderr, requests }).toEqual({
    code: 2,
    stderr: expect.stringContaining('is not a Sluice gateway'),
    requests: 0,
  });
});

describe('without --url and --data', () => {
  const DATABASE = 'the default folder';

  const choose = async (handle: Handle | undefined, folder: string): Promise<string> => {
    const url = handle ? await serve(handle) : 'http://127.0.0.1:1';
    const io = { ...createNodeIo(), env: { SLUICE_DATA: folder }, folder: '/nowhere', defaultUrl: url };
    const source = await openSource({ data: undefined, url: undefined, config: undefined, key: undefined }, io);
    await source.close();
    return source.name.replace(url, 'URL').replace(folder, DATABASE);
  };

  const answer =
    (status: number): Handle =>
    (_, response) =>
      sendJson(response, { exchanges: [], next: null }, status);

  test.each([
    ['a gateway with an admin API is used', answer(200), 'the gateway at URL'],
    [
      'one without it is replaced by the folder',
      answer(404),
      `${DATABASE} (the gateway at URL: the gateway has no admin API (404))`,
    ],
    ['so is one that requires a key', answer(401), `${DATABASE} (the gateway at URL: the admin API requires a key`],
    ['so is one that refuses the key', answer(403), `${DATABASE} (the gateway at URL: the admin API refused access`],
    ['the folder is read when none runs', undefined, `${DATABASE} (no gateway responds at URL)`],
  ])('%s', async (_, handle, name) => {
    const folder = createFolder();
    await fill(folder, []);
    expect(await choose(handle, folder)).toContain(name);
  });

  test('a gateway that fails is not replaced', async () => {
    await expect(choose(answer(500), createFolder())).rejects.toThrow('failed (500)');
  });

  test.each([
    ['a folder without data', createFolder(), 'has no data; start "sluice serve"'],
    ['memory', 'memory', 'data is kept in memory'],
  ])('%s is an error', async (_, folder, message) => {
    await expect(choose(undefined, folder)).rejects.toThrow(message);
  });
});

describe('log --follow', () => {
  const frame = (number: number, row: Partial<ExchangeRow>): string =>
    `id: b.${number}\nevent: settled\ndata: ${JSON.stringify(view({ id: id(number), ...row }))}\n\n`;

  const stopAfter = (text: string): { onText(chunk: string): void } => {
    let all = '';
    return {
      onText: (chunk) => {
        all += chunk;
        if (all.includes(text)) process.emit('SIGINT');
      },
    };
  };

  const listIds = (outcome: Outcome): unknown[] => jsonLines(outcome).map((line) => line['id']);

  test('prints settled exchanges that pass the filter, once, also across a lost connection', async () => {
    const resumed: unknown[] = [];
    const url = await serve((request, response, { pathname }) => {
      if (pathname === '/admin/v1/exchanges') return sendJson(response, { exchanges: [view({ id: id(1) })], next: null });
      resumed.push(request.headers['last-event-id']);
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      if (resumed.length === 1) {
        response.write('id: b.0\nevent: ready\ndata: {"resumed":false}\n\n: \n\n');
        response.write(frame(1, {}) + frame(2, { state: 'open', http_status: null }) + frame(3, {}));
        return response.end(frame(4, { http_status: 500, ending: 'failed' }));
      }
      return response.write(`event: ready\ndata: {"resumed":false}\n\n${frame(3, {})}${frame(2, {})}`);
    });
    const outcome = await run(['log', '--follow', '--json', 'status:ok', '--url', url], stopAfter(id(2)));
    expect(outcome.code).toBe(0);
    expect(listIds(outcome)).toEqual([id(1), id(3), id(2)]);
    expect(resumed).toEqual([undefined, 'b.4']);
    expect(outcome.stderr).toContain('the connection to the gateway was lost; connecting again');
    expect(outcome.stderr).toContain('may be missing here');
  });

  test('ends when access is refused', async () => {
    const url = await serve((_, response) => sendJson(response, {}, 403));
    expect(await run(['log', '--follow', '--url', url])).toMatchObject({ code: 2, stderr: expect.stringContaining('(403)') });
  });
});
