/** Content parts of requests that are not quite as the protocols want them. */
import { describe, expect, test } from 'vitest';
import { convertRequest, type ProtocolId } from '../../src/index.ts';

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
