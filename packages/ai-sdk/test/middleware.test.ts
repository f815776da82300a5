import type {
  LanguageModelV3,
  LanguageModelV3Content,
  LanguageModelV3GenerateResult,
  LanguageModelV3StreamPart,
} from '@ai-sdk/provider';
import { generateText, jsonSchema, streamText, tool, wrapLanguageModel } from 'ai';
import { describe, expect, test } from 'vitest';
import { streamOf } from '../../../test/frameworks.ts';
import { CallRepair } from '../src/calls.ts';
import { type PartRepair, repairMiddleware } from '../src/index.ts';

type Part = LanguageModelV3StreamPart;
type Finish = Extract<Part, { type: 'finish' }>;
type Reason = Finish['finishReason']['unified'];

const usage: Finish['usage'] = {
  inputTokens: { total: 1, noCache: 1, cacheRead: 0, cacheWrite: 0 },
  outputTokens: { total: 1, text: 1, reasoning: 0 },
};

const finish = (unified: Reason): Part => ({ type: 'finish', finishReason: { unified, raw: unified }, usage });

const call = (toolCallId: string, input: string): Extract<Part, { type: 'tool-call' }> => ({
  type: 'tool-call',
  toolCallId,
  toolName: 'add',
  input,
});

const input = (id: string): Part[] => [
  { type: 'tool-input-start', id, toolName: 'add' },
  { type: 'tool-input-delta', id, delta: '{}' },
  { type: 'tool-input-end', id },
];

const text = (id: string): Part[] => [
  { type: 'text-start', id },
  { type: 'text-delta', id, delta: 'Hi' },
  { type: 'text-end', id },
];

/** A model that streams these parts, and whose whole responses have the same calls and reason. */
function createModel(parts: readonly Part[], onRepair?: (repair: PartRepair) => void): LanguageModelV3 {
  const content = parts.filter(
    (part): part is Extract<LanguageModelV3Content, { type: 'tool-call' }> => part.type === 'tool-call',
  );
  const end = parts.find((part): part is Finish => part.type === 'finish');
  const finishReason = end?.finishReason ?? { unified: 'other', raw: undefined };
  const model: LanguageModelV3 = {
    specificationVersion: 'v3',
    provider: 'test',
    modelId: 'm-1',
    supportedUrls: {},
    doGenerate: async (): Promise<LanguageModelV3GenerateResult> => ({ content, finishReason, usage, warnings: [] }),
    doStream: async () => ({ stream: streamOf(parts) }),
  };
  let count = 0;
  return onRepair
    ? wrapLanguageModel({ model, middleware: repairMiddleware({ onRepair, generateId: () => `new_${++count}` }) })
    : model;
}

/** What `streamText` makes of a model: the text, the calls that it runs, the errors. */
async function run(
  model: LanguageModelV3,
): Promise<{ text: string; ran: [string, unknown][]; errors: string[]; reason: string }> {
  const ran: [string, unknown][] = [];
  const errors: string[] = [];
  const add = tool({
    inputSchema: jsonSchema({ type: 'object' }),
    execute: async (value, { toolCallId }) => {
      ran.push([toolCallId, value]);
      return 3;
    },
  });
  const result = streamText({ model, prompt: 'hi', tools: { add }, maxRetries: 0, onError: () => undefined });
  let text = '';
  for await (const part of result.fullStream) {
    if (part.type === 'text-delta') text += part.text;
    if (part.type === 'error') errors.push(String(part.error));
  }
  return { text, ran, errors, reason: await result.finishReason };
}

interface Row {
  name: string;
  parts: Part[];
  repairs: PartRepair[];
  text?: string;
  ran?: [string, unknown][];
  errors?: string[];
}

const ROWS: readonly Row[] = [
  { name: 'text that is right', parts: [...text('0'), finish('stop')], repairs: [], text: 'Hi' },
  {
    name: 'a call that is right',
    parts: [...input('c1'), call('c1', '{"a":1}'), finish('tool-calls')],
    repairs: [],
    ran: [['c1', { a: 1 }]],
  },
  {
    name: 'blank ids',
    parts: [...input(''), call('', '{"a":1}'), ...input(''), call('', '{"a":2}'), finish('tool-calls')],
    repairs: ['call-id', 'call-id'],
    ran: [
      ['new_1', { a: 1 }],
      ['new_2', { a: 2 }],
    ],
  },
  {
    name: 'two calls with one id',
    parts: [call('c1', '{"a":1}'), call('c1', '{"a":2}'), finish('tool-calls')],
    repairs: ['call-id'],
    ran: [
      ['c1', { a: 1 }],
      ['new_1', { a: 2 }],
    ],
  },
  {
    name: 'two calls with one id, after the input of both',
    parts: [...input('c1'), ...input('c1'), call('c1', '{"a":1}'), call('c1', '{"a":2}'), finish('tool-calls')],
    repairs: ['call-id'],
    ran: [
      ['c1', { a: 1 }],
      ['new_1', { a: 2 }],
    ],
  },
  {
    name: 'input that was encoded twice',
    parts: [call('c1', JSON.stringify('{"a":1}')), finish('tool-calls')],
    repairs: ['call-input'],
    ran: [['c1', { a: 1 }]],
  },
  {
    name: 'input that is an object',
    // Providers that are not written in TypeScript do not keep to the type.
    parts: [call('c1', { a: 1 } as unknown as string), finish('tool-calls')],
    repairs: ['call-input'],
    ran: [['c1', { a: 1 }]],
  },
  {
    name: 'a call with an unknown reason',
    parts: [call('c1', '{}'), finish('other')],
    repairs: ['finish-reason'],
    ran: [['c1', {}]],
  },
  { name: 'a call that may be incomplete', parts: [call('c1', '{}'), finish('length')], repairs: [], ran: [] },
  {
    name: 'text without a start',
    parts: [{ type: 'text-delta', id: '0', delta: 'Hi' }, { type: 'text-end', id: '0' }, finish('stop')],
    repairs: ['start-missing'],
    text: 'Hi',
  },
  {
    name: 'an end without text',
    parts: [{ type: 'text-end', id: '0' }, finish('stop')],
    repairs: ['start-missing'],
  },
  {
    name: 'a stream that was cut',
    parts: [...text('0'), call('c1', '{}')],
    repairs: ['finish-missing'],
    text: 'Hi',
    ran: [],
    errors: ['Error: the stream ended before the response was complete'],
  },
  { name: 'an error', parts: [{ type: 'error', error: 'overloaded' }], repairs: [], errors: ['overloaded'] },
];

test('a call for the client does not share its id with one that the provider runs', () => {
  const found: PartRepair[] = [];
  const calls = new CallRepair(
    (repair) => found.push(repair),
    () => 'new',
  );
  const own = { ...call('c1', '{"a":1}'), providerExecuted: true };
  expect(calls.repair(own)).toBe(own);
  expect(calls.repair(call('c1', '{"a":2}'))).toMatchObject({ toolCallId: 'new', input: '{"a":2}' });
  expect(found).toEqual(['call-id']);
});

describe('streams', () => {
  test.each(ROWS)('$name', async ({ parts, repairs, text = '', ran = [], errors = [] }) => {
    const found: PartRepair[] = [];
    const result = await run(createModel(parts, (repair) => found.push(repair)));
    expect({ text: result.text, ran: result.ran, errors: result.errors }).toEqual({ text, ran, errors });
    expect(found).toEqual(repairs);
  });

  test.each(ROWS.filter(({ repairs }) => repairs.length > 0))('$name is misread without the middleware', async (row) => {
    const { text = '', ran = [], errors = [] } = row;
    const result = await run(createModel(row.parts));
    expect({ text: result.text, ran: result.ran, errors: result.errors }).not.toEqual({ text, ran, errors });
  });

  test('parts that are right are passed on as the same objects', async () => {
    const parts = [...text('0'), ...input('c1'), call('c1', '{}'), finish('tool-calls')];
    const { stream } = await createModel(parts, () => undefined).doStream({ prompt: [] });
    const seen: Part[] = [];
    for await (const part of stream) seen.push(part);
    expect(seen.every((part, at) => part === parts[at])).toBe(true);
    expect(seen).toHaveLength(parts.length);
  });
});

test('whole responses: calls get ids and input, and the tools run', async () => {
  const ran: unknown[] = [];
  const add = tool({ inputSchema: jsonSchema({ type: 'object' }), execute: async (value) => ran.push(value) });
  const found: PartRepair[] = [];
  const model = createModel([call('', JSON.stringify('{"a":1}')), finish('other')], (repair) => found.push(repair));
  const { toolCalls, finishReason } = await generateText({ model, prompt: 'hi', tools: { add } });
  expect(toolCalls.map(({ toolCallId, input: value }) => [toolCallId, value])).toEqual([['new_1', { a: 1 }]]);
  expect({ ran, finishReason, found }).toEqual({
    ran: [{ a: 1 }],
    finishReason: 'tool-calls',
    found: ['call-id', 'call-input', 'finish-reason'],
  });
});
