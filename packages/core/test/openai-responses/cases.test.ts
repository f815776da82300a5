import { describe, expect, test } from 'vitest';
import { type Case, readCases } from '../../../../test/corpus.ts';
import type { ContentBlock, ToolUseBlock } from '../../src/canonical/message.ts';
import { openaiResponses } from '../../src/protocols/openai-responses/index.ts';
import { type Run, runBytes } from './run.ts';

const cases = readCases().filter(({ protocol }) => protocol === 'openai-responses');

const textOf = (content: ContentBlock[], isRefusal: boolean): string =>
  content.map((block) => (block.type === 'text' && (block.refusal ?? false) === isRefusal ? block.text : '')).join('');

const WORDS = {
  end_turn: 'stop',
  refusal: 'stop',
  max_tokens: 'length',
  tool_use: 'tool_calls',
  content_filter: 'content_filter',
};

function finishOf({ message, error }: Run): string | null {
  if (error) return 'error';
  const stop = message.stop_reason;
  return stop === null ? null : ((WORDS as Record<string, string>)[stop] ?? stop);
}

function callOf({ id, name, input_raw = '{}' }: ToolUseBlock, expectedId: string | undefined): object {
  return { id: expectedId === '<generated>' && id !== '' ? expectedId : id, name, arguments: input_raw };
}

function check({ expected }: Case, result: Run): void {
  const { message, complete, error } = result;
  const calls = message.content.filter((block) => block.type === 'tool_use');
  expect(textOf(message.content, false)).toBe(expected.text);
  expect(calls.map((block, at) => callOf(block, expected.tool_calls[at]?.id))).toEqual(expected.tool_calls);
  expect(new Set(calls.map(({ id }) => id)).size).toBe(calls.length);
  expect(finishOf(result)).toBe(expected.finish_reason);
  if (expected.refusal !== undefined) expect(textOf(message.content, true)).toBe(expected.refusal);
  if (expected.reasoning !== undefined) {
    expect(message.content.map((block) => (block.type === 'thinking' ? block.thinking : '')).join('')).toBe(expected.reasoning);
  }
  if (expected.usage) expect(message.usage?.extensions?.['openai-responses']).toMatchObject(expected.usage);
  const { code, message: said } = error ?? {};
  const wire = error && {
    code: error.upstream?.code ?? error.details?.['code'] ?? code,
    message: said,
    type: error.upstream?.type,
  };
  if (expected.error) expect(wire).toMatchObject(expected.error);
  else expect(error).toBeNull();
  const { incomplete, response_id: id = message.id, model = message.model, ...others } = expected.extras ?? {};
  expect(message).toMatchObject({ id, model });
  expect(complete).toBe(incomplete !== true);
  if (Object.keys(others).length > 0) expect(openaiResponses.extras(message)).toMatchObject(others);
}

describe.each(cases)('$id', (row) => {
  test('as one piece', () => check(row, runBytes(row.raw)));
  test('byte by byte', () => check(row, runBytes(row.raw, 1)));
});
