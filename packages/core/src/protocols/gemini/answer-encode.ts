import type { JsonObject } from '../../accumulate/overlay.ts';
import type { TokenLogprob } from '../../canonical/blocks.ts';
import type { Node } from '../../canonical/protocol.ts';
import type { StopDetails, StopReason } from '../../canonical/response.ts';
import { approximate, type CodecContext } from '../shared/codec.ts';
import type { Grounding } from './grounding.ts';
import { fieldsOf, type KeptCandidate } from './kept.ts';
import { encodeLogprobs } from './logprobs.ts';
import { encodeStop } from './stop.ts';

// What whole answers and streams write in the same words around the parts.

/** Thoughts are shown to a client that asked for them (`includeThoughts`); without a question nothing is hidden. */
export const showsThoughts = ({ request }: CodecContext): boolean =>
  request === undefined || request.thinking?.display === 'summarized' || request.thinking?.display === 'full';

/** Who answered, and when. The model is the one that the client asked for. */
export function encodeEnvelope(source: { id: string; model: string } & Node, context: CodecContext): JsonObject {
  const model = context.request?.model ?? source.model;
  const { createTime } = fieldsOf(source);
  return {
    ...(createTime !== undefined && { createTime }),
    ...(model !== '' && { modelVersion: model }),
    responseId: source.id || context.newId('resp_'),
  };
}

export interface Ending {
  stop: StopReason;
  details: StopDetails | undefined;
  kept: KeptCandidate;
  /** Something was said or called. */
  hasContent: boolean;
  /** Some of the text is an OpenAI refusal. */
  saysRefusal: boolean;
  /** The model called, and nothing of it could be written. */
  isMalformed: boolean;
  grounding: Grounding;
  tokens: readonly TokenLogprob[];
}

/** What a candidate says when it has come to its end; undefined when this protocol has no word for such an end. */
export function encodeEnding(ending: Ending, context: CodecContext): JsonObject | undefined {
  const { stop, details, kept, isMalformed, grounding, tokens } = ending;
  // "STOP" without the call would be a silent end, and agents take it for the answer.
  const finishReason = stop === 'tool_use' && isMalformed ? 'MALFORMED_FUNCTION_CALL' : encodeStop(stop, kept.finish, ending);
  if (finishReason === undefined) return undefined;
  if (stop === 'pause_turn')
    approximate(context, { path: '/stop_reason', feature: 'stop_reason', message: 'pause_turn is written as STOP' });
  const metadata = kept.candidate['groundingMetadata'] ?? grounding.metadata;
  const explanation = details?.explanation;
  return {
    ...(explanation && { finishMessage: explanation }),
    ...kept.candidate,
    ...(metadata !== undefined && { groundingMetadata: metadata }),
    ...(tokens.length > 0 && kept.candidate['logprobsResult'] === undefined && { logprobsResult: encodeLogprobs(tokens) }),
    finishReason,
  };
}
