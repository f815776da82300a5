import { describe, expect, test } from 'vitest';
import { readCases, readManifest, readRecording } from '../../../../test/corpus.ts';
import { assemble, bytesOf, protocolOf } from '../../../../test/run.ts';
import {
  bodyOf,
  encodeMessages,
  framesOf,
  messagesContext,
  readStream,
  type SdkMessage,
} from '../../../../test/sdk/anthropic.ts';
import { MessageAccumulator } from '../../src/accumulate/message.ts';
import type { CanonicalStreamEvent } from '../../src/canonical/events.ts';
import { type CanonicalResponse, type ContentBlock, isClientCall, type ToolUseBlock } from '../../src/canonical/message.ts';
import { decodeCarrier } from '../../src/codec/answers.ts';
import { isObject, parseJson } from '../../src/json/json.ts';
import { MessagesGrammar } from '../../src/protocols/anthropic-messages/grammar.ts';

const cases = readCases().map(({ id, protocol, raw }) => ({
  name: `case ${id}`,
  protocol,
  bytes: bytesOf(raw) as Uint8Array,
}));
const recordings = readManifest()
  .filter(({ stream }) => stream)
  .map(({ file, protocol }) => ({ name: file, protocol, bytes: readRecording(file) as Uint8Array }));

const STOPS: Record<string, string> = { content_filter: 'refusal', context_window: 'model_context_window_exceeded' };

interface Row {
  name: string;
  protocol: ReturnType<typeof protocolOf>;
  bytes: Uint8Array;
}

const rows: Row[] = [...cases, ...recordings]
  .map(({ name, protocol, bytes }) => ({ name, protocol: protocolOf(protocol), bytes }))
  .filter(({ protocol }) => protocol.id !== 'anthropic-messages');

function run({ protocol, bytes }: Row) {
  const context = messagesContext({ source: protocol.id });
  const decoder = protocol.streamDecoder(context);
  const events: CanonicalStreamEvent[] = framesOf(bytes).flatMap((frame) => [...decoder.push(frame)]);
  events.push(...decoder.end());
  const accumulator = new MessageAccumulator();
  for (const event of events) accumulator.push(event);
  const result = assemble(protocol, [bytes]);
  const isFailure = result.error !== null || !result.complete || result.finish_reason === 'error';
  return { context, events, message: accumulator.message, isFailure, frames: encodeMessages(events, context) };
}

/** Calls that went on after they had been passed on, or that the provider turned out to have run itself: a live client has seen them otherwise. */
const isCorrectedLate = (events: readonly CanonicalStreamEvent[]): boolean =>
  events.some(
    (event) =>
      (event.type === 'message_delta' && event.late_blocks !== undefined) ||
      (event.type === 'content_block_stop' && event.content_block !== undefined && !isClientBlock(event.content_block)),
  );

const isClientBlock = (block: ContentBlock): boolean => block.type !== 'tool_use' || isClientCall(block.kind);

/** The input as the client has to see it: an object, or what is none in one. */
function inputOf({ input, input_raw: raw, kind, status }: ToolUseBlock): unknown {
  if (status === 'incomplete' && kind !== 'custom') return { INVALID_JSON: raw };
  if (kind === 'custom') return { input };
  const value = raw === undefined ? input : parseJson(raw);
  if (value === null) return {};
  return isObject(value) ? value : { input: value ?? raw };
}

/** Begins like an object and is none: the SDK cannot read it, and nobody could. */
const isUnreadable = (block: ContentBlock): boolean =>
  block.type === 'tool_use' && block.input_raw?.trimStart().startsWith('{') === true && parseJson(block.input_raw) === undefined;

const callsOf = ({ content }: CanonicalResponse): ToolUseBlock[] =>
  content.filter((block) => block.type === 'tool_use').filter(({ kind }) => isClientCall(kind));

const textIn = (read: SdkMessage, field: 'text' | 'thinking'): string =>
  read.content.map((block) => String(block[field] ?? '')).join('');

const textOf = ({ content }: CanonicalResponse): string =>
  content.map((block) => (block.type === 'text' ? block.text : block.type === 'audio' ? (block.transcript ?? '') : '')).join('');

describe.each(rows)('$protocol.id $name', (row) => {
  const { events, message, isFailure, frames, context } = run(row);

  test('keeps the grammar', () => {
    expect(MessagesGrammar.check(frames)).toBe(isFailure ? 'error' : 'stopped');
  });

  test('is read by the official SDK', async () => {
    if (isFailure) return expect(readStream(bodyOf(frames))).rejects.toThrow();
    const isBroken = message.content.some(isUnreadable) && message.stop_reason === 'tool_use';
    const read = await readStream(bodyOf(frames)).catch((error) => {
      if (!isBroken) throw error;
    });
    if (!read) return expect(isBroken).toBe(true);
    expect(read.id).toMatch(/^msg_/);
    if (!context.notes.some(({ feature }) => feature === 'content.image')) expect(textIn(read, 'text')).toBe(textOf(message));
    expect(textIn(read, 'thinking')).toBe(
      message.content.map((block) => (block.type === 'thinking' ? block.thinking : '')).join(''),
    );
    expect(read.stop_reason).toBe(STOPS[String(message.stop_reason)] ?? message.stop_reason);
    expectUsage(read, message);
    const isNameLate = context.notes.some(({ feature }) => feature === 'content.tool_use.name');
    if (!isCorrectedLate(events) && !isNameLate) expectCalls(read, message, isBroken || message.content.some(isUnreadable));
    return undefined;
  });
});

function expectCalls(read: SdkMessage, message: CanonicalResponse, isCut: boolean): void {
  const calls = callsOf(message);
  const seen = read.content.filter(({ type }) => type === 'tool_use');
  expect(seen.map(({ name }) => name)).toEqual(calls.map(({ name }) => name));
  if (!isCut) expect(seen.map(({ input }) => input)).toEqual(calls.map(inputOf));
  // Every signature of another provider is carried, and nobody else's is.
  for (const { signature } of read.content)
    if (signature) expect(decodeCarrier(String(signature))?.blob.origin).not.toBe('anthropic-messages');
}

function expectUsage({ usage }: SdkMessage, { usage: counted }: CanonicalResponse): void {
  const { input_tokens: input, cache_read_input_tokens: read, cache_creation_input_tokens: written, output_tokens } = usage;
  expect(Number(input) + Number(read) + Number(written)).toBe(counted?.input_tokens ?? 0);
  expect(output_tokens).toBe(counted?.output_tokens ?? 0);
}
