import { type JsonObject, setOwn } from '../../accumulate/overlay.ts';
import type { ContentBlock } from '../../canonical/blocks.ts';
import type { CanonicalResponse } from '../../canonical/response.ts';
import { endingOf } from '../shared/answer.ts';
import type { CodecContext } from '../shared/codec.ts';
import { type Answer, createAnswer, dropChoices, encodeEnvelope, encodeTier } from './answer.ts';
import { ContentSink } from './block-port.ts';
import { ContentEncoder } from './content-encode.ts';
import { fieldsOf } from './fields.ts';
import { encodeStop, encodeStopDetails } from './stop.ts';
import { encodeUsage } from './usage.ts';

/** A whole `message` with all fields that the official type requires. Throws when the response is a failure. */
export function encodeResponse(response: CanonicalResponse, context: CodecContext): JsonObject {
  const { content, stop_details: details, usage, error } = response;
  const stop = endingOf(response, details, error, context);
  if ((response.choices?.length ?? 0) > 1) dropChoices(context);
  const answer = createAnswer(response, context);
  const { finish_reason: said, stop_details: raw, container = null, diagnostics = null, ...kept } = fieldsOf(response);
  const { id, type, role, model } = encodeEnvelope(response, answer);
  const message: JsonObject = {
    id,
    type,
    role,
    model,
    content: encodeContent(content, answer),
    stop_reason: encodeStop(stop, said),
    stop_sequence: response.stop_sequence ?? null,
    stop_details: encodeStopDetails(stop, details, raw),
    usage: Object.assign(encodeUsage(usage), encodeTier(response.service_tier, answer)),
    container,
    diagnostics,
  };
  for (const name of Object.keys(kept)) if (!Object.hasOwn(message, name)) setOwn(message, name, kept[name]);
  return message;
}

function encodeContent(content: readonly ContentBlock[], answer: Answer): JsonObject[] {
  const sink = new ContentSink();
  const encoder = new ContentEncoder(answer, sink);
  for (const [at, block] of content.entries()) encoder.add(at, block);
  encoder.end();
  return sink.content;
}
