import { once } from 'node:events';
import { createServer, type IncomingMessage, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import Anthropic from '@anthropic-ai/sdk';
import type { ProtocolId } from '@sluice/core';
import type OpenAI from 'openai';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Field } from '../../../../scripts/fields/fields.js';
import { matcher } from '../../../../scripts/fields/pattern.js';
import { bodyWith, type Samples, sampleOf } from '../../../../scripts/fields/sample.js';
import { readFields } from '../../../../scripts/fields/sources.js';
import { type Place, rootPlace } from '../../../../scripts/fields/types.js';
import { withoutHoles } from '../../../../test/fields/probe.ts';
import { routeOf } from '../../../../test/fields/protocols.ts';
import { validate } from '../../../../test/published/validate.ts';
import { OPENAI_SDKS } from '../../../../test/sdk/openai.ts';
import { framesOf, wholeOf } from './dialects.ts';
import { type Started, startGateway } from './start.ts';

// Requests written from the type declarations of the official SDKs: each optional parameter, and each member of each union, once.

type Json = Record<string, unknown>;

const UPSTREAMS = ['openai-chat', 'anthropic-messages', 'openai-responses', 'gemini'] as const satisfies ProtocolId[];

let upstream: Server;
let gateway: Started;

beforeAll(async () => {
  upstream = createServer((request, response) => {
    void replyTo(request).then(({ type, body }) => response.writeHead(200, { 'content-type': type }).end(body));
  });
  upstream.listen(0, '127.0.0.1');
  await once(upstream, 'listening');
  const { port } = upstream.address() as AddressInfo;
  const providers = UPSTREAMS.map((protocol) => [
    `own-${protocol}`,
    { protocol, base_url: `http://127.0.0.1:${port}/${protocol}`, api_key: 'sk-upstream' },
  ]);
  gateway = await startGateway({ config: { providers: Object.fromEntries(providers) } });
});

afterAll(async () => {
  await gateway.close();
  upstream.close();
});

/** A minimal success: the first segment of the path names the protocol. */
async function replyTo(request: IncomingMessage): Promise<{ type: string; body: string }> {
  const pieces: Buffer[] = [];
  for await (const piece of request) pieces.push(piece as Buffer);
  const path = request.url ?? '';
  const protocol = UPSTREAMS.find((id) => path.startsWith(`/${id}/`)) ?? 'openai-chat';
  const body = JSON.parse(Buffer.concat(pieces).toString() || '{}') as Json;
  const isStream = body['stream'] === true || path.includes(':streamGenerateContent');
  if (isStream) return { type: 'text/event-stream', body: framesOf(protocol).join('') };
  const [, reply] = OTHER_REPLIES.find(([pattern]) => pattern.test(path)) ?? [];
  return { type: 'application/json', body: reply === undefined ? wholeOf(protocol) : JSON.stringify(reply) };
}

const OTHER_REPLIES: readonly [RegExp, object][] = [
  [/count_tokens|input_tokens/, { input_tokens: 3, object: 'response.input_tokens' }],
  [/:countTokens/, { totalTokens: 3 }],
  [/:batchEmbedContents/, { embeddings: [{ values: [0.5] }] }],
  [/:embedContent/, { embedding: { values: [0.5] } }],
  [
    /embeddings/,
    {
      object: 'list',
      model: 'm',
      data: [{ object: 'embedding', index: 0, embedding: [0.5] }],
      usage: { prompt_tokens: 1, total_tokens: 1 },
    },
  ],
];

interface Call {
  name: string;
  protocol: ProtocolId;
  /** The section of the declarations with the parameters. */
  section: string;
  upstreams: readonly ProtocolId[];
  /** Every optional field at any depth; otherwise parameters and members of unions only, which are many already. */
  isDeep?: true;
  /** The declared type; the wire form of Gemini is declared nowhere. */
  type?: Place;
  send(url: string, body: Json): Promise<unknown>;
}

const [newest] = OPENAI_SDKS.slice(-1);
if (!newest) throw new Error('no openai');
const openai = (url: string): OpenAI => new newest.OpenAI({ baseURL: `${url}/v1`, apiKey: 'sk-client', maxRetries: 0 });
const anthropic = (url: string): Anthropic => new Anthropic({ baseURL: url, apiKey: 'sk-client', maxRetries: 0 });

/** A stream is read to its end: an error may come inside it. */
async function drained(answer: unknown): Promise<unknown> {
  if (typeof answer === 'object' && answer !== null && Symbol.asyncIterator in answer)
    for await (const _ of answer as AsyncIterable<unknown>);
  return answer;
}

// The bodies are built from the declarations, so that no call can infer their types: hence `never`.
const CALLS: readonly Call[] = [
  {
    name: 'openai chat.completions.create',
    isDeep: true,
    protocol: 'openai-chat',
    section: 'request',
    upstreams: UPSTREAMS,
    type: rootPlace('openai-7/resources/chat/completions/completions.d.ts', 'ChatCompletionCreateParamsBase'),
    send: async (url, body) => drained(await openai(url).chat.completions.create(body as never)),
  },
  {
    name: 'openai responses.create',
    protocol: 'openai-responses',
    section: 'request',
    upstreams: UPSTREAMS,
    type: rootPlace('openai-7/resources/responses/responses.d.ts', 'ResponseCreateParamsBase'),
    send: async (url, body) => drained(await openai(url).responses.create(body as never)),
  },
  {
    name: 'openai embeddings.create',
    isDeep: true,
    protocol: 'openai-chat',
    section: 'embedding request',
    upstreams: ['openai-chat', 'gemini'],
    type: rootPlace('openai-7/resources/embeddings.d.ts', 'EmbeddingCreateParams'),
    send: (url, body) => openai(url).embeddings.create(body as never),
  },
  {
    name: 'anthropic messages.create',
    protocol: 'anthropic-messages',
    section: 'request',
    upstreams: UPSTREAMS,
    type: rootPlace('@anthropic-ai/sdk/resources/messages/messages.d.ts', 'MessageCreateParamsBase'),
    send: async (url, body) => drained(await anthropic(url).messages.create(body as never)),
  },
  {
    name: 'anthropic beta.messages.create',
    protocol: 'anthropic-messages',
    section: 'beta request',
    upstreams: UPSTREAMS,
    type: rootPlace('@anthropic-ai/sdk/resources/beta/messages/messages.d.ts', 'MessageCreateParamsBase'),
    send: async (url, body) => drained(await anthropic(url).beta.messages.create(body as never)),
  },
  {
    name: 'gemini models.generateContent',
    isDeep: true,
    protocol: 'gemini',
    section: 'request',
    upstreams: UPSTREAMS,
    // The SDK has another shape than the wire, which the declarations are read as.
    send: async (url, { model, ...body }) => {
      const headers = { 'content-type': 'application/json', 'x-goog-api-key': 'sk-client' };
      const path = `${url}/v1beta/models/${String(model)}:generateContent`;
      const reply = await fetch(path, { method: 'POST', headers, body: JSON.stringify(body) });
      if (reply.status !== 200) throw new Error(`${reply.status} ${await reply.text()}`);
      return reply.json();
    },
  },
  {
    name: 'anthropic messages.countTokens',
    protocol: 'anthropic-messages',
    section: 'request',
    upstreams: UPSTREAMS,
    send: (url, { max_tokens: _, stream: __, ...body }) => anthropic(url).messages.countTokens(body as never),
  },
];

interface Row {
  path: string;
  body: Json;
}

/** Requests of the SDKs' own tests that no single field makes. */
const EXTRA: readonly (Row & { call: string })[] = [
  {
    call: 'openai chat.completions.create',
    path: 'only a developer message',
    body: { messages: [{ role: 'developer', content: 'string' }] },
  },
  ...[{ file_data: 'data:application/pdf;base64,YWxwaGE=', filename: 'a.pdf' }, { file_url: 'https://example.com/a.pdf' }].map(
    (file) => ({
      call: 'openai responses.create',
      path: `a file by its ${Object.keys(file)[0]}`,
      body: { input: [{ role: 'user', content: [{ type: 'input_file', ...file }] }] },
    }),
  ),
];

/** The declarations share the blocks of a message between roles; Anthropic refuses these. */
const ILLEGAL: readonly string[] = [
  ...['thinking', 'redacted_thinking', 'tool_use', 'server_tool_use', 'mcp_tool_use', 'mcp_tool_result'],
  ...[
    'web_search',
    'web_fetch',
    'code_execution',
    'bash_code_execution',
    'text_editor_code_execution',
    'tool_search',
    'advisor',
  ].map((name) => `${name}_tool_result`),
]
  .map((type) => `messages[user].content[${type}].**`)
  .concat('messages[assistant].content[tool_result].**');

/** A choice of a hosted tool needs the tool. */
function withChosenTool(body: Json): Json {
  const { tool_choice: choice, tools = [] } = body;
  const type = typeof choice === 'object' && choice !== null && 'type' in choice ? String(choice.type) : '';
  if (!HOSTED.has(type)) return body;
  const tool = type === 'file_search' ? { type, vector_store_ids: ['vs_1'] } : { type };
  return { ...body, tools: [...(tools as unknown[]), tool] };
}

const HOSTED: ReadonlySet<string> = new Set(['file_search', 'programmatic_tool_calling', 'apply_patch', 'shell']);

const isConstant = ({ shapes }: Field): boolean => shapes.length > 0 && shapes.every(({ kind }) => kind === 'literal');

/** Every parameter with a value of its type and with null where it may be null; every member of a union of objects. */
function rowsOf({ name, protocol, section, isDeep }: Call): Row[] {
  const { samples: usual, complete } = routeOf(protocol, section);
  const fields = readFields(protocol, section);
  const constants = new Set([...readFields(protocol, 'request'), ...fields].filter(isConstant).map(({ path }) => path));
  const samples: Samples = (path) => (constants.has(path) ? undefined : usual(path));
  const built = (field: Field, value: unknown): Json =>
    withChosenTool(withoutHoles(complete(bodyWith(field, value, samples))) as Json);
  const parameters = fields.filter(({ path, optional }) => optional && (isDeep || !/[.[(]/.test(path)));
  const members = new Map(fields.filter(({ parent }) => /[\])]$/.test(parent)).map((field) => [field.parent, field]));
  const rows = [
    ...EXTRA.filter(({ call }) => call === name),
    ...parameters.map((field) => ({ path: field.path, body: built(field, sampleOf(field, 0, samples)) })),
    ...parameters
      .filter(({ shapes }) => shapes.some(({ kind }) => kind === 'null'))
      .map((field) => ({ path: `${field.path}=null`, body: built(field, null) })),
    ...[...members].map(([path, field]) => ({ path, body: built(field, sampleOf(field, 0, samples)) })),
  ];
  return rows.filter(({ path }) => !ILLEGAL.some((pattern) => matcher(pattern)(path)));
}

interface Refusal {
  call: RegExp;
  /** Patterns of paths. */
  paths: readonly string[];
  to: readonly ProtocolId[];
  why: string;
}

const others = (own: ProtocolId): ProtocolId[] => UPSTREAMS.filter((id) => id !== own);

/** Legal requests that only their own vendor can serve: anything less than a refusal would be a wrong answer. */
const REFUSED: readonly Refusal[] = [
  {
    call: /responses/,
    paths: ['conversation', 'previous_response_id', 'input[item_reference]'],
    to: others('openai-responses'),
    why: 'the earlier turns are stored at OpenAI: without them the model answers another conversation',
  },
  {
    call: /responses/,
    paths: ['prompt', 'prompt.**'],
    to: others('openai-responses'),
    why: 'the prompt template is stored at OpenAI: without it the model answers another prompt',
  },
  {
    call: /generateContent/,
    paths: ['cachedContent'],
    to: others('gemini'),
    why: 'the cached prompt is stored at Google: without it the model answers another prompt',
  },
  {
    call: /chat/,
    paths: [
      'messages[user].content[file]',
      'messages[user].content[file].file.file_id',
      'messages[user].content[file].file.filename',
      'messages[user].content[file].prompt_cache_breakpoint.**',
    ],
    to: ['anthropic-messages', 'gemini'],
    why: 'the id of a file that is stored at OpenAI',
  },
  {
    call: /responses/,
    paths: ['input[*].content[input_file]', 'input[*].output[input_file]'],
    to: others('openai-responses'),
    why: 'the id of a file that is stored at OpenAI',
  },
  {
    call: /anthropic/,
    paths: ['**.source(file)'],
    to: others('anthropic-messages'),
    why: 'the id of a file that is stored at Anthropic',
  },
  {
    call: /responses/,
    paths: ['tool_choice(ToolChoiceTypes)', 'tool_choice(mcp)', 'tool_choice(programmatic_tool_calling)'],
    to: others('openai-responses'),
    why: 'the call of a tool that only OpenAI runs is forced',
  },
  {
    call: /responses/,
    paths: ['input[compaction]'],
    to: others('openai-responses'),
    why: 'a compaction replaces the conversation, and only OpenAI can read it',
  },
  {
    call: /anthropic/,
    paths: ['thread(continue)'],
    to: others('anthropic-messages'),
    why: 'Anthropic has the messages before; the SDK sends them all after this error',
  },
];

const met = new Set<Refusal>();

function isRefused(name: string, path: string, to: ProtocolId): boolean {
  const found = REFUSED.find(
    (one) => one.call.test(name) && one.to.includes(to) && one.paths.some((pattern) => matcher(pattern)(path)),
  );
  if (found) met.add(found);
  return found !== undefined;
}

const typed = CALLS.flatMap((call) => (call.type ? [{ call, name: call.name, type: call.type }] : []));

test.each(typed)('$name: every request follows the declared type', ({ call, type }) => {
  const problems = rowsOf(call).flatMap(({ path, body }) =>
    validate(type, { ...body, model: 'm' }).map((one) => `${path}: ${one.path} ${one.problem}`),
  );
  expect(problems).toEqual([]);
});

describe.each(CALLS)('$name', (call) => {
  const rows = rowsOf(call);

  test.each(call.upstreams)('no valid request is rejected by the gateway: %s upstream', async (to) => {
    const failures: string[] = [];
    const queue = [...rows];
    const work = async (): Promise<void> => {
      for (let row = queue.shift(); row; row = queue.shift()) {
        const { path, body } = row;
        const failure = await call.send(gateway.url, { ...body, model: `own-${to}/m` }).then(
          () => undefined,
          (error: unknown) => String(error),
        );
        if (failure !== undefined && !isRefused(call.name, path, to)) failures.push(`${path}: ${failure}`);
      }
    };
    await Promise.all(Array.from({ length: 4 }, work));
    expect(rows.length).toBeGreaterThan(2);
    expect(failures).toEqual([]);
  });
});

test('every listed rejection happens', () => {
  expect(REFUSED.filter((refusal) => !met.has(refusal))).toEqual([]);
});
