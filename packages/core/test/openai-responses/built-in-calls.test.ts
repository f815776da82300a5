import { describe, expect, test } from 'vitest';
import { bodyOf, encodeResponses, type Json, responseOf, responsesContext, SDKS } from '../../../../test/sdk/responses.ts';
import type { CanonicalStreamEvent } from '../../src/canonical/events.ts';
import { CODECS } from '../../src/engine/index.ts';
import { convertResponse } from '../../src/engine/response.ts';
import { convertRequest } from '../../src/index.ts';
import { ResponsesGrammar } from '../../src/protocols/openai-responses/grammar.ts';
import { decodeRequestBody } from '../../src/protocols/openai-responses/request-decode.ts';
import { encodeRequestBody } from '../../src/protocols/openai-responses/request-encode.ts';

/** Tools that the API knows by their type and the client runs. */
const TOOLS: { name: string; tool?: Json; input: Json; call: Json; output: Json; result: Json }[] = [
  {
    name: 'apply_patch',
    input: { type: 'update_file', path: 'a', diff: '@@' },
    call: {
      type: 'apply_patch_call',
      id: 'apc_1',
      call_id: 'c1',
      status: 'completed',
      operation: { type: 'update_file', path: 'a', diff: '@@' },
    },
    output: { type: 'apply_patch_call_output', call_id: 'c1', status: 'failed', output: 'no such file' },
    result: { content: 'no such file', is_error: true },
  },
  {
    name: 'shell',
    input: { commands: ['ls'], timeout_ms: null, max_output_length: null },
    call: {
      type: 'shell_call',
      call_id: 'c1',
      status: 'completed',
      action: { commands: ['ls'], timeout_ms: null, max_output_length: null },
    },
    output: {
      type: 'shell_call_output',
      call_id: 'c1',
      output: [{ stdout: 'a', stderr: '', outcome: { type: 'exit', exit_code: 0 } }],
    },
    result: { content: '[{"stdout":"a","stderr":"","outcome":{"type":"exit","exit_code":0}}]' },
  },
  {
    name: 'local_shell',
    input: { type: 'exec', env: {}, command: ['ls'] },
    call: { type: 'local_shell_call', call_id: 'c1', status: 'completed', action: { type: 'exec', env: {}, command: ['ls'] } },
    output: { type: 'local_shell_call_output', id: 'c1', output: 'a' },
    result: { content: 'a' },
  },
  {
    name: 'tool_search',
    tool: { type: 'tool_search', execution: 'client', parameters: { type: 'object' } },
    input: { query: 'weather' },
    call: { type: 'tool_search_call', call_id: 'c1', status: 'completed', execution: 'client', arguments: { query: 'weather' } },
    output: { type: 'tool_search_output', call_id: 'c1', execution: 'client', tools: [{ type: 'function', name: 'f' }] },
    result: { content: '[{"type":"function","name":"f"}]' },
  },
];

const events = (name: string, text: string): CanonicalStreamEvent[] => [
  { type: 'message_start', message: { id: 'm', model: 'm' } },
  { type: 'content_block_start', index: 0, content_block: { type: 'tool_use', id: 'c1', name, input: {} } },
  { type: 'content_block_delta', index: 0, delta: { type: 'input_json_delta', partial_json: text } },
  { type: 'content_block_stop', index: 0 },
  { type: 'message_delta', delta: { stop_reason: 'tool_use' } },
  { type: 'message_stop' },
];

describe.each(TOOLS)('$name', ({ name, tool = { type: name }, input, call, output, result }) => {
  const body = { model: 'm', tools: [tool], input: [{ role: 'user', content: 'hi' }, call, output] };
  const request = decodeRequestBody(body, responsesContext());

  test('is the call of a function for other protocols', () => {
    expect(request.messages.slice(1)).toMatchObject([
      { role: 'assistant', content: [{ type: 'tool_use', id: 'c1', name, input }] },
      { role: 'tool', content: [{ type: 'tool_result', tool_use_id: 'c1', name, ...result }] },
    ]);
  });

  test('is the same item for this one', () => {
    expect(encodeRequestBody(request, responsesContext())['input']).toMatchObject([{ role: 'user' }, call, output]);
  });

  test('comes as its own item to a client that offered it', async () => {
    const frames = encodeResponses(events(name, JSON.stringify(input)), responsesContext({ source: 'gemini', request }));
    expect(ResponsesGrammar.check(frames)).toBe('completed');
    const { id: _, ...item } = call;
    expect(responseOf(frames)['output']).toMatchObject([item]);
    for (const { stream } of SDKS) expect((await stream(bodyOf(frames))).output).toMatchObject([item]);
  });

  test('and as the call of a function to one that did not, or when its arguments are none', () => {
    const outputOf = (text: string, changes: object): unknown =>
      responseOf(encodeResponses(events(name, text), responsesContext({ source: 'gemini', ...changes })))['output'];
    expect(outputOf('{}', {})).toMatchObject([{ type: 'function_call', name, arguments: '{}' }]);
    expect(outputOf('{"a"', { request })).toMatchObject([
      { type: 'function_call', name, arguments: '{"a"', status: 'incomplete' },
    ]);
  });
});

describe.each(TOOLS)('a response with $name', ({ name, input, call }) => {
  const whole = {
    id: 'resp_1',
    object: 'response',
    created_at: 1,
    status: 'completed',
    model: 'm',
    output: [{ id: 'item_1', ...call }],
  };
  const options = { from: CODECS['openai-responses'], model: 'm' };

  test('is a call that the client runs', () => {
    const { response } = convertResponse(whole, { ...options, to: CODECS['openai-chat'] });
    expect(response).toMatchObject({ stop_reason: 'tool_use', content: [{ type: 'tool_use', id: 'c1', name, input }] });
  });

  test.each([
    ['openai-chat', { choices: [{ finish_reason: 'tool_calls', message: { tool_calls: [{ id: 'c1', function: { name } }] } }] }],
    ['anthropic-messages', { stop_reason: 'tool_use', content: [{ type: 'tool_use', id: 'c1', name, input }] }],
    ['gemini', { candidates: [{ content: { parts: [{ functionCall: { name, args: input } }] } }] }],
    ['openai-responses', { output: [call] }],
  ] as const)('is written to %s', (to, expected) => {
    expect(convertResponse(whole, { ...options, to: CODECS[to] }).body).toMatchObject(expected);
  });
});

test.each([
  {
    type: 'shell_call',
    id: 'sh_1',
    call_id: 'c',
    action: { commands: [] },
    environment: { type: 'container_reference', container_id: 'x' },
  },
  { type: 'tool_search_call', id: 'tsc_1', call_id: null, execution: 'server', arguments: {} },
])('$type is opaque in an answer when the provider runs it', (item) => {
  const whole = { id: 'resp_1', object: 'response', created_at: 1, status: 'completed', model: 'm', output: [item] };
  const { response } = convertResponse(whole, { from: CODECS['openai-responses'], to: CODECS['openai-responses'], model: 'm' });
  expect(response).toMatchObject({ stop_reason: 'end_turn', content: [{ type: 'opaque', raw: item }] });
});

test('a search for tools that the client runs is a function elsewhere', () => {
  const tools = [
    { type: 'tool_search', execution: 'client', description: 'Find', parameters: { type: 'object', properties: {} } },
  ];
  const { body } = convertRequest({ model: 'm', input: 'hi', tools }, { from: 'openai-responses', to: 'openai-chat' });
  expect(body).toMatchObject({ tools: [{ type: 'function', function: { name: 'tool_search', description: 'Find' } }] });
});

test('an item that names no call is kept as it is', () => {
  const item = { type: 'shell_call', action: { commands: [] } };
  expect(decodeRequestBody({ model: 'm', input: [item] }, responsesContext()).messages[0]?.content).toMatchObject([
    { type: 'opaque', raw: item },
  ]);
});
