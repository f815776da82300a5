import { spawn, spawnSync } from 'node:child_process';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Readable } from 'node:stream';
import { parseSync } from 'oxc-parser';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { needs } from '../../../test/needs/needs.ts';
import { type CodeRequest, formatCode, LANGUAGES, type Language } from '../src/lib/sdk-code.ts';
import { CORPUS } from './corpus.ts';

const ORIGIN = 'http://127.0.0.1:4141';

/** Strings that end a literal, a line or a comment somewhere. */
const HOSTILE = [
  ...CORPUS,
  `"); import os; os.system("x") #`,
  `'; $(touch /tmp/x) \`id\` '`,
  `"""'''\\`,
  '\\" + process.exit() + "',
  `$${'{process.exit()}'}`,
  '*/ // # -- \u2028\u2029 \r\n \f \v',
  '{} %s {0} \\N{DASH} \\x41',
  'json.loads(',
];

const text = HOSTILE.join('\n');

const deep = (levels: number): unknown =>
  levels === 0 ? text : { [HOSTILE[levels % HOSTILE.length] ?? '']: [deep(levels - 1)] };

const EXTRA = {
  [text]: text,
  ['__proto__']: { a: 1 },
  deep: deep(120),
  numbers: [0, -1.5, 1e21, Number.POSITIVE_INFINITY],
  nothing: null,
  yes: true,
};

const extra: Record<string, unknown> = JSON.parse(JSON.stringify(EXTRA).replace('null]', '1e999]'));

const REQUESTS: readonly CodeRequest[] = [
  {
    protocol: 'openai-chat',
    path: '/v1/chat/completions',
    model: text,
    isStream: true,
    body: { model: text, stream: true, messages: [{ role: 'user', content: text }], ...extra },
  },
  {
    protocol: 'openai-responses',
    path: '/v1/responses',
    model: text,
    isStream: false,
    body: { model: text, input: text, ...extra },
  },
  {
    protocol: 'anthropic-messages',
    path: '/v1/messages',
    model: text,
    isStream: true,
    body: { model: text, max_tokens: 5, stream: true, messages: [], ...extra },
  },
  {
    protocol: 'gemini',
    path: '/v1beta/models/x:generateContent',
    model: text,
    isStream: false,
    body: {
      contents: [{ parts: [{ text }] }],
      generationConfig: { temperature: 1, ...extra },
      systemInstruction: { parts: [] },
      ...extra,
    },
  },
];

const CASES = REQUESTS.flatMap((request) =>
  (['python', 'typescript', 'curl'] as const).map((language) => ({ request, language })),
);

describe.each(CASES)('$request.protocol, $language, with hostile strings', ({ request, language }) => {
  const code = formatCode(request, language, ORIGIN);

  test.runIf(language === 'typescript')('parses, and its strings are the same', () => {
    const { errors, program } = parseSync('code.ts', code);
    expect(errors).toEqual([]);
    expect(listStrings(program)).toEqual(expect.arrayContaining([text]));
  });

  test.runIf(language === 'typescript')('has no more statements than an import, two constants and the output', () => {
    const { program } = parseSync('code.ts', code);
    expect(program.body.map(({ type }) => type)).toEqual([
      'ImportDeclaration',
      'VariableDeclaration',
      'VariableDeclaration',
      request.isStream ? 'ForOfStatement' : 'ExpressionStatement',
    ]);
  });

  test.runIf(language === 'python')('compiles, and has no other statements and strings', needs('python'), () => {
    const { status, stdout, stderr } = spawnSync('python3', ['-c', PYTHON], { input: code, encoding: 'utf8' });
    expect([status, stderr]).toEqual([0, '']);
    const { statements, strings } = JSON.parse(stdout) as { statements: string[]; strings: string[] };
    expect(statements.filter((type) => type !== 'Import')).toEqual([
      'ImportFrom',
      'Assign',
      'Assign',
      request.isStream ? 'For' : 'Expr',
    ]);
    expect(strings).toContain(text);
  });

  test.runIf(language === 'curl')('is one command whose body is the request', () => {
    // A shell that prints its arguments, instead of curl.
    const { stdout } = spawnSync('sh', ['-c', `curl() { for a in "$@"; do printf '%s\\0' "$a"; done; }\n${code}`], {
      encoding: 'utf8',
    });
    const body = stdout.split('\0').at(-2) ?? '';
    expect(JSON.parse(body)).toEqual(JSON.parse(JSON.stringify(request.body)));
  });
});

/** Prints the types of the statements, and all strings. Strings with lone surrogates cannot be printed, but those here are escaped. */
const PYTHON = `
import ast, json, sys
tree = ast.parse(sys.stdin.read())
compile(tree, 'code.py', 'exec')
strings = [node.value for node in ast.walk(tree) if isinstance(node, ast.Constant) and isinstance(node.value, str)]
print(json.dumps({'statements': [type(node).__name__ for node in tree.body], 'strings': strings}))
`;

function listStrings(node: unknown): string[] {
  if (Array.isArray(node)) return node.flatMap(listStrings);
  if (typeof node !== 'object' || node === null) return [];
  if ('type' in node && node.type === 'Literal' && 'value' in node && typeof node.value === 'string') return [node.value];
  return Object.values(node).flatMap(listStrings);
}

const SIMPLE: CodeRequest = {
  protocol: 'openai-chat',
  path: '/v1/chat/completions',
  model: 'fast',
  isStream: true,
  body: { model: 'fast', messages: [{ role: 'user', content: 'hi' }], stream: true, top_k: 5 },
};

test.each<[Language, string]>([
  [
    'python',
    `from openai import OpenAI

client = OpenAI(base_url="http://127.0.0.1:4141/v1", api_key="YOUR_KEY")
response = client.chat.completions.create(
    model="fast",
    messages=[{"role": "user", "content": "hi"}],
    stream=True,
    extra_body={"top_k": 5},
)
for chunk in response:
    print(chunk.choices)
`,
  ],
  [
    'typescript',
    `import OpenAI from 'openai';

const client = new OpenAI({ baseURL: "http://127.0.0.1:4141/v1", apiKey: "YOUR_KEY" });
const response = await client.chat.completions.create({
    model: "fast",
    messages: [{role: "user", content: "hi"}],
    stream: true,
    top_k: 5,
});
for await (const chunk of response) console.log(chunk.choices);
`,
  ],
])('%s for OpenAI Chat', (language, expected) => expect(formatCode(SIMPLE, language, ORIGIN)).toBe(expected));

test('Gemini has its parameters in config, and unknown fields in the options of the request', () => {
  const body = { contents: [], generationConfig: { temperature: 0 }, tools: [], cachedContent: 'c', newField: 1 };
  const request = { protocol: 'gemini', path: '/x', model: 'g', isStream: true, body };
  expect(formatCode(request, 'python', ORIGIN)).toContain(
    'config={\n        "temperature": 0,\n        "tools": [],\n        "cachedContent": "c",\n        "httpOptions": {"extraBody": {"newField": 1}},\n    },',
  );
  expect(formatCode(request, 'typescript', ORIGIN)).toContain('client.models.generateContentStream({');
});

test('every language has a name', () => expect(Object.keys(LANGUAGES)).toEqual(['curl', 'python', 'typescript']));

describe('the code of TypeScript runs with the official SDKs', () => {
  const requests: { path: string; body: unknown }[] = [];
  const server = createServer((request, response) => {
    let text = '';
    request.on('data', (part) => {
      text += part;
    });
    request.on('end', () => {
      requests.push({ path: request.url ?? '', body: JSON.parse(text) });
      response.setHeader('content-type', 'application/json').end('{}');
    });
  });
  let origin = '';

  beforeAll(async () => {
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  });

  afterAll(() => server.close());

  const messages = [{ role: 'user', content: text }];
  const schema = { type: 'object', properties: { city: { type: 'string' } } };

  test.each<[string, string, Record<string, unknown>]>([
    [
      'openai-chat',
      '/v1/chat/completions',
      {
        model: 'm',
        messages,
        tools: [{ type: 'function', function: { name: 'f', parameters: schema } }],
        temperature: 0,
        unknown_field: [text],
      },
    ],
    ['openai-responses', '/v1/responses', { model: 'm', input: text, max_output_tokens: 5, unknown_field: 1 }],
    ['anthropic-messages', '/v1/messages', { model: 'm', max_tokens: 5, messages, system: 's', top_k: 1, unknown_field: 1 }],
    [
      'gemini',
      '/v1beta/models/m:generateContent',
      {
        contents: [{ role: 'user', parts: [{ text }] }],
        systemInstruction: { parts: [{ text: 's' }] },
        generationConfig: { temperature: 0, maxOutputTokens: 5 },
        tools: [{ functionDeclarations: [{ name: 'f', parametersJsonSchema: schema }] }],
        unknownField: 1,
      },
    ],
  ])('%s sends the same request', async (protocol, path, body) => {
    const model = 'm';
    const code = formatCode({ protocol, path, model, isStream: false, body }, 'typescript', origin);
    const run = spawn(process.execPath, ['--input-type=module', '-'], { stdio: ['pipe', 'ignore', 'pipe'] });
    run.stdin.end(code);
    const errors = await new Response(Readable.toWeb(run.stderr) as never).text();
    const sent = requests.at(-1);
    expect(errors).toBe('');
    expect(sent?.path).toBe(path);
    expect(sent?.body).toMatchObject(JSON.parse(JSON.stringify(body)));
  });
});
