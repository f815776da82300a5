import type { CodecContext } from '../../packages/core/src/codec/protocol.ts';
import type { CanonicalStreamEvent, Note, Protocol, SseFrame } from '../../packages/core/src/index.ts';
import { echoRequest } from '../../packages/core/src/protocols/openai-responses/content-encode.ts';
import { DEFAULT_RESPONSES_PROFILE } from '../../packages/core/src/protocols/openai-responses/profiles.ts';
import { encodeStream } from '../../packages/core/src/protocols/openai-responses/stream-encode.ts';
import { createSseDecoder } from '../../packages/core/src/sse/decode.ts';
import { encodeSse } from '../../packages/core/src/sse/encode.ts';
import { OPENAI_SDKS, type OpenAISdk } from './openai.ts';

export type Json = Record<string, unknown>;

export interface TestContext extends CodecContext {
  notes: Note[];
}

/** A context that collects notes; nothing in it depends on the time or on chance. */
export function responsesContext(changes: Partial<CodecContext> = {}): TestContext {
  const notes: Note[] = [];
  let count = 0;
  return {
    report: () => {},
    note: (note) => notes.push(note),
    now: () => 1_700_000_000,
    newId: (prefix) => `${prefix}${++count}`,
    profile: DEFAULT_RESPONSES_PROFILE,
    policy: {},
    notes,
    ...changes,
  };
}

function framesOf(bytes: Uint8Array): SseFrame[] {
  const decoder = createSseDecoder();
  return [...decoder.push(bytes), ...decoder.end()];
}

/** A body of any protocol as canonical events. */
export function decodeBody(
  protocol: Protocol,
  bytes: Uint8Array,
  context: CodecContext = responsesContext(),
): CanonicalStreamEvent[] {
  const decoder = protocol.streamDecoder(context);
  return [...framesOf(bytes).flatMap((frame) => [...decoder.push(frame)]), ...decoder.end()];
}

export function encodeResponses(events: Iterable<CanonicalStreamEvent>, context: CodecContext = responsesContext()): SseFrame[] {
  const encoder = encodeStream(context, echoRequest);
  const frames: SseFrame[] = [];
  for (const event of events) frames.push(...encoder.push(event));
  frames.push(...encoder.end());
  return frames;
}

export const payloadsOf = (frames: readonly SseFrame[]): Json[] => frames.map(({ data }) => JSON.parse(data) as Json);

/** The response that the last event carries. */
export const responseOf = (frames: readonly SseFrame[]): Json => (payloadsOf(frames).at(-1)?.['response'] ?? {}) as Json;

export const bodyOf = (frames: readonly SseFrame[]): string => frames.map((frame) => encodeSse(frame)).join('');

/** What a client of the official SDK ends up with. */
export interface Response7 extends Json {
  id: string;
  status: string;
  output_text: string;
  output: (Json & { id: string; type: string })[];
  usage?: Json | null;
}

export type ReadStream = (body: string) => Promise<Response7>;
export type ReadWhole = (status: number, headers: Record<string, string>, body: string) => Promise<Response7>;

const OPTIONS = { apiKey: 'test', baseURL: 'http://localhost/v1', maxRetries: 0 };

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
      const runner = client(body, { headers: { 'content-type': 'text/event-stream' } }).responses.stream({
        model: 'm',
        input: 'hi',
      });
      return (await runner.finalResponse()) as unknown as Response7;
    },
    create: async (status, headers, body) =>
      (await client(body, { status, headers }).responses.create({ model: 'm', input: 'hi' })) as unknown as Response7,
  };
}
