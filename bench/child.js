/** One subject on one case, in a process of its own: `node child.js '{"case":…, "subject":…}'`. Prints one JSON value. */
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { flat, measure } from './measure.js';
import * as data from './reference/data.mjs';

const CALLS = 64;
const { case: test, subject } = JSON.parse(process.argv[2]);
const { section, kind, n, bytes, pieceBytes, json, from, to } = test;

const payloads = n === undefined ? payloadsOf(bytes) : data.chunkJson(kind, n, CALLS);
const subjects = await import(moduleOf(subject));
const run = subjects[subject.function ?? section](inputOf());
const consume = async () => {
  const result = await run();
  if (result.text !== undefined) flat(result.text);
  for (const text of result.args ?? []) flat(text);
  return result;
};

let last;
const times = await measure(
  async () => {
    last = await consume();
  },
  subject.light ? test.effort : { warmMs: 600, cpuMs: 200 },
);
// The last run is the one to check: a subject may change its input, and then only the first would be right.
finish({ right: isRight(last), units: payloads.length, ...times });

/** The module of a subject; with `build`, that of another checkout, which imports the Sluice of that checkout. */
function moduleOf({ run, build }) {
  const file = `subjects/${run}.js`;
  return build ? pathToFileURL(join(build, 'bench', file)).href : `./${file}`;
}

function finish(result) {
  console.log(JSON.stringify(result));
  process.exit(0);
}

/** As many text chunks as make up so many bytes on the wire. */
function payloadsOf(wireBytes) {
  const some = data.chunkJson('text', 1000);
  const count = Math.round((wireBytes / data.sseOpenAI(some).length) * 1000);
  return data.chunkJson('text', count);
}

/** Everything a subject may take as its input; what is not taken is not made. */
function inputOf() {
  const wire = () => data.pieces(data.sseOpenAI(payloads), pieceBytes);
  const anthropic = () => data.anthropicJson(kind, n, CALLS);
  if (section === 'accumulate') {
    if (subject.run === 'anthropic') return { anthropicEvents: anthropic().map(([, text]) => JSON.parse(text)) };
    return { chunks: payloads.map((text) => JSON.parse(text)) };
  }
  if (subject.run === 'json') return { payloads };
  if (subject.run === 'anthropic') {
    const pieces = data.pieces(data.sseAnthropic(anthropic()), pieceBytes);
    return { anthropicResponse: () => data.sseResponse(pieces) };
  }
  const isAnthropic = from === 'anthropic-messages';
  const pieces = isAnthropic ? data.pieces(data.sseAnthropic(anthropic()), pieceBytes) : wire();
  return { from, to, pieces, json, stream: () => data.webStream(pieces), response: () => data.sseResponse(pieces) };
}

function isRight(result) {
  if (section === 'convert') return isSame(readersOf()[to](payloadsIn(Buffer.concat(result.out).toString())));
  if (section === 'sse') return result.characters === payloads.reduce((sum, text) => sum + text.length, '[DONE]'.length);
  return isSame(result);
}

function isSame(result) {
  const { text, args } = data.expected(kind, n, CALLS);
  return result.text === text && result.args.length === args.length && result.args.every((value, i) => value === args[i]);
}

function payloadsIn(wire) {
  const lines = wire.split(/\r?\n/).filter((line) => line.startsWith('data: ') && line !== 'data: [DONE]');
  return lines.map((line) => JSON.parse(line.slice('data: '.length)));
}

/** What a client of each protocol makes of a stream; no text when it did not come to its end. */
function readersOf() {
  return {
    'anthropic-messages': readAnthropic,
    'openai-chat': (chunks) => {
      const isDone = chunks.some(({ choices }) => choices[0]?.finish_reason === 'stop');
      return { text: isDone ? chunks.map(({ choices }) => choices[0]?.delta.content ?? '').join('') : undefined, args: [] };
    },
    'openai-responses': (events) => {
      const isDone = events.some(({ type }) => type === 'response.completed');
      const deltas = events.filter(({ type }) => type === 'response.output_text.delta').map(({ delta }) => delta);
      return { text: isDone ? deltas.join('') : undefined, args: [] };
    },
    gemini: (chunks) => {
      const isDone = chunks.some(({ candidates }) => candidates?.[0]?.finishReason === 'STOP');
      const parts = chunks.flatMap(({ candidates }) => candidates?.[0]?.content?.parts ?? []);
      return { text: isDone ? parts.map(({ text }) => text ?? '').join('') : undefined, args: [] };
    },
  };
}

function readAnthropic(events) {
  const blocks = [];
  let isDone = false;
  for (const event of events) {
    if (event.type === 'content_block_start') blocks[event.index] = { type: event.content_block.type, text: '' };
    if (event.type === 'content_block_delta') blocks[event.index].text += event.delta.text ?? event.delta.partial_json;
    if (event.type === 'message_stop') isDone = true;
  }
  const textsOf = (type) => blocks.filter((block) => block.type === type).map((block) => block.text);
  return { text: isDone ? textsOf('text').join('') : undefined, args: textsOf('tool_use') };
}
