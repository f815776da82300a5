import { describe, expect, test } from 'vitest';
import { ChatAccumulator } from '../packages/core/src/accumulate/index.ts';
import { openaiChatWithCompletion } from '../packages/core/src/engine/index.ts';
import type { AccumulatedMessage, ChatAccumulatorOptions } from '../packages/core/src/index.ts';
import { type Recording, readManifest, readRecording } from './corpus.ts';
import { differences } from './match.ts';
import { payloads, plainText } from './plain-text.ts';
import { assemble, protocolOf, splitBy, splitEvery, validate } from './run.ts';

const manifest = readManifest();
const streams = manifest.filter(({ stream }) => stream);
const bodies = manifest.filter(({ stream }) => !stream);

const has = ({ features }: Recording, ...names: string[]): boolean => names.some((name) => features.includes(name));
const isError = (recording: Recording): boolean => recording.status >= 400 || has(recording, 'error', 'mid_stream_error');
const isCut = (recording: Recording): boolean => has(recording, 'truncated', 'invalid_tool_json');

/** Recordings that do not show what the others show, each with the reason. */
const EXEMPT: Record<string, string> = {
  'openai-responses/openai-e0f00585.sse': 'only the first deltas were kept by the source; the text is whole in output_text.done',
  'openai-responses/chatgpt-codex-8d8fd637.json': 'the body says in_progress: it is not whole',
  'openai-responses/chatgpt-codex-ecc5ca74.json': 'the body says in_progress: it is not whole',
  'gemini/google-13e74bde.json': 'no finishReason: it looks like one chunk of a cut stream',
  'gemini/google-03c2ad7a.json': 'embeddings, not a message',
  'gemini/google-vertex-d2b3fed2.json': 'a cached content, not a message',
};

describe.each(streams)('stream $file', (recording) => {
  const bytes = readRecording(recording.file);
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
    if (recording.reads) expect(assemble(protocol, splitBy(bytes, recording.reads))).toEqual(result);
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

describe.each(bodies)('body $file', (recording) => {
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

const isNotJson = ({ recorder }: Recording): boolean => recorder.includes('not-json');

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
