/**
 * What is measured. A row:
 *
 * - `id`, `group`, `title`, `unit`; `scale` is 1000 where the unit is microseconds.
 * - `buildInput()`, `units` of one run, and `check(result, input)`: a wrong result has no time.
 * - `subjects`: `{ name, create(input, sluice) }` returns a function that does the work once. `isSluice`: runs the given build. `isNative`: needs
 *   little warm-up.
 * - `reference`: the subject that ratios refer to. `goals`: `{ subject, of, most }`.
 * - `warmMs`: more warm-up than usual. `family`: rows that one process measures one after the other, because they run the same code.
 * - `isCompared`: part of `--against COMMIT`, which runs the first subject that is Sluice.
 */
import { PROTOCOL_IDS, REQUESTS } from '../data/requests.js';
import { buildConversionInput, buildRequestInput, buildStreamInput, countChunks } from './inputs.js';
import { isExpected, isSameRequest, readStreamOutput } from './readers.js';
import { STREAM_CHUNKS } from './sources.js';

/** A function of a module in bench/subjects; the module is loaded when its row is measured. */
const subject = (name, module, work, more) => ({
  name,
  create: async (input) => (await import(`../subjects/${module}.js`))[work](input),
  ...more,
});
const sluice = (name, work) => ({ name, isSluice: true, create: (input, build) => build[work](input) });

const PEERS = [
  ['openai', 'openai'],
  ['@anthropic-ai/sdk', 'anthropic'],
  ['ai', 'ai'],
  ['langchain', 'langchain'],
];
const listPeers = (work) => PEERS.map(([name, module]) => subject(name, module, work));

const HAND = 'hand-written';
const PARSE = 'parse + stringify';
const PARSER = 'eventsource-parser';

const checkMessage = (result, { expected }) => isExpected(result, expected);

/** `[kind, title, fragments, goal]`; the 64 calls have so many fragments each. */
const ACCUMULATED = [
  ['text', 'text, 10,000 chunks', 10_000, 1.3],
  ['tool', 'one call, 10,000 fragments', 10_000, 1.4],
  ['parallel', '64 calls, 100 fragments each, interleaved', 100, 1.5],
];
/** How a kind of stream is called in ids. */
const KIND_IDS = { text: 'text', tool: 'call', parallel: 'calls' };

const ACCUMULATE_ROWS = ACCUMULATED.map(([kind, title, n, most]) => ({
  id: `accumulate-${KIND_IDS[kind]}`,
  group: 'accumulate',
  title,
  unit: 'ns a chunk',
  units: countChunks,
  reference: HAND,
  isCompared: true,
  buildInput: () => buildStreamInput({ kind, n }),
  check: checkMessage,
  subjects: [
    subject(HAND, 'hand', 'accumulate'),
    sluice('Sluice ChatAccumulator', 'accumulate'),
    sluice('Sluice createAccumulator()', 'accumulateChat'),
    sluice('Sluice createAccumulator({ protocol })', 'accumulateNamed'),
    ...listPeers('accumulate'),
  ],
  goals: [
    { subject: 'Sluice ChatAccumulator', of: HAND, most },
    { subject: 'Sluice createAccumulator({ protocol })', of: 'Sluice createAccumulator()', most: 1.1 },
  ],
}));

/** `[id, title, bytes of a piece, whether the payloads are parsed]` */
const PIECES = [
  ['256', 'pieces of 256 B', 256, false],
  ['1k', 'pieces of 1 KB', 1024, false],
  ['16k', 'pieces of 16 KB', 16_384, false],
  ['16k-json', 'pieces of 16 KB, and JSON.parse', 16_384, true],
];

const SSE_ROWS = PIECES.map(([id, title, pieceBytes, json]) => ({
  id: `sse-${id}`,
  group: 'sse',
  title,
  unit: 'ns an event',
  units: countChunks,
  reference: PARSER,
  isCompared: true,
  buildInput: () => buildStreamInput({ kind: 'text', n: 8000, pieceBytes, json }),
  check: ({ characters }, input) => characters === input.characters,
  subjects: [
    subject(PARSER, 'eventsource-parser', 'sse'),
    sluice('Sluice createSseDecoder', 'sse'),
    subject(HAND, 'hand', 'sse'),
    ...(json ? [subject('JSON.parse alone', 'json', 'sse', { isNative: true })] : []),
  ],
  goals: json ? [] : [{ subject: 'Sluice createSseDecoder', of: PARSER, most: 0.77 }],
}));

/** `[kind, title, fragments]` */
const READ = [
  ['text', 'text, 5,000 chunks', 5000],
  ['tool', 'one call, 5,000 fragments', 5000],
  ['parallel', '64 calls, 100 fragments each, interleaved', 100],
];

const BYTES_ROWS = READ.map(([kind, title, n]) => ({
  id: `bytes-${KIND_IDS[kind]}`,
  group: 'bytes',
  title,
  unit: 'ns a chunk',
  units: countChunks,
  reference: HAND,
  isCompared: true,
  buildInput: () => buildStreamInput({ kind, n, pieceBytes: 8192 }),
  check: checkMessage,
  subjects: [
    subject(HAND, 'hand', 'endToEnd'),
    sluice('Sluice StreamAccumulator', 'readBytes'),
    sluice('Sluice accumulate()', 'readStream'),
    ...listPeers('endToEnd'),
  ],
  goals: [{ subject: 'Sluice StreamAccumulator', of: HAND, most: 1.3 }],
}));

/** `[from, to]` of all 12 directions. */
const DIRECTIONS = PROTOCOL_IDS.flatMap((from) => PROTOCOL_IDS.filter((to) => to !== from).map((to) => [from, to]));
/** The short names of ids. */
const SHORT = { 'openai-chat': 'chat', 'anthropic-messages': 'anthropic', 'openai-responses': 'responses', gemini: 'gemini' };
const nameDirection = (from, to) => `${SHORT[from]}-${SHORT[to]}`;
/** Each protocol once as the source and once as the target. */
const COMPARED = ['chat-anthropic', 'anthropic-chat', 'responses-gemini', 'gemini-responses'];

/** Other programs and the templates convert from Chat to Anthropic only. */
const FROM_CHAT_TO_ANTHROPIC = [
  subject('hand-written, templates', 'hand', 'convertTemplates'),
  subject('llm-bridge', 'llm-bridge', 'convert'),
  subject('@musistudio/llms', 'llms', 'convert'),
];

const buildStreamRow = (kind, [from, to]) => ({
  id: `stream-${KIND_IDS[kind]}-${nameDirection(from, to)}`,
  group: 'stream',
  title: `${kind === 'text' ? 'text' : 'one call'}, ${from} to ${to}`,
  unit: 'ns a chunk',
  units: STREAM_CHUNKS,
  // A call of Gemini is one event, so the code for single events has to become warm.
  warmMs: kind === 'tool' && from === 'gemini' ? 600 : undefined,
  reference: PARSE,
  isCompared: COMPARED.includes(nameDirection(from, to)),
  buildInput: () => buildConversionInput({ kind, from, to, pieceBytes: 8192 }),
  check: checkStream,
  subjects: [
    { ...subject(PARSE, 'hand', 'parseAndStringify'), isUnchanged: true },
    subject('hand-written, objects', 'hand', 'convertObjects'),
    sluice('Sluice', 'convertStream'),
    ...(nameDirection(from, to) === 'chat-anthropic' ? FROM_CHAT_TO_ANTHROPIC : []),
  ],
  goals: [{ subject: 'Sluice', of: PARSE, most: to === 'openai-chat' ? 1.15 : 1.1 }],
});

function checkStream({ out }, { from, to, expected }, { isUnchanged }) {
  return isExpected(readStreamOutput(isUnchanged ? from : to, out), expected);
}

const STREAM_ROWS = ['text', 'tool'].flatMap((kind) => DIRECTIONS.map((direction) => buildStreamRow(kind, direction)));

const buildRequestRow = ({ name, title }, [from, to]) => ({
  id: `request-${name}-${nameDirection(from, to)}`,
  group: 'request',
  title: `${title}, ${from} to ${to}`,
  unit: 'µs a request',
  scale: 1000,
  units: 1,
  family: `request-${nameDirection(from, to)}`,
  // 250 ms are too few: 1.6 ms instead of 0.9 for 100 KB.
  warmMs: 600,
  reference: PARSE,
  isCompared: name !== '0.1k' && COMPARED.slice(0, name === '100k' ? 4 : 1).includes(nameDirection(from, to)),
  buildInput: () => buildRequestInput({ size: name, from, to }),
  check: checkRequest,
  subjects: [
    { ...subject(PARSE, 'json', 'parseAndStringify', { isNative: true }), isUnchanged: true },
    sluice('Sluice', 'convertText'),
  ],
  goals: [{ subject: 'Sluice', of: PARSE, most: 2 }],
});

function checkRequest({ text }, { from, to, text: source }, { isUnchanged }) {
  return isSameRequest([from, JSON.parse(source)], [isUnchanged ? from : to, JSON.parse(text)]);
}

const REQUEST_ROWS = REQUESTS.flatMap((request) => DIRECTIONS.map((direction) => buildRequestRow(request, direction)));

export const ROWS = [...ACCUMULATE_ROWS, ...SSE_ROWS, ...BYTES_ROWS, ...STREAM_ROWS, ...REQUEST_ROWS];

export function findRow(id) {
  const row = ROWS.find((one) => one.id === id);
  if (row === undefined) throw new Error(`no row is called "${id}"; known: ${ROWS.map((one) => one.id).join(', ')}`);
  return row;
}
