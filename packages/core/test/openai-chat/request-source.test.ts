import { describe, expect, test } from 'vitest';
import { SOURCE } from '../../src/canonical/source.ts';
import { DEFAULT_CHAT_PROFILE } from '../../src/protocols/openai-chat/profiles.ts';
import { decodeRequestBody } from '../../src/protocols/openai-chat/request-decode.ts';
import { encodeRequestBody } from '../../src/protocols/openai-chat/request-encode.ts';
import { bareContext } from './bare-context.ts';

const BODY = {
  model: 'm',
  messages: [
    { role: 'system', content: 'S' },
    { role: 'developer', content: [{ type: 'text', text: 'D' }] },
    { role: 'user', content: ['a', { type: 'text', text: '' }, { type: 'image_url', image_url: { url: 'u' } }] },
    {
      role: 'assistant',
      content: 'c',
      reasoning_content: 'R',
      refusal: 'no',
      audio: { id: 'au' },
      tool_calls: [
        { id: 'x', type: 'function', function: { name: 'f', arguments: '{}' } },
        { id: 'y', type: 'function', function: { name: 'f', arguments: '{}' } },
      ],
    },
    { role: 'tool', tool_call_id: 'x', content: [{ type: 'text', text: '1' }] },
    { role: 'tool', tool_call_id: 'y', content: '2' },
    { role: 'assistant', content: null, function_call: { name: 'g', arguments: '{}' } },
    { role: 'function', name: 'g', content: '3' },
  ],
  tools: [{ type: 'function', function: { name: 'f' } }],
  web_search_options: {},
};

/** Every place that a node remembers, in the order of the request. */
function placesIn(value: unknown): string[] {
  if (typeof value !== 'object' || value === null) return [];
  const own = SOURCE in value ? [String(value[SOURCE])] : [];
  return [...own, ...Object.values(value).flatMap(placesIn)];
}

describe('nodes remember their place', () => {
  test('messages, blocks, instructions and tools', () => {
    expect(placesIn(decodeRequestBody(BODY, bareContext({ trace: true })))).toEqual([
      '',
      '/messages/0/content',
      '/messages/1/content/0',
      '/messages/2',
      '/messages/2/content/0',
      '/messages/2/content/2',
      '/messages/3',
      '/messages/3/reasoning_content',
      '/messages/3/content',
      '/messages/3/refusal',
      '/messages/3/audio',
      '/messages/3/tool_calls/0',
      '/messages/3/tool_calls/1',
      '/messages/4',
      '/messages/4',
      '/messages/4/content/0',
      '/messages/5',
      '/messages/6',
      '/messages/6/function_call',
      '/messages/7',
      '/messages/7',
      '/tools/0',
      '/web_search_options',
    ]);
  });

  test('deprecated functions', () => {
    const { web_search_options: _, tools: __, ...body } = BODY;
    const { tools } = decodeRequestBody({ ...body, functions: [{ name: 'f' }] }, bareContext({ trace: true }));
    expect(placesIn(tools)).toEqual(['/functions/0']);
  });

  test('only when asked to, and nobody sees it', () => {
    const plain = bareContext();
    const traced = bareContext({ trace: true });
    const request = decodeRequestBody(BODY, plain);
    expect(placesIn(request)).toEqual([]);
    const body = encodeRequestBody(decodeRequestBody(BODY, traced), traced);
    expect(JSON.stringify(body)).toBe(JSON.stringify(encodeRequestBody(request, plain)));
  });
});

test('notes of the encoder point into the source, behind all that the passes moved', () => {
  const context = bareContext({ trace: true, profile: { ...DEFAULT_CHAT_PROFILE, tool_images: false } });
  const body = {
    model: 'm',
    messages: [
      { role: 'system', content: 'S' },
      {
        role: 'assistant',
        content: 'late',
        reasoning_content: 'R',
        tool_calls: [{ id: 'x', function: { name: 'f', arguments: '{}' } }],
      },
      { role: 'user', content: 'wait' },
      { role: 'tool', tool_call_id: 'x', content: [{ type: 'image_url', image_url: { url: 'u' } }] },
      { role: 'user', content: [{ type: 'image_url', image_url: { url: 'u', detail: 'original' } }] },
    ],
    tools: [{ type: 'function', function: { name: 'a.b', parameters: {} } }],
    temperature: 9,
  };
  encodeRequestBody(decodeRequestBody(body, context), context);
  expect(context.notes.map(({ code, feature, path }) => `${code} ${feature} ${path}`)).toEqual([
    'REPAIRED messages.tool_order /messages/3',
    'RENAMED tools.name /tools/0',
    'APPROXIMATED tool_result.media /messages/3',
    'REPAIRED tools.schema /tools/0/function/parameters',
    'CLAMPED parameters.temperature /temperature',
    'DROPPED assistant.thinking /messages/1/reasoning_content',
    'APPROXIMATED image.detail /messages/4/content/0/image_url/detail',
  ]);
});
