import { expect, test } from 'vitest';
import { buildChat, continueDraft, type Draft, DraftError, EMPTY_DRAFT } from '../src/playground/draft.ts';

const user = (text: string, images: { name: string; url: string }[] = []) => ({ role: 'user', text, images }) as const;

const DRAFT: Draft = { ...EMPTY_DRAFT, model: 'm', messages: [user('hi')], isStream: false };

test.each<[string, Partial<Draft>, object]>([
  ['a message', {}, { model: 'm', messages: [{ role: 'user', content: 'hi' }] }],
  ['a stream', { isStream: true }, { stream: true, stream_options: { include_usage: true } }],
  ['instructions', { system: 's' }, { messages: [{ role: 'system', content: 's' }, { role: 'user' }] }],
  ['numbers', { temperature: ' 0 ', maxTokens: '50' }, { temperature: 0, max_tokens: 50 }],
  [
    'an image',
    { messages: [user('look', [{ name: 'a.png', url: 'data:image/png;base64,AA==' }])] },
    {
      messages: [
        {
          content: [
            { type: 'text', text: 'look' },
            { type: 'image_url', image_url: { url: 'data:image/png;base64,AA==' } },
          ],
        },
      ],
    },
  ],
  [
    'tools in any form',
    {
      tools:
        '[{"name":"a"},{"type":"function","function":{"name":"b","parameters":{"x":1}}},{"name":"c","input_schema":{"y":1}}]',
    },
    {
      tools: [
        { type: 'function', function: { name: 'a', parameters: { type: 'object' } } },
        { type: 'function', function: { name: 'b', parameters: { x: 1 } } },
        { type: 'function', function: { name: 'c', parameters: { y: 1 } } },
      ],
    },
  ],
])('%s', (_, change, expected) => expect(buildChat({ ...DRAFT, ...change })).toMatchObject(expected));

test('empty fields are not sent', () => expect(Object.keys(buildChat(DRAFT))).toEqual(['model', 'messages']));

test.each<[Partial<Draft>, string]>([
  [{ model: ' ' }, 'Choose a model'],
  [{ messages: [] }, 'user message'],
  [{ messages: [user('')] }, 'user message'],
  [{ temperature: 'warm' }, 'Temperature must be a number'],
  [{ tools: '{' }, 'Tools must be a JSON list'],
  [{ tools: '{"name":"a"}' }, 'Tools must be a JSON list'],
  [{ tools: '[{"title":"a"}]' }, 'Tools must be a JSON list'],
])('%j is refused', (change, reason) => {
  expect(() => buildChat({ ...DRAFT, ...change })).toThrow(DraftError);
  expect(() => buildChat({ ...DRAFT, ...change })).toThrow(reason);
});

test('a response with calls is continued by their results, one without by the user', () => {
  const next = continueDraft(DRAFT, [
    { kind: 'thinking', text: 'hm' },
    { kind: 'text', text: 'Let me look.' },
    { kind: 'tool_use', text: '{"city":"Oslo"}', name: 'get_weather', call_id: 'c1' },
  ]);
  expect(buildChat(next)).toMatchObject({
    messages: [
      { role: 'user', content: 'hi' },
      {
        role: 'assistant',
        content: 'Let me look.',
        tool_calls: [{ id: 'c1', type: 'function', function: { name: 'get_weather', arguments: '{"city":"Oslo"}' } }],
      },
      { role: 'tool', tool_call_id: 'c1', content: '' },
    ],
  });
  expect(continueDraft(DRAFT, [{ kind: 'text', text: 'a' }]).messages.map(({ role }) => role)).toEqual([
    'user',
    'assistant',
    'user',
  ]);
});
