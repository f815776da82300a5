import { readFileSync } from 'node:fs';
import type { ExamineOptions, ProtocolId } from '@sluice/core';
import { describe, expect, test } from 'vitest';
import { readType } from '../../packages/core/src/protocols/openai-responses/wire.ts';
import { readManifest, readRecording } from '../corpus.ts';
import { bytesOf, protocolOf } from '../run.ts';
import { IS_NEXT } from '../sdk/openai.ts';
import { examine } from './examine.ts';
import { SDK_READERS } from './sdk-readers.ts';

/** The vendor that defines a protocol, as the recordings name it. */
const VENDORS: Record<ProtocolId, readonly string[]> = {
  'openai-chat': ['openai'],
  'openai-responses': ['openai'],
  'anthropic-messages': ['anthropic', 'google-vertex'],
  gemini: ['google', 'google-vertex'],
};

/** Recordings that are not what the vendor sent, or not a response of the protocol. */
const OTHER_BODIES: Readonly<Record<string, string>> = {
  'anthropic-messages/anthropic-bc10f231.sse': 'the recording proxy added [DONE]',
  'anthropic-messages/anthropic-3d7a0ba0.sse': 'the recorder cut the last blank line',
  'openai-responses/openai-e0f00585.sse': 'most deltas were removed by hand',
  'gemini/google-03c2ad7a.json': 'an embeddings response',
  'gemini/google-vertex-d2b3fed2.json': 'a cachedContents response',
};

const accusations = (bytes: Uint8Array, options: ExamineOptions): string[] =>
  examine([bytes], options)
    .findings.filter(({ severity }) => severity !== 'info')
    .map(({ rule }) => rule);

describe('recordings of the vendors themselves', () => {
  const recordings = readManifest().filter(
    ({ protocol, provider, status }) => status < 300 && VENDORS[protocolOf(protocol).id].includes(provider),
  );

  test('every protocol has some', () => {
    expect(new Set(recordings.map(({ protocol }) => protocol)).size).toBe(4);
  });

  test('no error and no warning', () => {
    const accused = recordings
      .filter(({ file }) => !Object.hasOwn(OTHER_BODIES, file))
      .flatMap(({ file, protocol, stream }) =>
        accusations(readRecording(file), { protocol: protocolOf(protocol), whole: !stream }).map((rule) => `${file}: ${rule}`),
      );
    console.log(`doctor: ${recordings.length} recordings of reference vendors, ${accused.length} accused`);
    expect(accused).toEqual([]);
  });

  test('every excluded recording has a finding', () => {
    const files = recordings.map(({ file }) => file);
    expect(Object.keys(OTHER_BODIES).filter((file) => !files.includes(file))).toEqual([]);
    for (const { file, protocol, stream } of recordings)
      if (Object.hasOwn(OTHER_BODIES, file))
        expect(accusations(readRecording(file), { protocol: protocolOf(protocol), whole: !stream }), file).not.toEqual([]);
  });
});

const sse = (...payloads: readonly unknown[]): string =>
  payloads.map((payload) => `data: ${JSON.stringify(payload)}\n\n`).join('');

const chunk = (delta: object, finish: string | null = null): object => ({
  id: 'chatcmpl-1',
  object: 'chat.completion.chunk',
  created: 1_700_000_000,
  model: 'gpt-4o',
  choices: [{ index: 0, delta, finish_reason: finish }],
});

const chatStream = (...chunks: object[]): string =>
  `${sse(chunk({ role: 'assistant', content: null }), ...chunks)}data: [DONE]\n\n`;

const callDelta = (index: number, id: string, name: string, args: string): object =>
  chunk({ tool_calls: [{ index, id, type: 'function', function: { name, arguments: args } }] });

/** Every payload with its event line and sequence number. */
const responsesStream = (...events: readonly object[]): string =>
  events
    .map((event, sequence_number) => `event: ${(event as { type: string }).type}\n${sse({ ...event, sequence_number })}`)
    .join('');

const RESPONSE = {
  id: 'resp_1',
  object: 'response',
  created_at: 1_700_000_000,
  model: 'gpt-5',
  status: 'in_progress',
  output: [],
};

const created = { type: 'response.created', response: RESPONSE };

const completed = (...output: object[]): object => ({
  type: 'response.completed',
  response: { ...RESPONSE, status: 'completed', output },
});

const added = (output_index: number, item: object): object => ({ type: 'response.output_item.added', output_index, item });

const done = (output_index: number, item: object): object => ({ type: 'response.output_item.done', output_index, item });

const MESSAGE = { id: 'msg_1', type: 'message', role: 'assistant' };

const SAID = { ...MESSAGE, status: 'completed', content: [{ type: 'output_text', text: 'Hi', annotations: [] }] };

const said = (output_index: number): object[] => [
  added(output_index, { ...MESSAGE, status: 'in_progress', content: [] }),
  {
    type: 'response.content_part.added',
    item_id: 'msg_1',
    output_index,
    content_index: 0,
    part: { type: 'output_text', text: '', annotations: [] },
  },
  { type: 'response.output_text.delta', item_id: 'msg_1', output_index, content_index: 0, delta: 'Hi' },
  { type: 'response.output_text.done', item_id: 'msg_1', output_index, content_index: 0, text: 'Hi' },
  { type: 'response.content_part.done', item_id: 'msg_1', output_index, content_index: 0, part: SAID.content[0] },
  done(output_index, SAID),
];

const LISTED = { id: 'mcpl_1', type: 'mcp_list_tools', server_label: 'docs', tools: [] };

const MCP_CALL = { id: 'mcp_1', type: 'mcp_call', server_label: 'docs', name: 'search', arguments: '{}', output: 'found' };

const CALL = { id: 'fc_1', type: 'function_call', call_id: 'call_1', name: 'get_time', arguments: '' };

const COMPACTION = { id: 'cmp_1', type: 'compaction', encrypted_content: 'Y2lwaGVy' };

const candidate = (text: string, finishReason?: unknown): object => ({
  candidates: [{ content: { role: 'model', parts: [{ text }] }, index: 0, ...(finishReason !== undefined && { finishReason }) }],
  usageMetadata: { promptTokenCount: 1, candidatesTokenCount: 1, totalTokenCount: 2 },
  modelVersion: 'gemini-2.5-flash',
  responseId: 'r-1',
});

const enumRatings = [{ category: 7, probability: 1, severity: 1 }];

interface Form {
  form: string;
  protocol: ProtocolId;
  body: string;
  /** Official SDKs that cannot read it, and why it is no error all the same. */
  unread?: { clients: RegExp; because: string };
}

/** Forms that the vendors send, as they are known from their documentation and from reports. */
const FORMS: readonly Form[] = [
  {
    form: 'OpenAI ends with "stop" when tool_choice names the function',
    protocol: 'openai-chat',
    body: chatStream(callDelta(0, 'call_1', 'get_time', '{}'), chunk({}, 'stop')),
  },
  {
    form: 'OpenAI ends with "stop" when the named function is called twice',
    protocol: 'openai-chat',
    body: chatStream(
      callDelta(0, 'call_1', 'get_time', '{"a":1}'),
      callDelta(1, 'call_2', 'get_time', '{"a":2}'),
      chunk({}, 'stop'),
    ),
  },
  {
    form: 'OpenAI streams the deprecated function_call without an id',
    protocol: 'openai-chat',
    body: chatStream(
      chunk({ function_call: { name: 'get_time', arguments: '' } }),
      chunk({ function_call: { arguments: '{}' } }),
      chunk({}, 'function_call'),
    ),
  },
  {
    form: 'OpenAI ends with "stop" when function_call names the function',
    protocol: 'openai-chat',
    body: chatStream(chunk({ function_call: { name: 'get_time', arguments: '{}' } }), chunk({}, 'stop')),
  },
  {
    form: 'OpenAI cuts arguments at the token limit',
    protocol: 'openai-chat',
    body: chatStream(callDelta(0, 'call_1', 'get_time', '{"zone":"Eu'), chunk({}, 'length')),
  },
  {
    form: 'OpenAI sends keepalive events while the model works',
    protocol: 'openai-responses',
    body: responsesStream(created, { type: 'keepalive' }, ...said(0), completed(SAID)),
  },
  {
    form: 'OpenAI reports the progress of a compaction',
    protocol: 'openai-responses',
    body: responsesStream(
      created,
      added(0, COMPACTION),
      { type: 'response.compaction.compacting', item_id: 'cmp_1', output_index: 0 },
      done(0, COMPACTION),
      ...said(1),
      completed(COMPACTION, SAID),
    ),
    unread: { clients: /^openai 6\./, because: 'the event is newer than this major version; the current one reads it' },
  },
  {
    form: 'OpenAI never declares an MCP tool list done',
    protocol: 'openai-responses',
    body: responsesStream(
      created,
      added(0, LISTED),
      { type: 'response.mcp_list_tools.in_progress', item_id: 'mcpl_1', output_index: 0 },
      { type: 'response.mcp_list_tools.completed', item_id: 'mcpl_1', output_index: 0 },
      ...said(1),
      completed(LISTED, SAID),
    ),
  },
  {
    form: 'OpenAI begins an MCP call before the tool list is done',
    protocol: 'openai-responses',
    body: responsesStream(
      created,
      added(0, LISTED),
      { type: 'response.mcp_list_tools.in_progress', item_id: 'mcpl_1', output_index: 0 },
      added(1, { ...MCP_CALL, arguments: '', output: null }),
      { type: 'response.mcp_list_tools.completed', item_id: 'mcpl_1', output_index: 0 },
      done(0, LISTED),
      { type: 'response.mcp_call_arguments.done', item_id: 'mcp_1', output_index: 1, arguments: '{}' },
      { type: 'response.mcp_call.completed', item_id: 'mcp_1', output_index: 1 },
      done(1, MCP_CALL),
      ...said(2),
      completed(LISTED, MCP_CALL, SAID),
    ),
  },
  {
    form: 'Google writes enums as numbers',
    protocol: 'gemini',
    body: sse(candidate('Hel'), {
      candidates: [{ content: { role: 'model', parts: [{ text: 'lo' }] }, finishReason: 1, safetyRatings: enumRatings }],
    }),
  },
  {
    form: 'Google streams a JSON array without alt=sse',
    protocol: 'gemini',
    body: `[${JSON.stringify(candidate('Hel'), null, 2)}\n,\r\n${JSON.stringify(candidate('lo', 'STOP'), null, 2)}\n]\n`,
    unread: { clients: /genai/, because: 'the SDK always sends alt=sse, and gets no array' },
  },
  {
    form: 'Google ends each round of a turn in which it runs tools itself',
    protocol: 'gemini',
    body: sse(
      candidate('Running.', 'STOP'),
      {
        candidates: [{ content: { role: 'model', parts: [{ codeExecutionResult: { outcome: 'OUTCOME_OK', output: '42' } }] } }],
      },
      candidate('It is 42.', 'STOP'),
    ),
  },
  {
    form: 'Anthropic sends the whole input of a call that its own code made',
    protocol: 'anthropic-messages',
    body: [
      {
        type: 'message_start',
        message: {
          id: 'msg_1',
          type: 'message',
          role: 'assistant',
          model: 'claude',
          content: [],
          stop_reason: null,
          stop_sequence: null,
          usage: { input_tokens: 1, output_tokens: 1 },
        },
      },
      {
        type: 'content_block_start',
        index: 0,
        content_block: {
          type: 'tool_use',
          id: 'toolu_1',
          name: 'get_weather',
          input: { city: 'Paris' },
          caller: { type: 'code_execution_20250825', tool_id: 'srvtoolu_1' },
        },
      },
      { type: 'content_block_stop', index: 0 },
      { type: 'message_delta', delta: { stop_reason: 'tool_use', stop_sequence: null }, usage: { output_tokens: 9 } },
      { type: 'message_stop' },
    ]
      .map((event) => `event: ${event.type}\n${sse(event)}`)
      .join(''),
  },
];

describe.each(FORMS)('$form', ({ protocol, body, unread }) => {
  test('is neither an error nor a warning', () => {
    expect(accusations(bytesOf(body), { protocol: protocolOf(protocol) })).toEqual([]);
  });

  test('official SDKs read it', async () => {
    for (const { client, read } of SDK_READERS[protocol]) {
      const failure = await read([body]).then(
        () => undefined,
        (error: unknown) => error,
      );
      if (unread?.clients.test(client)) expect(failure, client).toBeDefined();
      else expect(failure, client).toBeUndefined();
    }
  });
});

test('a whole response of an image model of Google has no finish reason', () => {
  const parts = [{ inlineData: { mimeType: 'image/png', data: 'AAAA' } }];
  const body = JSON.stringify({ candidates: [{ content: { role: 'model', parts } }], modelVersion: 'gemini-image' });
  expect(accusations(bytesOf(body), { protocol: protocolOf('gemini'), whole: true })).toEqual([]);
});

/** The same rules where no vendor does it. */
test.each<[string, ProtocolId, string, ExamineOptions['strict'], string]>([
  [
    '"stop" after calls of two functions',
    'openai-chat',
    chatStream(callDelta(0, 'call_1', 'get_time', '{}'), callDelta(1, 'call_2', 'get_date', '{}'), chunk({}, 'stop')),
    false,
    'chat/finish-stop-with-calls',
  ],
  [
    '"stop" after text and a call',
    'openai-chat',
    chatStream(chunk({ content: 'Let me see.' }), callDelta(0, 'call_1', 'get_time', '{}'), chunk({}, 'stop')),
    false,
    'chat/finish-stop-with-calls',
  ],
  [
    '"stop" after one call, when the request named no function',
    'openai-chat',
    chatStream(callDelta(0, 'call_1', 'get_time', '{}'), chunk({}, 'stop')),
    true,
    'chat/finish-stop-with-calls',
  ],
  [
    'arguments that are no JSON at a regular end',
    'openai-chat',
    chatStream(callDelta(0, 'call_1', 'get_time', '{"zone":"Eu'), chunk({}, 'tool_calls')),
    false,
    'chat/tool-args-invalid',
  ],
  [
    'a tool call without an id',
    'openai-chat',
    chatStream(
      chunk({ tool_calls: [{ index: 0, type: 'function', function: { name: 'f', arguments: '{}' } }] }),
      chunk({}, 'tool_calls'),
    ),
    false,
    'chat/tool-id-missing',
  ],
  [
    'a call that is never done',
    'openai-responses',
    responsesStream(created, added(0, CALL), ...said(1), completed(CALL, SAID)),
    false,
    'responses/item-not-done',
  ],
  [
    'an event of another vendor',
    'openai-responses',
    responsesStream(created, { type: 'ping' }, ...said(0), completed(SAID)),
    false,
    'responses/unknown-event',
  ],
  ['a stream without a finish reason', 'gemini', sse(candidate('Hel'), candidate('lo')), false, 'gemini/finish-missing'],
  [
    'a JSON array where the request asked for SSE',
    'gemini',
    `[${JSON.stringify(candidate('Hel'))},\n${JSON.stringify(candidate('lo', 'STOP'))}]\n`,
    true,
    'sse/bare-json',
  ],
])('%s is still reported', (_, protocol, body, strict = false, rule) => {
  expect(accusations(bytesOf(body), { protocol: protocolOf(protocol), strict })).toContain(rule);
});

test('every event type of the official SDK for Responses is known', () => {
  const types = readFileSync(
    new URL(
      `../../${IS_NEXT ? 'test/sdk-next/node_modules/openai-7' : 'node_modules/openai'}/resources/responses/responses.d.ts`,
      import.meta.url,
    ),
    'utf8',
  );
  const [, union = ''] = /export type ResponseStreamEvent = ([^;]+);/.exec(types) ?? [];
  const events = union.split('|').map((name) => {
    const [, type] = new RegExp(`export interface ${name.trim()} \\{.*?\\n {4}type: '([^']+)'`, 's').exec(types) ?? [];
    return type ?? name;
  });
  expect(events.length).toBeGreaterThan(50);
  expect(events.filter((type) => !readType(type).isStandard)).toEqual([]);
});
