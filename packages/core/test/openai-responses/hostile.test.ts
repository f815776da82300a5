import fc from 'fast-check';
import { expect, test } from 'vitest';
import { openaiResponses } from '../../src/protocols/openai-responses/index.ts';
import { Diagnostics } from '../../src/rules/diagnostics.ts';
import * as p from './payloads.ts';
import { type Payload, run, runPayloads } from './run.ts';

const TYPES = [
  'response.created',
  'response.in_progress',
  'response.output_item.added',
  'response.output_item.done',
  'response.content_part.added',
  'response.content_part.done',
  'response.reasoning_summary_part.added',
  'response.output_text.delta',
  'response.output_text.done',
  'response.refusal.delta',
  'response.reasoning_text.delta',
  'response.reasoning_summary_text.delta',
  'response.reasoning_summary_text.done',
  'response.output_text.annotation.added',
  'response.function_call_arguments.delta',
  'response.function_call_arguments.done',
  'response.custom_tool_call_input.delta',
  'response.audio.delta',
  'response.web_search_call.searching',
  'error',
  'keepalive',
];
const ITEM_TYPES = ['message', 'reasoning', 'function_call', 'custom_tool_call', 'web_search_call', 'parallel', undefined];
const odd = fc.oneof(
  fc.jsonValue({ maxDepth: 3 }),
  fc.constantFrom('__proto__', 'constructor', '', '{}', '{"a":1}', '\ud83d', '\ude00'),
);
const small = fc.constantFrom<unknown>(0, 1, 2, '1', -1, undefined, null, 1.5, '__proto__');
const id = fc.constantFrom<unknown>('a', 'b', '', '__proto__', undefined, 7);
const text = fc.constantFrom<unknown>('x', 'xy', '', '{"a":', '1}', '{}', '\ud83d', '\ude00', undefined, { a: 1 }, 'toString');
const part = fc.oneof(
  odd,
  fc.record({
    type: fc.constantFrom('output_text', 'refusal', 'reasoning_text', 'summary_text', 'z'),
    text,
    refusal: text,
    annotations: fc.array(odd, { maxLength: 2 }),
    logprobs: fc.array(odd, { maxLength: 2 }),
  }),
);
const parts = fc.oneof(fc.array(part, { maxLength: 3 }), odd);
const item = fc.oneof(
  odd,
  fc.record({
    type: fc.constantFrom<unknown>(...ITEM_TYPES, 5),
    id,
    call_id: id,
    name: fc.constantFrom<unknown>('f', 'parallel', 'multi_tool_use.parallel', '', undefined, 3),
    arguments: fc.oneof(text, fc.constant('{"tool_uses":[{"recipient_name":"functions.f"}]}')),
    input: text,
    status: fc.constantFrom('completed', 'incomplete', 'in_progress'),
    content: parts,
    summary: parts,
    encrypted_content: text,
    format: text,
  }),
);
const event = fc.record({
  type: fc.constantFrom<unknown>(...TYPES),
  output_index: small,
  content_index: small,
  summary_index: small,
  item_id: id,
  sequence_number: small,
  item,
  part,
  delta: text,
  text,
  refusal: text,
  arguments: text,
  input: text,
  name: text,
  annotation: odd,
  logprobs: odd,
  error: odd,
  response: odd,
});
const terminal = fc.record({
  type: fc.constantFrom('response.completed', 'response.incomplete', 'response.failed', 'response.created', 'response.done'),
  response: fc.oneof(
    odd,
    fc.record({
      id,
      status: text,
      output: fc.array(item, { maxLength: 4 }),
      usage: odd,
      error: odd,
      incomplete_details: odd,
      tools: odd,
      model: odd,
    }),
  ),
});

const pollution = (): number => Object.keys(Object.prototype).length + Object.keys(Array.prototype).length;

test('events of any order and content keep the rules of the stream', () => {
  const stream = fc.tuple(fc.array(event, { maxLength: 25 }), fc.option(terminal, { nil: undefined }));
  fc.assert(
    fc.property(stream, ([events, last]) => {
      const before = pollution();
      const { message } = runPayloads(last ? [...events, last] : events);
      openaiResponses.extras(message);
      for (const block of message.content) if (block.type === 'tool_use') openaiResponses.callFields(block);
      expect(pollution()).toBe(before);
    }),
    { numRuns: 3000 },
  );
});

test('any JSON at all is survived', () => {
  fc.assert(
    fc.property(
      fc.array(fc.tuple(fc.json(), fc.option(fc.constantFrom(...TYPES), { nil: undefined })), { maxLength: 8 }),
      (frames) => {
        const before = pollution();
        run((push) => {
          for (const [data, name] of frames) push({ data, ...(name && { event: name }) });
        }, 'frames');
        expect(pollution()).toBe(before);
      },
    ),
    { numRuns: 1000 },
  );
});

test('text is lossless however it is cut into deltas and items', () => {
  const messages = fc.array(fc.array(fc.string({ unit: 'grapheme', minLength: 1 }), { minLength: 1, maxLength: 5 }), {
    maxLength: 4,
  });
  fc.assert(
    fc.property(messages, (texts) => {
      const payloads = texts.flatMap((pieces, at): Payload[] => [
        p.added(at, p.message(`m${at}`)),
        p.partAdded(at),
        ...pieces.map((piece) => p.text(at, piece)),
        p.done(at, p.message(`m${at}`, [p.outputText(pieces.join(''))])),
      ]);
      const output = texts.map((pieces, at) => p.message(`m${at}`, [p.outputText(pieces.join(''))]));
      const { message, diagnostics } = runPayloads([p.created, ...payloads, p.completed(output)]);
      expect(message.content.map((block) => (block.type === 'text' ? block.text : ''))).toEqual(
        texts.map((pieces) => pieces.join('')),
      );
      expect(diagnostics).toEqual([]);
    }),
  );
});

test('__proto__ is data', () => {
  const item = JSON.parse(
    '{"type":"function_call","id":"i","call_id":"__proto__","name":"__proto__","arguments":"{}","__proto__":{"x":1}}',
  ) as Payload;
  const { message } = runPayloads([p.created, p.done(0, item), p.completed([item])]);
  expect(message.content).toHaveLength(1);
  expect(message.content[0]).toMatchObject({ id: '__proto__', name: '__proto__' });
  expect(JSON.stringify(message.content[0]?.extensions)).toBe('{"openai-responses":{"__proto__":{"x":1}}}');
  expect(Object.getPrototypeOf(message.content[0]?.extensions?.['openai-responses'])).toBe(Object.prototype);
});

test.each([
  [
    'arguments',
    '{"type":"response.output_item.done","output_index":0,"item":{"type":"function_call","call_id":"c","name":"f","arguments":DEEP}}',
  ],
  ['an error', '{"type":"error","error":{"message":DEEP}}'],
  ['a server item', '{"type":"response.output_item.done","output_index":0,"item":{"type":"x","of":DEEP}}'],
])('%s nested beyond what can be written', (_, template) => {
  const deep = '['.repeat(50_000) + ']'.repeat(50_000);
  const diagnostics = new Diagnostics();
  const decoder = openaiResponses.streamDecoder({ report: diagnostics.report, note: () => undefined });
  const events = [...decoder.push({ data: template.replace('DEEP', deep) }), ...decoder.end()];
  expect(events.at(-1)?.type).toBe('error');
});

test('a wrapper nested beyond what can be written is no wrapper', () => {
  const wrapped = `{"tool_uses":[{"recipient_name":"f","parameters":${'['.repeat(50_000)}${']'.repeat(50_000)}}]}`;
  const { message } = runPayloads([p.created, p.added(0, p.call('c', 'parallel')), p.args(0, wrapped)]);
  expect(message.content).toMatchObject([{ name: 'parallel', input_raw: wrapped }]);
});

/** Streams that grow in two places at once: were the one looked through for each of the other, they would not end in the time a test has. */
const MANY = 60_000;
const times = (create: (at: number) => Payload): Payload[] => Array.from({ length: MANY }, (_, at) => create(at));
const searches = times((at) => ({ type: 'web_search_call', id: `ws_${at}` }));
const LONG: [name: string, payloads: Payload[], blocks: number][] = [
  ['many items at one index', [...searches.map((item) => p.done(0, item)), p.completed(searches)], MANY],
  [
    'many ends of a long call',
    [
      p.added(0, p.call('c', 'f')),
      p.args(0, `{"a":"${'b'.repeat(10_000_000)}`),
      p.args(0, '"}'),
      ...times(() => p.argsDone(0, '{"a":1}')),
      p.completed(),
    ],
    1,
  ],
  [
    'many ends of a long call, each longer than the one before',
    [
      p.added(0, p.call('c', 'f')),
      p.args(0, `{}[${'1,'.repeat(2_000_000)}`),
      ...Array.from({ length: 2000 }, (_, at) => p.argsDone(0, `{}${' '.repeat(at)}`)),
      p.completed(),
    ],
    1,
  ],
  [
    'many ends of an item of many parts',
    [
      p.added(0, p.message('m')),
      ...times((at) => p.partAdded(0, p.outputText('x'), at + 7)),
      ...times(() => p.done(0, p.message('m', [p.outputText('x')]))),
      p.completed(),
    ],
    MANY,
  ],
  [
    'two texts in turn, and many reasonings that say nothing',
    [
      p.added(0, p.message('m')),
      p.added(1, p.message('n')),
      ...times((at) => p.added(at + 2, p.reasoning(at % 2 ? `rs_${at}` : ''))),
      ...times((at) => p.text(at % 2, 'x')),
      p.completed(),
    ],
    MANY * 1.5,
  ],
];

test.each(LONG)('%s', (_, payloads, blocks) => {
  const decoder = openaiResponses.streamDecoder({ report: () => undefined, note: () => undefined });
  let started = 0;
  for (const payload of [p.created, ...payloads])
    for (const { type } of decoder.push({ data: JSON.stringify(payload) })) if (type === 'content_block_start') started++;
  expect(started).toBe(blocks);
});
