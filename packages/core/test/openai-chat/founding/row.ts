import { bytesOf } from '../../../../../test/run.ts';
import type { CanonicalStreamEvent } from '../../../src/canonical/events.ts';
import type { CanonicalRequest } from '../../../src/canonical/request.ts';
import type { CodecContext, Provider } from '../../../src/codec/protocol.ts';
import { EventReader } from '../../../src/engine/reader.ts';
import { openaiChatCodec } from '../../../src/protocols/openai-chat/codec.ts';
import { bareContext } from '../bare-context.ts';

/** One normative statement of the founding document on OpenAI Chat (004). */
export interface Row {
  /** The section that says it. */
  at: string;
  says: string;
  actual: () => unknown;
  /** What the document demands. */
  wanted: unknown;
  deviation?: Deviation | undefined;
}

/** The code does otherwise on purpose. */
export interface Deviation {
  actual: unknown;
  reason: string;
}

export type Json = Record<string, unknown>;

export const codec = openaiChatCodec;

export const PROVIDER: Provider = {
  id: 'openai',
  protocol: 'openai-chat',
  base_url: 'https://api.openai.com',
  api_key: 'sk-test',
};

/** The upstream calls the model `upstream-model`. What is known of OpenAI as a whole applies, and no rule of a single model. */
export const context = (over: Partial<CodecContext> = {}): CodecContext =>
  bareContext({
    profile: codec.profileFor('openai'),
    target: { provider: PROVIDER, model: 'upstream-model', stream: false },
    ...over,
  });

/** The client of a response: nothing is known of who reads it. */
export const clientContext = (over: Partial<CodecContext> = {}): CodecContext => bareContext(over);

/** A value inside another by its path, `messages.0.content`. Rows compare what the document speaks of: our notes about a node's origin stay out. */
export const valueAt = (value: unknown, path: string): unknown =>
  plain(path === '' ? value : path.split('.').reduce(fieldOf, value));

const fieldOf = (value: unknown, key: string): unknown => (value as Json | undefined)?.[key]; // any value has fields, or none

const OURS: ReadonlySet<string> = new Set(['extensions', 'input_raw', 'variant']);

function plain(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(plain);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(Object.entries(value).flatMap(([key, part]) => (OURS.has(key) ? [] : [[key, plain(part)]])));
}

export const wire = (body: unknown, path = '/v1/chat/completions') => ({ method: 'POST', path, headers: {}, body });

export const user = (content: unknown = 'hi'): Json => ({ role: 'user', content });
export const assistant = (fields: Json): Json => ({ role: 'assistant', ...fields });
export const call = (id: string, name: string, args: string): Json => ({
  id,
  type: 'function',
  function: { name, arguments: args },
});

/** The canonical request of a body with a user's message, unless the body brings its own. */
export const decoded = (body: Json): CanonicalRequest =>
  codec.request.decode(wire({ model: 'm', messages: [user()], ...body }), context());

/** The body that a canonical request becomes. */
export const encoded = (request: Partial<CanonicalRequest>, over: Partial<CodecContext> = {}): unknown =>
  codec.request.encode(
    { model: 'm', messages: [{ role: 'user', content: [{ type: 'text', text: 'hi' }] }], parameters: {}, ...request },
    context(over),
  ).body;

/** The events of a stream of these payloads. */
export function events(...payloads: (Json | string)[]): CanonicalStreamEvent[] {
  const frames = payloads.map((payload) => `data: ${typeof payload === 'string' ? payload : JSON.stringify(payload)}\n\n`);
  const reader = new EventReader({ protocol: codec });
  return [...frames.flatMap((frame) => [...reader.push(bytesOf(frame))]), ...reader.end()];
}
