/** A gateway with its admin API, and requests to it whose every response is held against the contract. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { request } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'vitest';
import { PASSED_RESPONSE, PREFIX, type Route } from '../../src/admin/route.ts';
import { ROUTES } from '../../src/admin/routes.ts';
import { EXCHANGE_HEADER } from '../../src/admin/send.ts';
import { PROBLEM } from '../../src/admin/views.ts';
import { type Running, run } from '../../src/server/run.ts';
import type { Store } from '../../src/store/index.ts';

export const ADMIN_KEY = 'admin-key-of-the-tests-0123456789';
export const CLIENT_KEY = 'client-key-of-the-tests-0123456789';
export const METRICS_KEY = 'metrics-key-of-the-tests-0123456789';

export interface TestGateway extends Running {
  /** The data folder. */
  folder: string;
  /** Everything that was logged, as it left. */
  lines: string[];
  /** Everything that was sent by `call`. */
  sent: string[];
  call(path: string, options?: CallOptions): Promise<Answer>;
  stop(): Promise<void>;
}

export interface CallOptions {
  method?: string;
  headers?: Record<string, string>;
  body?: unknown;
  /** The text of the body as it is. */
  raw?: string;
}

export interface Answer {
  status: number;
  headers: Record<string, string | string[] | undefined>;
  text: string;
  bytes: Buffer;
  // biome-ignore lint/suspicious/noExplicitAny: tests look into it, after the contract was checked
  json: any;
}

export const withKey = (key: string): Record<string, string> => ({ authorization: `Bearer ${key}` });

/** Starts a gateway on a free port. `isPersistent`: with a data folder. */
export async function startAdmin({ config = {}, env = {}, isPersistent = false } = {}): Promise<TestGateway> {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-admin-'));
  const file = join(folder, 'sluice.json');
  writeFileSync(file, `${JSON.stringify({ listen: { host: '127.0.0.1', port: 0 }, log: { level: 'debug' }, ...config })}\n`);
  const lines: string[] = [];
  const sent: string[] = [];
  const running = await run({
    config: file,
    folder,
    env,
    listen: {},
    data: isPersistent ? join(folder, 'data') : 'memory',
    formatLog: (line) => {
      lines.push(line);
      return '';
    },
    watch: { quietMs: 5, stableMs: 5 },
  });
  return {
    ...running,
    folder,
    lines,
    sent,
    call: async (path, options) => {
      const answer = await send(running.url, path.startsWith('/') ? path : PREFIX + path, options);
      sent.push(JSON.stringify(answer.headers), answer.text);
      checkContract(path.startsWith('/') ? path : PREFIX + path, options?.method ?? 'GET', answer);
      return answer;
    },
    stop: async () => {
      await running.close(0);
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

/** Sends a request by node's client, which sends any header, and nothing else. Streams are read for a moment. */
export function send(url: string, path: string, { method = 'GET', headers = {}, body, raw }: CallOptions = {}): Promise<Answer> {
  const { hostname, port } = new URL(url);
  const text = raw ?? (body === undefined ? undefined : JSON.stringify(body));
  return new Promise((resolve, reject) => {
    const sending = request({
      hostname,
      port,
      path,
      method,
      headers: {
        ...(text !== undefined && { 'content-type': 'application/json', 'content-length': Buffer.byteLength(text) }),
        ...headers,
      },
    });
    sending.on('error', reject);
    sending.on('response', (response) => {
      const chunks: Buffer[] = [];
      const finish = (): void => {
        const bytes = Buffer.concat(chunks);
        const isJson = /json/.test(response.headers['content-type'] ?? '');
        const shown = bytes.toString();
        resolve({
          status: response.statusCode ?? 0,
          headers: response.headers,
          text: shown,
          bytes,
          json: isJson && shown !== '' ? JSON.parse(shown) : undefined,
        });
      };
      response.on('data', (chunk) => {
        chunks.push(chunk);
        if (!/event-stream/.test(response.headers['content-type'] ?? '')) return;
        finish();
        sending.destroy();
      });
      response.on('end', finish);
      response.on('error', () => undefined);
    });
    sending.end(text);
  });
}

/** The route that serves a path. */
function findRoute(path: string, method: string): Route | undefined {
  const [plain = ''] = path.split('?', 1);
  const isMatch = (pattern: string): boolean =>
    new RegExp(`^${pattern.replaceAll('.', '\\.').replace('{id}', '[^/]+')}$`).test(plain);
  return ROUTES.find((route) => route.method === method && isMatch(PREFIX + route.path));
}

/** Every response is what the document says. */
function checkContract(path: string, method: string, { status, headers, json }: Answer): void {
  const type = String(headers['content-type'] ?? '');
  // The response of a model, which passes as a client gets it.
  if (headers[EXCHANGE_HEADER] !== undefined) {
    expect(findRoute(path, method)?.response).toBe(PASSED_RESPONSE);
    return;
  }
  expect(headers['cache-control']).toMatch(/no-store/);
  if (status === 304) return;
  if (status >= 400) {
    expect(type).toBe('application/problem+json');
    expect(PROBLEM.parse(json).status).toBe(status);
    return;
  }
  const response = findRoute(path, method)?.response;
  if (typeof response === 'string') expect(type).toContain(response);
  else {
    expect(type).toBe('application/json');
    expect(response?.safeParse(json).error).toBeUndefined();
  }
}

/** The whole life of an exchange in the ledger. */
export async function record(
  store: Store,
  facts: { model?: string; session?: string; key?: string; cost?: number } = {},
): Promise<string> {
  const { id, ts } = store.createId();
  const { model = 'llama', session = null, key = 'alice', cost = 3 } = facts;
  const end = { input_tokens: 10, output_tokens: 1, ending: 'answered', http_status: 200, cost_micros: cost, total_ms: 5 };
  await Promise.all([
    store.openExchange({ id, ts, key_id: key, tags: ['t'], session_id: session, model_requested: model }),
    store.openAttempt({ exchange_id: id, number: 1, ts, provider: 'groq', model }),
    store.settleAttempt({ exchange_id: id, number: 1, ...end }),
    store.settleExchange({ id, ts, ...end, notes: [{ code: 'DROPPED', path: '/a', message: 'quotes the request' }] }),
  ]);
  return id;
}

/** A conversation with the demo model. */
export const converse = (url: string, model = 'demo/hello', headers: Record<string, string> = {}): Promise<Answer> =>
  send(url, '/v1/chat/completions', { method: 'POST', headers, body: { model, messages: [{ role: 'user', content: 'hi' }] } });
