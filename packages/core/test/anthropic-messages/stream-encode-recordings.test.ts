import { describe, expect, test } from 'vitest';
import { readCases, readManifest, readRecording } from '../../../../test/corpus.ts';
import {
  bodyOf,
  decodeMessages,
  encodeMessages,
  type Json,
  messagesContext,
  readStream,
  type SdkMessage,
} from '../../../../test/sdk/anthropic.ts';
import { MessageAccumulator } from '../../src/accumulate/message.ts';
import type { CanonicalStreamEvent } from '../../src/canonical/events.ts';
import { MessagesGrammar } from '../../src/protocols/anthropic-messages/grammar.ts';

const cases = readCases()
  .filter(({ protocol }) => protocol === 'anthropic')
  .map(({ id, raw }) => ({ name: `case ${id}`, bytes: new TextEncoder().encode(raw) as Uint8Array }));
const recordings = readManifest()
  .filter(({ protocol, stream }) => protocol === 'anthropic-messages' && stream)
  .map(({ file }) => ({ name: `recording ${file}`, bytes: readRecording(file) as Uint8Array }));

const accumulate = (events: Iterable<CanonicalStreamEvent>) => {
  const accumulator = new MessageAccumulator();
  for (const event of events) accumulator.push(event);
  return accumulator.finish();
};

const own = () => messagesContext({ source: 'anthropic-messages' });

/** What re-encoding changes of the message that the SDK reads from a recorded stream, and why. */
const NORMALISATIONS: { name: string; why: string; apply: (message: SdkMessage) => void }[] = [
  {
    name: 'required fields',
    why: 'the official types of today require them; older recordings do not have them yet',
    apply: (message) => {
      for (const name of ['container', 'diagnostics', 'stop_details', 'stop_sequence'] as const) message[name] ??= null;
      for (const block of message.content) {
        if (block.type === 'text') block['citations'] ??= null;
        if (block.type === 'tool_use' || block.type === 'server_tool_use') block['caller'] ??= { type: 'direct' };
      }
    },
  },
  {
    name: 'empty citations',
    why: 'a list of no citations says as much as null',
    apply: (message) => {
      for (const block of message.content)
        if (Array.isArray(block['citations']) && block['citations'].length === 0) block['citations'] = null;
    },
  },
  {
    name: 'empty text',
    why: 'a text block without a character says nothing, and is refused when the client sends it back',
    apply: (message) => {
      message.content = message.content.filter(({ type, text }) => type !== 'text' || text !== '');
    },
  },
  {
    name: 'compaction',
    why: 'its deltas are unknown to the stream helper, which leaves the block empty; it is passed on whole, so that the helper reads it',
    apply: (message) => {
      for (const block of message.content) if (block.type === 'compaction') delete block['content'];
    },
  },
  {
    name: 'fields of relays',
    why: 'what a relay adds to message_start is known at the end of the message, and stands there: the SDK does not look at it',
    apply: (message) => {
      delete message['provider'];
    },
  },
  {
    name: 'counters',
    why: 'the official type requires every counter; those that no recording has are null',
    apply: (message) => {
      for (const name of ['cache_creation', 'service_tier', 'inference_geo', 'speed', 'output_tokens_details', 'server_tool_use'])
        message.usage[name] ??= null;
      for (const name of ['cache_creation_input_tokens', 'cache_read_input_tokens']) message.usage[name] ??= 0;
    },
  },
];

/** A call that went on after its block had stopped: what has gone out cannot be called back, and a note says so. */
const isLate = (events: readonly CanonicalStreamEvent[]): boolean =>
  events.some((event) => event.type === 'message_delta' && event.late_blocks !== undefined);

const rows = [...cases, ...recordings].map(({ name, bytes }) => {
  const events = decodeMessages(bytes);
  return { name, bytes, events, frames: encodeMessages(events, own()), isError: events.at(-1)?.type === 'error' };
});

describe.each(rows)('$name', ({ name, bytes, events, frames, isError }) => {
  test('keeps the grammar', () => {
    expect(MessagesGrammar.check(frames)).toBe(isError ? 'error' : 'stopped');
  });

  if (!isError && !isLate(events))
    test('decoded again is the same message', () => {
      const again = accumulate(decodeMessages(new TextEncoder().encode(bodyOf(frames))));
      const first = accumulate(events);
      expect(again.complete).toBe(true);
      expect(normalForm(again.message as unknown as Json)).toEqual(normalForm(first.message as unknown as Json));
    });

  test('is read by the official SDK', async () => {
    if (isError) return expect(readStream(bodyOf(frames))).rejects.toThrow();
    const read = await readStream(bodyOf(frames));
    const { message } = accumulate(events);
    expect(read.content.map(({ text = '' }) => text).join('')).toBe(textOf(message.content, 'text'));
    expect(read.content.map(({ thinking = '' }) => thinking).join('')).toBe(textOf(message.content, 'thinking'));
    expect(read.stop_reason).not.toBeNull();
    if (!name.startsWith('recording')) return undefined;
    // One recording lacks the blank line at its end, two have a [DONE] there.
    const original = await readStream(`${new TextDecoder().decode(bytes).replace(/^data: \[DONE\]$/m, '')}\n\n`);
    for (const { apply } of NORMALISATIONS) {
      apply(original);
      apply(read);
    }
    expect(read).toEqual(original);
    return undefined;
  });
});

const textOf = (content: readonly { type: string }[], field: 'text' | 'thinking'): string =>
  content.map((block) => (block.type === field ? String((block as unknown as Json)[field]) : '')).join('');

/**
 * Without the required fields that the encoder adds (counters in the raw usage, who called), and with the stop reason
 * that is written where the message has no calls.
 */
function normalForm(message: Json): Json {
  const { extensions: _, ...usage } = (message['usage'] ?? {}) as Json;
  const content = (message['content'] as Json[]).map((block) => {
    const { caller, ...fields } = ((block['extensions'] as Json)?.['anthropic-messages'] ?? {}) as Json;
    const isDirect = (caller as Json)?.['type'] === 'direct';
    return { ...block, extensions: isDirect ? fields : { ...fields, ...(caller !== undefined && { caller }) } };
  });
  const own = ((message['extensions'] as Json)?.['anthropic-messages'] ?? {}) as Json;
  const isCorrected = own['finish_reason'] === 'tool_use' && message['stop_reason'] === 'end_turn';
  const extensions = { 'anthropic-messages': { ...own, ...(isCorrected && { finish_reason: 'end_turn' }) } };
  return { ...message, content, extensions, usage: { cache_read_tokens: 0, cache_creation_tokens: 0, ...usage } };
}

test('only one case tells of a late call', () => {
  const late = rows.filter(({ events }) => isLate(events));
  expect(late.map(({ name }) => name)).toEqual(['case own-input-after-stop']);
  const context = own();
  encodeMessages(late[0]?.events ?? [], context);
  expect(context.notes.map(({ code, feature }) => `${code} ${feature}`)).toEqual(['APPROXIMATED content.tool_use']);
});

test.each(NORMALISATIONS)('$name is normalised for a reason', ({ why }) => {
  expect(why.length).toBeGreaterThan(20);
});
