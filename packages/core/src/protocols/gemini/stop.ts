import type { StopReason } from '../../canonical/response.ts';

/** `empty`: an answer with content that the model merely ended oddly; without any, the generation failed. */
type Reading = StopReason | 'empty';

const BY_NAME: Record<string, Reading> = {
  STOP: 'end_turn',
  FINISH_REASON_UNSPECIFIED: 'end_turn',
  MAX_TOKENS: 'max_tokens',
  CONTINUATION: 'max_tokens',
  SAFETY: 'content_filter',
  RECITATION: 'content_filter',
  LANGUAGE: 'content_filter',
  BLOCKLIST: 'content_filter',
  PROHIBITED_CONTENT: 'content_filter',
  SPII: 'content_filter',
  MODEL_ARMOR: 'content_filter',
  IMAGE_SAFETY: 'content_filter',
  IMAGE_PROHIBITED_CONTENT: 'content_filter',
  IMAGE_RECITATION: 'content_filter',
  MALFORMED_FUNCTION_CALL: 'error',
  MALFORMED_RESPONSE: 'error',
  UNEXPECTED_TOOL_CALL: 'error',
  TOO_MANY_TOOL_CALLS: 'error',
  MISSING_THOUGHT_SIGNATURE: 'error',
  OTHER: 'empty',
  IMAGE_OTHER: 'empty',
  NO_IMAGE: 'empty',
};

/** The numbers of Vertex's protobuf enum, whose clients write them; the Gemini API agrees with it up to 5. */
const NUMBERED = [
  'FINISH_REASON_UNSPECIFIED',
  'STOP',
  'MAX_TOKENS',
  'SAFETY',
  'RECITATION',
  'OTHER',
  'BLOCKLIST',
  'PROHIBITED_CONTENT',
  'SPII',
  'MALFORMED_FUNCTION_CALL',
  'MODEL_ARMOR',
  'IMAGE_SAFETY',
  'IMAGE_PROHIBITED_CONTENT',
  'IMAGE_RECITATION',
  'IMAGE_OTHER',
  'UNEXPECTED_TOOL_CALL',
  'NO_IMAGE',
] as const;

/** The name behind a wire value: a name, a number, or a name in the spelling of some client. */
export function finishName(wire: string | number): string {
  if (typeof wire === 'number') return NUMBERED[wire] ?? String(wire);
  const name = wire.toUpperCase();
  return name !== 'FINISH_REASON_UNSPECIFIED' && name.startsWith('FINISH_REASON_') ? name.slice('FINISH_REASON_'.length) : name;
}

export const isKnownFinish = (name: string): boolean => Object.hasOwn(BY_NAME, name);

/** What nobody knows ends the turn; whether it was a call is seen from the content. */
export function decodeStop(name: string, hasContent: boolean): StopReason {
  const reading = isKnownFinish(name) ? BY_NAME[name] : undefined;
  if (reading === 'empty') return hasContent ? 'end_turn' : 'error';
  return reading ?? 'end_turn';
}

/** `error` has no one word: the wire's own is kept, and an error of another protocol is an error object. */
const TO_WIRE = {
  end_turn: 'STOP',
  stop_sequence: 'STOP',
  pause_turn: 'STOP',
  tool_use: 'STOP',
  max_tokens: 'MAX_TOKENS',
  context_window: 'MAX_TOKENS',
  content_filter: 'SAFETY',
  refusal: 'SAFETY',
} as const satisfies Record<Exclude<StopReason, 'error'>, string>;

interface Held {
  /** Something was said or called. */
  hasContent: boolean;
  /** The text itself says that it is a refusal (OpenAI). Otherwise it is what the model had said when it was stopped. */
  saysRefusal: boolean;
}

/** The word of the wire where it still says what the stop says; undefined when there is none for it. */
export function encodeStop(
  stop: StopReason,
  wire: string | number | undefined,
  { hasContent, saysRefusal }: Held,
): string | undefined {
  if (wire !== undefined) {
    const name = finishName(wire);
    const read = decodeStop(name, hasContent);
    if (read === stop || (read === 'end_turn' && stop === 'tool_use')) return isKnownFinish(name) ? name : String(wire);
  }
  if (stop === 'error') return undefined;
  return stop === 'refusal' && saysRefusal ? 'STOP' : TO_WIRE[stop];
}

/** Stops after which a call without whole arguments has lost them: nobody may run it. */
export const isCutStop = (stop: StopReason): boolean => CUT.has(stop);

const CUT: ReadonlySet<StopReason> = new Set<StopReason>(['max_tokens', 'context_window', 'content_filter', 'error']);
