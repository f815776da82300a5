import { describe, expect, test } from 'vitest';
import { type Case, readCases } from '../../../../test/corpus.ts';
import { describeMessage } from '../../src/engine/message.ts';
import { gemini } from '../../src/protocols/gemini/index.ts';
import { run } from './run.ts';

const CASES = readCases().filter(({ protocol }) => protocol === 'gemini');

/** Where the words of a case stand in the assembled result; everything else is an extra of its own name. */
const WORDS: Record<string, string> = {
  native_finish_reason: 'wire_finish_reason',
  wire_finish_reason: 'wire_finish_reason',
  response_id: 'id',
};

function assembled({ raw }: Case, size?: number): Record<string, unknown> {
  const result = run(raw, size);
  const message = describeMessage(gemini, result, { diagnostics: [], notes: result.notes });
  return { ...message, tool_call_fields: message.tool_calls.map(({ id: _, name, arguments: args, type, ...fields }) => fields) };
}

describe.each(CASES)('$id', (row) => {
  test.each([Number.MAX_SAFE_INTEGER, 1, 64])('in chunks of %d bytes', (size) => {
    const { tool_calls, extras = {}, usage, error, ...expected } = row.expected;
    const found = assembled(row, size);
    expect(found).toMatchObject(expected);
    expect(found['tool_calls']).toHaveLength(tool_calls.length);
    expect(found['tool_calls']).toMatchObject(
      tool_calls.map((call) => (call.id === '<generated>' ? { ...call, id: expect.stringMatching(/./) } : call)),
    );
    if (usage) expect(found['wire_usage']).toMatchObject(usage);
    if (error) expect(found['error']).toMatchObject(error);
    else expect(found['error']).toBeNull();
    for (const [key, value] of Object.entries(extras)) {
      const place = WORDS[key] ?? key;
      expect(place in found ? found[place] : Object(found['extras'])[place], key).toEqual(value);
    }
  });
});
