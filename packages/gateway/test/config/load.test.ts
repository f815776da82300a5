import { inspect } from 'node:util';
import { describe, expect, test } from 'vitest';
import { createDefaultSource, loadConfig } from '../../src/config/load.ts';
import type { Options } from '../../src/config/options.ts';
import { ConfigError } from '../../src/config/problems.ts';
import { resolveConfig } from '../../src/config/resolve.ts';
import { SecretRegistry } from '../../src/config/secrets.ts';

const CANARY = 'hunter2correcthorse';
const ENV = { KEY: CANARY, PORT: '8080', YES: 'true', HOST: '127.0.0.1', OPENAI_API_KEY: 'openai-key', DIGITS: '12345678' };

const options = (text: string, file = 'sluice.yaml'): Options => loadConfig(file, text, ENV).options;

describe('good files', () => {
  const DEFAULTS = createDefaultSource().options;

  test.each([
    ['empty sections', 'reset: false\nlisten:\nauth:\nproviders:\nmodels:\nlimits:\nlog:\n'],
    ['empty maps', 'listen: {}\nproviders: {}\nmodels: {}\nlimits: {}\nlog: {}\n'],
    ['schema', '$schema: ./sluice.schema.json\nlisten: {}\n'],
    ['BOM', '\ufeff{ "listen": {} }\n'],
    ['CRLF', 'listen:\r\n  port: 4141\r\n'],
    ['JSON', '{\n\t"$schema": "x",\n\t"listen": {\n\t\t"port": 4141\n\t}\n}\n'],
  ])('%s: the defaults', (_, text) => {
    const { $schema: __, ...read } = options(text) as Options & { $schema?: string };
    expect(read).toEqual(DEFAULTS);
  });

  test('defaults', () => {
    expect(DEFAULTS.listen).toEqual({ host: '127.0.0.1', port: 4141 });
    expect(DEFAULTS.log).toEqual({ level: 'info' });
    expect(DEFAULTS.limits).toMatchObject({
      requestBytes: 32 * 1024 ** 2,
      connectMs: 5000,
      totalMs: 1_800_000,
      streams: 2000,
      retryShare: 0.1,
    });
  });

  const ROWS: [string, unknown][] = [
    [`listen: { port: \${PORT} }`, { listen: { port: 8080 } }],
    [`listen: { port: "\${PORT}", host: env.HOST }`, { listen: { port: 8080, host: '127.0.0.1' } }],
    ['listen: { port: os.environ/PORT }', { listen: { port: 8080 } }],
    [`limits: { connect_timeout: \${PORT} }`, { limits: { connectMs: 8_080_000 } }],
    [
      'limits: { connect_timeout: 250ms, request_bytes: 1MiB, retries: 0 }',
      { limits: { connectMs: 250, requestBytes: 1_048_576, retries: 0 } },
    ],
    ['limits: { drain: 5 }', { limits: { drainMs: 5000 } }],
    [
      'models: { a: openai/x, "b-*": [openai/*, demo/x] }',
      {
        models: {
          a: { form: 'text', strategy: 'order', targets: [{ target: 'openai/x', weight: 1 }] },
          'b-*': { form: 'list', strategy: 'order', targets: [{ target: 'openai/*' }, { target: 'demo/x' }] },
        },
      },
    ],
    [
      'models: { a: { targets: [openai/x, { target: demo/x, weight: 3 }] }, b: { strategy: fastest, targets: [demo/x] } }',
      {
        models: {
          a: { form: 'map', strategy: 'weighted', targets: [{ weight: 1 }, { target: 'demo/x', weight: 3 }] },
          b: { form: 'map', strategy: 'fastest', targets: [{ target: 'demo/x', weight: 1 }] },
        },
      },
    ],
    [
      'rules: [{ when: { model: a-*, header: { X-Team: b }, tag: [t=1, t=2] }, use: demo/x }]',
      { rules: [{ when: { model: ['a-*'], header: { 'x-team': 'b' }, tag: ['t=1', 't=2'] }, use: 'demo/x' }] },
    ],
    ['affinity: 1h', { affinity: 3_600_000 }],
    ['affinity: "off"', { affinity: null }],
    ['{ model_in_answer: requested }', { model_in_answer: 'requested', affinity: 300_000 }],
    ['providers: { openai: false, groq: }', { providers: { openai: false, groq: {} } }],
    [
      'providers: { a: { protocol: responses, base_url: http://x } }',
      { providers: { a: { protocol: 'openai-responses', base_url: 'http://x' } } },
    ],
    [
      `providers: { a: { repair: \${YES}, idle_timeout: 10m } }`,
      { providers: { a: { repair: true, times: { betweenEventsMs: 600_000 } } } },
    ],
    [
      `providers: { a: { base_url: "http://\${HOST}:\${PORT}/v1" } }`,
      { providers: { a: { base_url: 'http://127.0.0.1:8080/v1' } } },
    ],
    [
      'providers: { a: { profile: { tool_id: { pattern: "^[a-z]{9}$", max: 9 } } } }',
      { providers: { a: { profile: { tool_id: { pattern: /^[a-z]{9}$/, max: 9 } } } } },
    ],
    [
      'providers:\n  a: &x { repair: true }\n  b: *x\n  c: { <<: *x, path: "" }\n',
      { providers: { a: { repair: true }, b: { repair: true }, c: { repair: true, path: '' } } },
    ],
  ];

  test.each(ROWS)('%s', (text, expected) => expect(options(text)).toMatchObject(expected as object));

  test('keys become secrets, also those that look like numbers', () => {
    const { providers, auth } = options(
      `auth: { keys: [abc, "\${KEY}"] }\nproviders: { a: { api_key: \${DIGITS}, headers: { x-token: "\${KEY}" } } }`,
    );
    const a = providers['a'];
    if (!a) throw new Error('no provider');
    expect(a.api_key?.reveal()).toBe('12345678');
    expect(a.headers?.['x-token']?.reveal()).toBe(CANARY);
    expect(auth.keys.map(({ key }) => key.reveal())).toEqual(['abc', CANARY]);
    expect(inspect({ providers, auth }, { depth: 9 })).not.toContain(CANARY);
  });
});

interface Bad {
  name: string;
  text: string;
  /** `line:column path: message`, each. */
  says: string[];
}

const BAD: Bad[] = [
  {
    name: 'a missing variable',
    text: `providers:\n  openai: { api_key: \${NOPE} }`,
    says: ['2:22: providers.openai.api_key: the environment variable NOPE is not set'],
  },
  {
    name: 'everything at once',
    text: `listen: { prot: 1, port: 99999 }\nproviders:\n  a: { api_key: \${NOPE}, repiar: 1, repair: maybe, protocol: opnai }\nlog: { level: loud }\nmodels: { x: 5, y: [], z: [""] }`,
    says: [
      '1:11: listen: unknown key "prot"; did you mean "port"?',
      '1:26: listen.port: must be at most 65535',
      '3:17: providers.a.api_key: the environment variable NOPE is not set',
      '3:26: providers.a: unknown key "repiar"; did you mean "repair"?',
      '3:45: providers.a.repair: must be true or false',
      '3:62: providers.a.protocol: must be one of openai-chat, anthropic-messages, openai-responses, gemini, openai, anthropic, responses; did you mean "openai"?',
      '4:15: log.level: must be one of fatal',
      '5:14: models.x: must be "provider/model", a list of these, or a map with targets and strategy',
      '5:20: models.y: must not be empty',
      '5:28: models.z[0]: must not be empty',
    ],
  },
  {
    name: 'a setting whose description begins with an abbreviation',
    text: 'budgets: [{ tag: a }]\nproviders: { openai: { api_key: 5, project: 5 } }',
    says: [
      '1:11: budgets[0].limit: is required: US dollars and a period',
      '2:33: providers.openai.api_key: must be text: API key.',
      '2:45: providers.openai.project: must be text: OpenAI-Project',
    ],
  },
  {
    name: 'a header whose value is in its name',
    text: 'providers: { groq: { headers: { "x-token: hunter2": } } }',
    says: ['1:33: providers.groq.headers: is not a valid header name'],
  },
  {
    name: 'a passthrough that is not one of its values',
    text: 'providers: { groq: { passthrough: none } }',
    says: ['1:35: providers.groq.passthrough: must be one of off, known, all'],
  },
  {
    name: 'wrong targets and rules',
    text: 'models:\n  a: { strategy: cheap, targets: [{ target: demo/x, weight: 0 }] }\nrules:\n  - { when: {}, use: demo/x }\n  - { when: { model: "*a*" }, use: demo/x }\nlimits: { pause: 2m }\naffinity: often',
    says: [
      '2:18: models.a.strategy: must be one of order, weighted, least_busy, fastest, cheapest',
      '2:61: models.a.targets[0].weight: must be greater than 0',
      '4:13: rules[0].when: must have at least one condition',
      '5:22: rules[1].when.model: must have at most one *',
      '6:18: limits.pause: must be at most 60s',
      '7:11: affinity: must be a duration such as 5m or 1h, or off',
    ],
  },
  { name: 'an unknown section', text: 'provider: {}', says: ['1:1: unknown key "provider"; did you mean "providers"?'] },
  { name: 'a list', text: '- a\n', says: ['1:1: must be a map of settings'] },
  { name: 'a word', text: 'hello', says: ['1:1: must be a map of settings'] },
  { name: 'a port that is text', text: 'listen: { port: "4141" }', says: ['1:17: listen.port: must be a number'] },
  {
    name: 'a port in a variable that is none',
    text: `listen: { port: \${HOST} }`,
    says: ['1:17: listen.port: must be a number'],
  },
  {
    name: 'a wrong unit',
    text: 'limits:\n  drain: 5 parsecs\n',
    says: ['2:10: limits.drain: must be a duration: 500ms, 5s, 2m, 1h'],
  },
  { name: 'a wrong size', text: 'limits: { event_bytes: 5s }', says: ['1:24: limits.event_bytes: must be a size: 64KiB, 32MiB'] },
  { name: 'a duration of zero', text: 'limits: { drain: 0 }', says: ['1:18: limits.drain: must be greater than 0'] },
  { name: 'a share above one', text: 'limits: { heap_shed: 85 }', says: ['1:22: limits.heap_shed: must be at most 1'] },
  { name: 'no streams', text: 'limits: { streams: 0 }', says: ['1:20: limits.streams: must be at least 1'] },
  { name: 'a half stream', text: 'limits: { streams: 1.5 }', says: ['1:20: limits.streams: must be an integer'] },
  {
    name: 'a provider that is text',
    text: `providers:\n  openai: ${CANARY}\n`,
    says: ['2:11: providers.openai: must be a map of settings, or false'],
  },
  {
    name: 'a name with a slash',
    text: 'providers: { "a/b": {} }',
    says: ['1:14: providers["a/b"]: must contain only letters, digits'],
  },
  {
    name: 'a key of two words',
    text: `providers: { a: { api_key: "${CANARY} x" } }`,
    says: ['1:28: providers.a.api_key: must be printable ASCII without spaces'],
  },
  {
    name: 'a key that is a list',
    text: `providers: { a: { api_key: [${CANARY}] } }`,
    says: ['1:28: providers.a.api_key: must be text'],
  },
  {
    name: 'a key that is a map',
    text: `providers: { a: { api_key: {${CANARY}} } }`,
    says: ['1:28: providers.a.api_key: must be text'],
  },
  {
    name: 'a key under a misspelt name',
    text: `providers:\n  a:\n    api_kye: ${CANARY}\n`,
    says: ['3:5: providers.a: unknown key "api_kye"; did you mean "api_key"?'],
  },
  { name: 'a key in the place of a name', text: `providers:\n  a:\n    ${CANARY}: 1\n`, says: ['3:5: providers.a: unknown key'] },
  {
    name: 'a key at the wrong level',
    text: `providers:\n  a:\n  api_key: ${CANARY}\n`,
    says: ['3:12: providers.api_key: must be a map of settings, or false'],
  },
  { name: 'no client keys', text: 'auth: { keys: [] }', says: ['1:15: auth.keys: must not be empty'] },
  { name: 'client keys that are not strings', text: `auth: { keys: ${CANARY} }`, says: ['1:15: auth.keys: must be a list'] },
  {
    name: 'a header of the connection',
    text: `providers: { a: { headers: { Host: ${CANARY} } } }`,
    says: ['1:30: providers.a.headers.Host: is a connection header and cannot be set'],
  },
  {
    name: 'a header value with a line break',
    text: `providers: { a: { headers: { x-a: "a\\r\\nb: ${CANARY}" } } }`,
    says: ['1:35: providers.a.headers.x-a: must be one line of printable ASCII'],
  },
  {
    name: 'a password in the address',
    text: `providers: { a: { base_url: "http://u:${CANARY}@x" } }`,
    says: ['1:29: providers.a.base_url: must not contain a user or password'],
  },
  {
    name: 'a key in the address',
    text: `providers: { a: { base_url: "http://x?key=${CANARY}" } }`,
    says: ['1:29: providers.a.base_url: must not have a query'],
  },
  {
    name: 'no address',
    text: 'providers: { a: { base_url: example.com } }',
    says: ['1:29: providers.a.base_url: must be a URL starting with http:// or https://'],
  },
  {
    name: 'a profile that is none',
    text: 'providers: { a: { profile: { stream_usge: true } } }',
    says: ['1:30: providers.a.profile: unknown key "stream_usge"; did you mean "stream_usage"?'],
  },
  {
    name: 'an expression that is none',
    text: 'providers: { a: { profile: { tool_id: { pattern: "(", max: 9 } } } }',
    says: ['1:50: providers.a.profile.tool_id.pattern: must be a valid regular expression'],
  },
  {
    name: 'a secret put into braces',
    text: `providers: { groq: { api_key: "\${sk-${CANARY}}" } }`,
    says: [`1:31: providers.groq.api_key: \${…} must contain the name of an environment variable`],
  },
  // Syntax
  { name: 'a key twice', text: 'log: {}\nlog: {}\n', says: ['2:1: duplicate key'] },
  { name: 'tabs', text: 'log:\n\tlevel: info\n', says: ['2:1: indent with spaces, not tabs'] },
  {
    name: 'an open quote',
    text: `providers:\n  a: { api_key: "${CANARY}\n`,
    says: ['2:17: missing closing quote', '3:1: the { before is not closed; add }'],
  },
  { name: 'an open bracket', text: 'models: { a: [b\n', says: ['2:1: the [ before is not closed; add ]'] },
  {
    name: 'no colon',
    text: `providers:\n  a:\n    api_key ${CANARY}\n    repair: true\n`,
    says: ['3:5: the name of a setting must be on a single line'],
  },
  {
    name: 'a star without quotes',
    text: 'models:\n  *: demo/x\n',
    says: ['2:4: put a name that begins with * in quotes'],
  },
  {
    name: 'a star that is an alias',
    text: 'models:\n  a: *b\n',
    says: ['2:6: models.a: unknown YAML anchor; put a name that begins with * in quotes'],
  },
  { name: 'two documents', text: 'log: {}\n---\nlog: {}\n', says: ['2:1: the file must contain one YAML document'] },
  { name: 'a tag', text: `providers: { a: { api_key: !!js/function ${CANARY} } }`, says: ['1:28: unknown YAML tag'] },
  { name: 'the prototype', text: '__proto__: { listen: {} }', says: ['1:1: __proto__ is not a valid name'] },
  {
    name: 'the prototype, deeper',
    text: 'models:\n  __proto__: demo/x\n',
    says: ['2:3: models: __proto__ is not a valid name'],
  },
  { name: 'too deep', text: `models: ${'['.repeat(20_000)}`, says: ['1:1: the file is nested deeper than 50 levels'] },
  {
    name: 'too deep by dashes',
    text: `models:\n${'- '.repeat(20_000)}a`,
    says: ['1:1: the file is nested deeper than 50 levels'],
  },
  { name: 'too large', text: `#${'x'.repeat(1024 * 1024)}`, says: ['1:1: the file is larger than 1 MiB'] },
  {
    name: 'aliases that multiply',
    text: `$schema: x\nmodels:\n  a: &a [x, x, x, x, x, x, x, x, x, x]\n${'bcdefghi'
      .split('')
      .map((name, i) => `  ${name}: &${name} [${Array.from({ length: 10 }, () => `*${'abcdefgh'[i]}`).join(', ')}]`)
      .join('\n')}\n`,
    says: ['1:1: YAML aliases expand to too many values'],
  },
  { name: 'JSON with a comma too few', text: '{\n  "listen": { "port": 1 }\n  "log": {}\n}', says: ['3:3: '] },
  // What can be told only when everything is known
  {
    name: 'an unknown provider',
    text: 'providers:\n  grok: {}\n',
    says: ['2:3: providers.grok: is not a known provider; did you mean "groq"? (a custom provider needs protocol and base_url)'],
  },
  {
    name: 'a provider without an address',
    text: 'providers: { mine: { protocol: gemini } }',
    says: ['1:14: providers.mine: is not a known provider (a custom provider needs base_url)'],
  },
  {
    name: 'extends with an unknown provider',
    text: 'providers: { mine: { extends: opnai } }',
    says: ['1:31: providers.mine.extends: is not a known provider; did you mean "openai"?'],
  },
  {
    name: 'a protocol without a known endpoint',
    text: 'providers: { groq: { protocol: gemini, api_key: x } }',
    says: ['1:32: providers.groq.protocol: groq has no known gemini endpoint; set base_url'],
  },
  {
    name: 'no key',
    text: 'providers: { groq: {} }',
    says: ['1:14: providers.groq: has no API key; set GROQ_API_KEY, or api_key'],
  },
  {
    name: 'no resource',
    text: 'providers: { azure: { api_key: x } }',
    says: ['1:14: providers.azure: requires base_url, or AZURE_OPENAI_ENDPOINT in the environment'],
  },
  { name: 'the demo', text: 'providers: { demo: {} }', says: ['1:14: providers.demo: is built in and cannot be configured'] },
  {
    name: 'itself',
    text: 'providers: { a: { protocol: openai, base_url: http://localhost:4141/v1 } }',
    says: ['1:47: providers.a.base_url: must not be the address of the gateway itself'],
  },
  {
    name: 'open to the world',
    text: 'listen:\n  host: 0.0.0.0\n',
    says: [
      '2:9: listen.host: 0.0.0.0 is reachable from other machines; create a client key with "sluice keys create", or set auth.keys',
    ],
  },
  {
    name: 'a public address with short client keys',
    text: 'listen: { host: "::" }\nauth: { keys: [guessme] }',
    says: ['1:17: listen.host: :: is reachable from other machines; client keys must have at least 16 characters'],
  },
  {
    name: 'models without a valid target',
    text: 'models:\n  a: b\n  b: [c, openai/x]\n  c: a\n  "d-*-*": openai/*\n  e: openai/*\n  f: gpt-5\n  g: groqq/x\n  h: openai/\n  i: fasst\n  fast: demo/x\n  self: self\n',
    says: [
      '4:6: models.c: is a cycle: a → b → c → a',
      '5:3: models["d-*-*"]: must contain at most one *',
      '6:6: models.e: contains a * but the name has none to replace it with',
      '7:6: models.f: "gpt-5" must be provider/model or another name of "models"; did you mean "openai/gpt-5"?',
      '8:6: models.g: unknown provider "groqq"; did you mean "groq"?',
      '9:6: models.h: has no model after the provider; write provider/model',
      '10:6: models.i: "fasst" must be provider/model or another name of "models"; did you mean "fast"?',
      '12:9: models.self: is a cycle: self → self',
    ],
  },
  {
    name: 'a missing variable and a model without a valid target',
    text: `providers: { openai: { api_key: \${NOPE} } }\nmodels: { a: nope/x }\n`,
    says: ['1:33: providers.openai.api_key: the environment variable NOPE is not set', '2:14: models.a: unknown provider "nope"'],
  },
];

function refusal(text: string): ConfigError {
  try {
    resolveConfig(loadConfig('sluice.yaml', text, ENV), { env: ENV, secrets: new SecretRegistry() });
  } catch (error) {
    if (error instanceof ConfigError) return error;
    throw error;
  }
  throw new Error('the file was taken');
}

describe('bad files', () => {
  test.each(BAD)('$name', ({ text, says }) => {
    const error = refusal(text);
    const told = error.message
      .split('\n')
      .filter((line) => line.startsWith('sluice.yaml:'))
      .map((line) => line.slice('sluice.yaml:'.length));
    expect(told).toEqual(says.map((start) => expect.stringContaining(start)));
    for (const [i, start] of says.entries()) expect(told[i]?.startsWith(start)).toBe(true);
    for (const shown of [error.message, String(error), inspect(error, { depth: 9 }), JSON.stringify(error.problems)])
      expect(shown).not.toContain(CANARY);
  });
});

describe('excerpts', () => {
  const ROWS: [string, string][] = [
    ['log: { level: loud }', '  1 | log: { level: loud }\n    |               ^^^^'],
    [`log: { level: loud } # ${CANARY}`, '  1 | log: { level: loud } # ***\n    |               ^^^^'],
    [
      `providers: { openai: { api_key: \${NOPE} } }`,
      `  1 | providers: { openai: { api_key: \${NOPE} } }\n    |                                 ^^^^^^^`,
    ],
    [
      `providers: { openai: { api_key: ${CANARY}, repair: 3 } }`,
      '  1 | providers: { openai: { api_key: ***, repair: 3 } }\n    |                                              ^',
    ],
    [`auth: { keys: [${CANARY}, 3] }`, '  1 | auth: { keys: [***, ***] }\n    |                     ^^^'],
    [
      `providers: { openai: { headers: { x-a: ${CANARY} }, path: 3 } }`,
      '  1 | providers: { openai: { headers: { x-a: *** }, path: 3 } }\n    |                                                     ^',
    ],
    ['models:\n\n\n\n\n\n\n\n\n  a: 5\n', '  10 |   a: 5\n     |      ^'],
    [
      'models: { a: demo/x, "b\\u001b[2J": 5 }',
      '  1 | models: { a: demo/x, "b\\u001b[2J": 5 }\n    |                                    ^',
    ],
    [`models: {${' '.repeat(300)}a: 5 }`, `  1 | …${' '.repeat(56)}a: 5 }\n    | ${' '.repeat(60)}^`],
    [`models: { a: [${'"demo/x", '.repeat(100)}5] }`, `  1 | …${'"demo/x", '.repeat(6).slice(1)}5] }\n    | ${' '.repeat(60)}^`],
  ];

  test.each(ROWS)('%s', (text, excerpt) => expect(refusal(text).problems[0]?.place?.excerpt).toBe(excerpt));
});

describe('a value in a wrong place is in no message', () => {
  const provider = (setting: string): string => `providers: { mine: { protocol: openai-chat, ${setting} } }`;

  test.each([
    ['instead of a setting', 'admin: { hunterword }'],
    ['in the query of an address', provider('base_url: "https://a.example/v1?code=hunterword"')],
    ['in the fragment of an address', provider('base_url: "https://a.example/v1#hunterword"')],
    ['as the password of an address', provider('base_url: "https://u:a/hunterword@a.example"')],
    ['in the name of a header', provider('base_url: "https://a.example/v1", headers: { "x-token: hunterword": x }')],
  ])('%s', (_, text) => {
    let message = '';
    try {
      resolveConfig(loadConfig('sluice.yaml', text, ENV), { env: ENV, secrets: new SecretRegistry() });
    } catch (error) {
      message = inspect(error, { depth: 9 });
    }
    expect(message).toContain('ConfigError');
    expect(message).not.toContain('hunterword');
  });
});
