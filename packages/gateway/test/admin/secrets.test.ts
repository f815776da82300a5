import { afterEach, beforeEach, expect, test } from 'vitest';
import { ROUTES } from '../../src/admin/routes.ts';
import { listForms } from '../../src/config/secrets.ts';
import { converse, send, startAdmin, type TestGateway, withKey } from './start.ts';

// No secret leaves by the admin API, the metrics or the log, whatever clients put into their requests.

const SECRETS = {
  provider: 'canary-of-the-provider-0123456789',
  header: 'canary-of-a-header+/=0123456789',
  client: 'canary-of-the-client-0123456789',
  admin: 'canary-of-the-admin-0123456789',
  metrics: 'canary-of-the-metrics-0123456789',
};

let gateway: TestGateway;

// One for each test: wrong keys are soon refused without a look.
beforeEach(async () => {
  gateway = await startAdmin({
    config: {
      providers: {
        down: {
          protocol: 'openai-chat',
          base_url: 'http://127.0.0.1:9/v1',
          api_key: SECRETS.provider,
          headers: { 'x-secret': SECRETS.header },
        },
      },
      auth: { keys: [SECRETS.client] },
      admin: { key: SECRETS.admin },
      metrics: { key: SECRETS.metrics },
      models: { dead: 'down/m', [`alias-${SECRETS.provider}`]: 'down/m' },
      limits: { retries: 0, retries_per_provider: 0 },
    },
  });
});

afterEach(() => gateway.stop());

test('a session cookie is sent once, and is in no log line', async () => {
  const { headers } = await gateway.call('session', { method: 'POST', body: { token: gateway.issueConsoleToken() } });
  const value = /sluice_console=([\w-]+)/.exec(String(headers['set-cookie']))?.[1] ?? '';
  expect(value).toHaveLength(43);
  const cookie = { cookie: `sluice_console=${value}`, 'sec-fetch-site': 'same-origin' };
  const answer = await gateway.call('whoami', { headers: cookie });
  expect(answer.json).toMatchObject({ access: 'session', may_read_sensitive: true });
  expect(answer.text + gateway.lines.join('')).not.toContain(value);
});

test('no response and no log line has a secret in any form', async () => {
  const client = withKey(SECRETS.client);
  const quoting = Object.values(SECRETS).join(' ');
  const echo = { 'user-agent': quoting, 'x-sluice-session': `s-${SECRETS.admin}`, 'x-sluice-tags': quoting };
  for (const model of ['dead', 'demo/hello', `down/${SECRETS.provider}`, quoting.slice(0, 150)])
    for (let i = 0; i < 6; i++) await converse(gateway.url, model, { ...client, ...echo });
  const admin = withKey(SECRETS.admin);
  const token = gateway.issueConsoleToken();
  for (const { method, path, query } of ROUTES) {
    const target = path.replace('{id}', encodeURIComponent(`s-${SECRETS.admin}`));
    await gateway.call(target, { method, headers: admin });
    for (const name of [...Object.keys(query), SECRETS.admin])
      await gateway.call(`${target}?${name}=${encodeURIComponent(SECRETS.provider)}`, { method, headers: admin });
  }
  const { exchanges } = (await gateway.call('exchanges?limit=1000', { headers: admin })).json;
  expect(exchanges.length).toBeGreaterThan(20);
  for (const { id } of exchanges) await gateway.call(`exchanges/${id}`, { headers: admin });
  await gateway.call('session', { method: 'POST', body: { token } });
  // Wrong keys last.
  await gateway.call('session', { method: 'POST', body: { key: `${SECRETS.admin}x` } });
  for (const { method, path } of ROUTES)
    for (const headers of [client, withKey(`${SECRETS.admin}x`)])
      await gateway.call(path.replace('{id}', 'x'), { method, headers });
  const metrics = await send(gateway.url, '/metrics', { headers: withKey(SECRETS.metrics) });
  expect(metrics.status).toBe(200);

  const left = [...gateway.sent, ...gateway.lines].join('\n');
  expect(left.length).toBeGreaterThan(50_000);
  for (const [name, secret] of Object.entries({ ...SECRETS, token }))
    for (const form of listForms(secret)) {
      const at = left.indexOf(form);
      expect(at, `${name} in …${left.slice(Math.max(0, at - 200), at + 60)}`).toBe(-1);
    }
  expect(left).not.toMatch(/\.[tj]s:\d+|node:internal|\bat \S+ \(/);
});
