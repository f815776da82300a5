import { describe, expect, test } from 'vitest';
import { readCases, readManifest, readRecording } from '../../../../test/corpus.ts';
import { assemble, bytesOf, protocolOf } from '../../../../test/run.ts';
import { bodyOf, type Completion, decodeChat, encodeChat, SDKS } from '../../../../test/sdk/chat.ts';
import { officialUsage } from '../../../../test/sdk/chat-normal.ts';
import type { AccumulatedMessage } from '../../src/index.ts';
import { ChatGrammar } from '../../src/protocols/openai-chat/grammar.ts';

const cases = readCases()
  .filter(({ protocol }) => protocol === 'openai-chat' || protocol === 'sse')
  .map(({ id, raw }) => ({ name: `case ${id}`, bytes: bytesOf(raw) as Uint8Array }));
const recordings = readManifest()
  .filter(({ protocol, stream }) => protocol === 'openai-chat' && stream)
  .map(({ file }) => ({ name: `recording ${file}`, bytes: readRecording(file) as Uint8Array }));

interface Summary {
  text: string;
  refusal: string | null;
  calls: { id: string; type: string; name: string; input: string }[];
  finish: string | null | undefined;
  usage?: object;
}

/** What the SDK has to end up with, from the decoder's side of the canonical events; null when it has to raise. */
function expected(result: AccumulatedMessage): Summary | null {
  const { error, complete, finish_reason: finish, text, refusal, tool_calls: calls, wire_usage: usage } = result;
  if (error || !complete || finish === 'error') return null;
  const completion = usage ? { usage: structuredClone(usage) } : {};
  officialUsage(completion);
  return {
    text,
    refusal: refusal ?? null,
    calls: calls.map(({ id, type, name, arguments: input }) => ({ id, type, name, input })),
    finish,
    ...completion,
  };
}

function summary({ choices, usage }: Completion): Summary {
  const [choice] = choices;
  const { content, refusal, tool_calls: calls = [] } = choice?.message ?? { content: null, refusal: null };
  return {
    text: content ?? '',
    refusal,
    calls: calls.map(({ id, type, function: body, custom }) => {
      const { name = '', arguments: text, input } = (body ?? custom) as Record<string, string>;
      return { id, type, name, input: text ?? input ?? '' };
    }),
    finish: choice?.finish_reason,
    ...(usage && { usage }),
  };
}

/** Where a stream cannot say what the whole message says, and why. */
const LIVE: Record<string, (want: Summary) => Summary> = {
  // The id came after the arguments had begun, and with them the call under a derived id. Both ids name the same call.
  'case own-id-after-arguments': (want) => ({ ...want, calls: want.calls.map((call) => ({ ...call, id: expect.any(String) })) }),
  // As above, after the next call had begun.
  'case own-ids-after-all-calls': (want) => ({ ...want, calls: want.calls.map((call) => ({ ...call, id: expect.any(String) })) }),
  // The second document came when the call had been passed on: the reader of the whole message sees both, a live one the first, with a note.
  'case own-second-document-after-another-call': (want) => ({
    ...want,
    calls: want.calls.map((call) => ({ ...call, input: call.input.replace('{"z":2}', '') })),
  }),
};

const rows = [...cases, ...recordings].map(({ name, bytes }) => {
  const frames = encodeChat(decodeChat(bytes));
  const whole = expected(assemble(protocolOf('openai-chat'), [bytes]));
  const want = whole && (LIVE[name]?.(whole) ?? whole);
  return { name, frames, body: bodyOf(frames), want, isCustom: JSON.stringify(want).includes('"type":"custom"') };
});

test.each(rows)('$name keeps the grammar', ({ frames, want }) => {
  expect(ChatGrammar.check(frames)).toBe(want === null ? 'error' : 'done');
});

describe.each(SDKS)('$name reads', ({ name: sdk, stream }) => {
  test.each(rows)('$name', async ({ body, want, isCustom }) => {
    if (want === null) return expect(stream(body)).rejects.toThrow();
    // 6.49 has no custom calls in its stream helper: it looks for a function in each.
    if (isCustom && sdk === 'openai 6.49') return expect(stream(body)).rejects.toThrow('function.name');
    expect(summary(await stream(body))).toEqual(want);
  });
});
