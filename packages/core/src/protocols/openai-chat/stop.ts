import { getOwn } from '../../accumulate/overlay.ts';
import type { StopReason } from '../../canonical/response.ts';

/** What servers write into `finish_reason`. Anything else, like nothing at all, is `end_turn`. */
const FROM_WIRE: Record<string, StopReason> = {
  stop: 'end_turn',
  length: 'max_tokens',
  tool_calls: 'tool_use',
  content_filter: 'content_filter',
  // Before tool calls, and the vocabularies of other protocols and servers.
  function_call: 'tool_use',
  tool_call: 'tool_use',
  tool_use: 'tool_use',
  max_tokens: 'max_tokens',
  max_output_tokens: 'max_tokens',
  model_length: 'max_tokens',
  MAX_TOKENS: 'max_tokens',
  stop_sequence: 'stop_sequence',
  pause_turn: 'pause_turn',
  sensitive: 'content_filter',
  safety: 'content_filter',
  SAFETY: 'content_filter',
  refusal: 'content_filter',
  network_error: 'error',
  abort: 'error',
  error: 'error',
  insufficient_system_resource: 'error',
};

/** Values that are no departure: the official four and the deprecated one. */
const STANDARD = new Set(['stop', 'length', 'tool_calls', 'content_filter', 'function_call']);

export const isStandardStop = (finish: string): boolean => STANDARD.has(finish);

export const decodeStop = (finish: string | null): StopReason => getOwn(FROM_WIRE, finish) ?? 'end_turn';

/** What a chat client may read in `finish_reason`. */
export type FinishReason = 'stop' | 'length' | 'tool_calls' | 'content_filter';

/** `error` has no word: it is an error object. */
const TO_WIRE: Record<Exclude<StopReason, 'error'>, FinishReason> = {
  end_turn: 'stop',
  stop_sequence: 'stop',
  pause_turn: 'stop',
  max_tokens: 'length',
  context_window: 'length',
  tool_use: 'tool_calls',
  content_filter: 'content_filter',
  // Without a text in `refusal`, "stop" would be a silent empty answer, and agents loop on it.
  refusal: 'content_filter',
};

/** `saysRefusal`: the message holds text, and its `refusal` says that it is one. */
export const encodeStop = (stop: Exclude<StopReason, 'error'>, saysRefusal: boolean): FinishReason =>
  stop === 'refusal' && saysRefusal ? 'stop' : TO_WIRE[stop];

/** Stops after which a call without arguments may have lost them: it gets no `{}`. */
export const isCutStop = (stop: StopReason): boolean => TO_CUT.has(stop);

const TO_CUT: ReadonlySet<StopReason> = new Set<StopReason>(['max_tokens', 'context_window', 'content_filter', 'error']);
