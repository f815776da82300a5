import type { CanonicalResponse, StopDetails, StopReason } from '../../canonical/message.ts';
import { type CanonicalError, CodecError } from '../../canonical/notes.ts';
import { buildUpstreamError, readWholeResponse, resolveStopReason } from '../../codec/answers.ts';
import type { Context } from '../../codec/context.ts';
import { findBareError } from '../../codec/errors.ts';
import type { CodecContext } from '../../codec/protocol.ts';
import { listOrEmpty, objectOrEmpty } from '../../codec/read.ts';
import { noteApproximated, noteDropped } from '../../codec/report.ts';
import { isObject, type JsonObject } from '../../json/json.ts';
import { type Echo, encodeEnvelope, OutputEncoder, readEnvelopeExtensions } from './content-encode.ts';
import { decodeErrorBody, decodeStop, type Ending, encodeFinalUsage, encodeStop } from './outcome.ts';
import { decodeStream, isWholeResponse } from './stream-decode.ts';
import { nonBlank, PROTOCOL } from './wire.ts';

/**
 * Decodes a whole response with the stream decoder, so that the same rules hold; throws a CodecError if it is an error
 * or unfinished.
 */
export function decodeResponse(body: unknown, context: Context): CanonicalResponse {
  if (!isObject(body) || !isWholeResponse(body)) throw new CodecError(readError(body));
  const { message, complete } = readWholeResponse([body], decodeStream(context));
  // A background response: the client must fetch it later.
  if (!complete)
    throw new CodecError(buildUpstreamError(`the response is not finished (status: ${nonBlank(body['status']) ?? 'none'})`));
  return message;
}

function readError(body: unknown): CanonicalError {
  const hasNoError = isObject(body) && !body['error'] && body['detail'] === undefined && body['message'] === undefined;
  return hasNoError && !findBareError(body) ? buildUpstreamError('the body is not a response object') : decodeErrorBody(body);
}

/** Encodes a whole response with all fields that the official type requires; throws if it is a failure. */
export function encodeResponse(response: CanonicalResponse, context: CodecContext, echo?: Echo): JsonObject {
  const { content, stop_details: details, extensions, usage, error, choices } = response;
  const stop = resolveStopReason(response, details, error, context);
  if (choices && choices.length > 1)
    noteDropped(context, { path: '/choices', feature: 'choices', message: 'OpenAI Responses has one choice; the first is sent' });
  const envelope = encodeEnvelope(response, context, echo);
  const output = new OutputEncoder(envelope.id, context);
  content.forEach((block, i) => {
    output.start(i, block);
    output.stop(i, undefined);
  });
  const ending = endOutput(output, { stop, details, kept: objectOrEmpty(extensions?.[PROTOCOL]) }, context);
  return {
    ...envelope.fields,
    ...readEnvelopeExtensions(extensions),
    ...encodeEnding(ending, extensions?.[PROTOCOL]),
    ...context.envelope,
    id: envelope.id,
    model: envelope.fields['model'],
    ...(envelope.isForeign && ending.status === 'completed' && { completed_at: Math.floor(context.now()) }),
    output: output.items,
    usage: encodeFinalUsage(usage, context),
  };
}

interface End {
  stop: Exclude<StopReason, 'error'>;
  details: StopDetails | undefined;
  /** The extensions of the response. */
  kept: JsonObject;
}

/** Ends the items and returns how the response ends. A status of this protocol is kept if it means the same. */
export function endOutput(output: OutputEncoder, { stop, details, kept }: End, context: CodecContext): Ending {
  if (stop === 'pause_turn')
    noteApproximated(context, {
      path: '/stop_reason',
      feature: 'stop_reason',
      message: 'stop reason pause_turn is not supported by OpenAI Responses; sent as completed',
    });
  if (stop === 'refusal' && !output.hasRefusal && details?.explanation) output.refuse(details.explanation);
  const ending = encodeStop(stop, output.hasRefusal);
  output.finish(ending.status, listOrEmpty(kept['late_items']));
  const { finish_reason: status, incomplete_details: why } = kept;
  const reason = objectOrEmpty(why)['reason'];
  const isSame = status === 'incomplete' && decodeStop(status, reason) === stop;
  return isSame ? { status, reason: ending.status === 'incomplete' ? ending.reason : 'max_output_tokens' } : ending;
}

/** The status fields of the end; the original reason of the source is kept. */
export function encodeEnding(ending: Ending, kept: JsonObject | undefined): JsonObject {
  if (ending.status === 'completed') return { status: 'completed', incomplete_details: null };
  const own = objectOrEmpty(kept?.['incomplete_details']);
  return { status: 'incomplete', incomplete_details: own['reason'] === undefined ? { reason: ending.reason } : own };
}
