import { describe, expect, test } from 'vitest';
import { readDataUrl, splitDataUrl } from '../../src/codec/requests.ts';
import { CODECS, readRequestTarget } from '../../src/engine/index.ts';
import {
  accumulate,
  convertRequest,
  convertResponse,
  convertStream,
  createExchange,
  createFetchHandler,
  type ProtocolId,
} from '../../src/index.ts';

// Inputs whose cost was quadratic, or that ended the stack. The time limit of the runner is the only clock: each took longer, or threw.

const PROTOCOLS: readonly ProtocolId[] = ['openai-chat', 'anthropic-messages', 'openai-responses', 'gemini'];
const others = (protocol: ProtocolId): ProtocolId[] => PROTOCOLS.filter((to) => to !== protocol);
const list = <T>(n: number, item: (i: number) => T): T[] => Array.from({ length: n }, (_, i) => item(i));

const keysOf = (n: number): object => Object.fromEntries(list(n, (i) => [`key_${i}`, i]));

test.each([
  ['data:image/png;base64,AAAA', { media_type: 'image/png', data: 'AAAA' }],
  ['DATA:image/png;BASE64,AAAA', { media_type: 'image/png', data: 'AAAA' }],
  ['data:text/plain;charset=utf-8;base64,AA,AA', { media_type: 'text/plain', data: 'AA,AA' }],
  ['data:;base64,', { media_type: '', data: '' }],
  ['data:;base64', undefined],
  ['data:,text', undefined],
  ['data:text/plain,a;base64,AAAA', undefined],
  ['data:image/png,AAAA', undefined],
  ['https://example.com/;base64,AAAA', undefined],
  ['', undefined],
  [`data:${';'.repeat(500_000)}`, undefined],
  [`data:${';base64'.repeat(100_000)}`, undefined],
])('the data URL %.40s is split', (url, parts) => {
  expect(splitDataUrl(url)).toEqual(parts);
});

test.each([
  ['data:image/png;base64,AAAA', { media_type: 'image/png', data: 'AAAA' }],
  ['data:,te%78t', { media_type: 'text/plain', data: btoa('text') }],
  ['data:text/plain,a;base64,AAAA', { media_type: 'text/plain', data: btoa('a;base64,AAAA') }],
  ['data:image/svg+xml;charset=utf-8,<svg>', { media_type: 'image/svg+xml', data: btoa('<svg>') }],
  ['data:image/png,AAAA', undefined],
  ['data:text/plain', undefined],
  ['https://example.com/,text', undefined],
])('the data URL %s may be percent-encoded', (url, parts) => {
  expect(readDataUrl(url)).toEqual(parts);
});

describe('a data URL of a megabyte without a comma', () => {
  const url = `data:image/png${';a'.repeat(500_000)}`;
  const user = (part: object): object => ({ model: 'm', messages: [{ role: 'user', content: [part] }], max_tokens: 9 });

  const ROWS: readonly [what: string, from: ProtocolId, body: object][] = [
    ['image_url', 'openai-chat', user({ type: 'image_url', image_url: { url } })],
    ['file_data', 'openai-chat', user({ type: 'file', file: { file_data: url, filename: 'f' } })],
    ['source.url', 'anthropic-messages', user({ type: 'image', source: { type: 'url', url } })],
    [
      'input_image',
      'openai-responses',
      { model: 'm', input: [{ role: 'user', content: [{ type: 'input_image', image_url: url }] }] },
    ],
  ];

  test.each(ROWS)('in %s of a request is converted or rejected', (_, from, body) => {
    for (const to of others(from)) {
      const run = (): unknown => convertRequest(body, { from, to }).body;
      expect(() => {
        try {
          run();
        } catch (error) {
          if ((error as Error).name !== 'CodecError') throw error; // anything else is a defect
        }
      }).not.toThrow();
    }
  });

  test('in images of a response is converted', () => {
    const message = { role: 'assistant', content: 'hi', images: [{ type: 'image_url', image_url: { url } }] };
    const body = { id: 'a', model: 'm', choices: [{ index: 0, message, finish_reason: 'stop' }] };
    for (const to of others('openai-chat'))
      expect(JSON.stringify(convertResponse(body, { from: 'openai-chat', to }).body)).toContain('hi');
  });
});

describe('8,000 tools with names that no protocol takes', () => {
  const nameOf = (i: number): string => `tool ${i} ${'é'.repeat(80)}`;
  const tools = list(8_000, (i) => ({ type: 'function', function: { name: nameOf(i), parameters: { type: 'object' } } }));
  const body = { model: 'm', messages: [{ role: 'user', content: 'hi' }], tools };

  test.each(others('openai-chat'))('get a name each for %s, and a note that says where they stand', (to) => {
    const { notes, request } = convertRequest(body, { from: 'openai-chat', to });
    const renamed = notes.filter(({ code }) => code === 'RENAMED');
    expect(renamed).toHaveLength(8_000);
    expect(renamed[7_999]).toMatchObject({ path: '/tools/7999', feature: 'tools.name' });
    expect(request.tools).toHaveLength(8_000);
  });
});

describe('20,000 annotations of one text', () => {
  const text = 'Grüße 😀 '.repeat(2_000);
  const points = [...text].length;
  const annotations = list(20_000, (i) => ({
    type: 'url_citation',
    url_citation: { url: `https://example.com/${i}`, title: 't', start_index: i % points, end_index: (i % points) + 5 },
  }));
  const body = {
    id: 'a',
    model: 'm',
    choices: [{ index: 0, message: { role: 'assistant', content: text, annotations }, finish_reason: 'stop' }],
  };

  interface Grounded {
    candidates: {
      groundingMetadata: { groundingSupports: { segment: { startIndex: number; endIndex: number; text?: string } }[] };
    }[];
  }

  test('become grounding of Gemini with offsets in bytes', () => {
    const { candidates } = convertResponse(body, { from: 'openai-chat', to: 'gemini' }).body as Grounded; // checked below
    const supports = candidates[0]?.groundingMetadata.groundingSupports ?? [];
    expect(supports).toHaveLength(20_000);
    const bytes = Buffer.from(text);
    for (const { segment } of supports.slice(0, 50))
      expect(bytes.subarray(segment.startIndex, segment.endIndex).toString()).toBe(segment.text);
  });

  test('that all cite the whole text repeat a bounded part of it', () => {
    const whole = annotations.map(({ type, url_citation: { url } }) => ({ type, url_citation: { url } }));
    const message = { role: 'assistant', content: text, annotations: whole };
    const citing = { ...body, choices: [{ index: 0, message, finish_reason: 'stop' }] };
    const { candidates } = convertResponse(citing, { from: 'openai-chat', to: 'gemini' }).body as Grounded; // checked below
    const segments = (candidates[0]?.groundingMetadata.groundingSupports ?? []).map(({ segment }) => segment);
    expect(segments).toHaveLength(20_000);
    expect(segments[0]).toEqual({ startIndex: 0, endIndex: Buffer.byteLength(text), text });
    expect(segments.at(-1)).toEqual({ startIndex: 0, endIndex: Buffer.byteLength(text) });
    expect(segments.reduce((sum, { text: quoted = '' }) => sum + quoted.length, 0)).toBeLessThanOrEqual(1_000_000);
  });
});

describe('many blocks of one kind', () => {
  const answer = (content: object[]): object => ({
    id: 'msg_1',
    type: 'message',
    role: 'assistant',
    model: 'm',
    stop_reason: 'end_turn',
    usage: { input_tokens: 1, output_tokens: 1 },
    content,
  });

  interface Chat {
    choices: {
      message: {
        content: string;
        annotations: { url_citation: { start_index: number; end_index: number } }[];
        reasoning_details: { start?: number }[];
      };
    }[];
  }

  const toChat = (content: object[]): Chat['choices'][number]['message'] | undefined =>
    (convertResponse(answer(content), { from: 'anthropic-messages', to: 'openai-chat' }).body as Chat).choices[0]?.message; // checked by the caller

  test('20,000 cited texts have their places in the whole', () => {
    const cited = {
      type: 'web_search_result_location',
      url: 'https://example.com',
      title: 't',
      encrypted_index: 'e',
      cited_text: 'c',
    };
    const message = toChat(list(20_000, () => ({ type: 'text', text: 'é😀', citations: [cited] })));
    expect(message?.annotations).toHaveLength(20_000);
    expect(message?.annotations.at(-1)?.url_citation).toMatchObject({ start_index: 39_998, end_index: 40_000 });
  });

  test('20,000 citations of one long text end where it ends', () => {
    const cited = {
      type: 'web_search_result_location',
      url: 'https://example.com',
      title: 't',
      encrypted_index: 'e',
      cited_text: 'c',
    };
    const message = toChat([{ type: 'text', text: '😀'.repeat(200_000), citations: list(20_000, () => cited) }]);
    expect(message?.annotations.at(-1)?.url_citation).toMatchObject({ start_index: 0, end_index: 200_000 });
  });

  test('20,000 thoughts have their places in the whole', () => {
    const message = toChat(list(20_000, () => ({ type: 'thinking', thinking: 'abc', signature: 's' })));
    expect(message?.reasoning_details).toHaveLength(20_000);
    expect(JSON.stringify(message?.reasoning_details.at(-1))).toContain(String(19_999 * 5));
  });
});

test('10,000 unknown keys in a part of Gemini leave a note each', () => {
  const part = { fileData: { fileUri: 'https://example.com/a.png', mimeType: 'image/png', ...keysOf(10_000) } };
  const body = { contents: [{ role: 'user', parts: [part] }] };
  const { notes } = convertRequest(body, { from: 'gemini', to: 'anthropic-messages', path: '/v1beta/models/m:generateContent' });
  expect(notes.filter(({ path }) => path.includes('key_'))).toHaveLength(10_000);
});

test('4,000 calls that are all open at a time stop in their order', async () => {
  const call = (i: number) => ({ index: i, id: `c${i}`, type: 'function', function: { name: 'f', arguments: '{}' } });
  const chunk = {
    id: 'a',
    model: 'm',
    choices: [{ index: 0, delta: { tool_calls: list(4_000, call) }, finish_reason: 'tool_calls' }],
  };
  const stream = new Response(`data: ${JSON.stringify(chunk)}\n\ndata: [DONE]\n\n`).body;
  const converted = stream?.pipeThrough(convertStream({ from: 'openai-chat', to: 'anthropic-messages' })) ?? '';
  const { tool_calls: calls, error } = await accumulate(converted, { protocol: 'anthropic-messages' });
  expect(error).toBeNull();
  expect(calls.map(({ id }) => id)).toEqual(list(4_000, (i) => `c${i}`));
});

describe('paths', () => {
  const ask = (path: string) => readRequestTarget(CODECS.gemini, { method: 'POST', path, headers: {}, body: {} });

  test.each([
    ['/v1beta/models/gemini-3-pro:generateContent', 'gemini-3-pro', false],
    ['/v1beta/models/gemini-3-pro:streamGenerateContent?alt=sse', 'gemini-3-pro', true],
    ['/v1beta/models/a%2Fb:streamGenerateContent#x', 'a/b', true],
    ['/v1beta/models/a:b:generateContent', 'a:b', false],
    ['/v1beta/tunedModels/mine:generateContent', 'mine', false],
    ['/v1/projects/p/locations/l/publishers/google/models/m:generateContent?key=a:b', 'm', false],
  ])('%s names its model', (path, model, isStream) => {
    expect(ask(path)).toEqual({ model, isStream });
  });

  test.each([
    '/v1beta/models',
    '/v1beta/models/m',
    '/v1beta/models/:generateContent',
    '/v1beta/models/m:',
    '/v1beta/models/m:a-b',
    '/v1beta:models/m',
    '/models/'.repeat(100_000),
    `/models/${':a'.repeat(500_000)}!`,
  ])('%.60s names no model', (path) => {
    expect(() => ask(path)).toThrow('model: is required');
  });
});

describe('130,000 top-level keys', () => {
  const provider = { id: 'p', protocol: 'anthropic-messages', base_url: 'https://upstream.example' } as const;
  const body = { model: 'm', messages: [{ role: 'user', content: 'hi' }], max_tokens: 9, ...keysOf(130_000) };

  test('of a request leave a note each', () => {
    const exchange = createExchange(CODECS['openai-chat'], CODECS['anthropic-messages'], { provider });
    exchange.request({ method: 'POST', path: '/v1/chat/completions', headers: {}, body });
    expect(exchange.notes.length).toBeGreaterThanOrEqual(130_000);
  });

  test('of a request are rejected by createFetchHandler', async () => {
    const handler = createFetchHandler({ resolve: () => ({ provider }) });
    const init = { method: 'POST', body: JSON.stringify(body) };
    const response = await handler(new Request('https://gate.example/v1/chat/completions', init));
    expect(response.status).toBe(400);
    expect(await response.text()).toContain('request: 130003 keys; the limit is 4096 (limits.topLevelKeys)');
  });
});

test('100,000 messages in a row become one turn', () => {
  const body = { model: 'm', messages: list(100_000, () => ({ role: 'user', content: 'hi' })) };
  for (const [to, field] of [
    ['anthropic-messages', 'messages'],
    ['gemini', 'contents'],
  ] as const) {
    const { body: converted } = convertRequest(body, { from: 'openai-chat', to });
    const turns = (converted as Record<string, unknown[]>)[field]; // checked below
    expect(turns).toHaveLength(1);
  }
});
