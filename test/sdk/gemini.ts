import { GoogleGenAI as GoogleGenAI1 } from 'google-genai-1';
import { GoogleGenAI as GoogleGenAI2 } from 'google-genai-2';
import type { CodecContext } from '../../packages/core/src/codec/protocol.ts';
import type { CanonicalStreamEvent, Note, SseFrame } from '../../packages/core/src/index.ts';
import { DEFAULT_GEMINI_PROFILE } from '../../packages/core/src/protocols/gemini/profiles.ts';
import { decodeStream } from '../../packages/core/src/protocols/gemini/stream-decode.ts';
import { encodeStream } from '../../packages/core/src/protocols/gemini/stream-encode.ts';
import { createSseDecoder } from '../../packages/core/src/sse/decode.ts';
import { encodeSse } from '../../packages/core/src/sse/encode.ts';

export type Json = Record<string, unknown>;

export interface TestContext extends CodecContext {
  notes: Note[];
}

export function geminiContext(changes: Partial<CodecContext> = {}): TestContext {
  const notes: Note[] = [];
  let count = 0;
  return {
    report: () => {},
    note: (note) => notes.push(note),
    now: () => 1_700_000_000,
    newId: (prefix) => `${prefix}${++count}`,
    profile: DEFAULT_GEMINI_PROFILE,
    policy: {},
    notes,
    ...changes,
  };
}

export function framesOf(bytes: Uint8Array): SseFrame[] {
  const decoder = createSseDecoder();
  return [...decoder.push(bytes), ...decoder.end()];
}

export function decodeGemini(bytes: Uint8Array, onPayload?: (payload: Json) => void): CanonicalStreamEvent[] {
  const decoder = decodeStream(geminiContext(), onPayload ? { onPayload } : {});
  return [...framesOf(bytes).flatMap((frame) => [...decoder.push(frame)]), ...decoder.end()];
}

export function encodeGemini(events: Iterable<CanonicalStreamEvent>, context: CodecContext = geminiContext()): SseFrame[] {
  const encoder = encodeStream(context);
  const frames: SseFrame[] = [];
  for (const event of events) frames.push(...encoder.push(event));
  frames.push(...encoder.end());
  return frames;
}

export const fragmentsOf = (frames: readonly SseFrame[]): Json[] => frames.map(({ data }) => JSON.parse(data) as Json);

/**
 * What the wire carries, a piece for each frame. The gateway repeats an error as bare JSON, which the first major of the SDK
 * looks for at the beginning of what it reads.
 */
export function piecesOf(frames: readonly SseFrame[]): string[] {
  const last = frames.at(-1)?.data ?? '';
  const repeated = last.startsWith('{"error"') ? [`${last}\r\n`] : [];
  return [...frames.map((frame) => encodeSse(frame, { lineEnd: '\r\n' })), ...repeated];
}

export interface Part extends Json {
  text?: string;
  thought?: boolean;
  thoughtSignature?: string;
  functionCall?: { id?: string; name?: string; args?: Json };
}

export interface Fragment extends Json {
  candidates?: { index?: number; content?: { role?: string; parts?: Part[] }; finishReason?: string }[];
  usageMetadata?: Json;
  responseId?: string;
  modelVersion?: string;
}

/** The calls of a client, over a fetch that answers from memory. */
export interface Sdk {
  name: string;
  stream(pieces: readonly string[]): Promise<Fragment[]>;
  generate(status: number, body: string): Promise<Fragment>;
  embed(body: string, texts: string[]): Promise<Json>;
  count(body: string): Promise<Json>;
  list(body: string): Promise<Json[]>;
  get(body: string): Promise<Json>;
}

/** The same calls in both; their types are too big to be joined. */
export const SDKS: readonly Sdk[] = [
  createSdk('genai 1.52', GoogleGenAI1),
  createSdk('genai 2.32', GoogleGenAI2 as unknown as typeof GoogleGenAI1),
];

const JSON_TYPE = { 'content-type': 'application/json; charset=UTF-8' };

/** The calls of one of them. */
export function createSdk(name: string, GoogleGenAI: typeof GoogleGenAI1): Sdk {
  const client = () => new GoogleGenAI({ apiKey: 'test', httpOptions: { baseUrl: 'http://localhost' } });
  const answer =
    (body: string, status = 200) =>
    () =>
      new Response(body, { status, headers: JSON_TYPE });
  const question = { model: 'm', contents: 'hi' };
  return {
    name,
    stream: (pieces) =>
      withFetch(
        () => new Response(streamOf(pieces), { headers: { 'content-type': 'text/event-stream' } }),
        async () => {
          const fragments: Fragment[] = [];
          for await (const fragment of await client().models.generateContentStream(question))
            fragments.push(fragment as unknown as Fragment);
          return fragments;
        },
      ),
    generate: (status, body) =>
      withFetch(answer(body, status), async () => (await client().models.generateContent(question)) as unknown as Fragment),
    embed: (body, contents) =>
      withFetch(answer(body), async () => (await client().models.embedContent({ model: 'm', contents })) as unknown as Json),
    count: (body) => withFetch(answer(body), async () => (await client().models.countTokens(question)) as unknown as Json),
    list: (body) =>
      withFetch(answer(body), async () => {
        const models: Json[] = [];
        for await (const model of await client().models.list()) models.push(model as unknown as Json);
        return models;
      }),
    get: (body) => withFetch(answer(body), async () => (await client().models.get({ model: 'm' })) as unknown as Json),
  };
}

/** 1.52 knows no other fetch than the global one. */
async function withFetch<T>(answer: () => Response, run: () => Promise<T>): Promise<T> {
  const before = globalThis.fetch;
  globalThis.fetch = async () => answer();
  try {
    return await run();
  } finally {
    globalThis.fetch = before;
  }
}

/** Each piece in a read of its own. */
function streamOf(pieces: readonly string[]): ReadableStream<Uint8Array> {
  const encoder = new TextEncoder();
  let at = 0;
  return new ReadableStream({
    pull(controller) {
      const piece = pieces[at++];
      if (piece === undefined) controller.close();
      else controller.enqueue(encoder.encode(piece));
    },
  });
}

/** What the fragments of one candidate say together. */
export interface Heard {
  text: string;
  thoughts: string;
  calls: { id: string | undefined; name: string | undefined; args: unknown }[];
  finish: string | undefined;
  usage: Json | undefined;
}

export function hear(fragments: readonly Fragment[], index = 0): Heard {
  const candidates = fragments.flatMap(({ candidates = [] }) =>
    candidates.filter((candidate) => (candidate.index ?? 0) === index),
  );
  const parts = candidates.flatMap(({ content }) => content?.parts ?? []);
  const textOf = (isThought: boolean) =>
    parts
      .filter(({ thought = false }) => thought === isThought)
      .map(({ text = '' }) => text)
      .join('');
  return {
    text: textOf(false),
    thoughts: textOf(true),
    calls: parts.flatMap(({ functionCall: call }) => (call ? [{ id: call.id, name: call.name, args: call.args }] : [])),
    finish: candidates.findLast(({ finishReason }) => finishReason !== undefined)?.finishReason,
    usage: fragments.findLast(({ usageMetadata }) => usageMetadata)?.usageMetadata,
  };
}
