import { getOwn, isObject, type JsonObject } from '../../accumulate/overlay.ts';
import type { StopDetails, StopReason } from '../../canonical/response.ts';

const FROM_WIRE: Record<string, StopReason> = {
  end_turn: 'end_turn',
  max_tokens: 'max_tokens',
  tool_use: 'tool_use',
  stop_sequence: 'stop_sequence',
  refusal: 'refusal',
  pause_turn: 'pause_turn',
  // The context was compacted and the turn goes on with the next request, like a pause.
  compaction: 'pause_turn',
  model_context_window_exceeded: 'context_window',
};

/** The words of other protocols, which relays pass on as they are. */
const FOREIGN: Record<string, StopReason> = {
  stop: 'end_turn',
  length: 'max_tokens',
  tool_calls: 'tool_use',
  function_call: 'tool_use',
  content_filter: 'content_filter',
};

export const isStandardStop = (reason: string): boolean => Object.hasOwn(FROM_WIRE, reason);

/** Unknown, blank or absent: the turn ended. */
export function decodeStop(reason: string | null): StopReason {
  return getOwn(FROM_WIRE, reason) ?? getOwn(FOREIGN, reason) ?? 'end_turn';
}

/** The generation was stopped from outside, so that a call it was writing may be cut. */
const CUTS: ReadonlySet<StopReason> = new Set(['max_tokens', 'context_window', 'refusal', 'content_filter']);

export const isCut = (stop: StopReason): boolean => CUTS.has(stop);

export function decodeStopDetails(details: unknown): StopDetails | undefined {
  if (!isObject(details)) return undefined;
  const { category, explanation } = details;
  return {
    ...((typeof category === 'string' || category === null) && { category }),
    ...((typeof explanation === 'string' || explanation === null) && { explanation }),
  };
}

/** `error` has no word: it is an error event or body. */
const TO_WIRE: Record<Exclude<StopReason, 'error'>, string> = {
  end_turn: 'end_turn',
  max_tokens: 'max_tokens',
  tool_use: 'tool_use',
  stop_sequence: 'stop_sequence',
  refusal: 'refusal',
  content_filter: 'refusal',
  pause_turn: 'pause_turn',
  context_window: 'model_context_window_exceeded',
};

/** `said`: the wire's own word, which goes back where it still says what the message says. */
export function encodeStop(stop: Exclude<StopReason, 'error'>, said: unknown): string {
  return typeof said === 'string' && isStandardStop(said) && decodeStop(said) === stop ? said : TO_WIRE[stop];
}

/** The categories that the official type knows; others would say nothing to a client. */
const CATEGORIES: ReadonlySet<unknown> = new Set(['cyber', 'bio', 'frontier_llm', 'reasoning_extraction', 'general_harms']);

/** `raw`: the details as this protocol had them, with all that only it knows. */
export function encodeStopDetails(stop: StopReason, details: StopDetails | undefined, raw: unknown): JsonObject | null {
  if (isObject(raw)) return raw;
  if (stop !== 'refusal' && stop !== 'content_filter') return null;
  const { category = null, explanation, raw: word } = details ?? {};
  return { type: 'refusal', category: CATEGORIES.has(category) ? category : null, explanation: explanation ?? word ?? null };
}
