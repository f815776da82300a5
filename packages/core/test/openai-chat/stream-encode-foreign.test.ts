import { describe, expect, test } from 'vitest';
import { readCases, readManifest, readRecording } from '../../../../test/corpus.ts';
import { assemble, bytesOf, protocolOf } from '../../../../test/run.ts';
import { bodyOf, chatContext, encodeChat, framesOf, SDKS } from '../../../../test/sdk/chat.ts';
import type { CanonicalStreamEvent } from '../../src/canonical/events.ts';
import type { ContentBlock } from '../../src/canonical/message.ts';
import { ChatGrammar } from '../../src/protocols/openai-chat/grammar.ts';

const cases = readCases().map(({ id, protocol, raw }) => ({
  name: `case ${id}`,
  protocol,
  bytes: bytesOf(raw) as Uint8Array,
}));
const recordings = readManifest()
  .filter(({ stream }) => stream)
  .map(({ file, protocol }) => ({ name: file, protocol, bytes: readRecording(file) as Uint8Array }));

const rows = [...cases, ...recordings]
  .map(({ name, protocol, bytes }) => ({ name, protocol: protocolOf(protocol), bytes }))
  .filter(({ protocol }) => protocol.id !== 'openai-chat');

const isServerCall = (block: ContentBlock | undefined): boolean => block?.type === 'tool_use' && block.kind === 'server';

describe.each(rows)('$protocol.id $name', ({ protocol, bytes }) => {
  const context = chatContext({ source: protocol.id });
  const decoder = protocol.streamDecoder(context);
  const events: CanonicalStreamEvent[] = framesOf(bytes).flatMap((frame) => [...decoder.push(frame)]);
  events.push(...decoder.end());
  const frames = encodeChat(events, context);
  const result = assemble(protocol, [bytes]);
  const isFailure = result.error !== null || !result.complete || result.finish_reason === 'error';

  test('keeps the grammar of chat', () => {
    expect(ChatGrammar.check(frames)).toBe(isFailure ? 'error' : 'done');
  });

  // The helper of openai 6 rejects custom calls; `npm run test:sdk-next` has the next major.
  const isReadable = SDKS.length > 1 || result.tool_calls.every(({ type }) => type !== 'custom');

  if (!isFailure && isReadable)
    test('is read by the official SDK', async () => {
      const { choices, id } = (await SDKS.at(-1)?.stream(bodyOf(frames))) ?? { choices: [], id: '' };
      const message = choices[0]?.message;
      expect(id).toMatch(/^chatcmpl-/);
      expect(message?.content ?? '').toBe(result.text);
      const names = (message?.tool_calls ?? []).map(({ function: body, custom }) => ((body ?? custom) as { name: string }).name);
      // Gemini: only the functionResponse after a call shows that the provider ran it; by then the client has the call.
      const late = events.flatMap((event) =>
        event.type === 'content_block_stop' && isServerCall(event.content_block) ? [1] : [],
      );
      expect(names).toHaveLength(result.tool_calls.length + late.length);
      if (late.length === 0) expect(names).toEqual(result.tool_calls.map(({ name }) => name));
    });
});
