import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { findNamedIds } from '../../src/exchange/object-fields.ts';
import { REAL_CLOCK } from '../../src/http/clock.ts';
import { type Started, startGateway } from '../gateway/start.ts';

// What a request names belongs to its key, wherever and however it is written; what a response makes belongs to its key, too.

const [OWNER, OTHER] = ['key-of-the-owner', 'key-of-the-other'];

interface Got {
  method: string;
  url: string;
  body: string;
}

let vendor: Server;
let got: Got[];
let gateway: Started;
/** What the vendor sends next, by method and path; by default a new object. */
let replies: Record<string, unknown>;
let count = 0;
/** Milliseconds that the clock of the gateway is ahead. */
let ahead = 0;

const COMPLETION = {
  id: 'c',
  object: 'chat.completion',
  created: 1,
  model: 'm',
  choices: [{ index: 0, message: { role: 'assistant', content: 'ok' }, finish_reason: 'stop' }],
};
const MESSAGE = {
  id: 'msg_1',
  type: 'message',
  role: 'assistant',
  model: 'm',
  content: [{ type: 'text', text: 'ok' }],
  stop_reason: 'end_turn',
  stop_sequence: null,
  usage: { input_tokens: 1, output_tokens: 1 },
};
const GENERATED = {
  candidates: [{ content: { role: 'model', parts: [{ text: 'ok' }] }, finishReason: 'STOP', index: 0 }],
  modelVersion: 'm',
};
const RESPONSE = {
  id: 'resp_1',
  object: 'response',
  created_at: 1,
  status: 'completed',
  model: 'm',
  output: [
    {
      type: 'message',
      id: 'msg_1',
      role: 'assistant',
      status: 'completed',
      content: [{ type: 'output_text', text: 'ok', annotations: [] }],
    },
  ],
};

function reply(method: string, path: string): unknown {
  const known = replies[`${method} ${path}`];
  if (known !== undefined) return known;
  if (path.endsWith('/chat/completions')) return COMPLETION;
  if (path.endsWith('/messages')) return MESSAGE;
  if (path.includes('generateContent')) return GENERATED;
  if (path.endsWith('/responses')) return { ...RESPONSE, id: `resp_${++count}` };
  return path.startsWith('/v1beta') ? { name: `${path.split('/').at(-1)}/object${++count}` } : { id: `object_${++count}` };
}

beforeAll(async () => {
  vendor = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      const { method = '', url = '' } = request;
      got.push({ method, url, body: Buffer.concat(chunks).toString() });
      const body = reply(method, url.split('?', 1)[0] ?? '');
      if (typeof body === 'string') response.writeHead(200, { 'content-type': 'text/event-stream' }).end(body);
      else response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(body));
    });
  });
  await new Promise<void>((resolve) => vendor.listen(0, '127.0.0.1', resolve));
  // A connection that rests is not closed, however long a test takes.
  vendor.keepAliveTimeout = 0;
  const url = `http://127.0.0.1:${(vendor.address() as AddressInfo).port}`; // a TCP server has one
  gateway = await startGateway({
    clock: { ...REAL_CLOCK, now: () => REAL_CLOCK.now() + ahead },
    config: {
      auth: { keys: [OWNER, OTHER] },
      providers: {
        chat: { protocol: 'openai-chat', base_url: `${url}/v1`, api_key: 'k' },
        open: { protocol: 'anthropic-messages', base_url: `${url}/all`, api_key: 'k', passthrough: 'all' },
        native: { protocol: 'openai-responses', base_url: `${url}/v1`, api_key: 'k', repair: false },
        claude: { protocol: 'anthropic-messages', base_url: url, api_key: 'k' },
        gem: { protocol: 'gemini', base_url: `${url}/v1beta`, api_key: 'k' },
      },
    },
  });
});

afterAll(async () => {
  await gateway.close();
  vendor.close();
  vendor.closeAllConnections();
});

beforeEach(() => {
  got = [];
  replies = {};
});

const ANTHROPIC = { 'anthropic-version': '2023-06-01' };

interface Sent {
  key?: string;
  method?: string;
  headers?: Record<string, string>;
}

async function send(
  path: string,
  body?: unknown,
  { key = OWNER, method, headers = {} }: Sent = {},
): Promise<{ status: number; json: { id?: string } }> {
  const response = await fetch(gateway.url + path, {
    method: method ?? (body === undefined ? 'GET' : 'POST'),
    headers: {
      ...(path.startsWith('/v1beta') ? { 'x-goog-api-key': key } : { authorization: `Bearer ${key}` }),
      'content-type': 'application/json',
      ...headers,
    },
    ...(body !== undefined && { body: typeof body === 'string' ? body : JSON.stringify(body) }),
  });
  const text = await response.text();
  return { status: response.status, json: JSON.parse(text.startsWith('{') ? text : JSON.stringify(text)) };
}

const part = (fileId: string, space = ''): string =>
  `{"model":"chat/m","messages":[{"role":"user","content":[{"type":"file","file":{${fileId.replace(':', `:${space}`)}}}]}]}`;

describe('an object of another key is not found', () => {
  let id: string | undefined;
  beforeAll(async () => {
    got = [];
    replies = { 'POST /v1/files': { id: 'file-1abc' } };
    ({ id } = (await send('/v1/files', { purpose: 'user_data' })).json);
  });

  test.each([
    ['as it is', part('"file_id":"file-1abc"')],
    ['with an escape in its field', part('"file\\u005fid":"file-1abc"')],
    ['with an escape in its value', part('"file_id":"file\\u002d1abc"')],
    ['after nine spaces', part('"file_id":"file-1abc"', ' '.repeat(9))],
    [
      'in a list',
      `{"model":"chat/m","messages":[{"role":"user","content":"x"}],"tools":[{"file_ids":["file-own","file-1abc"]}]}`,
    ],
  ])('in a conversation, %s', async (_, body) => {
    expect(id).toBe('file-1abc');
    expect(await send('/v1/chat/completions', body, { key: OTHER })).toMatchObject({
      status: 404,
      json: { error: { message: expect.stringContaining('No such object') } },
    });
    expect(got).toEqual([]);
    expect((await send('/v1/chat/completions', body.replace('"file-own",', ''))).status).toBe(200);
    expect(got).toHaveLength(1);
  });

  test.each([
    ['/v1/fine_tuning/jobs', { model: 'chat/m', training_file: 'file-1abc' }],
    ['/v1/batches', { input_file_id: 'file-1abc', endpoint: '/v1/chat/completions' }],
    ['/v1/vector_stores', { file_ids: ['file-1abc'] }],
    ['/v1/assistants', { model: 'chat/m', tool_resources: { code_interpreter: { file_ids: ['file-1abc'] } } }],
    ['/v1/threads', { messages: [{ role: 'user', content: 'x', attachments: [{ file_id: 'file-1abc' }] }] }],
    ['/v1/evals', { data_source_config: {}, data_source: { source: { type: 'file_id', id: 'file-1abc' } } }],
    [
      '/v1/conversations',
      { items: [{ type: 'message', role: 'user', content: [{ type: 'input_file', file_id: 'file-1abc' }] }] },
    ],
    [
      '/v1/responses/compact',
      { model: 'native/m', input: [{ role: 'user', content: [{ type: 'input_file', file_id: 'file-1abc' }] }] },
    ],
  ])('in a body of %s', async (path, body) => {
    expect((await send(path, body, { key: OTHER })).status).toBe(404);
    expect(got).toEqual([]);
    expect((await send(path, body)).status).toBe(200);
  });

  test.each([
    ['in a conversation', '/v1/chat/completions', part('"file_id":"file-1abc","file_id":"file-1abc"')],
    [
      'around it',
      '/v1/chat/completions',
      part('"file_id":"file-1abc"').replace(']}]}', ']}],"mess\\u0061ges":[{"role":"user","content":"x"}]}'),
    ],
    ['in another body', '/v1/vector_stores', '{"file_ids":["file-1abc"],"file_ids":[]}'],
  ])('a field that occurs twice is refused: %s', async (_, path, body) => {
    expect((await send(path, body, { key: OTHER })).status).toBe(400);
    expect(got).toEqual([]);
  });

  test('in a form, and in the query', async () => {
    const boundary = 'form-1';
    const form = (name: string): string =>
      `--${boundary}\r\nContent-Disposition: form-data; name="${name}"\r\n\r\nfile-1abc\r\n--${boundary}--\r\n`;
    const headers = { 'content-type': `multipart/form-data; boundary=${boundary}` };
    for (const name of ['file_id', 'tool_resources[code_interpreter][file_ids][]', 'mask.file_id'])
      expect((await send('/v1/images/edits', form(name), { key: OTHER, headers })).status, name).toBe(404);
    expect((await send('/v1/batches?input_file_id=file-1abc', {}, { key: OTHER })).status).toBe(404);
    expect(got).toEqual([]);
  });

  test('also at a provider that passes every path on', async () => {
    const source = { type: 'file', file_id: 'file-1abc' };
    const body = { model: 'open/m', max_tokens: 1, messages: [{ role: 'user', content: [{ type: 'document', source }] }] };
    expect((await send('/v1/messages', body, { key: OTHER, headers: ANTHROPIC })).status).toBe(404);
    expect(got).toEqual([]);
  });

  test('but texts, tool arguments and schemas may have it', async () => {
    const input = { file_id: 'file-1abc' };
    const messages = [
      { role: 'user', content: '"file_id":"file-1abc"' },
      { role: 'assistant', content: [{ type: 'tool_use', id: 't', name: 'read', input }] },
      { role: 'user', content: [{ type: 'tool_result', tool_use_id: 't', content: 'file-1abc' }] },
    ];
    const tools = [{ name: 'read', input_schema: { type: 'object', properties: { file_id: { const: 'file-1abc' } } } }];
    const body = { model: 'claude/m', max_tokens: 1, messages, tools, metadata: { file_id: 'file-1abc' } };
    expect((await send('/v1/messages', body, { key: OTHER, headers: ANTHROPIC })).status).toBe(200);
  });
});

describe('an id that no key is known to have', () => {
  const user = (content: unknown): object => ({ model: 'chat/m', messages: [{ role: 'user', content }] });
  const input = (model: string, content: unknown): object => ({ model, input: [{ role: 'user', content }] });

  test.each([
    ['/v1/chat/completions', user([{ type: 'file', file: { file_id: 'file-x' } }])],
    ['/v1/batches', { input_file_id: 'file-x' }],
    ['/v1/fine_tuning/jobs', { model: 'chat/m', training_file: 'file-x' }],
    ['/v1/threads/runs', { model: 'chat/m', assistant_id: 'asst_x' }],
    ['/v1/responses', { ...input('native/m', 'x'), tools: [{ type: 'code_interpreter', container: 'cntr_x' }] }],
    ['/v1/responses', { ...input('native/m', 'x'), tools: [{ type: 'file_search', vector_store_ids: ['vs_x'] }] }],
    ['/v1/responses', { ...input('native/m', 'x'), conversation: 'conv_x' }],
    ['/v1/responses', { ...input('native/m', 'x'), conversation: { id: 'conv_x' } }],
    ['/v1/responses', { model: 'native/m', input: [{ type: 'item_reference', id: 'msg_x' }] }],
    ['/v1/responses', { model: 'native/m', input: [{ id: 'msg_x' }] }],
    ['/v1/responses/compact', { model: 'native/m', input: [{ type: 'item_reference', id: 'msg_x' }] }],
  ])('is not sent: %s %j', async (path, body) => {
    expect((await send(path, body)).status).toBe(404);
    expect(got).toEqual([]);
  });

  test.each(['/v1/responses', '/v1/responses/compact', '/v1/responses/input_tokens'])('is not continued: %s', async (path) => {
    expect(await send(path, { ...input('native/m', 'x'), previous_response_id: 'resp_x' })).toMatchObject({
      status: 400,
      json: { error: { code: 'previous_response_not_found' } },
    });
    expect(got).toEqual([]);
  });

  test.each([
    ['container', { container: 'container_x' }],
    ['container.id', { container: { id: 'container_x', skills: [] } }],
    ['skill_id', { container: { skills: [{ type: 'custom', skill_id: 'skill_x' }] } }],
  ])('is not sent to Anthropic: %s', async (_, fields) => {
    const body = { model: 'claude/m', max_tokens: 1, messages: [{ role: 'user', content: 'x' }], ...fields };
    expect((await send('/v1/messages', body, { headers: ANTHROPIC })).status).toBe(404);
    expect((await send('/v1/messages', { ...body, model: 'open/m' }, { headers: ANTHROPIC })).status).toBe(200);
  });

  test('a name of the vendor is no id', async () => {
    const skills = [{ type: 'anthropic', skill_id: 'pptx', version: 'latest' }];
    const body = { model: 'claude/m', max_tokens: 1, messages: [{ role: 'user', content: 'x' }], container: { skills } };
    expect((await send('/v1/messages', body, { headers: ANTHROPIC })).status).toBe(200);
  });

  test.each([
    ['cachedContent', { cachedContent: 'cachedContents/x' }, 404],
    ['cached_content', { cached_content: 'cachedContents/x' }, 404],
    [
      'the address of a file',
      { contents: [{ parts: [{ fileData: { fileUri: 'https://generativelanguage.googleapis.com/v1beta/files/x' } }] }] },
      404,
    ],
    ['the name of a file', { contents: { parts: { file_data: { file_uri: 'files/x' } } } }, 404],
    ['a path in a name', { cachedContent: 'cachedContents/y/../x' }, 404],
    [
      'another server',
      { contents: [{ parts: [{ fileData: { fileUri: 'https://www.youtube.com/watch?v=x', mimeType: 'video/mp4' } }] }] },
      200,
    ],
  ])('Gemini: %s', async (_, fields, status) => {
    const body = { contents: [{ role: 'user', parts: [{ text: 'x' }] }], ...fields };
    expect((await send('/v1beta/models/gem/m:generateContent', body)).status).toBe(status);
    expect(got).toHaveLength(status === 200 ? 1 : 0);
  });
});

test('an object that requests name is not forgotten', async () => {
  replies = { 'POST /v1/files': { id: 'file-busy' } };
  await send('/v1/files', { purpose: 'user_data' });
  const body = part('"file_id":"file-busy"');
  for (let i = 0; i < 4; i++) {
    ahead += 45 * 60 * 1000;
    expect((await send('/v1/chat/completions', body)).status).toBe(200);
  }
  ahead += 61 * 60 * 1000;
  expect((await send('/v1/chat/completions', body)).status).toBe(404);
});

describe('what a response makes belongs to its key', () => {
  interface Case {
    name: string;
    /** Requests and what the vendor sends for them. */
    steps: readonly (readonly [method: string, path: string, reply: unknown, body?: unknown])[];
    /** What the key may read then. */
    reads: string;
    headers?: Record<string, string>;
  }

  const CASES: readonly Case[] = [
    {
      name: 'the results of a batch',
      steps: [
        ['POST', '/v1/files', { id: 'file-in' }, {}],
        ['POST', '/v1/batches', { id: 'batch_1', status: 'validating' }, { input_file_id: 'file-in' }],
        ['GET', '/v1/batches/batch_1', { id: 'batch_1', status: 'completed', output_file_id: 'file-out', error_file_id: null }],
      ],
      reads: '/v1/files/file-out/content',
    },
    {
      name: 'the errors of a batch',
      steps: [
        ['POST', '/v1/batches', { id: 'batch_2' }, {}],
        ['POST', '/v1/batches/batch_2/cancel', { id: 'batch_2', error_file_id: 'file-errors' }, {}],
      ],
      reads: '/v1/files/file-errors',
    },
    {
      name: 'the file of an upload',
      steps: [
        ['POST', '/v1/uploads', { id: 'upload_1' }, {}],
        ['POST', '/v1/uploads/upload_1/complete', { id: 'upload_1', file: { id: 'file-up' } }, { part_ids: ['part_1'] }],
      ],
      reads: '/v1/files/file-up',
    },
    {
      name: 'the results of fine-tuning',
      steps: [
        ['POST', '/v1/fine_tuning/jobs', { id: 'ftjob-1' }, { model: 'chat/m' }],
        ['GET', '/v1/fine_tuning/jobs/ftjob-1', { id: 'ftjob-1', result_files: ['file-r1', 'file-r2'] }],
      ],
      reads: '/v1/files/file-r2',
    },
    {
      name: 'the thread of a run',
      steps: [['POST', '/v1/threads/runs', { id: 'run_1', thread_id: 'thread_1' }, { model: 'chat/m' }]],
      reads: '/v1/threads/thread_1',
    },
    {
      name: 'the thread of a streamed run',
      steps: [
        [
          'POST',
          '/v1/threads/runs',
          'event: thread.run.created\ndata: {"id":"run_2","thread_id":"thread_2"}\n\n',
          { model: 'chat/m', stream: true },
        ],
      ],
      reads: '/v1/threads/thread_2',
    },
    {
      name: 'a remixed video',
      steps: [
        ['POST', '/v1/videos', { id: 'video_1' }, { model: 'chat/m', prompt: 'x' }],
        ['POST', '/v1/videos/video_1/remix', { id: 'video_2' }, { prompt: 'y' }],
      ],
      reads: '/v1/videos/video_2',
    },
    {
      name: 'the results of a batch of Gemini',
      steps: [
        ['POST', '/v1beta/models/m:batchGenerateContent', { name: 'batches/b1', metadata: {} }, { batch: {} }],
        ['GET', '/v1beta/batches/b1', { name: 'batches/b1', done: true, response: { responsesFile: 'files/out1' } }],
      ],
      reads: '/v1beta/files/out1:download',
    },
    {
      name: 'a tuned model of Gemini',
      steps: [['POST', '/v1beta/tunedModels', { name: 'tunedModels/t1/operations/o1' }, {}]],
      reads: '/v1beta/tunedModels/t1/operations/o1',
    },
    {
      name: 'a container of a response',
      steps: [
        [
          'POST',
          '/v1/responses',
          {
            ...RESPONSE,
            id: 'resp_c',
            output: [
              { type: 'code_interpreter_call', id: 'ci_1', status: 'completed', code: '', container_id: 'cntr_1', outputs: [] },
              ...RESPONSE.output,
            ],
          },
          { model: 'native/m', input: 'x' },
        ],
      ],
      reads: '/v1/containers/cntr_1/files/cfile_1/content',
    },
    {
      name: 'a file that code execution wrote',
      steps: [
        [
          'POST',
          '/v1/messages',
          {
            ...MESSAGE,
            container: { id: 'container_1' },
            content: [
              {
                type: 'code_execution_tool_result',
                tool_use_id: 's',
                content: {
                  type: 'code_execution_result',
                  stdout: '',
                  stderr: '',
                  return_code: 0,
                  content: [{ type: 'code_execution_output', file_id: 'file_made' }],
                },
              },
            ],
          },
          {
            model: 'claude/m',
            max_tokens: 1,
            messages: [{ role: 'user', content: 'x' }],
            tools: [{ type: 'code_execution_20250825', name: 'code_execution' }],
          },
        ],
      ],
      reads: '/v1/files/file_made/content',
      headers: ANTHROPIC,
    },
  ];

  test.each(CASES)('$name', async ({ steps, reads, headers = {} }) => {
    for (const [method, path, answer, body] of steps) {
      const wanted = `${method} ${path}`;
      replies = { [wanted]: answer };
      const asked = path.replace('/models/m:', '/models/gem/m:');
      expect((await send(asked, body, { method, headers })).status, wanted).toBe(200);
    }
    replies = {};
    const { length } = got;
    expect((await send(reads, undefined, { key: OTHER, headers })).status).toBe(404);
    expect(got).toHaveLength(length);
    expect((await send(reads, undefined, { headers })).status).toBe(200);
  });

  test('a container of a streamed message is named again', async () => {
    const events = [
      { type: 'message_start', message: { ...MESSAGE, content: [], stop_reason: null, container: null } },
      { type: 'content_block_start', index: 0, content_block: { type: 'text', text: '' } },
      { type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text: 'ok' } },
      { type: 'content_block_stop', index: 0 },
      {
        type: 'message_delta',
        delta: { stop_reason: 'end_turn', stop_sequence: null, container: { id: 'container_2' } },
        usage: { output_tokens: 1 },
      },
      { type: 'message_stop' },
    ];
    replies = { 'POST /v1/messages': events.map((event) => `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`).join('') };
    const body = { model: 'claude/m', max_tokens: 1, messages: [{ role: 'user', content: 'x' }] };
    const tools = [{ type: 'code_execution_20250825', name: 'code_execution' }];
    expect((await send('/v1/messages', { ...body, tools, stream: true }, { headers: ANTHROPIC })).json).toContain('message_stop');
    replies = {};
    const again = { ...body, tools, container: 'container_2' };
    expect((await send('/v1/messages', again, { key: OTHER, headers: ANTHROPIC })).status).toBe(404);
    expect((await send('/v1/messages', again, { headers: ANTHROPIC })).status).toBe(200);
  });

  test('what an object of another key refers to does not', async () => {
    replies = { 'POST /v1/batches': { id: 'batch_3' } };
    await send('/v1/batches', {});
    replies = { 'GET /v1/batches/batch_3': { id: 'batch_3', output_file_id: 'file-3' } };
    expect((await send('/v1/batches/batch_3', undefined, { key: OTHER })).status).toBe(404);
    expect((await send('/v1/files/file-3', undefined, { key: OTHER })).status).toBe(404);
  });

  test('an object whose part was deleted is still there', async () => {
    replies = { 'POST /v1/vector_stores': { id: 'vs_1' } };
    await send('/v1/vector_stores', {});
    expect((await send('/v1/vector_stores/vs_1/files/file-x', undefined, { method: 'DELETE' })).status).toBe(200);
    expect((await send('/v1/vector_stores/vs_1')).status).toBe(200);
    expect((await send('/v1/vector_stores/vs_1', undefined, { method: 'DELETE' })).status).toBe(200);
    expect((await send('/v1/vector_stores/vs_1')).status).toBe(404);
  });
});

test.each([
  ['lists that do not end', '"file_ids":['.repeat(90_000)],
  ['lists of lists', `${'['.repeat(100_000)}${']'.repeat(100_000)}`],
  ['objects without fields', `[${'{},'.repeat(340_000)}{}]`],
  ['objects in objects', `${'{"file_ids":'.repeat(100_000)}1${'}'.repeat(100_000)}`],
])('1 MB of %s does not stop the event loop for long', async (_, text) => {
  const before = process.cpuUsage();
  const { status } = await send('/v1/decisions', text, { headers: { 'content-type': 'text/plain' } });
  const { user, system } = process.cpuUsage(before);
  expect(status).toBe(200);
  expect((user + system) / 1e6).toBeLessThan(2);
});

test('ids are found in lists of any depth, once', () => {
  const deep = Array.from({ length: 1000 }).reduce<unknown>((inner) => [inner], { file_id: 'a' });
  const ids = findNamedIds('openai-chat', { names: ['file_id'] }, { deep, file_id: ['a', 'b', ''] });
  expect(ids.map(({ id }) => id).toSorted()).toEqual(['a', 'b']);
});
