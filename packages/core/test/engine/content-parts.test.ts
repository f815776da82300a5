/** Content parts of requests that are not quite as the protocols want them. */
import { describe, expect, test } from 'vitest';
import { convertRequest, convertResponse, type ProtocolId } from '../../src/index.ts';

type Json = Record<string, unknown>;

const MODELS = {
  'openai-chat': 'gpt-5',
  'openai-responses': 'gpt-5',
  'anthropic-messages': 'claude-opus-4-5',
  gemini: 'gemini-3-pro',
};

function convert(from: ProtocolId, to: ProtocolId, body: Json): { text: string; notes: string[] } {
  const { body: written, notes } = convertRequest({ model: 'm', max_tokens: 99, ...body }, { from, to, model: MODELS[to] });
  return { text: JSON.stringify(written), notes: notes.map(({ code, feature }) => `${code} ${feature}`) };
}

const PROTOCOLS: readonly ProtocolId[] = ['openai-chat', 'openai-responses', 'anthropic-messages', 'gemini'];

const PNG = 'iVBORw0KGgo=';
const PDF = 'JVBERi0xLjQ=';

const chat = (...content: Json[]): Json => ({
  messages: [{ role: 'user', content: [{ type: 'text', text: 'hi' }, ...content] }],
});
const responses = (...content: Json[]): Json => ({
  input: [{ role: 'user', content: [{ type: 'input_text', text: 'hi' }, ...content] }],
});

describe.each(PROTOCOLS)('for %s, a part with an empty text beside its content is kept', (to) => {
  test.each<[string, ProtocolId, Json, string]>([
    [
      'an image of chat',
      'openai-chat',
      chat({ type: 'image_url', image_url: { url: `data:image/png;base64,${PNG}` }, text: '' }),
      PNG,
    ],
    ['a file of chat', 'openai-chat', chat({ type: 'file', file: { filename: 'a.pdf', file_data: PDF }, text: '' }), PDF],
    [
      'an image of Responses',
      'openai-responses',
      responses({ type: 'input_image', image_url: `data:image/png;base64,${PNG}`, text: '' }),
      PNG,
    ],
    [
      'an image in a result',
      'openai-responses',
      {
        input: [
          { type: 'function_call', call_id: 'a', name: 'f', arguments: '{}' },
          {
            type: 'function_call_output',
            call_id: 'a',
            output: [{ type: 'input_image', image_url: `data:image/png;base64,${PNG}`, text: '' }],
          },
        ],
      },
      PNG,
    ],
  ])('%s', (_, from, body, data) => {
    expect(convert(from, to, body).text).toContain(data);
  });

  test('text without a character is dropped', () => {
    const { text } = convert('openai-chat', to, chat({ type: 'text', text: '' }));
    expect(text).not.toContain('"text":""');
  });
});

describe('files', () => {
  const TEXT = btoa('hello');
  const file = (fields: Json): Json => chat({ type: 'file', file: fields });
  const plain = { type: 'text', media_type: 'text/plain', data: 'hello' };
  const pdf = { type: 'base64', media_type: 'application/pdf', data: PDF };

  test.each<[string, Json, Json]>([
    ['a name shows the type', { filename: 'notes.txt', file_data: TEXT }, plain],
    ['in any case', { filename: 'A.CSV', file_data: TEXT }, plain],
    ['an empty type is like none', { filename: 'a.txt', file_data: `data:;base64,${TEXT}` }, plain],
    [
      'the type of unknown bytes is like none',
      { filename: 'b.md', file_data: `data:application/octet-stream;base64,${TEXT}` },
      plain,
    ],
    ['text without a name', { file_data: TEXT }, plain],
    ['the bytes show a PDF', { filename: 'download', file_data: PDF }, pdf],
    ['a declared PDF', { filename: 'a.txt', file_data: `data:application/pdf;base64,${PDF}` }, pdf],
  ])('for Anthropic: %s', (_, fields, source) => {
    const { text, notes } = convert('openai-chat', 'anthropic-messages', file(fields));
    expect(JSON.parse(text).messages[0].content[1]).toMatchObject({ type: 'document', source });
    expect(notes.filter((note) => note.startsWith('DROPPED'))).toEqual([]);
  });

  test.each<[string, Json]>([
    ['a film', { filename: 'a.mp4', file_data: TEXT }],
    ['bytes that nothing describes', { file_data: btoa('\0\x01\x02') }],
  ])('for Anthropic: %s is dropped with a note', (_, fields) => {
    const { text, notes } = convert('openai-chat', 'anthropic-messages', file(fields));
    expect(text).not.toContain('document');
    expect(notes).toContainEqual(expect.stringMatching(/^DROPPED/));
  });

  test.each<[ProtocolId, Json, string]>([
    ['gemini', { filename: 'b.md', file_data: `data:application/octet-stream;base64,${TEXT}` }, '"mimeType":"text/markdown"'],
    [
      'gemini',
      { filename: 'b.unknown', file_data: `data:application/octet-stream;base64,${TEXT}` },
      '"mimeType":"application/octet-stream"',
    ],
    ['openai-responses', { filename: 'a.csv', file_data: TEXT }, `data:text/csv;base64,${TEXT}`],
    ['openai-responses', { file_data: PDF }, '"filename":"document.pdf"'],
  ])('for %s: %j', (to, fields, expected) => {
    expect(convert('openai-chat', to, file(fields)).text).toContain(expected);
  });
});

describe('data URLs that are percent-encoded', () => {
  const url = 'data:image/svg+xml,%3Csvg%3E%C3%BC%%zz';
  const data = Buffer.from('<svg>ü%%zz').toString('base64');

  test.each<[ProtocolId, string]>([
    ['gemini', `"inlineData":{"mimeType":"image/svg+xml","data":"${data}"}`],
    ['openai-responses', `data:image/svg+xml;base64,${data}`],
  ])('are data for %s', (to, expected) => {
    expect(convert('openai-chat', to, chat({ type: 'image_url', image_url: { url } })).text).toContain(expected);
  });

  test('are read in linear time, and without a type as text', () => {
    const text = '%41'.repeat(300_000);
    const { text: written } = convert(
      'openai-chat',
      'anthropic-messages',
      chat({ type: 'file', file: { file_data: `data:,${text}` } }),
    );
    expect(written).toContain('A'.repeat(300_000));
  });
});

describe('the error flag of a result', () => {
  const result = (content: string): Json => ({
    messages: [
      { role: 'user', content: 'hi' },
      { role: 'assistant', content: [{ type: 'tool_use', id: 'a', name: 'f', input: {} }] },
      { role: 'user', content: [{ type: 'tool_result', tool_use_id: 'a', is_error: true, content }] },
    ],
  });

  test.each<[ProtocolId, string, string]>([
    ['openai-chat', 'errors.log: 0 entries', 'Error: errors.log: 0 entries'],
    ['openai-chat', 'Error: no such file', 'Error: no such file'],
    ['openai-responses', 'errorless', 'Error: errorless'],
    ['openai-responses', ' ERROR - x', ' ERROR - x'],
  ])('%s: %j', (to, content, expected) => {
    const { text, notes } = convert('anthropic-messages', to, result(content));
    expect(text).toContain(JSON.stringify(expected));
    expect(notes).toContain('APPROXIMATED tool_result.is_error');
  });
});

describe.each(['anthropic-messages', 'gemini'] as const)('for %s', (to) => {
  const system = (...content: Json[]): Json => ({
    messages: [
      { role: 'system', content },
      { role: 'user', content: 'hi' },
      { role: 'system', content: 'later' },
      { role: 'user', content: 'go' },
    ],
  });

  test('a leading system message stays one when another part of it is dropped', () => {
    const image = { type: 'image_url', image_url: { url: `data:image/png;base64,${PNG}` } };
    const { text, notes } = convert('openai-chat', to, system({ type: 'text', text: 'Be brief.' }, image));
    expect(text).toContain('Be brief.');
    expect(text).not.toContain('<system-reminder>Be brief.');
    expect(text).toContain('later');
    expect(notes).toContainEqual(expect.stringMatching(/^DROPPED/));
  });
});

test('a schema whose root is not an object is requested as a value', () => {
  const body = {
    messages: [{ role: 'user', content: 'hi' }],
    response_format: { type: 'json_schema', json_schema: { name: 'l', schema: { type: 'array', items: { type: 'string' } } } },
  };
  const { body: sent } = convertRequest(
    { model: 'm', max_tokens: 9, ...body },
    { from: 'openai-chat', to: 'anthropic-messages', model: 'claude-3-haiku-20240307', profile: { structured_outputs: false } },
  );
  expect(JSON.stringify(sent)).toContain('Answer with one JSON value only');
});

test.each(['default', 'scale', 'priority'])('the service tier %s is the same in both protocols of OpenAI', (tier) => {
  const chat = {
    id: 'c',
    object: 'chat.completion',
    created: 1,
    model: 'm',
    choices: [{ index: 0, message: { role: 'assistant', content: 'hi' }, finish_reason: 'stop' }],
    service_tier: tier,
  };
  const there = convertResponse(chat, { from: 'openai-chat', to: 'openai-responses' });
  expect(there.body).toMatchObject({ service_tier: tier });
  expect(there.notes.filter(({ feature }) => feature === 'service_tier')).toEqual([]);
  const back = convertResponse(there.body, { from: 'openai-responses', to: 'openai-chat' });
  expect(back.body).toMatchObject({ service_tier: tier });
  expect(back.notes.filter(({ feature }) => feature === 'service_tier')).toEqual([]);
});
