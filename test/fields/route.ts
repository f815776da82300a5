import { MessageAccumulator } from '../../packages/core/src/accumulate/message.ts';
import type { Note } from '../../packages/core/src/canonical/notes.ts';
import type { ProviderProfile } from '../../packages/core/src/codec/profile.ts';
import type { Codec, CodecContext, WireCodec, WireRequest } from '../../packages/core/src/codec/protocol.ts';
import type { SseFrame } from '../../packages/core/src/sse/encode.ts';
import type { Samples } from '../../scripts/fields/sample.js';
import type { Route } from './probe.ts';

/** How to make bodies that a protocol accepts. */
export interface Recipe {
  samples: Samples;
  complete(body: unknown): unknown;
  /** Gemini has the model in the path. */
  path?: string;
  /** What the model of this body takes beyond the usual. */
  profileOf?(body: unknown): Partial<ProviderProfile>;
}

/** A protocol, as its provider takes everything, and how each section of its ledger is probed. */
export interface Speaker {
  codec: Codec;
  profile: ProviderProfile;
  /** One that takes little: an older model, a server that is only compatible. */
  plain: ProviderProfile;
  routes: Readonly<Record<string, Route>>;
}

type Collecting = CodecContext & { notes: Note[] };

/** A context in which nothing depends on the time or on chance. */
export function contextOf(profile: ProviderProfile): Collecting {
  const notes: Note[] = [];
  return {
    now: () => 1_700_000_000,
    newId: (prefix) => `${prefix}1`,
    note: (note) => notes.push(note),
    report: () => {},
    profile,
    policy: {},
    notes,
  };
}

/** The routes of one protocol, as its provider takes everything. */
export const routesOf = (codec: Codec, profile: ProviderProfile) => ({
  request: (recipe: Recipe): Route => requestRoute(codec.request, profile, recipe),
  embeddingRequest: (recipe: Recipe): Route => requestRoute(given(codec.embeddings).request, profile, recipe),
  countRequest: (recipe: Recipe): Route => requestRoute(given(codec.countTokens).request, profile, recipe),
  response: (recipe: Recipe): Route => bodyRoute(codec.response, codec, profile, recipe),
  embeddingResponse: (recipe: Recipe): Route => bodyRoute(given(codec.embeddings).response, codec, profile, recipe),
  countResponse: (recipe: Recipe): Route => bodyRoute(given(codec.countTokens).response, codec, profile, recipe),
  model: (recipe: Recipe): Route => bodyRoute(given(codec.modelInfo), codec, profile, recipe),
  stream: (recipe: Recipe): Route => streamRoute(codec, profile, recipe),
});

function given<T>(codec: T | undefined): T {
  if (!codec) throw new Error('the protocol has no such interface');
  return codec;
}

function requestRoute<T>(
  codec: WireCodec<WireRequest, T>,
  profile: ProviderProfile,
  { path = '/', profileOf, ...recipe }: Recipe,
): Route {
  return {
    ...recipe,
    path,
    travel(body) {
      const context = contextOf({ ...profile, ...profileOf?.(body) });
      const canonical = codec.decode({ method: 'POST', path, headers: {}, body }, context);
      return { canonical, written: codec.encode(canonical, context).body, notes: context.notes };
    },
  };
}

function bodyRoute<T>(
  codec: WireCodec<unknown, T>,
  { id }: Codec,
  profile: ProviderProfile,
  { profileOf, ...recipe }: Recipe,
): Route {
  return {
    ...recipe,
    travel(body) {
      const context: Collecting = { ...contextOf({ ...profile, ...profileOf?.(body) }), source: id };
      const canonical = codec.decode(body, context);
      return { canonical, written: codec.encode(canonical, context), notes: context.notes };
    },
  };
}

/** `complete` makes a list of payloads out of the one that holds the field. */
function streamRoute(codec: Codec, profile: ProviderProfile, recipe: Recipe): Route {
  return {
    ...recipe,
    travel(payloads) {
      const context: Collecting = { ...contextOf(profile), source: codec.id };
      const decoder = codec.streamDecoder(context);
      const frames = (payloads as { type?: string }[]).map(frameOf); // made by `complete`
      const events = [...frames.flatMap((frame) => [...decoder.push(frame)]), ...decoder.end()];
      const whole = new MessageAccumulator();
      const encoder = codec.streamEncoder(context);
      for (const event of events) whole.push(event);
      const written = [...events.flatMap((event) => [...encoder.push(event)]), ...encoder.end()];
      return { canonical: whole.finish().message, written: written.flatMap(payloadOf), notes: context.notes };
    },
  };
}

const frameOf = (payload: { type?: string }): SseFrame => ({
  ...(payload.type && { event: payload.type }),
  data: JSON.stringify(payload),
});

const payloadOf = ({ data }: SseFrame): unknown[] => (data.startsWith('{') ? [JSON.parse(data)] : []);
