import type { CodecContext } from '../../packages/core/src/codec/protocol.ts';
import type { CanonicalStreamEvent, Note, SseFrame } from '../../packages/core/src/index.ts';
import { DEFAULT_CHAT_PROFILE } from '../../packages/core/src/protocols/openai-chat/profiles.ts';
import { decodeStream } from '../../packages/core/src/protocols/openai-chat/stream-decode.ts';
import { encodeStream } from '../../packages/core/src/protocols/openai-chat/stream-encode.ts';
import { createSseDecoder } from '../../packages/core/src/sse/decode.ts';
import { encodeSse } from '../../packages/core/src/sse/encode.ts';
import { OPENAI_SDKS, type OpenAISdk } from './openai.ts';

export type Json = Record<string, unknown>;

export interface TestContext extends CodecContext {
  notes: Note[];
}

export function chatContext(changes: Partial<CodecContext> = {}): TestContext {
  const notes: Note[] = [];
  let count = 0;
  return {
    report: () => {},
    note: (note) => notes.push(note),
    now: () => 1_700_000_000,
    newId: (prefix) => `${prefix}${++count}`,
    profile: DEFAULT_CHAT_PROFILE,
    policy: {},
    notes,
    ...changes,
  };
}

export function framesOf(bytes: Uint8Array): SseFrame[] {
  const decoder = createSseDecoder();
  return [...decoder.push(bytes), ...decoder.end()];
}

/** A chat body as canonical events; `onPayload` sees each chunk. */
export function decodeChat(bytes: Uint8Array, onPayload?: (payload: Json) => void): CanonicalStreamEvent[] {
  const decoder = decodeStream(chatContext(), onPayload ? { onPayload } : {});
  return [...framesOf(bytes).flatMap((frame) => [...decoder.push(frame)]), ...decoder.end()];
}

export function encodeChat(events: Iterable<CanonicalStreamEvent>, context: CodecContext = chatContext()): SseFrame[] {
  const encoder = encodeStream(context);
  const frames: SseFrame[] = [];
  for (const event of events) frames.push(...encoder.push(event));
  frames.push(...encoder.end());
  return frames;
}

/** The payloads of the frames before `[DONE]`. */
export const chunksOf = (frames: readonly SseFrame[]): Json[] =>
  frames.filter(({ data }) => data !== '[DONE]').map(({ data }) => JSON.parse(data) as Json);

export const bodyOf = (frames: readonly SseFrame[]): string => frames.map((frame) => encodeSse(frame)).join('');

/** What a client of the official SDK ends up with. */
export interface Completion {
  id: string;
  choices: {
    index: number;
    finish_reason: string;
    logprobs: unknown;
    message: Json & { content: string | null; refusal: string | null; tool_calls?: (Json & { id: string; type: string })[] };
  }[];
  usage?: Json | null;
}

export type ReadStream = (body: string) => Promise<Completion>;
export type ReadWhole = (status: number, headers: Record<string, string>, body: string) => Promise<Completion>;

const OPTIONS = { apiKey: 'test', baseURL: 'http://localhost/v1', maxRetries: 0 };
const MESSAGES = [{ role: 'user' as const, content: 'hi' }];

/** The official SDKs, over a fetch that answers from memory. */
export const SDKS: { name: string; stream: ReadStream; create: ReadWhole }[] = OPENAI_SDKS.map(({ name, OpenAI }) => ({
  name,
  ...createReaders(OpenAI),
}));

/** The readers of one of them. */
export function createReaders(OpenAI: OpenAISdk['OpenAI']): { stream: ReadStream; create: ReadWhole } {
  const client = (body: string, init: ResponseInit) => new OpenAI({ ...OPTIONS, fetch: async () => new Response(body, init) });
  return {
    stream: async (body) => {
      const runner = client(body, { headers: { 'content-type': 'text/event-stream' } }).chat.completions.stream({
        model: 'm',
        messages: MESSAGES,
        stream_options: { include_usage: true },
      });
      return (await runner.finalChatCompletion()) as unknown as Completion;
    },
    create: async (status, headers, body) =>
      (await client(body, { status, headers }).chat.completions.create({
        model: 'm',
        messages: MESSAGES,
      })) as unknown as Completion,
  };
}
