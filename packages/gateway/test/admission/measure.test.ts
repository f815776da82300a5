import type { ProtocolId } from '@sluice/core';
import { CODECS } from '@sluice/core/engine';
import { describe, expect, test } from 'vitest';
import type { Work } from '../../src/admission/work.ts';
import { type Endpoints, KNOWN_ENDPOINTS } from '../../src/exchange/endpoint-table.ts';
import { measureModelRequest, measurePassed } from '../../src/exchange/measure.ts';

function measure(protocol: ProtocolId, body: object, history = 0): Work {
  const text = JSON.stringify(body);
  const work = measureModelRequest('CHAT', { body, text, bytes: text.length, history }, CODECS[protocol]);
  if (work === 'free') throw new Error('chat is charged');
  return work;
}

const PNG = `data:image/png;base64,${'A'.repeat(3000)}`;

const ask = (content: unknown): object => ({ messages: [{ role: 'user', content }] });

describe('what a chat request may read', () => {
  test.each<[name: string, ProtocolId, body: object, images: number]>([
    ['Chat', 'openai-chat', ask([{ type: 'image_url', image_url: { url: PNG } }]), 1],
    ['Responses', 'openai-responses', { input: [{ role: 'user', content: [{ type: 'input_image', image_url: PNG }] }] }, 1],
    [
      'Responses, result of a tool',
      'openai-responses',
      { input: [{ type: 'computer_call_output', output: { type: 'computer_screenshot', image_url: PNG } }] },
      1,
    ],
    [
      'Anthropic, result of a tool',
      'anthropic-messages',
      ask([
        {
          type: 'tool_result',
          content: [{ type: 'image', source: { type: 'base64', media_type: 'image/png', data: PNG } }],
        },
      ]),
      1,
    ],
    ['Gemini', 'gemini', { contents: [{ parts: [{ inline_data: { mime_type: 'image/png', data: PNG } }, {}] }] }, 1],
    [
      'Gemini, result of a function',
      'gemini',
      { contents: [{ parts: [{ functionResponse: { parts: [{ inlineData: { mimeType: 'image/png', data: PNG } }] } }] }] },
      1,
    ],
  ])('%s: an image is not text', (_, protocol, body, images) => {
    const work = measure(protocol, body);
    expect(work).toMatchObject({ images, isOpen: false });
    expect(work.bytes).toBeLessThan(300);
  });

  test('a named image is an image, and data elsewhere is text', () => {
    const named = ask([{ type: 'image_url', image_url: { url: 'https://example.invalid/a.png' } }]);
    expect(measure('openai-chat', named)).toMatchObject({ images: 1, bytes: JSON.stringify(named).length });
    const text = ask([{ type: 'text', text: PNG, image_url: PNG }]);
    expect(measure('openai-chat', text)).toMatchObject({ images: 0, bytes: JSON.stringify(text).length });
    const call = { contents: [{ parts: [{ functionCall: { args: { inlineData: { mimeType: 'image/png', data: PNG } } } }] }] };
    expect(measure('gemini', call)).toMatchObject({ images: 0, bytes: JSON.stringify(call).length });
  });

  test.each<[name: string, ProtocolId, body: object]>([
    ['a document', 'anthropic-messages', ask([{ type: 'document', source: { type: 'base64', data: 'AA' } }])],
    ['a file', 'openai-chat', ask([{ type: 'file', file: { file_id: 'f' } }])],
    ['audio', 'openai-chat', ask([{ type: 'input_audio', input_audio: { data: 'AA' } }])],
    ['an earlier audio response', 'openai-chat', { messages: [{ role: 'assistant', audio: { id: 'a' } }] }],
    ['a video', 'gemini', { contents: [{ parts: [{ fileData: { mimeType: 'video/mp4', fileUri: 'u' } }] }] }],
    ['a cached content', 'gemini', { cachedContent: 'cachedContents/1' }],
    ['a stored prompt', 'openai-responses', { prompt: { id: 'p' } }],
    ['a response of the provider', 'openai-responses', { previous_response_id: 'r' }],
    ['a conversation of the provider', 'openai-responses', { conversation: { id: 'c' } }],
    ['an item of the provider', 'openai-responses', { input: [{ type: 'item_reference', id: 'i' }] }],
  ])('%s may fill the context window', (_, protocol, body) => expect(measure(protocol, body).isOpen).toBe(true));

  test('what the gateway keeps itself is counted by its bytes', () => {
    const body = { previous_response_id: 'r', input: 'x' };
    expect(measure('openai-responses', body, 5000)).toMatchObject({ isOpen: false, bytes: JSON.stringify(body).length + 5000 });
  });

  test.each([
    ['{"cache_control":{"ttl":"1h"}}', true],
    ['{"cache_control":{"ttl":"24h"}}', true],
    ['{"cache_control":{"ttl":"\\u0031h"}}', true],
    ['{"cache_control":{"ttl":"5m"}}', false],
    ['{"text":"in 1h, or \\"1h\\" later"}', false],
  ])('%s may be kept for an hour: %s', (text, isKept) => {
    const request = { body: JSON.parse(text), text, bytes: text.length, history: 0 };
    expect(measureModelRequest('CHAT', request, CODECS['anthropic-messages'])).toMatchObject({ isKeptLong: isKept });
  });
});

describe('how often tools of the provider are used', () => {
  test.each<[name: string, body: object, uses: number, hasOpenTools?: boolean]>([
    [
      'functions',
      {
        tools: [
          { type: 'function', name: 'f' },
          { name: 'g', input_schema: {} },
        ],
      },
      0,
    ],
    ['tools of the client', { tools: [{ type: 'bash_20250124', name: 'bash' }, { type: 'local_shell' }] }, 0],
    ['functions of Gemini', { tools: [{ functionDeclarations: [] }] }, 0],
    ['a search without a limit', { tools: [{ type: 'web_search' }] }, 0, true],
    ['a search with a limit', { tools: [{ type: 'web_search_20250305', name: 'web_search', max_uses: 8 }] }, 8],
    ['a limit for one of two', { tools: [{ type: 'web_search', max_uses: 8 }, { type: 'mcp' }] }, 8, true],
    ['a limit for all tools in another protocol', { tools: [{ type: 'web_search', max_uses: 8 }], max_tool_calls: 1 }, 8],
    ['a search of Gemini', { tools: [{ googleSearch: {} }] }, 0, true],
    ['a search of a model', { web_search_options: {} }, 1],
    ['a search with sources', { search_parameters: {} }, 0, true],
    ['servers of tools', { mcp_servers: [{}, {}] }, 0, true],
    ['a compaction', { context_management: { edits: [{ type: 'compact_20260112' }] } }, 1],
  ])('%s', (_, body, uses, hasOpenTools = false) =>
    expect(measure('anthropic-messages', body)).toMatchObject({ uses, hasOpenTools }),
  );

  test('only Responses have a limit for all tools', () => {
    const body = { tools: [{ type: 'web_search' }, { type: 'mcp' }], max_tool_calls: 5 };
    expect(measure('openai-responses', body).output).toMatchObject({ toolCalls: 5 });
    for (const protocol of ['anthropic-messages', 'openai-chat', 'gemini'] as const)
      expect(measure(protocol, body).output).not.toHaveProperty('toolCalls');
  });

  test('a fetched page is as long as the request allows', () =>
    expect(measure('anthropic-messages', { tools: [{ type: 'web_fetch_20250910', max_content_tokens: 90_000 }] })).toMatchObject({
      hasOpenTools: true,
      resultTokens: 90_000,
    }));
});

describe('what is charged at an unknown price', () => {
  test.each<[body: object, unpriced: string | undefined]>([
    [{ service_tier: 'priority' }, 'service_tier "priority"'],
    [{ serviceTier: 'PRIORITY' }, 'serviceTier "PRIORITY"'],
    [{ service_tier: 'auto' }, undefined],
    [{ service_tier: 'flex' }, undefined],
    [{ service_tier: null, speed: 'standard', inference_geo: 'global' }, undefined],
    [{ speed: 'fast' }, 'speed "fast"'],
    [{ inference_geo: 'us' }, 'inference_geo "us"'],
    [{ models: ['a', 'b'] }, '"models", which lets other models respond'],
    [{ models: [], route: null }, undefined],
    [{ route: 'fallback' }, '"route", which lets other models respond'],
    [{ fallbacks: [{ model: 'm' }] }, '"fallbacks", which lets other models respond'],
    [{ Model: 'm' }, '"Model", which lets other models respond'],
    [{ plugins: [{ id: 'web' }] }, '"plugins"'],
    [{ tools: [{ type: 'image_generation' }] }, 'tool "image_generation", which another model runs'],
    [{ tools: [{ type: 'advisor_20260301', model: 'm' }] }, 'tool "advisor_20260301", which another model runs'],
  ])('%j', (body, unpriced) => expect(measure('openai-chat', body).unpriced).toBe(unpriced));
});

describe('endpoints beside chat', () => {
  const read = (type: 'EMBEDDINGS' | 'RERANK', body: object) =>
    measureModelRequest(type, { body, bytes: JSON.stringify(body).length, history: 0 }, CODECS['openai-chat']);

  test('every text of an embedding has a context window of its own', () => {
    expect(read('EMBEDDINGS', { input: ['a', 'b', 'c'] })).toMatchObject({ inputs: 3, output: 'none' });
    expect(read('EMBEDDINGS', { input: [1, 2, 3] })).toMatchObject({ inputs: 1 });
    expect(read('EMBEDDINGS', { requests: [{}, {}] })).toMatchObject({ inputs: 2 });
  });

  test('a ranking reads its query with every document', () => {
    const body = { query: 'q'.repeat(100), documents: ['a', 'b', 'c'] };
    const work = read('RERANK', body);
    expect(work).toMatchObject({ inputs: 3 });
    expect((work as Work).bytes).toBeGreaterThan(300 + JSON.stringify(body).length);
  });
});

describe('endpoints that are passed on', () => {
  const pass = (path: string, fields: object): Work | undefined => {
    const body = Buffer.from(JSON.stringify(fields));
    return measurePassed({ path, body, type: 'application/json', fields }, CODECS['openai-chat']);
  };

  test.each(Object.values<Endpoints>(KNOWN_ENDPOINTS).flatMap(({ stateless }) => stateless.map(([path]) => path)))(
    '%s is counted',
    (path) => expect(pass(path, {})).toBeDefined(),
  );

  test('others are not', () => expect(pass('batches', {})).toBeUndefined());

  test.each<[fields: object, tokens: number | undefined, choices: number]>([
    [{ prompt: 'x', max_tokens: 5 }, 5, 1],
    [{ prompt: 'x', max_tokens: 5, n: 2, best_of: 20 }, 5, 20],
    [{ prompt: ['x', 'y', 'z'], max_tokens: 5, n: 2 }, 5, 6],
    [{ prompt: [1, 2, 3], max_tokens: 5 }, 5, 1],
    [{ prompt: [[1], [2, 3]], max_tokens: 5 }, 5, 2],
    [{ prompt: 'x' }, undefined, 1],
  ])('completions %j', (fields, tokens, choices) =>
    expect(pass('completions', fields)).toMatchObject({ output: { tokens, choices }, unreported: 'reserved' }),
  );

  test('images are counted one by one', () => {
    expect(pass('images/generations', { prompt: 'x', n: 10 })).toMatchObject({ output: { choices: 10 } });
    expect(pass('models/{model}:predict', { instances: [{}, {}], parameters: { sampleCount: 3 } })).toMatchObject({
      output: { choices: 6 },
    });
  });

  test('a form is read as JSON is, without its files', () => {
    const part = (head: string, value: string): string => `--b\r\nContent-Disposition: form-data; ${head}\r\n\r\n${value}\r\n`;
    const image = 'x'.repeat(9000);
    const body = Buffer.from(
      `${part('name="n"', '4')}${part('name="image"; filename="a.png"', image)}${part('name="prompt"', 'p')}--b--\r\n`,
    );
    const type = 'multipart/form-data; boundary=b';
    const work = measurePassed({ path: 'images/edits', body, type, fields: { n: '4' } }, CODECS['openai-chat']);
    expect(work).toMatchObject({ images: 1, output: { choices: 4 }, bytes: body.length - image.length });
  });

  test('the speed of speech is no price', () => expect(pass('audio/speech', { input: 'x', speed: 2 })?.unpriced).toBeUndefined());

  test('a body that cannot be read has no price', () =>
    expect(
      measurePassed(
        { path: 'completions', body: Buffer.from('x'), type: 'text/plain', fields: undefined },
        CODECS['openai-chat'],
      ),
    ).toMatchObject({ unpriced: 'a body that is not a JSON object' }));
});
