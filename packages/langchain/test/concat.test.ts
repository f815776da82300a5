import { AIMessageChunk } from '@langchain/core/messages';
import type { ToolCallChunk } from '@langchain/core/messages/tool';
import { concat } from '@langchain/core/utils/stream';
import fc from 'fast-check';
import { beforeEach, describe, expect, test, vi } from 'vitest';
import { listStreams, serve } from '../../../test/frameworks.ts';
import { concatChunks } from '../src/index.ts';
import { createModel, readChunks } from './readers.ts';

/** What LangChain makes of the chunks. */
function concatByLangChain([first, ...others]: readonly AIMessageChunk[]): AIMessageChunk | undefined {
  return first && others.reduce((left, right) => concat(left, right), first);
}

const read = (chunk: AIMessageChunk | undefined): unknown =>
  chunk && {
    content: chunk.content,
    id: chunk.id,
    tool_calls: chunk.tool_calls,
    invalid_tool_calls: chunk.invalid_tool_calls,
    tool_call_chunks: chunk.tool_call_chunks,
    additional_kwargs: chunk.additional_kwargs,
    response_metadata: chunk.response_metadata,
    usage_metadata: chunk.usage_metadata,
  };

/** LangChain prints what it cannot read. */
beforeEach(() => {
  for (const method of ['log', 'warn', 'error'] as const) vi.spyOn(console, method).mockImplementation(() => undefined);
});

const PROTOCOLS = [
  ['openai-chat', false],
  ['openai-responses', true],
] as const;

describe('the result equals that of LangChain', () => {
  test.each(PROTOCOLS)('for every response of %s', async (protocol, useResponsesApi) => {
    let compared = 0;
    for (const { chunks: bytes } of listStreams([protocol])) {
      const chunks = await readChunks(createModel(serve(bytes), useResponsesApi)).catch(() => []);
      // Without a role, ChatOpenAI makes chunks of another class.
      const expected = chunks.every((chunk) => AIMessageChunk.isInstance(chunk)) ? tryConcat(chunks) : undefined;
      if (expected === undefined) continue;
      expect(read(await concatChunks(chunks))).toEqual(read(expected));
      compared++;
    }
    expect(compared).toBeGreaterThan(40);
  });

  test('for any order of pieces of calls', async () => {
    const piece: fc.Arbitrary<ToolCallChunk> = fc.record(
      {
        type: fc.constant('tool_call_chunk' as const),
        index: fc.constantFrom(0, 1, 2),
        id: fc.constantFrom('', 'a', 'b', 'c'),
        name: fc.constantFrom('', 'add', 'sub'),
        args: fc.constantFrom('', '{"a":', '1}', '{}'),
      },
      { requiredKeys: ['type'] },
    );
    const chunk = fc.record({ content: fc.constantFrom('', 'x', 'y'), tool_call_chunks: fc.array(piece, { maxLength: 3 }) });
    await fc.assert(
      fc.asyncProperty(fc.array(chunk, { maxLength: 12 }), async (fields) => {
        const chunks = fields.map((one) => new AIMessageChunk(one));
        const expected = tryConcat(chunks);
        if (expected) expect(read(await concatChunks(chunks))).toEqual(read(expected));
      }),
      { numRuns: 500 },
    );
  });
});

/** Fields of two pieces of one call: known ones, and ones that models may add. */
describe('fields of pieces are merged as LangChain merges them', () => {
  test.each<[name: string, left: object, right: object]>([
    ['arguments are appended', { args: '{"a"' }, { args: ':1}' }],
    ['ids and names are replaced, except by empty ones', { id: 'a', name: 'x' }, { id: '', name: 'y' }],
    ['a missing field is set', {}, { id: 'a', name: 'x', args: '{}' }],
    ['null is like missing', { id: null, args: null }, { id: 'a', args: '{}' }],
    ['null is set where nothing is', {}, { id: null, name: null, args: '{}' }],
    ['null does not replace', { id: 'a', args: '{}' }, { id: null, args: null }],
    ['other texts are appended, types are not', { note: 'a', type: 'tool_call_chunk' }, { note: 'b', type: 'tool_call_chunk' }],
    ['numbers are added, times are not', { count: 1, created: 5, timestamp: 7 }, { count: 2, created: 6, timestamp: 8 }],
    ['flags stay', { isCustomTool: true }, { isCustomTool: true }],
    ['maps are merged', { extra: { a: 'x', b: 1 } }, { extra: { a: 'y', c: [1] } }],
    ['lists are joined', { list: [1] }, { list: [2] }],
    ['a version of the output is replaced', { output_version: 'v0' }, { output_version: 'v1' }],
  ])('%s', async (_, left, right) => {
    const chunks = [{}, left, right].map((fields) => createPiece(fields));
    expect(read(await concatChunks(chunks))).toEqual(read(concatByLangChain(chunks)));
  });

  test('different types are an error, as in LangChain', async () => {
    const chunks = [createPiece({ args: '{' }), createPiece({ args: { a: 1 } })];
    expect(tryConcat(chunks)).toBeUndefined();
    await expect(concatChunks(chunks)).rejects.toThrow('tool call field "args": cannot join string and object');
  });
});

const createPiece = (fields: object): AIMessageChunk => {
  const piece: ToolCallChunk = { type: 'tool_call_chunk', index: 0, ...fields };
  return new AIMessageChunk({ content: '', tool_call_chunks: [piece] });
};

/** Undefined when LangChain cannot concatenate the chunks. */
function tryConcat(chunks: readonly AIMessageChunk[]): AIMessageChunk | undefined {
  try {
    return concatByLangChain(chunks);
  } catch {
    return undefined;
  }
}

/** A call whose arguments come in n pieces. */
const createCall = (n: number): AIMessageChunk[] =>
  Array.from({ length: n }, (_, at) => {
    const args = at === 0 ? '{"text":"' : at === n - 1 ? '"}' : 'abcdefgh';
    const first = at === 0 ? { id: 'call_1', name: 'write' } : {};
    return new AIMessageChunk({ content: '', tool_call_chunks: [{ type: 'tool_call_chunk', index: 0, args, ...first }] });
  });

/** Characters of arguments that are read while `work` runs: every read trims them first. */
async function countRead(work: () => unknown): Promise<number> {
  let count = 0;
  const trim = String.prototype.trim;
  const spy = vi.spyOn(String.prototype, 'trim').mockImplementation(function (this: string) {
    count += this.length;
    return trim.call(this);
  });
  await work();
  spy.mockRestore();
  return count;
}

test('the arguments of a call are read once, where LangChain reads them again for every chunk', async () => {
  const small = createCall(200);
  const large = createCall(400);
  const length = 8 * 398 + 11;
  expect(await countRead(() => concatChunks(large))).toBe(length);
  expect(await countRead(() => concatChunks(small))).toBe(8 * 198 + 11);
  const ratio = (await countRead(() => concatByLangChain(large))) / (await countRead(() => concatByLangChain(small)));
  expect(ratio).toBeGreaterThan(3.5);
});

test('chunks are not changed, and no chunks give nothing', async () => {
  const chunks = createCall(3);
  const before = structuredClone(chunks.map(read));
  await concatChunks(chunks);
  expect(chunks.map(read)).toEqual(before);
  expect(await concatChunks([])).toBeUndefined();
});
