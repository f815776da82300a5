import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { assemble, bytesOf, splitAt, validate } from '../../../../test/run.ts';
import { ToolCallAssembler } from '../../src/accumulate/index.ts';
import { openaiChat } from '../../src/protocols/openai-chat/index.ts';

interface Call {
  name: string;
  arguments: string;
}
interface Message {
  reasoning: string;
  text: string;
  calls: Call[];
}
type Entry = { index?: unknown; id?: unknown; type?: unknown; function?: Record<string, unknown> };
type Chunk = {
  id: string;
  model: string;
  usage?: unknown;
  choices: { index: number; delta: Record<string, unknown> & { tool_calls?: Entry[] }; finish_reason?: string | null }[];
};

const callArbitrary = fc.record({
  name: fc.constantFrom('get_weather', 'run', 'search_web', 'f'),
  arguments: fc
    .dictionary(fc.string({ maxLength: 5 }), fc.jsonValue({ maxDepth: 2 }), { maxKeys: 3 })
    .map((value) => JSON.stringify(value)),
});
const messageArbitrary: fc.Arbitrary<Message> = fc.record({
  reasoning: fc.string({ unit: 'grapheme', maxLength: 20 }),
  text: fc.string({ unit: 'grapheme', maxLength: 20 }),
  calls: fc.array(callArbitrary, { maxLength: 4 }),
});
const sizesArbitrary = fc.array(fc.integer({ min: 1, max: 6 }), { minLength: 1, maxLength: 12 });

function pieces(text: string, sizes: number[]): string[] {
  const out: string[] = [];
  for (let at = 0, i = 0; at < text.length; i++) {
    const size = sizes[i % sizes.length] ?? 1;
    out.push(text.slice(at, at + size));
    at += size;
  }
  return out;
}

const chunk = (delta: Chunk['choices'][0]['delta'], finish: string | null = null): Chunk => ({
  id: 'c1',
  model: 'm',
  choices: [{ index: 0, delta, finish_reason: finish }],
});

const named = (name: string | undefined, args: string): Chunk =>
  chunk({ tool_calls: [{ index: 0, function: { ...(name !== undefined && { name }), arguments: args } }] });

test.each([
  ['', [named('f', '{"x":1}'), named('fo', ''), named(undefined, '{"y":2}')]],
  [' with text behind it', [named('f', '{"x":1}'), named('fo', ''), chunk({ content: 'T' }), named(undefined, '{"y":2}')]],
])('a longer name after whole arguments%s is that of the call whose arguments follow', (_, chunks) => {
  const all = [...chunks, chunk({}, 'tool_calls')];
  const calls = assemble(openaiChat, [bytesOf(all.map((one) => `data: ${JSON.stringify(one)}\n\n`).join(''))]).tool_calls;
  const assembler = new ToolCallAssembler();
  for (const one of all) assembler.push(one);
  for (const found of [calls, assembler.finish()])
    expect(found.map(({ name, arguments: text }) => [name, text])).toEqual([
      ['f', '{"x":1}'],
      ['fo', '{"y":2}'],
    ]);
});

/** A stream as the standard has it: role, deltas, one call after the other, finish. */
function conforming({ reasoning, text, calls }: Message, sizes: number[]): Chunk[] {
  return [
    chunk({ role: 'assistant', content: '' }),
    ...pieces(reasoning, sizes).map((reasoning_content) => chunk({ reasoning_content })),
    ...pieces(text, sizes).map((content) => chunk({ content })),
    ...calls.flatMap((call, index) => [
      chunk({ tool_calls: [{ index, id: `call_${index}`, type: 'function', function: { name: call.name, arguments: '' } }] }),
      ...pieces(call.arguments, sizes).map((fragment) => chunk({ tool_calls: [{ index, function: { arguments: fragment } }] })),
    ]),
    chunk({}, calls.length > 0 ? 'tool_calls' : 'stop'),
  ];
}

const mapCalls = (
  chunks: Chunk[],
  change: (entry: Entry, isOpener: boolean, message: Message) => Entry,
  message: Message,
): Chunk[] =>
  chunks.map((item) => {
    const [choice] = item.choices;
    const calls = choice?.delta.tool_calls;
    if (!choice || !calls) return item;
    const changed = calls.map((entry) => change(entry, entry.id !== undefined, message));
    return { ...item, choices: [{ ...choice, delta: { ...choice.delta, tool_calls: changed } }] };
  });

const callOf = ({ calls }: Message, { index }: Entry): Call => calls[Number(index)] ?? { name: '', arguments: '' };
const without = (entry: Entry, key: keyof Entry): Entry =>
  Object.fromEntries(Object.entries(entry).filter(([name]) => name !== key));

/** Chunks that each carry one whole call, in place of its fragments. */
const whole = (chunks: Chunk[], message: Message, build: (call: Call, index: number) => Entry): Chunk[] => {
  const seen = new Set<unknown>();
  return chunks.flatMap((item) => {
    const entry = item.choices[0]?.delta.tool_calls?.[0];
    if (!entry) return [item];
    if (seen.has(entry.index)) return [];
    seen.add(entry.index);
    return [chunk({ tool_calls: [build(callOf(message, entry), Number(entry.index))] })];
  });
};

/** What compatible servers do to such a stream. Each must be read as the same message. */
const DIALECTS: Record<string, (chunks: Chunk[], message: Message) => Chunk[]> = {
  'as the standard has it': (chunks) => chunks,
  'blank ids and names on continuations': (chunks, message) =>
    mapCalls(
      chunks,
      (entry, isOpener) => (isOpener ? entry : { ...entry, id: '', type: 'function', function: { name: '', ...entry.function } }),
      message,
    ),
  'null ids and names on continuations': (chunks, message) =>
    mapCalls(
      chunks,
      (entry, isOpener) => (isOpener ? entry : { ...entry, id: null, type: null, function: { name: null, ...entry.function } }),
      message,
    ),
  'id, type and name on every delta': (chunks, message) =>
    mapCalls(
      chunks,
      (entry) => ({
        ...entry,
        id: `call_${entry.index}`,
        type: 'function',
        function: { name: callOf(message, entry).name, ...entry.function },
      }),
      message,
    ),
  'no index, the id on every delta': (chunks, message) =>
    mapCalls(chunks, (entry) => without({ ...entry, id: `call_${entry.index}` }, 'index'), message),
  'no index, the id on the opener only': (chunks, message) => mapCalls(chunks, (entry) => without(entry, 'index'), message),
  'the index as text': (chunks, message) => mapCalls(chunks, (entry) => ({ ...entry, index: String(entry.index) }), message),
  'indexes that start at one': (chunks, message) =>
    mapCalls(chunks, (entry) => ({ ...entry, index: Number(entry.index) + 1 }), message),
  'index 0 for every call': (chunks, message) => mapCalls(chunks, (entry) => ({ ...entry, index: 0 }), message),
  'null arguments in the opener': (chunks, message) =>
    mapCalls(
      chunks,
      (entry, isOpener) => (isOpener ? { ...entry, function: { ...entry.function, arguments: null } } : entry),
      message,
    ),
  'the name in two pieces': (chunks, message) =>
    chunks.flatMap((item) => {
      const entry = item.choices[0]?.delta.tool_calls?.[0];
      const name = entry ? callOf(message, entry).name : '';
      if (!entry || entry.id === undefined || name.length < 4) return [item];
      const half = (part: string, more: Entry): Chunk =>
        chunk({ tool_calls: [{ ...more, index: entry.index, function: { name: part, arguments: '' } }] });
      return [half(name.slice(0, 2), { id: entry.id, type: 'function' }), half(name.slice(2), {})];
    }),
  'whole calls with object arguments': (chunks, message) =>
    whole(chunks, message, (call, index) => ({
      id: `call_${index}`,
      function: { name: call.name, arguments: JSON.parse(call.arguments) },
    })),
  'whole calls with finish_reason stop': (chunks, message) =>
    whole(chunks, message, (call, index) => ({
      index,
      id: `call_${index}`,
      function: { name: call.name, arguments: call.arguments },
    })).map((item) => (item.choices[0]?.finish_reason ? chunk({}, 'stop') : item)),
  'an empty object before the arguments': (chunks, message) =>
    mapCalls(
      chunks,
      (entry, isOpener) => (isOpener ? { ...entry, function: { ...entry.function, arguments: '{}' } } : entry),
      message,
    ),
  'the arguments so far in every fragment': (chunks, message) => {
    const sofar = new Map<unknown, string>();
    return mapCalls(
      chunks,
      (entry) => {
        const text = (sofar.get(entry.index) ?? '') + String(entry.function?.['arguments'] ?? '');
        sofar.set(entry.index, text);
        return { ...entry, function: { ...entry.function, arguments: text } };
      },
      message,
    );
  },
  'every call once more at the end': (chunks, message) => [
    ...chunks.slice(0, -1),
    ...message.calls.map((call, index) =>
      chunk({ tool_calls: [{ index, id: `call_${index}`, function: { name: call.name, arguments: call.arguments } }] }),
    ),
    ...chunks.slice(-1),
  ],
  'the finish reason twice, then empty chunks': (chunks) => [...chunks, ...chunks.slice(-1), chunk({ content: '' })],
  'an empty finish reason on every chunk': (chunks) =>
    chunks.map((item) =>
      item.choices[0]?.finish_reason
        ? item
        : { ...item, choices: item.choices.map((choice) => ({ ...choice, finish_reason: '' })) },
    ),
  'usage on every chunk': (chunks) => chunks.map((item, i) => ({ ...item, usage: { prompt_tokens: 1, completion_tokens: i } })),
  'the role on every chunk': (chunks) =>
    chunks.map((item) => ({
      ...item,
      choices: item.choices.map((choice) => ({ ...choice, delta: { role: 'assistant', ...choice.delta } })),
    })),
  'reasoning in both fields': (chunks) =>
    chunks.map((item) => ({
      ...item,
      choices: item.choices.map((choice) => ({
        ...choice,
        delta: {
          ...choice.delta,
          ...(choice.delta['reasoning_content'] !== undefined && { reasoning: choice.delta['reasoning_content'] }),
        },
      })),
    })),
};

const FRAMINGS: Record<string, (payloads: string[]) => string> = {
  plain: (payloads) => payloads.map((data) => `data: ${data}\n\n`).join(''),
  'CRLF, no space, no [DONE]': (payloads) =>
    payloads
      .slice(0, -1)
      .map((data) => `data:${data}\r\n\r\n`)
      .join(''),
  'comments and keep-alives': (payloads) =>
    `: hello\n\n${payloads.map((data) => `: ping\n\ndata: : keepalive\n\ndata:\n\ndata: ${data}\n\n`).join('')}`,
  'no end': (payloads) =>
    payloads
      .slice(0, -1)
      .map((data) => `data: ${data}`)
      .join('\n\n'),
  'one JSON a line': (payloads) => `${payloads.slice(0, -1).join('\n')}\n`,
  'one JSON array': (payloads) => `[${payloads.slice(0, -1).join('\n,\r\n')}]`,
};

describe.each(Object.entries(DIALECTS))('%s', (_, dialect) => {
  test.each(Object.entries(FRAMINGS))('framed as: %s', (_, frame) => {
    fc.assert(
      fc.property(messageArbitrary, sizesArbitrary, fc.array(fc.nat(), { maxLength: 6 }), (message, sizes, cuts) => {
        const chunks = dialect(conforming(message, sizes), message);
        const body = bytesOf(frame([...chunks.map((item) => JSON.stringify(item)), '[DONE]']));
        const result = assemble(openaiChat, splitAt(body, cuts));
        expect(result).toMatchObject({
          text: message.text,
          reasoning: message.reasoning,
          finish_reason: message.calls.length > 0 ? 'tool_calls' : 'stop',
          complete: true,
          error: null,
          invalid_arguments: [],
        });
        expect(result.tool_calls.map(({ name, arguments: text }) => ({ name, arguments: text }))).toEqual(message.calls);
        validate(openaiChat, [body]);
      }),
      { numRuns: 40 },
    );
  });
});
