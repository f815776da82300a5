import { describe, expect, test } from 'vitest';
import { ChatAccumulator } from '../../src/accumulate/index.ts';
import { StreamAccumulator } from '../../src/engine/index.ts';
import { type Accumulator, accumulate, createAccumulator, type ProtocolId } from '../../src/index.ts';

const call = (args: string): object => ({ index: 0, function: { arguments: args } });

/** One message with reasoning, text and a call, as each protocol streams it. */
const STREAMS: Record<ProtocolId, object[]> = {
  'openai-chat': [
    { id: 'c', model: 'm', choices: [{ index: 0, delta: { role: 'assistant', reasoning_content: 'Hm' } }] },
    { id: 'c', model: 'm', choices: [{ index: 0, delta: { content: 'Hi' } }] },
    {
      id: 'c',
      model: 'm',
      choices: [
        { index: 0, delta: { tool_calls: [{ index: 0, id: 'a', type: 'function', function: { name: 'f', arguments: '' } }] } },
      ],
    },
    { id: 'c', model: 'm', choices: [{ index: 0, delta: { tool_calls: [call('{"x":')] } }] },
    { id: 'c', model: 'm', choices: [{ index: 0, delta: { tool_calls: [call('1}')] } }] },
    { id: 'c', model: 'm', choices: [{ index: 0, delta: {}, finish_reason: 'tool_calls' }] },
    { id: 'c', model: 'm', choices: [], usage: { prompt_tokens: 3, completion_tokens: 4, total_tokens: 7 } },
  ],
  'anthropic-messages': [
    {
      type: 'message_start',
      message: {
        id: 'c',
        type: 'message',
        role: 'assistant',
        model: 'm',
        content: [],
        usage: { input_tokens: 3, output_tokens: 1 },
      },
    },
    { type: 'content_block_start', index: 0, content_block: { type: 'thinking', thinking: '', signature: '' } },
    { type: 'content_block_delta', index: 0, delta: { type: 'thinking_delta', thinking: 'Hm' } },
    { type: 'content_block_stop', index: 0 },
    { type: 'content_block_start', index: 1, content_block: { type: 'text', text: '' } },
    { type: 'content_block_delta', index: 1, delta: { type: 'text_delta', text: 'Hi' } },
    { type: 'content_block_stop', index: 1 },
    { type: 'content_block_start', index: 2, content_block: { type: 'tool_use', id: 'a', name: 'f', input: {} } },
    { type: 'content_block_delta', index: 2, delta: { type: 'input_json_delta', partial_json: '{"x":' } },
    { type: 'content_block_delta', index: 2, delta: { type: 'input_json_delta', partial_json: '1}' } },
    { type: 'content_block_stop', index: 2 },
    { type: 'message_delta', delta: { stop_reason: 'tool_use', stop_sequence: null }, usage: { output_tokens: 4 } },
    { type: 'message_stop' },
  ],
  'openai-responses': [
    {
      type: 'response.created',
      sequence_number: 0,
      response: { id: 'c', object: 'response', model: 'm', status: 'in_progress', output: [] },
    },
    {
      type: 'response.output_item.added',
      sequence_number: 1,
      output_index: 0,
      item: { type: 'reasoning', id: 'r', summary: [] },
    },
    {
      type: 'response.reasoning_summary_part.added',
      sequence_number: 2,
      item_id: 'r',
      output_index: 0,
      summary_index: 0,
      part: { type: 'summary_text', text: '' },
    },
    {
      type: 'response.reasoning_summary_text.delta',
      sequence_number: 3,
      item_id: 'r',
      output_index: 0,
      summary_index: 0,
      delta: 'Hm',
    },
    {
      type: 'response.output_item.done',
      sequence_number: 4,
      output_index: 0,
      item: { type: 'reasoning', id: 'r', summary: [{ type: 'summary_text', text: 'Hm' }] },
    },
    {
      type: 'response.output_item.added',
      sequence_number: 5,
      output_index: 1,
      item: { type: 'message', id: 'i', role: 'assistant', status: 'in_progress', content: [] },
    },
    {
      type: 'response.content_part.added',
      sequence_number: 6,
      item_id: 'i',
      output_index: 1,
      content_index: 0,
      part: { type: 'output_text', text: '', annotations: [] },
    },
    { type: 'response.output_text.delta', sequence_number: 7, item_id: 'i', output_index: 1, content_index: 0, delta: 'Hi' },
    {
      type: 'response.output_item.done',
      sequence_number: 8,
      output_index: 1,
      item: {
        type: 'message',
        id: 'i',
        role: 'assistant',
        status: 'completed',
        content: [{ type: 'output_text', text: 'Hi', annotations: [] }],
      },
    },
    {
      type: 'response.output_item.added',
      sequence_number: 9,
      output_index: 2,
      item: { type: 'function_call', id: 'fc', call_id: 'a', name: 'f', arguments: '' },
    },
    { type: 'response.function_call_arguments.delta', sequence_number: 10, item_id: 'fc', output_index: 2, delta: '{"x":' },
    { type: 'response.function_call_arguments.delta', sequence_number: 11, item_id: 'fc', output_index: 2, delta: '1}' },
    {
      type: 'response.output_item.done',
      sequence_number: 12,
      output_index: 2,
      item: { type: 'function_call', id: 'fc', call_id: 'a', name: 'f', arguments: '{"x":1}', status: 'completed' },
    },
    {
      type: 'response.completed',
      sequence_number: 13,
      response: {
        id: 'c',
        object: 'response',
        model: 'm',
        status: 'completed',
        output: [
          { type: 'reasoning', id: 'r', summary: [{ type: 'summary_text', text: 'Hm' }] },
          {
            type: 'message',
            id: 'i',
            role: 'assistant',
            status: 'completed',
            content: [{ type: 'output_text', text: 'Hi', annotations: [] }],
          },
          { type: 'function_call', id: 'fc', call_id: 'a', name: 'f', arguments: '{"x":1}', status: 'completed' },
        ],
        usage: { input_tokens: 3, output_tokens: 4, total_tokens: 7 },
      },
    },
  ],
  gemini: [
    {
      responseId: 'c',
      modelVersion: 'm',
      candidates: [{ index: 0, content: { role: 'model', parts: [{ text: 'Hm', thought: true }] } }],
    },
    { responseId: 'c', modelVersion: 'm', candidates: [{ index: 0, content: { role: 'model', parts: [{ text: 'Hi' }] } }] },
    {
      responseId: 'c',
      modelVersion: 'm',
      candidates: [
        {
          index: 0,
          content: { role: 'model', parts: [{ functionCall: { id: 'a', name: 'f', args: { x: 1 } } }] },
          finishReason: 'STOP',
        },
      ],
      usageMetadata: { promptTokenCount: 3, candidatesTokenCount: 4, totalTokenCount: 7 },
    },
  ],
};

describe.each(Object.entries(STREAMS) as [ProtocolId, object[]][])('createAccumulator for %s', (protocol, chunks) => {
  test('can be read at any time, and has everything before finish()', () => {
    const accumulator = createAccumulator({ protocol });
    const texts: string[] = [];
    for (const chunk of chunks) {
      accumulator.push(chunk);
      texts.push(accumulator.text);
    }
    const { text, reasoning, usage, finishReason } = accumulator;
    // Whether a call of Gemini is the client's is known at the end: until then Google may answer it.
    if (protocol === 'gemini') accumulator.finish();
    const { toolCalls } = accumulator;
    expect(texts.toSorted((a, b) => a.length - b.length)).toEqual(texts);
    expect({ text, reasoning, usage, finishReason }).toEqual({
      text: 'Hi',
      reasoning: 'Hm',
      usage: expect.objectContaining({ input_tokens: 3, output_tokens: 4 }),
      finishReason: 'tool_calls',
    });
    expect(toolCalls).toMatchObject([{ id: 'a', name: 'f', arguments: '{"x":1}', type: 'function' }]);
    expect(toolCalls[0]).not.toHaveProperty('invalid');
  });

  test('finish() equals accumulate(), however often it is called', async () => {
    const accumulator = createAccumulator({ protocol });
    for (const chunk of chunks) accumulator.push(chunk);
    const expected = await accumulate(chunks, { protocol });
    expect(accumulator.finish()).toEqual(expected);
    expect(accumulator.finish()).toEqual(expected);
    expect(expected).toMatchObject({ complete: true, diagnostics: [], finish_reason: 'tool_calls' });
  });

  test('a snapshot before the end has the values of the getters, and later chunks do not change it', () => {
    const accumulator = createAccumulator({ protocol });
    for (const [at, chunk] of chunks.entries()) {
      accumulator.push(chunk);
      const snapshot = accumulator.snapshot();
      const saved = structuredClone(snapshot);
      expect(snapshot).toMatchObject({
        text: accumulator.text,
        reasoning: accumulator.reasoning,
        usage: accumulator.usage,
        finish_reason: accumulator.finishReason,
      });
      for (const later of chunks.slice(at + 1, at + 2)) accumulator.push(later);
      expect(snapshot).toEqual(saved);
    }
  });

  test('takes the same stream as bytes and as text', async () => {
    const expected = createAccumulator({ protocol });
    for (const chunk of chunks) expected.push(chunk);
    const body = chunks
      .map((chunk) => `${'type' in chunk ? `event: ${chunk.type}\n` : ''}data: ${JSON.stringify(chunk)}\n\n`)
      .join('');
    const { diagnostics: _, ...whole } = expected.finish();
    for (const pieces of [[...body], [new TextEncoder().encode(body)]]) {
      const accumulator = createAccumulator({ protocol });
      for (const piece of pieces) accumulator.push(piece);
      expect(accumulator.finish()).toMatchObject(whole);
    }
  });

  test('calls without complete arguments are invalid, and finishReason is null', () => {
    const cut = chunks.findIndex((chunk) => JSON.stringify(chunk).includes('{\\"x\\":'));
    if (cut < 0) return; // Gemini sends arguments in one piece
    const accumulator = createAccumulator({ protocol });
    for (const chunk of chunks.slice(0, cut + 1)) accumulator.push(chunk);
    expect(accumulator.toolCalls).toMatchObject([{ name: 'f', arguments: '{"x":', invalid: true }]);
    expect(accumulator.finishReason).toBeNull();
    expect(accumulator.finish()).toMatchObject({ complete: false, invalid_arguments: [0] });
  });

  test('refuses what is no chunk', () => {
    const accumulator = createAccumulator({ protocol });
    for (const wrong of [undefined, null, 1, []])
      expect(() => accumulator.push(wrong as unknown as string)).toThrow(
        /^push\(input\): expected bytes, text or a parsed chunk; got /,
      );
  });

  test('is an Accumulator', () => {
    const accumulator: Accumulator = createAccumulator({ protocol });
    for (const chunk of chunks) accumulator.push(chunk);
    accumulator.finish();
    expect(accumulator).toBeInstanceOf(StreamAccumulator);
    expect(accumulator.toolCalls[0]?.name).toBe('f');
  });
});

test('without a protocol it is the accumulator of chat chunks', () => {
  const accumulator: Accumulator = createAccumulator();
  for (const chunk of STREAMS['openai-chat']) accumulator.push(chunk);
  expect(accumulator).toBeInstanceOf(ChatAccumulator);
  expect(accumulator).toMatchObject({ text: 'Hi', reasoning: 'Hm', finishReason: 'tool_calls' });
  expect(accumulator.finish()).toMatchObject({ object: 'chat.completion' });
});

test('an unknown protocol is a TypeError', () => {
  // @ts-expect-error: not a protocol
  expect(() => createAccumulator({ protocol: 'claude' })).toThrow(
    /^options\.protocol: unknown protocol "claude"; known: openai-chat/,
  );
});
