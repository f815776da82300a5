/** Citations of Gemini, whose offsets count the bytes of one part, in other protocols and back. */
import { describe, expect, test } from 'vitest';
import { convertResponse, type ProtocolId } from '../packages/core/src/index.ts';
import { convert } from '../packages/lab/src/prove/wire.ts';

type Json = Record<string, unknown>;

interface Support {
  segment: { partIndex?: number; startIndex?: number; endIndex: number; text: string };
  groundingChunkIndices: number[];
}

const CLIENTS: readonly ProtocolId[] = ['openai-chat', 'openai-responses'];

const IMAGE = { inlineData: { mimeType: 'image/png', data: 'iVBORw0KGgo=' } };
const CALL = { functionCall: { name: 'f', args: {} } };

const answer = (parts: Json[], ...segments: Support['segment'][]): Json => ({
  responseId: 'r',
  modelVersion: 'm',
  candidates: [
    {
      index: 0,
      content: { role: 'model', parts },
      finishReason: 'STOP',
      groundingMetadata: {
        groundingChunks: [{ web: { uri: 'https://1', title: 't' } }],
        groundingSupports: segments.map((segment) => ({ segment, groundingChunkIndices: [0] })),
      },
    },
  ],
});

interface Found {
  texts: string[];
  places: [number, number][];
}

/** The texts of a response, and where its annotations are in them. */
function readAnnotations(client: ProtocolId, body: Json): Found {
  if (client === 'openai-chat') {
    const [choice] = body['choices'] as { message: { content: string; annotations?: { url_citation: Json }[] } }[];
    const cited = (choice?.message.annotations ?? []).map(({ url_citation: at }) => at);
    return {
      texts: [choice?.message.content ?? ''],
      places: cited.map((at) => [at['start_index'], at['end_index']] as [number, number]),
    };
  }
  const parts = (body['output'] as { content?: { text: string; annotations: Json[] }[] }[]).flatMap(
    ({ content = [] }) => content,
  );
  const cited = parts.flatMap(({ annotations }) => annotations);
  return {
    texts: parts.map(({ text }) => text),
    places: cited.map((at) => [at['start_index'], at['end_index']] as [number, number]),
  };
}

const ROWS: [string, Json, Found][] = [
  [
    'one part',
    answer([{ text: 'Hello world' }], { startIndex: 6, endIndex: 11, text: 'world' }),
    { texts: ['Hello world'], places: [[6, 11]] },
  ],
  [
    'a part of several',
    answer(
      [{ text: 'Grüße ' }, { text: 'world' }],
      { partIndex: 1, startIndex: 0, endIndex: 5, text: 'world' },
      { endIndex: 7, text: 'Grüße' },
    ),
    {
      texts: ['Grüße world'],
      places: [
        [0, 5],
        [6, 11],
      ],
    },
  ],
  [
    'offsets in the joined text',
    answer([{ text: 'Hello ' }, { text: 'world' }], { startIndex: 6, endIndex: 11, text: 'world' }),
    { texts: ['Hello world'], places: [[6, 11]] },
  ],
  [
    'a call follows',
    answer([{ text: 'Hello world' }, CALL], { startIndex: 6, endIndex: 11, text: 'world' }),
    { texts: ['Hello world'], places: [[6, 11]] },
  ],
  [
    'an image follows',
    answer([{ text: 'Hello world' }, IMAGE], { startIndex: 6, endIndex: 11, text: 'world' }),
    { texts: ['Hello world'], places: [[6, 11]] },
  ],
  [
    'a thought comes first',
    answer([{ text: 'hm', thought: true }, { text: 'Hello world' }], {
      partIndex: 1,
      startIndex: 6,
      endIndex: 11,
      text: 'world',
    }),
    { texts: ['Hello world'], places: [[6, 11]] },
  ],
];

describe.each(CLIENTS)('citations of Gemini for %s', (client) => {
  test.each(ROWS)('%s', (_, body, expected) => {
    const { body: written } = convertResponse(body, { from: 'gemini', to: client });
    expect(readAnnotations(client, written as Json)).toEqual(expected);
  });

  test('a stream that ends with a call', () => {
    const [, , , call] = ROWS;
    const { candidates, ...rest } = (call?.[1] ?? {}) as { candidates: Json[] };
    const frames = [
      { ...rest, candidates: [{ index: 0, content: { role: 'model', parts: [{ text: 'Hello ' }] } }] },
      { ...rest, candidates: [{ index: 0, content: { role: 'model', parts: [{ text: 'world' }] } }] },
      { ...rest, candidates: [{ ...candidates[0], content: { role: 'model', parts: [CALL] } }] },
    ];
    const bytes = new TextEncoder().encode(frames.map((frame) => `data: ${JSON.stringify(frame)}\r\n\r\n`).join(''));
    const out = Buffer.concat(convert('gemini', client, [bytes])).toString();
    expect(out).toMatch(/"start_index":6[^}]*"end_index":11|"end_index":11[^}]*"start_index":6/);
    expect(out).not.toContain('"text":"","annotations":[{');
  });

  test('an annotation whose text has ended opens no message, and is noted', () => {
    const { candidates, ...rest } = answer([IMAGE], { startIndex: 6, endIndex: 11, text: 'world' }) as { candidates: Json[] };
    const text = { ...rest, candidates: [{ index: 0, content: { role: 'model', parts: [{ text: 'Hello world' }] } }] };
    const bytes = new TextEncoder().encode(
      [text, { ...rest, candidates }].map((frame) => `data: ${JSON.stringify(frame)}\r\n\r\n`).join(''),
    );
    const notes: string[] = [];
    const out = Buffer.concat(
      convert('gemini', client, [bytes], ({ feature, message }) => notes.push(`${feature} ${message}`)),
    ).toString();
    expect(out).not.toContain('url_citation');
    expect(notes.join()).toMatch(/citations.*had ended; dropped/);
  });
});

describe('citations of Anthropic for Gemini', () => {
  const citation = (url: string): Json => ({
    type: 'web_search_result_location',
    url,
    title: 't',
    cited_text: 'q',
    encrypted_index: 'e',
  });
  const message = {
    id: 'm',
    type: 'message',
    role: 'assistant',
    model: 'c',
    stop_reason: 'end_turn',
    usage: { input_tokens: 1, output_tokens: 2 },
    content: [
      { type: 'text', text: 'Der Himmel ist schön. ' },
      { type: 'text', text: 'Grass is green.', citations: [citation('https://1')] },
      { type: 'text', text: ' And snow is white.', citations: [citation('https://2')] },
    ],
  };
  const supportsIn = (body: unknown): Support[] =>
    (body as { candidates: { groundingMetadata: { groundingSupports: Support[] } }[] }).candidates[0]?.groundingMetadata
      .groundingSupports ?? [];

  test('a whole response names the part', () => {
    const { body } = convertResponse(message, { from: 'anthropic-messages', to: 'gemini' });
    expect(supportsIn(body).map(({ segment }) => segment)).toEqual([
      { partIndex: 1, startIndex: 0, endIndex: 15, text: 'Grass is green.' },
      { partIndex: 2, startIndex: 0, endIndex: 19, text: ' And snow is white.' },
    ]);
  });

  test('a stream counts from the beginning of all its text', () => {
    const { body } = convertResponseToGemini();
    const text = 'Der Himmel ist schön. Grass is green. And snow is white.';
    const cut = (from: number, to: number): string => Buffer.from(text).subarray(from, to).toString();
    for (const { segment } of body) expect(cut(segment.startIndex ?? 0, segment.endIndex)).toBe(segment.text);
    expect(body).toHaveLength(2);
  });

  test('can be read again', () => {
    const { body } = convertResponse(message, { from: 'anthropic-messages', to: 'gemini' });
    const chat = convertResponse(body, { from: 'gemini', to: 'openai-chat' }).body as Json;
    expect(readAnnotations('openai-chat', chat).places).toEqual([
      [22, 37],
      [37, 56],
    ]);
  });

  function convertResponseToGemini(): { body: Support[] } {
    const events = [
      { type: 'message_start', message: { ...message, content: [], stop_reason: null } },
      ...message.content.flatMap(({ text, citations = [] }, index) => [
        { type: 'content_block_start', index, content_block: { type: 'text', text: '' } },
        { type: 'content_block_delta', index, delta: { type: 'text_delta', text } },
        ...citations.map((one) => ({ type: 'content_block_delta', index, delta: { type: 'citations_delta', citation: one } })),
        { type: 'content_block_stop', index },
      ]),
      { type: 'message_delta', delta: { stop_reason: 'end_turn' }, usage: { output_tokens: 2 } },
      { type: 'message_stop' },
    ];
    const bytes = new TextEncoder().encode(
      events.map((event) => `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`).join(''),
    );
    const out = Buffer.concat(convert('anthropic-messages', 'gemini', [bytes])).toString();
    const frames = out.split(/\r?\n\r?\n/).filter((frame) => frame.startsWith('data: '));
    const cited = frames
      .map((frame) => JSON.parse(frame.slice(6)) as unknown)
      .filter((frame) => JSON.stringify(frame).includes('groundingSupports'));
    return { body: cited.flatMap(supportsIn) };
  }
});
