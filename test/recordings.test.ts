import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { ChatAccumulator } from '../packages/core/src/accumulate/index.ts';
import { openaiChatWithCompletion } from '../packages/core/src/engine/index.ts';
import type { AccumulatedMessage, ChatAccumulatorOptions } from '../packages/core/src/index.ts';
import { differences } from './match.ts';
import { payloads, plainText } from './plain-text.ts';
import { assemble, protocolOf, splitBy, splitEvery, validate } from './run.ts';
import { type Recording, readManifest, readRecording, SHARED } from './shared.ts';

const manifest = readManifest();
const streams = manifest.filter(({ stream }) => stream);
const bodies = manifest.filter(({ stream }) => !stream);
const packets: Record<string, number[]> = SHARED
  ? JSON.parse(readFileSync(join(SHARED, 'recordings', 'packets.json'), 'utf8'))
  : {};

const has = ({ features }: Recording, ...names: string[]): boolean => names.some((name) => features.includes(name));
const isError = (recording: Recording): boolean => recording.status >= 400 || has(recording, 'error', 'mid_stream_error');
const isCut = (recording: Recording): boolean => has(recording, 'truncated', 'invalid_tool_json');

/** Recordings that do not show what the others show, each with the reason. */
const EXEMPT: Record<string, string> = {
  'openai-responses/openai__gpt-5.3-codex__openai-phase.1.sse':
    'only the first deltas were kept by the source; the text is whole in output_text.done',
  'openai-responses/chatgpt-codex__gpt-5-2025-08-07__codex-responses-thinking.json': 'the body says in_progress: it is not whole',
  'openai-responses/chatgpt-codex__gpt-5-2025-08-07__codex-responses-tools.json': 'the body says in_progress: it is not whole',
  'gemini/google__gemini-2.0-flash-exp-image-generation__image-basic.json':
    'no finishReason: it looks like one chunk of a cut stream',
  'gemini/google__gemini-embedding-2__embedding-multimodal-embeddings-gemini-embeds-an-im.json': 'embeddings, not a message',
  'gemini/google-vertex__gemini-2.5-flash__cachedcontent-explicit-caching-round-trip-vertexai-gemini-2-5-flash-cr-1.json':
    'a cached content, not a message',
};

describe.skipIf(!SHARED).each(streams)('stream $file', (recording) => {
  const bytes = SHARED ? readRecording(recording.file) : new Uint8Array();
  const protocol = protocolOf(recording.protocol);
  const result = assemble(protocol, [bytes]);

  test('assembles', () => {
    if (isError(recording)) return expect(result.error).not.toBeNull();
    if (!isCut(recording)) {
      expect(result.complete).toBe(true);
      expect(result.invalid_arguments).toEqual([]);
    }
    const plain = plainText(recording.protocol, bytes.toString());
    if (EXEMPT[recording.file]) return expect(result.text.length).toBeGreaterThan(plain.length);
    expect(result.text).toBe(plain);
  });

  test('assembles the same in other pieces', () => {
    expect(assemble(protocol, splitEvery(bytes, 97))).toEqual(result);
    if (packets[recording.file]) expect(assemble(protocol, splitBy(bytes, packets[recording.file] ?? []))).toEqual(result);
  });

  test('is a canonical stream', () => {
    expect(validate(protocol, [bytes])).toBeGreaterThan(0);
  });

  if (recording.protocol !== 'openai-chat') return;

  test('a sample of chunks is enough to find every field', () => {
    const complete = (options: ChatAccumulatorOptions) => {
      const accumulator = new ChatAccumulator(options);
      accumulator.pushAll(payloads(bytes.toString()));
      return accumulator.finish();
    };
    expect(complete({})).toEqual(complete({ everyField: true }));
  });

  test('the completion agrees with the message', () => {
    expect(compareCompletion(assemble(openaiChatWithCompletion, [bytes]))).toEqual([]);
  });
});

describe.skipIf(!SHARED).each(bodies)('body $file', (recording) => {
  test('is read like a stream', () => {
    const bytes = readRecording(recording.file);
    const result = assemble(protocolOf(recording.protocol), [bytes]);
    if (isError(recording) || isNotJson(recording)) return expect(result.error).not.toBeNull();
    if (EXEMPT[recording.file]) return expect(result.complete).toBe(false);
    expect(result.error).toBeNull();
    if (!isCut(recording)) expect(result.invalid_arguments).toEqual([]);
    expect(result.complete).toBe(true);
    validate(protocolOf(recording.protocol), [bytes]);
  });
});

const isNotJson = ({ notes = [] }: Recording): boolean => notes.some((note) => /not JSON|does not parse/.test(note));

/** The chat.completion is folded from the chunks by another machine than the message: both must say the same. */
function compareCompletion({ completion, text, reasoning, refusal, tool_calls: calls }: AccumulatedMessage): string[] {
  const choices = (completion?.['choices'] ?? []) as { message: Record<string, unknown> }[];
  const message = choices[0]?.message;
  if (!message) return [];
  const wireCalls = (message['tool_calls'] ?? []) as {
    id: string;
    function?: object;
    custom?: { name: string; input: string };
  }[];
  return differences(
    {
      text: message['content'] ?? '',
      reasoning: message['reasoning_content'] ?? '',
      refusal: message['refusal'],
      calls: wireCalls.map(({ id, function: body, custom }) => ({
        id,
        ...body,
        ...(custom && { name: custom.name, arguments: custom.input }),
      })),
    },
    { text, reasoning, refusal, calls: calls.map(({ id, name, arguments: args }) => ({ id, name, arguments: args })) },
  );
}
