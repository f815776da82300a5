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
export function finishName(wire: unknown): string {
  if (typeof wire === 'number') return NUMBERED[wire] ?? String(wire);
  const name = String(wire).toUpperCase();
  return name !== 'FINISH_REASON_UNSPECIFIED' && name.startsWith('FINISH_REASON_') ? name.slice('FINISH_REASON_'.length) : name;
}

export const isKnownFinish = (name: string): boolean => Object.hasOwn(BY_NAME, name);

/** What nobody knows ends the turn; whether it was a call is seen from the content. */
export function decodeStop(name: string, hasContent: boolean): StopReason {
  const reading = isKnownFinish(name) ? BY_NAME[name] : undefined;
  if (reading === 'empty') return hasContent ? 'end_turn' : 'error';
  return reading ?? 'end_turn';
}
