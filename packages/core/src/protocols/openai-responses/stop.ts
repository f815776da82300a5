import { getOwn } from '../../accumulate/overlay.ts';
import type { StopReason } from '../../canonical/response.ts';

/** `incomplete_details.reason`. */
const FROM_REASON: Record<string, StopReason> = {
  max_output_tokens: 'max_tokens',
  max_tokens: 'max_tokens',
  length: 'max_tokens',
  max_messages: 'max_tokens',
  content_filter: 'content_filter',
  // The conversation went on with other input while this answer was being written.
  steered: 'end_turn',
};

/**
 * The stop reason of a finished response. An incomplete one that does not say why counts as cut: as `end_turn` it would be promoted to
 * `tool_use`, and a call cut in its middle would be run.
 */
export function decodeStop(status: string, reason: unknown): StopReason {
  if (status !== 'incomplete') return 'end_turn';
  return getOwn(FROM_REASON, reason) ?? 'max_tokens';
}

/** How a response ends: `incomplete` says why. */
export type Ending = { status: 'completed' } | { status: 'incomplete'; reason: 'max_output_tokens' | 'content_filter' };

const COMPLETED: Ending = { status: 'completed' };
const CUT: Ending = { status: 'incomplete', reason: 'max_output_tokens' };
const FILTERED: Ending = { status: 'incomplete', reason: 'content_filter' };

/** `error` has no ending of its own: such a response has failed. */
const TO_WIRE: Record<Exclude<StopReason, 'error'>, Ending> = {
  end_turn: COMPLETED,
  stop_sequence: COMPLETED,
  tool_use: COMPLETED,
  pause_turn: COMPLETED,
  refusal: COMPLETED,
  max_tokens: CUT,
  context_window: CUT,
  content_filter: FILTERED,
};

/** `saysRefusal`: the message has a part that says so. Any other text is what the model had said when it was stopped, not an answer. */
export const encodeStop = (stop: Exclude<StopReason, 'error'>, saysRefusal: boolean): Ending =>
  stop === 'refusal' && !saysRefusal ? FILTERED : TO_WIRE[stop];
