import { isObject } from '../../accumulate/overlay.ts';
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
  if (reason === null) return 'end_turn';
  const table = Object.hasOwn(FROM_WIRE, reason) ? FROM_WIRE : FOREIGN;
  return (Object.hasOwn(table, reason) ? table[reason] : undefined) ?? 'end_turn';
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
