import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { login, logout, refreshSession, session } from '../src/lib/session.ts';

/** Requests that wait for a response, in the order in which they were sent. */
let waiting: { method: string; respond: (status: number, body: object) => void }[] = [];

const CLOSED = { csrf_token: null, may_login: true, accepts: ['key'], reason: null };

beforeEach(async () => {
  waiting = [];
  vi.stubGlobal('fetch', (_: string, { method }: { method: string }) => {
    return new Promise<Response>((resolve) => {
      waiting.push({ method, respond: (status, body) => resolve(Response.json(body, { status })) });
    });
  });
  const opened = login({ key: 'k' });
  respond('POST', 200, { csrf_token: 'c' });
  await opened;
  expect(session.value).toEqual({ is: 'open', csrf: 'c' });
});

afterEach(() => vi.unstubAllGlobals());

/** Responds to the last request with this method. */
function respond(method: string, status: number, body: object): void {
  const at = waiting.findLastIndex((request) => request.method === method);
  waiting.splice(at, 1)[0]?.respond(status, body);
}

test('a session that ends by a logout is not called ended by what ends with it', async () => {
  const left = logout();
  const noticed = refreshSession('The session has ended.');
  respond('DELETE', 200, {});
  await vi.waitFor(() => expect(waiting.map(({ method }) => method)).toEqual(['GET', 'GET']));
  respond('GET', 200, CLOSED);
  respond('GET', 200, CLOSED);
  await Promise.all([left, noticed]);
  expect(session.value).toMatchObject({ is: 'closed', message: 'You are logged out.' });
  const later = refreshSession('The session has ended.');
  respond('GET', 200, CLOSED);
  await later;
  expect(session.value).toMatchObject({ is: 'closed', message: 'You are logged out.' });
});

test('a login that fails after a logout shows its reason', async () => {
  const left = logout();
  respond('DELETE', 200, {});
  await vi.waitFor(() => expect(waiting.length).toBe(1));
  respond('GET', 200, CLOSED);
  await left;
  const opened = login({ key: 'wrong' });
  respond('POST', 401, { detail: 'the key is wrong' });
  await vi.waitFor(() => expect(waiting.length).toBe(1));
  respond('GET', 200, CLOSED);
  await opened;
  expect(session.value).toMatchObject({ is: 'closed', message: 'the key is wrong' });
});

test('a session that ends by itself is reported as ended', async () => {
  const noticed = refreshSession('The session has ended.');
  respond('GET', 200, CLOSED);
  await noticed;
  expect(session.value).toMatchObject({ is: 'closed', message: 'The session has ended.' });
});
