import Anthropic from '@anthropic-ai/sdk';
import Anthropic0 from 'anthropic-0';
import type { CodecContext } from '../../packages/core/src/codec/protocol.ts';
import type { CanonicalStreamEvent, Note, SseFrame } from '../../packages/core/src/index.ts';
import { DEFAULT_ANTHROPIC_PROFILE } from '../../packages/core/src/protocols/anthropic-messages/profiles.ts';
import { decodeStream } from '../../packages/core/src/protocols/anthropic-messages/stream-decode.ts';
import { encodeStream } from '../../packages/core/src/protocols/anthropic-messages/stream-encode.ts';
import { createSseDecoder } from '../../packages/core/src/sse/decode.ts';
import { encodeSse } from '../../packages/core/src/sse/encode.ts';

export type Json = Record<string, unknown>;

export interface TestContext extends CodecContext {
  notes: Note[];
}

/** A context that collects notes; nothing in it depends on the time or on chance. */
export function messagesContext(changes: Partial<CodecContext> = {}): TestContext {
  const notes: Note[] = [];
  let count = 0;
  return {
    report: () => {},
    note: (note) => notes.push(note),
    now: () => 1_700_000_000,
    newId: (prefix) => `${prefix}${++count}`,
    profile: DEFAULT_ANTHROPIC_PROFILE,
    policy: {},
    notes,
    ...changes,
  };
}

export function framesOf(bytes: Uint8Array): SseFrame[] {
  const decoder = createSseDecoder();
  return [...decoder.push(bytes), ...decoder.end()];
}

/** An Anthropic body as canonical events. */
export function decodeMessages(bytes: Uint8Array): CanonicalStreamEvent[] {
  const decoder = decodeStream(messagesContext());
  return [...framesOf(bytes).flatMap((frame) => [...decoder.push(frame)]), ...decoder.end()];
}

export function encodeMessages(events: Iterable<CanonicalStreamEvent>, context: CodecContext = messagesContext()): SseFrame[] {
  const encoder = encodeStream(context);
  const frames: SseFrame[] = [];
  for (const event of events) frames.push(...encoder.push(event));
  frames.push(...encoder.end());
  return frames;
}

export const payloadsOf = (frames: readonly SseFrame[]): Json[] => frames.map(({ data }) => JSON.parse(data) as Json);

export const bodyOf = (frames: readonly SseFrame[]): string => frames.map((frame) => encodeSse(frame)).join('');

/** What a client of the official SDK ends up with. */
export interface SdkMessage extends Json {
  id: string;
  content: (Json & { type: string })[];
  stop_reason: string | null;
  stop_sequence: string | null;
  usage: Json;
}

const BASE = 'http://localhost';
const PARAMS = { model: 'm', max_tokens: 1, messages: [{ role: 'user' as const, content: 'hi' }] };

const client = (body: string, init: ResponseInit, SDK: typeof Anthropic = Anthropic): Anthropic =>
  new SDK({ apiKey: 'test', baseURL: BASE, maxRetries: 0, fetch: async () => new Response(body, init) });

const JSON_HEADERS = { 'content-type': 'application/json' };

/** `messages.stream().finalMessage()` over a body from memory. */
export async function readStream(body: string, SDK: typeof Anthropic = Anthropic): Promise<SdkMessage> {
  const stream = client(body, { headers: { 'content-type': 'text/event-stream' } }, SDK).messages.stream(PARAMS);
  return (await stream.finalMessage()) as unknown as SdkMessage;
}

/** The official SDKs, over a fetch that answers from memory. */
export const SDKS: { name: string; stream(body: string): Promise<SdkMessage> }[] = [
  { name: '@anthropic-ai/sdk 1.8', stream: (body) => readStream(body) },
  // Two majors of one class: the types differ, what is called here does not.
  { name: '@anthropic-ai/sdk 0.137', stream: (body) => readStream(body, Anthropic0 as unknown as typeof Anthropic) },
];

export async function readWhole(
  body: unknown,
  status = 200,
  headers: Record<string, string> = JSON_HEADERS,
): Promise<SdkMessage> {
  return (await client(JSON.stringify(body), { status, headers }).messages.create(PARAMS)) as unknown as SdkMessage;
}

export async function readModels(body: unknown): Promise<Json[]> {
  const page = await client(JSON.stringify(body), { headers: JSON_HEADERS }).models.list();
  return page.data as unknown as Json[];
}

export async function readModel(body: unknown): Promise<Json> {
  return (await client(JSON.stringify(body), { headers: JSON_HEADERS }).models.retrieve('m')) as unknown as Json;
}

export async function readCount(body: unknown): Promise<number> {
  const { max_tokens: _, ...params } = PARAMS;
  return (await client(JSON.stringify(body), { headers: JSON_HEADERS }).messages.countTokens(params)).input_tokens;
}
