import { describe, expect, test } from 'vitest';
import { bodyOf, encodeResponses, type Json, responseOf, responsesContext, SDKS } from '../../../../test/sdk/responses.ts';
import type { CanonicalStreamEvent } from '../../src/canonical/events.ts';
import { decodeRequestBody } from '../../src/protocols/openai-responses/request-decode.ts';
import { encodeRequestBody } from '../../src/protocols/openai-responses/request-encode.ts';
import { ResponsesGrammar } from '../../src/protocols/openai-responses/stream-grammar.ts';

/** Tools that the API knows by their type and the client runs. */
const TOOLS: { name: string; input: Json; call: Json; output: Json; result: Json }[] = [
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
];

const events = (name: string, text: string): CanonicalStreamEvent[] => [
  { type: 'message_start', message: { id: 'm', model: 'm' } },
  { type: 'content_block_start', index: 0, content_block: { type: 'tool_use', id: 'c1', name, input: {} } },
  { type: 'content_block_delta', index: 0, delta: { type: 'input_json_delta', partial_json: text } },
  { type: 'content_block_stop', index: 0 },
  { type: 'message_delta', delta: { stop_reason: 'tool_use' } },
  { type: 'message_stop' },
];

describe.each(TOOLS)('$name', ({ name, input, call, output, result }) => {
  const body = { model: 'm', tools: [{ type: name }], input: [{ role: 'user', content: 'hi' }, call, output] };
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

test('an item that names no call is kept as it is', () => {
  const item = { type: 'shell_call', action: { commands: [] } };
  expect(decodeRequestBody({ model: 'm', input: [item] }, responsesContext()).messages[0]?.content).toMatchObject([
    { type: 'opaque', raw: item },
  ]);
});
