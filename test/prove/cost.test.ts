import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { expect, test } from 'vitest';
import { EventReader } from '../../packages/core/src/engine/reader.ts';
import type { CanonicalStreamEvent, ContentBlock, ProtocolId } from '../../packages/core/src/index.ts';
import { listMutations } from '../../packages/lab/src/mutate/index.ts';
import { costFailure, FACTOR, isLinear, measureRatio } from '../../packages/lab/src/prove/prove-body.ts';
import { assemble, convert, PROTOCOL_IDS } from '../../packages/lab/src/prove/wire.ts';
import { eventsOf } from './generate/events.ts';
import type { Answer } from './generate/message.ts';
import { checkMutation, cleanOf } from './properties/mutation.ts';
import { SEED, scale, Tally } from './tally.ts';
import { CODECS, chunksOf, encode, streamOf } from './wire.ts';

const ANSWER: Answer = { id: 'gen_1', model: 'm', blocks: [], stop: 'end_turn', usage: undefined };

/** The three things that grow without bounds: a text, one call, many calls. */
const LONG: Record<string, (size: number) => ContentBlock[]> = {
  text: (size) => [{ type: 'text', text: 'word '.repeat(size) }],
  arguments: (size) => [
    { type: 'tool_use', id: 'call_1', name: 'f', input: {}, input_raw: JSON.stringify({ a: 'b '.repeat(size) }) },
  ],
  calls: (size) =>
    Array.from({ length: size / 20 }, (_, at) => ({
      type: 'tool_use',
      id: `call_${at}`,
      name: 'f',
      input: {},
      input_raw: '{"a":1}',
    })),
};

/** Every delta a few characters long, so that there are many of them. */
const SHORT = 8;
function pieces(events: readonly CanonicalStreamEvent[]): CanonicalStreamEvent[] {
  return events.flatMap((event): CanonicalStreamEvent[] => {
    if (event.type !== 'content_block_delta') return [event];
    const { delta } = event;
    const text = delta.type === 'text_delta' ? delta.text : delta.type === 'input_json_delta' ? delta.partial_json : '';
    const cut = text.match(new RegExp(`[^]{1,${SHORT}}`, 'g')) ?? [];
    return cut.map((piece) => ({
      ...event,
      delta: delta.type === 'text_delta' ? { ...delta, text: piece } : { type: 'input_json_delta', partial_json: piece },
    }));
  });
}

const bodyOf = (protocol: ProtocolId, blocks: ContentBlock[]): Uint8Array[] => {
  const stop = blocks.some(({ type }) => type === 'tool_use') ? 'tool_use' : 'end_turn';
  return chunksOf(streamOf(protocol, encode(protocol, pieces(eventsOf({ ...ANSWER, blocks, stop }, 1)), [], protocol)));
};

const SIZE = scale(1_000, 8_000);

/** Work rather than time: other processes do not count. */
function now(): number {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1000;
}

const rows = PROTOCOL_IDS.flatMap((protocol) => Object.keys(LONG).map((what) => ({ protocol, what })));

test.each(rows)('$protocol: reading and writing $what is linear in its length', ({ protocol, what }) => {
  const tally = new Tally();
  const [small, large] = [SIZE, SIZE * FACTOR].map((size) => bodyOf(protocol, LONG[what]?.(size) ?? []));
  if (!small || !large) throw new Error('no body');
  for (const [name, run] of Object.entries({
    read: (body: Uint8Array[]) => assemble(protocol, body),
    convert: (body: Uint8Array[]) => convert(protocol, protocol, body),
  })) {
    const ratio = measureRatio(
      () => run(small),
      () => run(large),
      now,
    );
    tally.check('linear cost', protocol, isLinear(ratio) ? undefined : costFailure(`cost/${protocol}/${what}`, name, ratio));
  }
  expect(tally.finish(`cost-${protocol}-${what}`)).toEqual([]);
});

setFlagsFromString('--expose-gc');
const collect = runInNewContext('gc') as () => void;

function heapAfter(run: () => void): number {
  run();
  collect();
  return process.memoryUsage().heapUsed;
}

test.each(PROTOCOL_IDS)('%s: a passed-through stream is not buffered', (protocol) => {
  const tally = new Tally();
  const chunks = bodyOf(protocol, LONG['text']?.(SIZE) ?? []);
  // Beginning and end of one message, and its middle again and again: the longest answer ever.
  const middle = chunks.slice(5, -10);
  const reader = new EventReader({ protocol: CODECS[protocol] });
  const feed = (some: readonly Uint8Array[]): void => {
    for (const chunk of some) reader.push(chunk);
  };
  const before = heapAfter(() => feed(chunks.slice(0, -10)));
  const after = heapAfter(() => {
    for (let round = 0; round < scale(10, 40); round++) feed(middle);
  });
  const grown = after - before;
  const fed = scale(10, 40) * middle.reduce((sum, { length }) => sum + length, 0);
  const failure = { property: 'bounded memory', id: `memory/${protocol}`, message: `${fed} bytes left ${grown} behind` };
  // Responses states the whole text again at its end, and Gemini counts its citations in bytes of the text: their readers keep the words.
  const keepsText = protocol === 'openai-responses' || protocol === 'gemini';
  const bound = 2_000_000 + (keepsText ? fed / 3 : 0);
  tally.check('bounded memory', protocol, grown < bound ? undefined : failure);
  expect(tally.finish(`memory-${protocol}`)).toEqual([]);
});

const PROTOTYPES = [Object.prototype, Array.prototype, Function.prototype, String.prototype, Map.prototype, Promise.prototype];
const namesOf = (): string => PROTOTYPES.map((prototype) => Reflect.ownKeys(prototype).map(String).join()).join('\n');

test.each(PROTOCOL_IDS)('%s: hostile keys do not change prototypes', (protocol) => {
  const tally = new Tally();
  const before = namesOf();
  const args = '{"__proto__":{"polluted":1},"constructor":{"prototype":{"polluted":1}},"toString":"x"}';
  const blocks: ContentBlock[] = [
    { type: 'text', text: '__proto__' },
    { type: 'tool_use', id: '__proto__', name: 'constructor', input: {}, input_raw: args },
    { type: 'opaque', origin: protocol, raw: JSON.parse(args) },
  ];
  const clean = cleanOf(streamOf(protocol, encode(protocol, eventsOf({ ...ANSWER, blocks, stop: 'tool_use' }, 1), [], protocol)));
  for (const mutation of clean ? listMutations(protocol) : []) {
    if (clean) checkMutation(clean, mutation, SEED);
    for (const to of PROTOCOL_IDS) if (clean) convert(protocol, to, chunksOf(clean.stream));
    const isTouched = namesOf() !== before || 'polluted' in {};
    tally.check(
      'untouched prototypes',
      protocol,
      isTouched
        ? { property: 'untouched prototypes', id: `prototype/${mutation.id}`, message: 'a prototype has changed' }
        : undefined,
    );
  }
  expect(clean).toBeDefined();
  expect(tally.finish(`prototypes-${protocol}`)).toEqual([]);
});
