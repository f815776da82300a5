/** What happens to the data folder of a fixture: keys that are made, rotated and revoked, and requests of two days. */

/** The key of the configuration; all others are made by `sluice keys`. */
export const FILE_KEY = 'upgrade-file-key-0123456789';

/** The last start of the old gateway. Tests use the folder a day later. */
export const LAST_START = '2026-11-17T10:00:00Z';

/** The configuration of a version: settings that its JSON Schema has. */
export function buildConfig({ properties }) {
  const optional = {
    capture: ['capture: { models: [kept] }'],
    budgets: ['budgets: [{ tag: team=a, limit: 100usd/month }]'],
    responses: ['responses: { store: disk }'],
  };
  return [
    `auth: { keys: [${FILE_KEY}] }`,
    'models: { fast: demo/hello, kept: demo/hello }',
    'prices: { "demo/*": { input: 10, output: 30 } }',
    ...Object.entries(optional).flatMap(([name, lines]) => (Object.hasOwn(properties, name) ? lines : [])),
    '',
  ].join('\n');
}

/** Keys by name: how each is made, and what is done with it after the requests of the first day. */
const KEYS = [
  { name: 'alice', options: ['--budget', '10usd/month', '--tag', 'team=a'] },
  { name: 'bob', options: ['--models', 'fast', '--rpm', '600'] },
  { name: 'carol', options: [], afterwards: 'revoke' },
  { name: 'dave', options: [], afterwards: 'rotate' },
  { name: 'erin', options: ['--expires', '2027-01-31', '--ip', '127.0.0.0/8'] },
];

const chat = (model, text, more = {}) => ({
  path: '/v1/chat/completions',
  body: { model, messages: [{ role: 'user', content: text }], ...more },
});

/** The request that shows whether a key is accepted. */
export const PROBE = chat('fast', 'Is this key accepted?');

/** Requests of the first day, and of the second. */
const DAYS = [
  {
    now: '2026-11-16T23:30:00Z',
    requests: [
      { by: 'file', ...chat('fast', 'one') },
      { by: 'file', ...chat('fast', 'two', { stream: true }), headers: { 'x-sluice-tags': 'team=b' } },
      { by: 'alice', ...chat('kept', 'three') },
      { by: 'carol', ...chat('demo/echo', 'four') },
      { by: 'dave', path: '/v1/responses', body: { model: 'fast', input: 'five', store: true }, isStored: true },
    ],
  },
  {
    now: LAST_START,
    requests: [
      {
        by: 'file',
        path: '/v1beta/models/fast:generateContent',
        body: { contents: [{ role: 'user', parts: [{ text: 'six' }] }] },
      },
      {
        by: 'alice',
        path: '/v1/messages',
        body: { model: 'fast', max_tokens: 300, messages: [{ role: 'user', content: 'seven, with more words than the others' }] },
      },
      { by: 'bob', ...chat('fast', 'eight') },
      { by: 'file', ...chat('nothing/none', 'nine'), status: 404 },
      { by: 'file', ...chat('demo/missing', 'ten', { stream: true }) },
    ],
  },
];

/** Plays the scenario with a program of an earlier version. Resolves with its keys, their secrets, and the ids of stored responses. */
export async function play({ createProgram, config, data, hasKeys, hasStore }) {
  const [first, second] = DAYS;
  const secrets = [{ name: 'file', secret: FILE_KEY, isAccepted: true }];
  const place = ['--data', data, '--json'];
  const day1 = createProgram(first.now);
  for (const { name, options } of hasKeys ? KEYS : []) {
    const [{ secret }] = await day1.run('keys', 'create', name, ...options, ...place);
    secrets.push({ name, secret, isAccepted: true });
  }
  const responses = await send(await day1.serve('--config', config, '--data', data), first, secrets, hasStore);
  for (const { name, afterwards } of hasKeys ? KEYS : []) {
    if (afterwards === undefined) continue;
    const before = secrets.find((one) => one.name === name);
    before.isAccepted = false;
    const [printed] = await day1.run('keys', afterwards, name, ...(afterwards === 'rotate' ? ['--overlap', '0'] : []), ...place);
    if (afterwards === 'rotate') secrets.push({ name, secret: printed.secret, isAccepted: true });
  }
  const day2 = createProgram(second.now);
  await send(await day2.serve('--config', config, '--data', data), second, secrets, hasStore);
  const keys = hasKeys ? await day2.run('keys', 'list', '--all', ...place) : [];
  return { keys, secrets, responses };
}

async function send(gateway, { requests }, secrets, hasStore) {
  const stored = [];
  try {
    for (const request of requests) {
      const key = secrets.findLast(({ name }) => name === request.by);
      if (!key) continue;
      const response = await post(gateway.url, key.secret, request);
      const text = await response.text();
      if (response.status !== (request.status ?? 200)) throw new Error(`${request.path}: ${response.status} ${text}`);
      if (request.isStored && hasStore) stored.push({ id: JSON.parse(text).id, by: request.by });
    }
  } finally {
    await gateway.stop();
  }
  return stored;
}

/** Sends a request with a client key. */
export const post = (url, secret, { path, body, headers = {} }) =>
  fetch(url + path, {
    method: 'POST',
    headers: { authorization: `Bearer ${secret}`, 'content-type': 'application/json', ...headers },
    body: JSON.stringify(body),
  });
