import { describe, expect, test } from 'vitest';
import { CodecError } from '../../src/canonical/notes.ts';
import { decodeRequestBody } from '../../src/protocols/openai-chat/request-decode.ts';
import { bareContext } from './bare-context.ts';

const HI = { role: 'user', content: 'hi' };
const body = (over: object): object => ({ model: 'm', messages: [HI], ...over });
const said = (message: object): object => ({ model: 'm', messages: [message] });
const part = (value: unknown): object => said({ role: 'user', content: [value] });
const call = (value: unknown): object => said({ role: 'assistant', tool_calls: [value] });
const tool = (value: unknown): object => body({ tools: [value] });
const nested = (depth: number): unknown => JSON.parse('{"a":'.repeat(depth) + 1 + '}'.repeat(depth));

type Row = [name: string, body: unknown, param: string, code?: string];
const MISSING = 'MISSING_REQUIRED_FIELD';

const ROWS: Row[] = [
  ['nothing', undefined, 'body', MISSING],
  ['null', null, 'body', MISSING],
  ['a list', [], 'body'],
  ['a string', 'x', 'body'],
  ['no model', { messages: [HI] }, 'model', MISSING],
  ['model is a number', body({ model: 1 }), 'model'],
  ['model is empty', body({ model: '' }), 'model'],
  ['no messages', { model: 'm' }, 'messages', MISSING],
  ['messages is an object', body({ messages: {} }), 'messages'],
  ['messages is empty', body({ messages: [] }), 'messages'],
  ['100,001 messages', body({ messages: Array.from({ length: 100_001 }, () => HI) }), 'messages'],
  ['a message is null', body({ messages: [HI, null] }), 'messages[1]', MISSING],
  ['a message is a string', body({ messages: ['x'] }), 'messages[0]'],
  ['no role', said({ content: 'x' }), 'messages[0].role', MISSING],
  ['an unknown role', said({ role: 'model', content: 'x' }), 'messages[0].role'],
  ['the role __proto__', said({ role: '__proto__', content: 'x' }), 'messages[0].role'],
  ['the role constructor', said({ role: 'constructor', content: 'x' }), 'messages[0].role'],
  ['the role is a list', said({ role: ['user'], content: 'x' }), 'messages[0].role'],
  ['a user says nothing', said({ role: 'user' }), 'messages[0].content', MISSING],
  ['a user says null', said({ role: 'user', content: null }), 'messages[0].content', MISSING],
  ['a user says a number', said({ role: 'user', content: 1 }), 'messages[0].content'],
  ['a user says an object', said({ role: 'user', content: {} }), 'messages[0].content'],
  ['a system says a number', said({ role: 'system', content: 1 }), 'messages[0].content'],
  ['the assistant says a number', said({ role: 'assistant', content: 1 }), 'messages[0].content'],
  ['a name is a number', said({ ...HI, name: 1 }), 'messages[0].name'],
  ['refusal is a number', said({ role: 'assistant', refusal: 1 }), 'messages[0].refusal'],
  ['audio without an id', said({ role: 'assistant', audio: {} }), 'messages[0].audio.id', MISSING],
  ['a part is a number', part(1), 'messages[0].content[0]'],
  ['a part is null', part(null), 'messages[0].content[0]', MISSING],
  ['a part without a type', part({ text: 'x' }), 'messages[0].content[0].type', MISSING],
  ['text is a number', part({ type: 'text', text: 1 }), 'messages[0].content[0].text'],
  ['no text', part({ type: 'text' }), 'messages[0].content[0].text', MISSING],
  ['image_url is a number', part({ type: 'image_url', image_url: 1 }), 'messages[0].content[0].image_url'],
  ['no url', part({ type: 'image_url', image_url: {} }), 'messages[0].content[0].image_url.url', MISSING],
  ['no audio', part({ type: 'input_audio' }), 'messages[0].content[0].input_audio', MISSING],
  [
    'audio without data',
    part({ type: 'input_audio', input_audio: { format: 'wav' } }),
    'messages[0].content[0].input_audio.data',
    MISSING,
  ],
  ['no file', part({ type: 'file' }), 'messages[0].content[0].file', MISSING],
  ['a file of nothing', part({ type: 'file', file: {} }), 'messages[0].content[0].file.file_data', MISSING],
  ['file_data is a number', part({ type: 'file', file: { file_data: 1 } }), 'messages[0].content[0].file.file_data'],
  ['tool_calls is an object', said({ role: 'assistant', tool_calls: {} }), 'messages[0].tool_calls'],
  ['a call is null', call(null), 'messages[0].tool_calls[0]', MISSING],
  ['a call without a function', call({ id: 'a' }), 'messages[0].tool_calls[0].function', MISSING],
  ['a call without a name', call({ id: 'a', function: {} }), 'messages[0].tool_calls[0].function.name', MISSING],
  [
    'arguments is a number',
    call({ id: 'a', function: { name: 'f', arguments: 1 } }),
    'messages[0].tool_calls[0].function.arguments',
  ],
  ['the id of a call is a number', call({ id: 1, function: { name: 'f' } }), 'messages[0].tool_calls[0].id'],
  [
    'custom input is an object',
    call({ type: 'custom', custom: { name: 'f', input: {} } }),
    'messages[0].tool_calls[0].custom.input',
  ],
  ['function_call is a string', said({ role: 'assistant', function_call: 'x' }), 'messages[0].function_call'],
  ['tool_call_id is a number', said({ role: 'tool', tool_call_id: 1, content: 'x' }), 'messages[0].tool_call_id'],
  ['a result is a number', said({ role: 'tool', tool_call_id: 'a', content: 1 }), 'messages[0].content'],
  ['a function without a name', said({ role: 'function', content: 'x' }), 'messages[0].name', MISSING],
  ['tools is an object', body({ tools: {} }), 'tools'],
  ['a tool is a string', tool('x'), 'tools[0]'],
  ['a tool without a function', tool({ type: 'function' }), 'tools[0].function', MISSING],
  ['a tool without a name', tool({ type: 'function', function: {} }), 'tools[0].function.name', MISSING],
  ['parameters is a list', tool({ type: 'function', function: { name: 'f', parameters: [] } }), 'tools[0].function.parameters'],
  ['strict is a string', tool({ type: 'function', function: { name: 'f', strict: 'yes' } }), 'tools[0].function.strict'],
  [
    'a grammar without a definition',
    tool({ type: 'custom', custom: { name: 'f', format: { type: 'grammar', grammar: {} } } }),
    'tools[0].custom.format.grammar.definition',
    MISSING,
  ],
  ['functions is a string', body({ functions: 'x' }), 'functions'],
  ['a function without a name (deprecated)', body({ functions: [{}] }), 'functions[0].name', MISSING],
  ['tool_choice is a number', body({ tool_choice: 1 }), 'tool_choice'],
  ['tool_choice without a name', body({ tool_choice: { type: 'function' } }), 'tool_choice.function.name', MISSING],
  [
    'allowed_tools without tools',
    body({ tool_choice: { type: 'allowed_tools', allowed_tools: {} } }),
    'tool_choice.allowed_tools.tools',
    MISSING,
  ],
  ['function_call without a name', body({ function_call: {} }), 'function_call.name', MISSING],
  ['temperature is a string', body({ temperature: '1' }), 'temperature'],
  [
    'temperature is infinite',
    JSON.parse('{"model":"m","messages":[{"role":"user","content":"x"}],"temperature":1e999}'),
    'temperature',
  ],
  ['max_tokens is a string', body({ max_tokens: '1' }), 'max_tokens'],
  ['stop is a number', body({ stop: 1 }), 'stop'],
  ['a stop is a number', body({ stop: ['a', 1] }), 'stop[1]'],
  ['logit_bias is a list', body({ logit_bias: [] }), 'logit_bias'],
  ['a bias is a string', body({ logit_bias: { 5: 'x' } }), 'logit_bias.5'],
  ['logprobs is a string', body({ logprobs: 'x' }), 'logprobs'],
  ['stream is a string', body({ stream: 'true' }), 'stream'],
  ['stream_options is a list', body({ stream_options: [] }), 'stream_options'],
  ['parallel_tool_calls is a string', body({ parallel_tool_calls: 'x' }), 'parallel_tool_calls'],
  ['response_format is a string', body({ response_format: 'json' }), 'response_format'],
  ['response_format without a type', body({ response_format: {} }), 'response_format.type', MISSING],
  ['json_schema is missing', body({ response_format: { type: 'json_schema' } }), 'response_format.json_schema', MISSING],
  ['user is a number', body({ user: 1 }), 'user'],
  ['metadata is a list', body({ metadata: [] }), 'metadata'],
  ['store is a string', body({ store: 'x' }), 'store'],
  ['nested 1,000 deep: an unknown field', body({ x: nested(1000) }), 'x'],
  ['nested 1,000 deep: a schema', tool({ type: 'function', function: { name: 'f', parameters: nested(1000) } }), 'tools[0]'],
  ['nested 1,000 deep: a part', part({ type: 'x', x: nested(1000) }), 'messages[0]'],
  ['nested 100,000 deep: lists', body({ x: JSON.parse('['.repeat(100_000) + ']'.repeat(100_000)) }), 'x[0]'],
];

function errorOf(wire: unknown): CodecError | undefined {
  try {
    decodeRequestBody(wire, bareContext());
  } catch (error) {
    if (error instanceof CodecError) return error;
    throw error;
  }
  return undefined;
}

describe('bad requests', () => {
  test.each(ROWS)('%s', (_, wire, param, code = 'INVALID_INPUT') => {
    expect(errorOf(wire)?.error).toMatchObject({ code, param, http_status: 400 });
    expect(errorOf(wire)?.message).toContain(param);
  });

  test('#8 strict: broken arguments', () => {
    const wire = call({ id: 'a', function: { name: 'f', arguments: '{' } });
    const run = () => decodeRequestBody(wire, bareContext({ policy: { strict: true } }));
    expect(run).toThrow(
      expect.objectContaining({
        error: expect.objectContaining({ code: 'TOOL_CALL_PARSE_ERROR', param: 'messages[0].tool_calls[0].function.arguments' }),
      }),
    );
  });

  test('arguments nested 100,000 deep are rejected', () => {
    const text = `${'{"a":'.repeat(100_000)}1${'}'.repeat(100_000)}`;
    const run = () => decodeRequestBody(call({ id: 'a', function: { name: 'f', arguments: text } }), bareContext());
    expect(run).toThrow('messages[0].tool_calls[0].function.arguments: nested more than 256 levels deep');
  });

  test('10,000 messages are taken', () => {
    const wire = body({ messages: Array.from({ length: 10_000 }, () => HI) });
    expect(decodeRequestBody(wire, bareContext()).messages).toHaveLength(10_000);
  });
});
