import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type AccessLevel, type AccessRequest, AdminAccess } from '../../src/admin/access.ts';
import { ROUTES } from '../../src/admin/routes.ts';
import { Secret } from '../../src/config/secrets.ts';
import type { ClientAddress } from '../../src/http/client-address.ts';
import { ADMIN_KEY, CLIENT_KEY, send, startAdmin, type TestGateway, withKey } from './start.ts';

/** Every route is decided here: a new one without a line fails. */
const LEVELS: Readonly<Record<string, AccessLevel>> = {
  'GET exchanges': 'read',
  'GET exchanges/count': 'read',
  'GET exchanges/live': 'read',
  'GET exchanges/{id}': 'read',
  'GET exchanges/{id}/tape': 'sensitive',
  'GET exchanges/{id}/conversation': 'sensitive',
  'GET exchanges/{id}/doctor': 'sensitive',
  'GET exchanges/{id}/case': 'sensitive',
  'POST exchanges/{id}/replay': 'sensitive',
  'GET requests': 'read',
  'POST requests': 'sensitive',
  'POST requests/convert': 'sensitive',
  'GET captures': 'sensitive',
  'GET sessions': 'read',
  'GET sessions/{id}': 'read',
  'GET usage': 'read',
  'GET providers': 'read',
  'GET models': 'read',
  'GET clients': 'read',
  'GET prices': 'read',
  'GET budgets': 'read',
  'GET config': 'read',
  'GET config/settings': 'sensitive',
  'GET config/reloads': 'sensitive',
  'GET config/versions': 'sensitive',
  'POST config/validate': 'sensitive',
  'GET store': 'read',
  'GET whoami': 'read',
  'GET session': 'login',
  'POST session': 'login',
  'DELETE session': 'read',
  'POST backup': 'sensitive',
  'GET keys': 'read',
  'POST keys': 'sensitive',
  'GET keys/{id}': 'read',
  'PATCH keys/{id}': 'sensitive',
  'DELETE keys/{id}': 'sensitive',
  'POST keys/{id}/rotate': 'sensitive',
  'GET audit': 'read',
  'GET openapi.json': 'read',
};

test('every route has a decided level of access', () => {
  expect(Object.fromEntries(ROUTES.map(({ method, path, access }) => [`${method} ${path}`, access]))).toEqual(LEVELS);
});

/** `wrong key`: 401, or 429 after too many of them. */
type Verdict = 'yes' | 401 | 403 | 'wrong key';

interface Situation {
  /** `guessed`: with both keys, for callers with wrong ones, who are soon refused without a look. */
  gateway: 'open' | 'client keys' | 'admin key' | 'both keys' | 'guessed';
  caller: string;
  headers: Record<string, string>;
  /** Whether a session of the console is sent along. */
  hasSession?: boolean;
  verdicts: Record<AccessLevel, Verdict>;
}

const all = (verdict: Verdict): Record<AccessLevel, Verdict> => ({ login: 'yes', read: verdict, sensitive: verdict });
const NOBODY: Record<AccessLevel, Verdict> = { login: 403, read: 403, sensitive: 403 };
const SAME_ORIGIN = { 'sec-fetch-site': 'same-origin', 'sec-fetch-mode': 'cors' };
const FOREIGN = { origin: 'http://evil.example' };

const SITUATIONS: readonly Situation[] = [
  { gateway: 'open', caller: 'a local program', headers: {}, verdicts: { login: 'yes', read: 'yes', sensitive: 403 } },
  { gateway: 'open', caller: 'a page of another origin', headers: FOREIGN, verdicts: NOBODY },
  { gateway: 'open', caller: 'a page of another site', headers: { 'sec-fetch-site': 'cross-site' }, verdicts: NOBODY },
  { gateway: 'open', caller: 'a page of the gateway', headers: SAME_ORIGIN, verdicts: all(403) },
  { gateway: 'open', caller: 'an address bar', headers: { 'sec-fetch-site': 'none' }, verdicts: all(403) },
  { gateway: 'open', caller: 'a browser without fetch metadata', headers: { referer: 'http://x/' }, verdicts: all(403) },
  { gateway: 'open', caller: 'a rebound name', headers: { host: 'evil.example' }, verdicts: all(403) },
  { gateway: 'open', caller: 'a proxy', headers: { 'x-forwarded-for': '10.0.0.1' }, verdicts: all(403) },
  { gateway: 'open', caller: 'any key', headers: withKey('x'), verdicts: { login: 'yes', read: 'yes', sensitive: 403 } },
  { gateway: 'open', caller: 'a session', headers: SAME_ORIGIN, hasSession: true, verdicts: all('yes') },
  { gateway: 'open', caller: 'a session of another origin', headers: FOREIGN, hasSession: true, verdicts: NOBODY },
  { gateway: 'client keys', caller: 'nobody', headers: {}, verdicts: all(403) },
  { gateway: 'client keys', caller: 'a client', headers: withKey(CLIENT_KEY), verdicts: all(403) },
  { gateway: 'client keys', caller: 'a client by x-api-key', headers: { 'x-api-key': CLIENT_KEY }, verdicts: all(403) },
  { gateway: 'client keys', caller: 'a session', headers: SAME_ORIGIN, hasSession: true, verdicts: all('yes') },
  { gateway: 'admin key', caller: 'nobody', headers: {}, verdicts: all(401) },
  { gateway: 'admin key', caller: 'the admin', headers: withKey(ADMIN_KEY), verdicts: all('yes') },
  { gateway: 'both keys', caller: 'nobody', headers: {}, verdicts: all(401) },
  { gateway: 'both keys', caller: 'an empty key', headers: { authorization: 'Bearer ' }, verdicts: all(401) },
  { gateway: 'both keys', caller: 'basic authentication', headers: { authorization: 'Basic eDp5' }, verdicts: all(401) },
  { gateway: 'both keys', caller: 'an invented session', headers: { cookie: 'sluice_console=abc' }, verdicts: all(401) },
  { gateway: 'both keys', caller: 'a key in the query only', headers: {}, verdicts: all(401) },
  { gateway: 'both keys', caller: 'the admin by x-api-key', headers: { 'x-api-key': ADMIN_KEY }, verdicts: all('yes') },
  {
    gateway: 'both keys',
    caller: 'the admin by any name',
    headers: { ...withKey(ADMIN_KEY), host: 'a.b' },
    verdicts: all('yes'),
  },
  {
    gateway: 'both keys',
    caller: 'the admin in a foreign page',
    headers: { ...withKey(ADMIN_KEY), ...FOREIGN },
    verdicts: NOBODY,
  },
  { gateway: 'guessed', caller: 'a client', headers: withKey(CLIENT_KEY), verdicts: all('wrong key') },
  { gateway: 'guessed', caller: 'a client by x-api-key', headers: { 'x-api-key': CLIENT_KEY }, verdicts: all('wrong key') },
  { gateway: 'guessed', caller: 'a beginning of the key', headers: withKey(ADMIN_KEY.slice(0, -1)), verdicts: all('wrong key') },
  { gateway: 'guessed', caller: 'more than the key', headers: withKey(`${ADMIN_KEY}x`), verdicts: all('wrong key') },
  { gateway: 'guessed', caller: 'a long key', headers: withKey('x'.repeat(10_000)), verdicts: all('wrong key') },
  { gateway: 'both keys', caller: 'a session', headers: SAME_ORIGIN, hasSession: true, verdicts: all('yes') },
];

const gateways = new Map<Situation['gateway'], TestGateway>();

beforeAll(async () => {
  const admin = { key: ADMIN_KEY };
  const auth = { keys: [CLIENT_KEY] };
  gateways.set('open', await startAdmin({ config: { reset: false } }));
  gateways.set('client keys', await startAdmin({ config: { auth } }));
  gateways.set('admin key', await startAdmin({ env: { SLUICE_ADMIN_KEY: ADMIN_KEY } }));
  gateways.set('both keys', await startAdmin({ config: { auth, admin } }));
  gateways.set('guessed', await startAdmin({ config: { auth, admin } }));
});

afterAll(async () => {
  for (const gateway of gateways.values()) await gateway.stop();
});

const find = (name: Situation['gateway']): TestGateway => {
  const gateway = gateways.get(name);
  if (!gateway) throw new Error(name);
  return gateway;
};

/** The headers of a new session. */
async function openSession(gateway: TestGateway): Promise<Record<string, string>> {
  const answer = await gateway.call('session', { method: 'POST', body: { token: gateway.issueConsoleToken() } });
  expect(answer.status).toBe(200);
  return { cookie: String(answer.headers['set-cookie']).split(';', 1)[0] ?? '', 'x-sluice-csrf': answer.json.csrf_token };
}

describe.each(SITUATIONS)('$gateway: $caller', ({ gateway: name, headers, hasSession, verdicts }) => {
  test.each(ROUTES)('$method $path', async ({ method, path, access }) => {
    const gateway = find(name);
    const session = hasSession ? await openSession(gateway) : {};
    const { status, json } = await gateway.call(path.replace('{id}', 'unknown'), { method, headers: { ...headers, ...session } });
    const verdict = verdicts[access];
    if (verdict === 'yes') expect([200, 404, 409, 415]).toContain(status);
    else if (verdict === 'wrong key') expect([401, 429]).toContain(status);
    else expect(status).toBe(verdict);
    if (status === 403 && access !== 'login' && headers['origin'] === undefined && headers['sec-fetch-site'] !== 'cross-site')
      expect(json.detail).toMatch(/admin\.key|SLUICE_ADMIN_KEY/);
  });
});

describe('spellings of the path', () => {
  test.each([
    '//admin/v1/config',
    '/./admin/v1/config',
    '/%61dmin/v1/config',
    '/ADMIN/v1/config',
    '/admin;x/v1/config',
    '/v1/../admin/v1/config',
  ])('%s does not reach the admin API', async (path) => {
    const { headers, text } = await send(find('both keys').url, path, { headers: withKey(ADMIN_KEY) });
    expect(headers['content-type']).not.toBe('application/problem+json');
    expect(text).not.toContain('client_keys');
  });

  test.each([
    '/admin',
    '/admin/',
    '/admin?x',
    '/admin/v1',
    '/admin/v1/',
    '/admin/v1/config/',
    '/admin/v1//config',
    '/admin/v1/%63onfig',
    '/admin/v2/config',
  ])('%s is refused without a key, and is unknown with one', async (path) => {
    const gateway = find('both keys');
    expect((await gateway.call(path)).status).toBe(401);
    expect((await gateway.call(path, { headers: withKey(ADMIN_KEY) })).status).toBe(404);
  });

  test('another method gets 405 with those that are allowed', async () => {
    const { status, headers } = await find('open').call('session', { method: 'PUT' });
    expect([status, headers['allow']]).toEqual([405, 'GET, POST, DELETE']);
  });
});

test('a wrong key gets 401, and 429 with the time to wait after five of them', async () => {
  const gateway = await startAdmin({ config: { admin: { key: ADMIN_KEY } } });
  try {
    const statuses: number[] = [];
    for (let i = 0; i < 6; i++) statuses.push((await gateway.call('whoami', { headers: withKey('wrong') })).status);
    expect(statuses).toEqual([...Array(5).fill(401), 429]);
    const { headers } = await gateway.call('whoami', { headers: withKey('wrong') });
    expect(Number(headers['retry-after'])).toBeGreaterThan(0);
  } finally {
    await gateway.stop();
  }
});

describe('the client API', () => {
  test('does not accept the admin key', async () => {
    const { url } = find('both keys');
    expect((await send(url, '/v1/models', { headers: withKey(ADMIN_KEY) })).status).toBe(401);
    expect((await send(url, '/v1/models', { headers: withKey(CLIENT_KEY) })).status).toBe(200);
  });
});

describe('AdminAccess', () => {
  const CLIENT: ClientAddress = { address: '127.0.0.1', isProxied: false, scheme: 'http', host: undefined };
  const REQUEST: AccessRequest = { method: 'GET', headers: { host: '127.0.0.1' }, client: CLIENT, local: '127.0.0.1' };
  const MINUTE = 60_000;
  const SHORT_KEY = 'short-admin-key';

  function create(key: string | undefined = ADMIN_KEY) {
    const world = { now: 1_700_000_000_000, key };
    const access = new AdminAccess({
      policy: () => ({ adminKey: world.key === undefined ? undefined : new Secret(world.key), hasClientKeys: true }),
      now: () => world.now,
    });
    const open = (): AccessRequest => {
      const { cookie } = access.login({ token: access.issueToken() }, REQUEST);
      return { ...REQUEST, headers: { ...REQUEST.headers, cookie: `a=b; ${cookie.split(';', 1)[0]}` } };
    };
    return { world, access, open };
  }

  test('a token opens one session', () => {
    const { access } = create();
    const token = access.issueToken();
    expect(access.login({ token }, REQUEST).cookie).toMatch(
      /^sluice_console=[\w-]{43}; HttpOnly; SameSite=Strict; Path=\/admin; Max-Age=43200$/,
    );
    expect(() => access.login({ token }, REQUEST)).toThrow('was used before');
  });

  test('the cookie of an HTTPS page is not sent over plain HTTP', () => {
    const { access } = create();
    const request: AccessRequest = { ...REQUEST, client: { ...CLIENT, scheme: 'https' } };
    expect(access.login({ token: access.issueToken() }, request).cookie).toMatch(/^__Host-sluice_console=[\w-]*; Secure; /);
    expect(access.logout(request)).toMatch(/^__Host-sluice_console=[\w-]*; Secure; /);
  });

  test('a request through a trusted proxy is never local, whatever address it names', () => {
    const access = new AdminAccess({ policy: () => ({ adminKey: undefined, hasClientKeys: false }) });
    expect(access.admit(REQUEST, 'read').kind).toBe('local');
    expect(() => access.admit({ ...REQUEST, client: { ...CLIENT, isProxied: true } }, 'read')).toThrow(
      'only programs on this machine',
    );
  });

  test('a token expires', () => {
    const { access, world } = create();
    const token = access.issueToken();
    world.now += 12 * 60 * MINUTE;
    expect(() => access.login({ token }, REQUEST)).toThrow('expired');
  });

  test('the admin key opens a session, and another key does not', () => {
    const { access } = create();
    expect(access.login({ key: ADMIN_KEY }, REQUEST).expires).toBeGreaterThan(0);
    expect(() => access.login({ key: CLIENT_KEY }, REQUEST)).toThrow('is not the admin key');
  });

  test.each([
    { after: 29 * MINUTE, isOpen: true },
    { after: 30 * MINUTE, isOpen: false },
  ])('a session that was idle for $after ms is open: $isOpen', ({ after, isOpen }) => {
    const { access, world, open } = create();
    const request = open();
    world.now += after;
    if (isOpen) expect(access.admit(request, 'sensitive').kind).toBe('session');
    else expect(() => access.admit(request, 'read')).toThrow('admin key is required');
  });

  test('a session ends after twelve hours of use', () => {
    const { access, world, open } = create();
    const request = open();
    for (let minutes = 20; minutes < 12 * 60; minutes += 20) {
      world.now += 20 * MINUTE;
      access.admit(request, 'read');
    }
    world.now += 20 * MINUTE;
    expect(() => access.admit(request, 'read')).toThrow('admin key is required');
  });

  test('a session ends by logout, and when the admin key changes', () => {
    const { access, world, open } = create();
    const first = open();
    expect(access.logout(first)).toContain('Max-Age=0');
    expect(() => access.admit(first, 'read')).toThrow();
    const second = open();
    world.key = 'another-key-0123456789';
    expect(() => access.admit(second, 'read')).toThrow();
  });

  describe('a session changes something', () => {
    const OWN = { origin: 'http://127.0.0.1' };

    test.each<{ sign: string; headers: Record<string, string>; token: 'none' | 'wrong' | 'right'; refusal?: string }>([
      { sign: 'no sign of its page', headers: {}, token: 'right', refusal: 'page of the gateway' },
      { sign: 'the address bar', headers: { 'sec-fetch-site': 'none' }, token: 'right', refusal: 'page of the gateway' },
      { sign: 'another page', headers: { origin: 'http://127.0.0.1:8080' }, token: 'right', refusal: 'other origins' },
      { sign: 'another site', headers: { ...OWN, 'sec-fetch-site': 'cross-site' }, token: 'right', refusal: 'other origins' },
      { sign: 'another port', headers: { ...OWN, 'sec-fetch-site': 'same-site' }, token: 'right', refusal: 'other origins' },
      { sign: 'its page without a token', headers: OWN, token: 'none', refusal: 'x-sluice-csrf' },
      { sign: 'its page with a wrong token', headers: OWN, token: 'wrong', refusal: 'x-sluice-csrf' },
      { sign: 'its page with the token', headers: OWN, token: 'right' },
      { sign: 'fetch metadata with the token', headers: { 'sec-fetch-site': 'same-origin' }, token: 'right' },
    ])('with $sign: refusal $refusal', ({ headers, token, refusal }) => {
      const { access, open } = create();
      const opened = open();
      const csrf = access.findSession(opened)?.csrf ?? '';
      const sent = { none: undefined, wrong: `${csrf}x`, right: csrf }[token];
      const request = {
        ...opened,
        method: 'POST',
        headers: { ...opened.headers, ...headers, ...(sent !== undefined && { 'x-sluice-csrf': sent }) },
      };
      if (refusal === undefined) expect(access.admit(request, 'sensitive').kind).toBe('session');
      else expect(() => access.admit(request, 'sensitive')).toThrow(refusal);
    });
  });

  describe('login', () => {
    const REMOTE = { client: { ...CLIENT, address: '192.0.2.7' }, local: '192.0.2.1', headers: { host: 'sluice.example' } };

    test.each<{ from: string; request: Partial<AccessRequest>; cookie: RegExp | undefined }>([
      { from: 'this machine', request: {}, cookie: /^sluice_console=[\w-]{43}; HttpOnly; SameSite=Strict; Path=\/admin; / },
      {
        from: 'another machine by TLS',
        request: { ...REMOTE, client: { ...REMOTE.client, scheme: 'https' } },
        cookie: /^__Host-sluice_console=[\w-]{43}; Secure; HttpOnly; SameSite=Strict; Path=\/; /,
      },
      {
        from: 'a trusted proxy by TLS',
        request: { ...REMOTE, client: { ...REMOTE.client, isProxied: true, scheme: 'https' } },
        cookie: /^__Host-sluice_console=/,
      },
      { from: 'a trusted proxy without TLS', request: { client: { ...CLIENT, isProxied: true } }, cookie: undefined },
      { from: 'another machine', request: REMOTE, cookie: undefined },
      { from: 'this machine by another name', request: { headers: { host: 'evil.example' } }, cookie: undefined },
      { from: 'a proxy', request: { headers: { host: '127.0.0.1', 'x-forwarded-for': '192.0.2.7' } }, cookie: undefined },
    ])('from $from sets $cookie', ({ request, cookie }) => {
      const { access } = create();
      const sender = { ...REQUEST, ...request };
      const { mayLogin, reason } = access.describeLogin(sender);
      expect([mayLogin, reason === null]).toEqual([cookie !== undefined, cookie !== undefined]);
      if (cookie) expect(access.login({ key: ADMIN_KEY }, sender).cookie).toMatch(cookie);
      else expect(() => access.login({ key: ADMIN_KEY }, sender)).toThrow('without TLS');
    });

    test('a session by TLS is not one without it', () => {
      const { access } = create();
      const secure: AccessRequest = { ...REQUEST, client: { ...CLIENT, scheme: 'https' } };
      const cookie = access.login({ key: ADMIN_KEY }, secure).cookie.split(';', 1)[0] ?? '';
      const headers = { ...REQUEST.headers, cookie };
      expect(access.findSession({ ...secure, headers })?.kind).toBe('session');
      expect(access.findSession({ ...REQUEST, headers })).toBeUndefined();
      const plain = { ...REQUEST.headers, cookie: cookie.replace('__Host-', '') };
      expect(access.findSession({ ...secure, headers: plain })).toBeUndefined();
    });
  });

  test('wrong keys are refused after five, also the right one if it is short, and forgiven with time', () => {
    const { access, world } = create();
    world.key = SHORT_KEY;
    const wrong = { ...REQUEST, headers: withKey('x') };
    const right = { ...REQUEST, headers: withKey(SHORT_KEY) };
    const elsewhere = { ...right, client: { ...CLIENT, address: '127.0.0.2' } };
    for (let i = 0; i < 5; i++) expect(() => access.admit(wrong, 'read')).toThrow('is not the admin key');
    expect(() => access.admit(wrong, 'read')).toThrow('too many wrong keys; retry in 12 s');
    expect(() => access.admit(right, 'read')).toThrow('too many wrong keys');
    expect(access.admit(elsewhere, 'read').kind).toBe('key');
    world.now += 12_000;
    expect(access.admit(right, 'read').kind).toBe('key');
  });

  test('wrong keys keep neither the holder of a long key nor of a token out', () => {
    const { access } = create();
    const wrong = { ...REQUEST, headers: withKey('x') };
    const token = access.issueToken();
    for (let i = 0; i < 5; i++) expect(() => access.admit(wrong, 'read')).toThrow('is not the admin key');
    expect(() => access.admit(wrong, 'read')).toThrow('too many wrong keys');
    expect(() => access.login({ token: 'x' }, REQUEST)).toThrow('too many wrong keys');
    expect(access.admit({ ...REQUEST, headers: withKey(ADMIN_KEY) }, 'read').kind).toBe('key');
    expect(access.login({ token }, REQUEST).cookie).toContain('sluice_console=');
    expect(access.login({ key: ADMIN_KEY }, REQUEST).cookie).toContain('sluice_console=');
    expect(() => access.admit(wrong, 'read')).toThrow('too many wrong keys');
  });

  test('sessions and tokens are bounded; the oldest go first', () => {
    const { access, open } = create();
    const first = open();
    const last = Array.from({ length: 64 }, open).at(-1) ?? first;
    expect(() => access.admit(first, 'read')).toThrow();
    expect(access.admit(last, 'read').kind).toBe('session');
    const tokens = Array.from({ length: 9 }, () => access.issueToken());
    expect(() => access.login({ token: tokens[0] ?? '' }, REQUEST)).toThrow('unknown');
    expect(access.login({ token: tokens[1] ?? '' }, REQUEST).cookie).toContain('sluice_console=');
  });
});
