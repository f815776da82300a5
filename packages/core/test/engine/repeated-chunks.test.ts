import fc from 'fast-check';
import { afterEach, describe, expect, test, vi } from 'vitest';
import { readCases, readManifest, readRecording } from '../../../../test/corpus.ts';
import { bytesOf, splitAt, splitEvery } from '../../../../test/run.ts';
import { CODECS } from '../../src/engine/index.ts';
import { EventReader } from '../../src/engine/reader.ts';
import type { CanonicalStreamEvent } from '../../src/index.ts';

const IDS = ['openai-chat', 'anthropic-messages'] as const;

function read(id: (typeof IDS)[number], chunks: Iterable<Uint8Array>) {
  const reader = new EventReader({ protocol: CODECS[id] });
  const events: CanonicalStreamEvent[] = [];
  for (const chunk of chunks) events.push(...reader.push(chunk));
  events.push(...reader.end());
  return { events, diagnostics: reader.diagnostics, notes: reader.notes };
}

/** A chunk for every frame, as servers send them. */
function framesOf(bytes: Uint8Array): Uint8Array[] {
  const text = Buffer.from(bytes).toString('latin1');
  return splitAt(
    bytes,
    [...text.matchAll(/\r?\n\r?\n/g)].map(({ index, 0: { length } }) => index + length),
  );
}

const streams = (id: string): { name: string; bytes: Uint8Array }[] => [
  ...readCases()
    .filter(({ protocol }) => protocol === id)
    .map((row) => ({ name: row.id, bytes: bytesOf(row.raw) })),
  ...readManifest()
    .filter(({ protocol, stream, status }) => protocol === id && stream && status < 400)
    .map(({ file }) => ({ name: file, bytes: readRecording(file) })),
];

afterEach(() => vi.restoreAllMocks());

describe.each(IDS)('chunks of %s that repeat the previous one', (id) => {
  const all = streams(id);

  test('give the events that the parser gives', () => {
    for (const { name, bytes } of all) expect(read(id, framesOf(bytes)), name).toEqual(read(id, [bytes]));
  });
});

const chunk = (content: string, { before = '', after = '' } = {}): string =>
  `data: {"id":"c","model":"m"${before},"choices":[{"index":0,"delta":{"content":"${content}"}${after}}]}\n\n`;

const START = `data: {"id":"c","model":"m","choices":[{"index":0,"delta":{"role":"assistant","content":""}}]}\n\n`;
const END = 'data: {"id":"c","model":"m","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n';

/** How many frames were parsed. */
function parsed(chunks: readonly Uint8Array[], id: (typeof IDS)[number] = 'openai-chat'): number {
  const parse = vi.spyOn(JSON, 'parse');
  read(id, chunks);
  const { length } = parse.mock.calls;
  parse.mockRestore();
  return length;
}

const delta = (text: string): string =>
  `event: content_block_delta\ndata: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"${text}"}}\n\n`;

const TALKS = {
  'openai-chat': { start: START, chunk },
  'anthropic-messages': {
    start:
      'event: message_start\ndata: {"type":"message_start","message":{"id":"i","model":"m"}}\n\n' +
      'event: content_block_start\ndata: {"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}\n\n',
    chunk: delta,
  },
} as const;

test.each(IDS)('repeated chunks of %s are not parsed', (id) => {
  const { start, chunk: say } = TALKS[id];
  const texts = ['one', 'two', ...Array.from({ length: 100 }, (_, i) => `piece ${i}, größer`)];
  const pieces = [start, ...texts.map((text) => say(text))].map(bytesOf);
  expect(parsed(pieces, id)).toBeLessThan(6);
  expect(JSON.stringify(read(id, pieces).events)).toContain('piece 99, größer');
});

test('chunks that always differ are parsed, one by one', () => {
  const odd = (i: number): Uint8Array => bytesOf(chunk('text', { after: `,"obfuscation":"${'x'.repeat(i % 7)}${i}"` }));
  const many = Array.from({ length: 100 }, (_, i) => odd(i));
  expect(parsed([bytesOf(START), ...many])).toBe(101);
});

describe('a chunk that nearly repeats the previous one is read by the parser', () => {
  const plain = [START, chunk('one'), chunk('two'), chunk('three')];
  const rows: [string, string | Uint8Array][] = [
    ['an escape', chunk('a\\nb')],
    ['an escaped quote', chunk('a\\"b')],
    ['a backslash and no escape', chunk('a\\')],
    ['a quote', chunk('a"b')],
    ['more fields, inside the text', chunk('a","role":"assistant')],
    ['a control character', chunk('a\tb')],
    ['a line end', chunk('a\nb')],
    ['a carriage return', chunk('a\rb')],
    ['nothing', chunk('')],
    ['letters of other scripts', chunk('größer als 大')],
    ['a character outside the first plane', chunk('👍')],
    ['bytes that are no UTF-8', Buffer.from(chunk('a\xffb'), 'latin1')],
    ['half a character', Buffer.from(chunk('a\xe5\xa4'), 'latin1')],
    ['the replacement character itself', chunk('\ufffd')],
    ['a text that is long', chunk('long '.repeat(2000))],
    ['another id', chunk('x').replace('"c"', '"d"')],
    ['another model', chunk('x').replace('"m"', '"n"')],
    ['usage', chunk('x', { before: ',"usage":{"completion_tokens":3}' })],
    ['a reason to stop', chunk('x', { after: ',"finish_reason":"length"' })],
    ['logprobs', chunk('x', { after: ',"logprobs":{"content":[{"token":"x","logprob":-1}]}' })],
    ['another choice', chunk('x').replace('"index":0', '"index":1')],
    ['an error', chunk('x', { before: ',"error":{"message":"no"}' })],
    ['two frames', chunk('x') + chunk('y')],
    ['a comment before it', `: ping\n\n${chunk('x')}`],
    ['lines that end in CRLF', chunk('x').replaceAll('\n', '\r\n')],
    ['a frame without its end', chunk('x').slice(0, -1)],
    ['half a frame', chunk('x').slice(0, 30)],
    ['the end of a line alone', '\n'],
  ];

  test.each(rows)('%s', (_, odd) => {
    const pieces = [...plain, odd, chunk('four'), chunk('five'), chunk('six'), END].map((piece) =>
      typeof piece === 'string' ? bytesOf(piece) : piece,
    );
    const whole = new Uint8Array(Buffer.concat(pieces));
    expect(read('openai-chat', pieces)).toEqual(read('openai-chat', splitEvery(whole, 1)));
  });

  test('a text that occurs twice in its chunk is not mistaken for another field', () => {
    const pieces = [START, chunk('m'), chunk('m'), chunk('x'), chunk('m').replace('"model":"m"', '"model":"n"'), END].map(
      bytesOf,
    );
    const { events } = read('openai-chat', pieces);
    const said = events.map((event) => (event.type === 'content_block_delta' && 'text' in event.delta ? event.delta.text : ''));
    expect(said.join('')).toBe('mmxm');
  });

  test('any text', () => {
    const literal = fc.oneof(fc.string({ unit: 'binary' }), fc.string()).map((text) => JSON.stringify(text).slice(1, -1));
    fc.assert(
      fc.property(fc.array(literal, { minLength: 3, maxLength: 12 }), (texts) => {
        const pieces = [START, ...texts.map((text) => chunk(text)), END].map(bytesOf);
        expect(read('openai-chat', pieces)).toEqual(read('openai-chat', splitEvery(new Uint8Array(Buffer.concat(pieces)), 1)));
      }),
    );
  });
});

test('an event refused by inspect ends the stream, whether its chunk was parsed or repeated', () => {
  const refusal = { code: 'UPSTREAM_ERROR', message: 'enough' } as const;
  let count = 0;
  const inspect = (event: CanonicalStreamEvent) => (event.type === 'content_block_delta' && ++count > 4 ? refusal : undefined);
  const reader = new EventReader({ protocol: CODECS['openai-chat'], inspect });
  const pieces = [START, ...['a', 'b', 'c', 'd', 'e', 'f'].map((text) => chunk(text))].map(bytesOf);
  const events = pieces.flatMap((piece) => reader.push(piece));
  expect(events.at(-1)).toEqual({ type: 'error', error: refusal });
  expect(events.filter(({ type }) => type === 'content_block_delta')).toHaveLength(4);
  expect(reader).toMatchObject({
    hasFailed: true,
    failedAt: pieces.slice(0, 5).reduce((sum, { length }) => sum + length, 0),
  });
});
