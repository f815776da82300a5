import { describe, expect, test } from 'vitest';
import { readCases, readManifest, readRecording } from '../../../../test/corpus.ts';
import { bytesOf, protocolOf } from '../../../../test/run.ts';
import {
  bodyOf,
  decodeBody,
  encodeResponses,
  type Json,
  type Response7,
  responsesContext,
  SDKS,
} from '../../../../test/sdk/responses.ts';
import { MessageAccumulator } from '../../src/accumulate/message.ts';
import type { CanonicalStreamEvent } from '../../src/canonical/events.ts';
import type { CanonicalResponse, ContentBlock } from '../../src/canonical/message.ts';
import { ResponsesGrammar } from '../../src/protocols/openai-responses/grammar.ts';
import { encodeUsage } from '../../src/protocols/openai-responses/outcome.ts';
import { decodeBuiltInCall, isClientItem } from '../../src/protocols/openai-responses/tools.ts';

const cases = readCases().map(({ id, protocol, raw }) => ({ name: `case ${id}`, protocol, bytes: bytesOf(raw) as Uint8Array }));
const recordings = readManifest()
  .filter(({ stream }) => stream)
  .map(({ file, protocol }) => ({ name: file, protocol, bytes: readRecording(file) as Uint8Array }));

interface Summary {
  text: string;
  reasoning: string;
  refusal: string;
  calls: { id: unknown; name: unknown; input: unknown }[];
  usage?: Json;
}

/** What a client has to end up with, from the canonical message. */
function expected({ content, usage, stop_reason: stop }: CanonicalResponse): Summary {
  // A call without arguments has none, or has lost them.
  const none = stop === 'max_tokens' || stop === 'content_filter' ? '' : '{}';
  const texts = content.filter((block) => block.type === 'text');
  return {
    text: texts.map(({ text, refusal }) => (refusal ? '' : text)).join(''),
    refusal: texts.map(({ text, refusal }) => (refusal ? text : '')).join(''),
    reasoning: content.map((block) => (block.type === 'thinking' && block.variant !== 'redacted' ? block.thinking : '')).join(''),
    calls: content.filter(isClientUse).map((call) => ({ id: call.id, name: call.name, input: call.input_raw || none })),
    // Who told no usage gets zeros: clients need one.
    usage: encodeUsage(usage ?? { input_tokens: 0, output_tokens: 0 }),
  };
}

/** Where a stream cannot say what the whole message says, and why. */
const LIVE: Record<string, (want: Summary) => Summary> = {
  // The id came after the arguments had begun, and with them the call under a derived id. Both ids name the same call.
  'openai-chat case own-id-after-arguments': (want) => ({
    ...want,
    calls: want.calls.map((call) => ({ ...call, id: expect.any(String) })),
  }),
  // As above, after the next call had begun.
  'openai-chat case own-ids-after-all-calls': (want) => ({
    ...want,
    calls: want.calls.map((call) => ({ ...call, id: expect.any(String) })),
  }),
  // The second document came when the call had been passed on: a live reader sees the first, with a note.
  'openai-chat case own-second-document-after-another-call': (want) => ({
    ...want,
    calls: want.calls.map((call) => ({ ...call, input: String(call.input).replace('{"z":2}', '') })),
  }),
};

function isClientUse(block: ContentBlock): block is Extract<ContentBlock, { type: 'tool_use' }> {
  return block.type === 'tool_use' && block.kind !== 'server' && block.kind !== 'mcp';
}

const list = (value: unknown): Json[] => (Array.isArray(value) ? (value as Json[]) : []);

function summary({ output, output_text: text, usage }: Response7): Summary {
  const reasoning = output.filter(({ type }) => type === 'reasoning');
  return {
    text,
    refusal: output.flatMap(({ content }) => list(content).map(({ refusal }) => refusal ?? '')).join(''),
    reasoning: reasoning
      .flatMap(({ summary, content }) => [
        list(summary)
          .map((part) => part['text'])
          .join('\n\n'),
        list(content)
          .map((part) => part['text'])
          .join(''),
      ])
      .join(''),
    calls: output.flatMap((item) => {
      const builtIn = decodeBuiltInCall(item);
      const { type, call_id: id, name, arguments: args, input } = item;
      if (builtIn && isClientItem(item)) return [{ id, name: builtIn.name, input: JSON.stringify(builtIn.input) }];
      return type === 'function_call' || type === 'custom_tool_call' ? [{ id, name, input: args ?? input }] : [];
    }),
    ...(usage && { usage }),
  };
}

/** Gemini: only the functionResponse after a call shows that the provider ran it; by then the client has the call. */
function lateServerCalls(events: readonly CanonicalStreamEvent[]): number {
  const finals = events.flatMap((event) =>
    event.type === 'content_block_stop' && event.content_block ? [event.content_block] : [],
  );
  return finals.filter((block) => block.type === 'tool_use' && !isClientUse(block)).length;
}

const rows = [...cases, ...recordings].map(({ name, protocol: named, bytes }) => {
  const protocol = protocolOf(named);
  const context = responsesContext({ source: protocol.id });
  const events = decodeBody(protocol, bytes, context);
  const accumulator = new MessageAccumulator();
  for (const event of events) accumulator.push(event);
  const { message, complete, error } = accumulator.finish();
  const isFailure = error !== null || !complete || message.stop_reason === 'error' || message.stop_reason === null;
  const frames = encodeResponses(events, context);
  const title = `${protocol.id} ${name}`;
  const whole = expected(message);
  return { name: title, frames, isFailure, want: LIVE[title]?.(whole) ?? whole, late: lateServerCalls(events) };
});

test.each(rows)('$name keeps the grammar', ({ frames, isFailure }) => {
  const outcome = ResponsesGrammar.check(frames);
  expect(outcome === 'failed').toBe(isFailure);
});

describe.each(SDKS)('$name reads', ({ stream }) => {
  test.each(rows)('$name', async ({ frames, isFailure, want, late }) => {
    const body = bodyOf(frames);
    if (isFailure) {
      await expect(stream(body)).rejects.toBeDefined();
      return;
    }
    const got = summary(await stream(body));
    if (late > 0) got.calls.splice(0, late);
    expect(got).toEqual(want);
  });
});
