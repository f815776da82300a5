import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { bytesOf, splitEvery } from '../../../../test/run.ts';
import { StreamAccumulator } from '../../src/engine/index.ts';
import { createStreamConverter } from '../../src/engine/stream.ts';
import { CODECS, REPAIRS } from '../../src/protocols/index.ts';
import { RepairStream } from '../../src/repair/stream.ts';
import * as p from './payloads.ts';
import { type Payload, rulesOf, runPayloads } from './run.ts';

// ---- a stream as the API sends it, and the names that its events get instead

/** What the model says. */
type Said =
  | { kind: 'message'; pieces: string[] }
  | { kind: 'reasoning'; channel: 'summary' | 'full'; pieces: string[] }
  | { kind: 'call'; name: string; pieces: string[] };

/** How the events of one class are named. */
interface Naming {
  /** `own`: as in the item; `other`: one id of this class; `rotating`: one of this event; `none`: no id. */
  id: 'own' | 'other' | 'rotating' | 'none';
  /** `shifted`, `scattered`: another index for each item; `zero`: the same for all. */
  index: 'own' | 'shifted' | 'scattered' | 'zero' | 'none';
  callId: 'own' | 'other' | 'none';
}

const CLASSES = ['added', 'part', 'delta', 'text-done', 'part-done', 'done', 'completed'] as const;

type Class = (typeof CLASSES)[number];

const STAGES: readonly Class[] = ['added', 'text-done', 'done', 'completed'];

/** What a server makes of a conforming stream. */
interface Server {
  naming: Record<Class, Naming>;
  /** From when on the name of a call and its arguments are there. */
  nameFrom: Class;
  argumentsFrom: 'delta' | 'text-done' | 'done' | 'completed';
  leavesOut: Class[];
  isDoneTwice: boolean;
  countsParts: boolean;
  crossesReasoning: boolean;
  spaces: boolean;
}

const pick = <T>(...values: T[]): fc.Arbitrary<T> => fc.constantFrom(...values);

const naming: fc.Arbitrary<Naming> = fc.record({
  id: pick<Naming['id']>('own', 'own', 'other', 'rotating', 'none'),
  index: pick<Naming['index']>('own', 'own', 'shifted', 'scattered', 'zero', 'none'),
  callId: pick<Naming['callId']>('own', 'own', 'other', 'none'),
});

const server: fc.Arbitrary<Server> = fc.record({
  naming: fc.record({
    added: naming,
    part: naming,
    delta: naming,
    'text-done': naming,
    'part-done': naming,
    done: naming,
    completed: naming,
  }),
  nameFrom: pick<Class>('added', 'added', 'text-done', 'done', 'completed'),
  argumentsFrom: pick<Server['argumentsFrom']>('delta', 'delta', 'text-done', 'done', 'completed'),
  leavesOut: fc.subarray<Class>(['part', 'text-done', 'part-done']),
  isDoneTwice: fc.boolean(),
  countsParts: fc.boolean(),
  crossesReasoning: fc.boolean(),
  spaces: fc.boolean(),
});

const pieces = fc.array(pick('a', 'bc', ' the', '"', '\n', 'é😀', '0'), { minLength: 1, maxLength: 4 });

const said: fc.Arbitrary<Said> = fc.oneof(
  pieces.map((list): Said => ({ kind: 'message', pieces: list })),
  fc
    .tuple(pick<'summary' | 'full'>('summary', 'full'), pieces)
    .map(([channel, list]): Said => ({ kind: 'reasoning', channel, pieces: list })),
  pick('f', 'g').map((name): Said => ({ kind: 'call', name, pieces: [] })),
);

/** Items whose texts and arguments differ from each other, so that every one can be told from the others. */
const items = fc.array(said, { minLength: 1, maxLength: 5 }).map((list) =>
  list.map((item, at): Said => {
    if (item.kind !== 'call') return { ...item, pieces: [`${at}${item.kind}`, ...item.pieces] };
    return { ...item, pieces: ['{"city":', `"Paris ${at}"`, ',"n":[', `${at}`, ']}'] };
  }),
);

/** Writes the events of a server. */
class Writer {
  readonly events: Payload[] = [p.created];
  readonly #server: Server;
  #serial = 0;
  #part = 0;

  constructor(behaviour: Server) {
    this.#server = behaviour;
  }

  write(list: readonly Said[]): Payload[] {
    for (const [at, item] of list.entries()) this.#item(item, at);
    const output = list.map((item, at) => this.#whole(item, at, 'completed'));
    return [...this.events, p.completed(output)];
  }

  #id(at: number, of: Class): string | undefined {
    const { id } = this.#server.naming[of];
    if (id === 'none') return undefined;
    if (id === 'rotating') return `x${this.#serial++}`;
    return id === 'own' ? `item_${at}` : `item_${at}_${of}`;
  }

  #index(at: number, of: Class): number | undefined {
    const { index } = this.#server.naming[of];
    if (index === 'none') return undefined;
    if (index === 'zero') return 0;
    if (index === 'own') return at;
    return index === 'shifted' ? at + 1 : (at * 7 + CLASSES.indexOf(of) * 5 + 3) % 23;
  }

  #has(from: Class, of: Class): boolean {
    return STAGES.indexOf(of) >= STAGES.indexOf(from);
  }

  #event(type: string, of: Class, at: number, fields: Payload): void {
    if (this.#server.leavesOut.includes(of)) return;
    const names = { output_index: this.#index(at, of), item_id: this.#id(at, of) };
    this.events.push(JSON.parse(JSON.stringify({ type: `response.${type}`, ...names, ...fields })));
  }

  #whole(item: Said, at: number, of: Class): Payload {
    const text = item.pieces.join('');
    const isBegun = of === 'added';
    const common = { id: this.#id(at, of), status: isBegun ? 'in_progress' : 'completed' };
    if (item.kind === 'message')
      return { type: 'message', role: 'assistant', ...common, content: isBegun ? [] : [p.outputText(text)] };
    if (item.kind === 'reasoning') {
      const part = [{ type: item.channel === 'full' ? 'reasoning_text' : 'summary_text', text }];
      const [summary, content] = item.channel === 'full' ? [[], part] : [part, []];
      return { type: 'reasoning', ...common, summary: isBegun ? [] : summary, content: isBegun ? [] : content };
    }
    const { callId } = this.#server.naming[of];
    const from = this.#server.argumentsFrom;
    const hasInput = !isBegun && this.#has(from === 'delta' ? 'text-done' : from, of);
    return {
      type: 'function_call',
      ...common,
      ...(callId !== 'none' && { call_id: callId === 'own' ? `call_${at}` : `call_${at}_${of}` }),
      ...(this.#has(this.#server.nameFrom, of) && { name: item.name }),
      arguments: hasInput ? this.#spaced(text) : '',
    };
  }

  /** Arguments that were parsed and written again. */
  #spaced(text: string): string {
    return this.#server.spaces ? JSON.stringify(JSON.parse(text), null, 1) : text;
  }

  #item(item: Said, at: number): void {
    const begun = JSON.parse(JSON.stringify(this.#whole(item, at, 'added')));
    this.events.push(
      JSON.parse(JSON.stringify({ type: 'response.output_item.added', output_index: this.#index(at, 'added'), item: begun })),
    );
    if (item.kind === 'call') this.#input(item, at);
    else this.#text(item, at);
    const done = {
      type: 'response.output_item.done',
      output_index: this.#index(at, 'done'),
      item: this.#whole(item, at, 'done'),
    };
    const count = this.#server.isDoneTwice ? 2 : 1;
    for (let times = 0; times < count; times++) this.events.push(JSON.parse(JSON.stringify(done)));
  }

  #input(item: Said & { kind: 'call' }, at: number): void {
    const { argumentsFrom, nameFrom } = this.#server;
    if (argumentsFrom === 'delta')
      for (const delta of item.pieces) this.#event('function_call_arguments.delta', 'delta', at, { delta });
    if (argumentsFrom === 'delta' || argumentsFrom === 'text-done')
      this.#event('function_call_arguments.done', 'text-done', at, {
        arguments: item.pieces.join(''),
        ...(this.#has(nameFrom, 'text-done') && { name: item.name }),
      });
  }

  #text(item: Said & { kind: 'message' | 'reasoning' }, at: number): void {
    const text = item.pieces.join('');
    const { countsParts, crossesReasoning } = this.#server;
    this.#part = 0;
    const isSummary = item.kind === 'reasoning' && item.channel === 'summary';
    const place = (): Payload => ({ [isSummary ? 'summary_index' : 'content_index']: countsParts ? this.#part++ : 0 });
    const [part, delta] =
      item.kind === 'message'
        ? ['content_part', 'output_text']
        : isSummary
          ? ['reasoning_summary_part', 'reasoning_summary_text']
          : ['content_part', 'reasoning_text'];
    const type = item.kind === 'message' ? 'output_text' : isSummary ? 'summary_text' : 'reasoning_text';
    this.#event(`${part}.added`, 'part', at, { ...place(), part: { type, text: '' } });
    for (const piece of item.pieces) this.#event(`${delta}.delta`, 'delta', at, { ...place(), delta: piece });
    const isCrossed = crossesReasoning && item.kind === 'reasoning';
    this.#event(`${isCrossed ? 'output_text' : delta}.done`, 'text-done', at, { ...place(), text });
    this.#event(`${part}.done`, 'part-done', at, { ...place(), part: { type, text } });
  }
}

const PLAIN: Naming = { id: 'own', index: 'own', callId: 'own' };

/** The server that conforms. */
const OPENAI: Server = {
  naming: { added: PLAIN, part: PLAIN, delta: PLAIN, 'text-done': PLAIN, 'part-done': PLAIN, done: PLAIN, completed: PLAIN },
  nameFrom: 'added',
  argumentsFrom: 'delta',
  leavesOut: [],
  isDoneTwice: false,
  countsParts: false,
  crossesReasoning: false,
  spaces: false,
};

/**
 * What nothing could tell: parts of a summary that were never announced are told apart by their index; and a call id that
 * only the final response has comes after the call was handed out under another one.
 */
const isDecidable = ({ countsParts, leavesOut }: Server): boolean => !(countsParts && leavesOut.includes('part'));

const streams = fc.tuple(items, server.filter(isDecidable)).map(([list, behaviour]) => ({ list, behaviour }));

// ---- what is read of it

const toBytes = (events: readonly Payload[]): Uint8Array =>
  bytesOf(
    events.map((event, at) => `event: ${event['type']}\ndata: ${JSON.stringify({ sequence_number: at, ...event })}\n\n`).join(''),
  );

interface Heard {
  text: string;
  reasoning: string;
  calls: string[];
}

/** Calls whose name comes late are handed out late, so their order is not compared. */
function hear(protocol: keyof typeof CODECS, body: Uint8Array): Heard {
  const accumulator = new StreamAccumulator({ protocol: CODECS[protocol] });
  accumulator.push(body);
  const { text, reasoning, tool_calls: calls, complete, error } = accumulator.finish();
  expect({ complete, error }).toEqual({ complete: true, error: null });
  expect(new Set(calls.map(({ id }) => id)).size).toBe(calls.length);
  return { text, reasoning, calls: calls.map((call) => `${call.name} ${normalize(call.arguments)}`).toSorted() };
}

const normalize = (text: string): string => {
  try {
    return JSON.stringify(JSON.parse(text));
  } catch {
    return text;
  }
};

const convert = (to: keyof typeof CODECS, body: Uint8Array): Uint8Array => {
  const converter = createStreamConverter({ from: CODECS['openai-responses'], to: CODECS[to] });
  const out = splitEvery(body, 700).flatMap((chunk) => [...converter.push(chunk)]);
  return Buffer.concat([...out, ...converter.end()]);
};

const repair = (body: Uint8Array): Uint8Array => {
  const stage = new RepairStream({ codec: REPAIRS['openai-responses'] });
  const out = splitEvery(body, 700).flatMap((chunk) => [...stage.push(chunk)].map((piece) => piece.slice()));
  return Buffer.concat([...out, ...stage.end()]);
};

const write = (list: readonly Said[], behaviour: Server): Uint8Array => toBytes(new Writer(behaviour).write(list));

describe('an item under several names', () => {
  test('the stream that the others are made of conforms', () => {
    fc.assert(
      fc.property(items, (list) => {
        expect(rulesOf(runPayloads(new Writer(OPENAI).write(list)))).toEqual([]);
      }),
    );
  });

  test('is read once', () => {
    fc.assert(
      fc.property(streams, ({ list, behaviour }) => {
        expect(hear('openai-responses', write(list, behaviour))).toEqual(hear('openai-responses', write(list, OPENAI)));
      }),
      { numRuns: 3000 },
    );
  });

  test.each(['openai-chat', 'anthropic-messages', 'gemini'] as const)('is written once to %s', (to) => {
    fc.assert(
      fc.property(streams, ({ list, behaviour }) => {
        expect(hear(to, convert(to, write(list, behaviour)))).toEqual(hear(to, convert(to, write(list, OPENAI))));
      }),
      { numRuns: 600 },
    );
  });

  test('is there once after a repair', () => {
    fc.assert(
      fc.property(streams, ({ list, behaviour }) => {
        expect(hear('openai-responses', repair(write(list, behaviour)))).toEqual(hear('openai-responses', write(list, OPENAI)));
      }),
      { numRuns: 600 },
    );
  });
});

const f = (callId: string, args: string, fields: Payload = {}): Payload => p.call(callId, 'f', args, fields);
const nameless = (args: string): Payload => ({ type: 'function_call', name: 'f', arguments: args });
const doneBare = (item: Payload): Payload => ({ type: 'response.output_item.done', item });

interface Row {
  name: string;
  payloads: Payload[];
  text?: string;
  reasoning?: string;
  calls?: string[];
  /** Chat and Anthropic clients have read the deltas, and nothing can be taken back. */
  isSent?: boolean;
}

const ROWS: Row[] = [
  {
    name: 'the end of a call that is sent again is not that of another open call',
    payloads: [
      p.added(0, f('c1', '')),
      p.added(1, f('c2', '')),
      p.done(0, f('c1', '{"a":1}')),
      p.done(0, f('c1', '{"a":1}')),
      p.done(1, f('c2', '{"a":2}')),
      p.completed([f('c1', '{"a":1}'), f('c2', '{"a":2}')]),
    ],
    calls: ['c1 {"a":1}', 'c2 {"a":2}'],
  },
  {
    name: "parallel calls are done at each other's index",
    payloads: [
      p.added(0, f('c1', '')),
      p.added(1, f('c2', '')),
      p.done(1, f('c1', '{"a":1}', { id: 'x' })),
      p.done(0, f('c2', '{"a":2}', { id: 'y' })),
      p.completed([f('c1', '{"a":1}'), f('c2', '{"a":2}')]),
    ],
    calls: ['c1 {"a":1}', 'c2 {"a":2}'],
  },
  {
    name: 'one item id for all calls',
    payloads: [
      p.added(0, f('c1', '', { id: 'fc' })),
      p.added(1, f('c2', '', { id: 'fc' })),
      p.args(0, '{"a":1}'),
      p.args(1, '{"a":2}'),
      p.done(0, f('c1', '{"a":1}', { id: 'fc' })),
      p.done(1, f('c2', '{"a":2}', { id: 'fc' })),
      p.completed([f('c1', '{"a":1}', { id: 'fc' }), f('c2', '{"a":2}', { id: 'fc' })]),
    ],
    calls: ['c1 {"a":1}', 'c2 {"a":2}'],
  },
  {
    name: 'one id for all messages, which are only done',
    payloads: [
      p.done(0, p.message('m', [p.outputText('one')])),
      p.done(1, p.message('m', [p.outputText('two')])),
      p.completed([p.message('m', [p.outputText('one')]), p.message('m', [p.outputText('two')])]),
    ],
    text: 'onetwo',
  },
  {
    name: 'a done call that is only added again is no second call',
    payloads: [
      p.added(0, f('c1', '')),
      p.done(0, f('c1', '{"a":1}')),
      p.added(1, f('c1', '', { id: 'x' })),
      p.completed([f('c1', '{"a":1}')]),
    ],
    calls: ['c1 {"a":1}'],
  },
  {
    name: 'a call that is added again under its call_id with other arguments is a second call',
    payloads: [
      p.added(0, f('c1', '')),
      p.done(0, f('c1', '{"a":1}')),
      p.added(1, f('c1', '', { id: 'x' })),
      p.args(1, '{"a":2}'),
      p.done(1, f('c1', '{"a":2}', { id: 'x' })),
      p.completed([f('c1', '{"a":1}'), f('c1', '{"a":2}', { id: 'x' })]),
    ],
    calls: ['c1 {"a":1}', '<derived> {"a":2}'],
  },
  {
    name: 'the same end twice without any name is one call',
    payloads: [doneBare(nameless('{"a":1}')), doneBare(nameless('{"a":1}')), p.completed([nameless('{"a":1}')])],
    calls: ['<derived> {"a":1}'],
  },
  {
    name: 'the same end twice without any name, and the final response has two calls',
    payloads: [
      doneBare(nameless('{"a":1}')),
      doneBare(nameless('{"a":1}')),
      p.completed([nameless('{"a":1}'), nameless('{"a":1}')]),
    ],
    calls: ['<derived> {"a":1}', '<derived> {"a":1}'],
  },
  {
    name: 'complete arguments replace deltas that are no JSON',
    payloads: [
      p.added(0, f('c1', '')),
      p.args(0, '{"a":1'),
      p.args(0, '"a":1}'),
      p.done(0, f('c1', '{"a":1}')),
      p.completed([f('c1', '{"a":1}')]),
    ],
    calls: ['c1 {"a":1}'],
    isSent: true,
  },
  {
    name: 'a summary that the end of the item has as content',
    payloads: [
      p.added(0, p.reasoning('rs_1')),
      p.summaryPart(0, 0),
      p.summary(0, 0, 'Hm'),
      p.done(0, p.reasoning('rs_1', { content: [{ type: 'reasoning_text', text: 'Hm' }] })),
      ...p.wholeMessage(1, 'msg_1', 'Hi'),
      p.completed([
        p.reasoning('rs_1', { content: [{ type: 'reasoning_text', text: 'Hm' }] }),
        p.message('msg_1', [p.outputText('Hi')]),
      ]),
    ],
    text: 'Hi',
    reasoning: 'Hm',
  },
  {
    name: 'parts that the end of the item joins',
    payloads: [
      p.added(0, p.message('msg_1')),
      p.partAdded(0),
      p.text(0, 'Hel'),
      p.textDone(0, 'Hel'),
      p.partAdded(0, p.outputText(''), 1),
      p.text(0, 'lo', { content_index: 1 }),
      p.done(0, p.message('msg_1', [p.outputText('Hello!')])),
      p.completed([p.message('msg_1', [p.outputText('Hello!')])]),
    ],
    text: 'Hello!',
  },
  {
    name: 'messages that the final response joins',
    payloads: [
      ...p.wholeMessage(0, 'msg_1', 'Hello '),
      ...p.wholeMessage(1, 'msg_2', 'there'),
      p.completed([p.message('msg_9', [p.outputText('Hello there!')])]),
    ],
    text: 'Hello there!',
  },
  {
    name: 'messages around a call that the final response joins with a line between them',
    payloads: [
      ...p.wholeMessage(0, 'msg_1', 'Hello'),
      p.added(1, f('c1', '')),
      p.done(1, f('c1', '{"a":1}')),
      ...p.wholeMessage(2, 'msg_2', 'there'),
      p.completed([p.message('msg_1', [p.outputText('Hello\n\nthere')]), f('c1', '{"a":1}')]),
    ],
    text: 'Hellothere',
    calls: ['c1 {"a":1}'],
  },
  {
    name: 'a message that the final response cuts in two',
    payloads: [
      ...p.wholeMessage(0, 'msg_1', 'Hello there'),
      p.completed([p.message('x', [p.outputText('Hello ')]), p.message('y', [p.outputText('there')])]),
    ],
    text: 'Hello there',
  },
  {
    name: 'a summary whose item ends with more, as content',
    payloads: [
      p.added(0, p.reasoning('rs_1')),
      p.summaryPart(0, 0),
      p.summary(0, 0, 'Hm'),
      p.done(0, p.reasoning('rs_1', { content: [{ type: 'reasoning_text', text: 'Hmm' }] })),
      p.completed([p.reasoning('rs_1', { content: [{ type: 'reasoning_text', text: 'Hmm' }] })]),
    ],
    reasoning: 'Hmm',
  },
  {
    name: 'reasoning that ends as a message',
    payloads: [
      p.added(0, p.reasoning('rs_1')),
      p.thought(0, 'Hm'),
      p.done(0, p.message('rs_1', [p.outputText('Hmm')])),
      ...p.wholeMessage(1, 'msg_1', 'Hi'),
      p.completed([p.message('rs_1', [p.outputText('Hmm')]), p.message('msg_1', [p.outputText('Hi')])]),
    ],
    text: 'Hi',
    reasoning: 'Hmm',
  },
  {
    name: 'reasoning that the final response has as a message under another id',
    payloads: [
      p.added(0, p.reasoning('rs_1')),
      p.thought(0, 'Hm'),
      p.done(0, p.reasoning('rs_1', { content: [{ type: 'reasoning_text', text: 'Hm' }] })),
      ...p.wholeMessage(1, 'msg_1', 'Hi'),
      p.completed([p.message('x', [p.outputText('Hm')]), p.message('y', [p.outputText('Hi')])]),
    ],
    text: 'Hi',
    reasoning: 'Hm',
  },
  {
    name: 'a message of the same words as the reasoning, only in the final response',
    payloads: [
      p.added(0, p.reasoning('rs_1')),
      p.thought(0, 'Yes'),
      p.done(0, p.reasoning('rs_1', { content: [{ type: 'reasoning_text', text: 'Yes' }] })),
      p.completed([
        p.reasoning('rs_1', { content: [{ type: 'reasoning_text', text: 'Yes' }] }),
        p.message('msg_1', [p.outputText('Yes')]),
      ]),
    ],
    text: 'Yes',
    reasoning: 'Yes',
  },
  {
    name: 'a call that is done before its last deltas',
    payloads: [
      p.added(0, f('c1', '')),
      p.args(0, '{"a":'),
      p.done(0, f('c1', '{"a":')),
      p.args(0, '1}'),
      p.added(1, f('c2', '')),
      p.done(1, f('c2', '{"a":2}')),
      p.completed([f('c1', '{"a":1}'), f('c2', '{"a":2}')]),
    ],
    calls: ['c1 {"a":1}', 'c2 {"a":2}'],
  },
  {
    name: 'a call that is done before its deltas, and an empty final response',
    payloads: [p.added(0, f('c1', '')), p.done(0, f('c1', '')), p.args(0, '{"a":'), p.args(0, '1}'), p.completed([])],
    calls: ['c1 {"a":1}'],
  },
  {
    name: 'a call that ends without the arguments of its deltas',
    payloads: [
      p.added(0, f('c1', '')),
      p.args(0, '{"a":1}'),
      p.argsDone(0, ''),
      p.done(0, f('c1', '')),
      p.completed([f('c1', '')]),
    ],
    calls: ['c1 {"a":1}'],
  },
  {
    name: 'a call of a function that ends as one of a custom tool',
    payloads: [
      p.added(0, f('c1', '')),
      p.args(0, '{"a":1}'),
      p.done(0, { type: 'custom_tool_call', id: 'x', call_id: 'c1', name: 'f', input: '{"a":1}' }),
      p.completed([{ type: 'custom_tool_call', id: 'x', call_id: 'c1', name: 'f', input: '{"a":1}' }]),
    ],
    calls: ['c1 {"a":1}'],
  },
  {
    name: 'a call that the final response lacks',
    payloads: [
      p.added(0, f('c1', '')),
      p.args(0, '{"a":1}'),
      p.done(0, f('c1', '{"a":1}')),
      p.added(1, f('c2', '')),
      p.args(1, '{"a":2}'),
      p.done(1, f('c2', '{"a":2}')),
      p.completed([f('c2', '{"a":2}')]),
    ],
    calls: ['c1 {"a":1}', 'c2 {"a":2}'],
  },
];

describe.each(ROWS)('$name', ({ payloads, text = '', reasoning = '', calls = [], isSent = false }) => {
  const body = toBytes([p.created, ...payloads]);

  test('is read once', () => {
    const accumulator = new StreamAccumulator({ protocol: CODECS['openai-responses'] });
    accumulator.push(body);
    const message = accumulator.finish();
    expect({ text: message.text, reasoning: message.reasoning }).toEqual({ text, reasoning });
    const found = message.tool_calls.map(
      ({ id, arguments: args }) => `${/^call_[0-9a-f]{24}$/.test(id) ? '<derived>' : id} ${args}`,
    );
    expect(found).toEqual(calls);
  });

  const heard = { text, reasoning, calls: calls.map((call) => `f ${call.replace(/^\S+ /, '')}`).toSorted() };

  const targets: (keyof typeof CODECS)[] = isSent ? ['gemini'] : ['openai-chat', 'anthropic-messages', 'gemini'];

  test.each(targets)('is written once to %s', (to) => {
    expect(hear(to, convert(to, body))).toEqual(heard);
  });

  test('is there once after a repair, in the events and in the final response', () => {
    const repaired = repair(body);
    expect(hear('openai-responses', repaired)).toEqual(heard);
    const final = Buffer.from(repaired).toString().split('data: ').at(-1) ?? '';
    const { response }: { response: { output: { type: string; arguments: string }[] } } = JSON.parse(final);
    const listed = response.output.filter(({ type }) => type === 'function_call').map((call) => `f ${normalize(call.arguments)}`);
    expect(listed.toSorted()).toEqual(heard.calls);
  });
});

test('a shell call that is done again under another id is run once', () => {
  const shell = (id: string): Payload => ({
    type: 'local_shell_call',
    id,
    call_id: 'c1',
    status: 'completed',
    action: { type: 'exec', command: ['ls'] },
  });
  const body = toBytes([
    p.created,
    p.added(0, shell('a')),
    p.done(0, shell('a')),
    p.done(1, shell('b')),
    p.completed([shell('c')]),
  ]);
  for (const to of ['openai-chat', 'anthropic-messages', 'gemini'] as const)
    expect(hear(to, convert(to, body)).calls).toEqual(['local_shell {"type":"exec","command":["ls"]}']);
  expect(hear('openai-responses', body).calls).toEqual(['local_shell {"type":"exec","command":["ls"]}']);
});
