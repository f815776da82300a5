import type { CanonicalResponse, ContentBlock } from '../../canonical/message.ts';
import { type CanonicalError, CodecError } from '../../canonical/notes.ts';
import { buildUpstreamError, readWholeResponse, resolveStopReason } from '../../codec/answers.ts';
import type { Context } from '../../codec/context.ts';
import { findBareError } from '../../codec/errors.ts';
import type { CodecContext, UsagePeek } from '../../codec/protocol.ts';
import { listOrEmpty } from '../../codec/read.ts';
import { isObject, type JsonObject, setOwn } from '../../json/json.ts';
import { createResponseScope, dropChoices, encodeEnvelope, encodeTier, type ResponseScope } from './blocks.ts';
import { ContentEncoder, ContentSink } from './content-encode.ts';
import { decodeErrorBody, decodeUsage, encodeStop, encodeStopDetails, encodeUsage } from './outcome.ts';
import { decodeStream, isWholeMessage } from './stream-decode.ts';
import { readExtensions } from './wire.ts';

/** Reads a whole message through the stream decoder, so that the same rules apply. Throws if the body is an error. */
export function decodeResponse(body: unknown, context: Context): CanonicalResponse {
  if (!isObject(body) || !isWholeMessage(body)) throw new CodecError(readError(body));
  return readWholeResponse([body], decodeStream(context)).message;
}

function readError(body: unknown): CanonicalError {
  const isUnexplained = isObject(body) && body['type'] !== 'error' && !body['error'] && !findBareError(body);
  return isUnexplained ? buildUpstreamError('the response is not a message') : decodeErrorBody(body);
}

/** See `Codec.glance`. 0.1 us instead of 5.9 us for decoding the response. */
export function peekUsage(body: unknown): UsagePeek | undefined {
  if (!isObject(body) || !isWholeMessage(body) || !isObject(body['usage'])) return undefined;
  const [block, another] = listOrEmpty(body['content']);
  if (!isObject(block) || block['type'] !== 'text' || another) return undefined;
  const { model } = body;
  return { usage: decodeUsage(body['usage']), model: typeof model === 'string' ? model : undefined };
}

/** The required fields that a whole response lacks. A stream that lacks some is encoded again. */
export function completeResponse({ id, type, role, model, content, usage }: JsonObject, context: CodecContext): JsonObject {
  if (!Array.isArray(content)) return {};
  return {
    ...(id === undefined && { id: context.newId('msg_') }),
    ...(type === undefined && { type: 'message' }),
    ...(role === undefined && { role: 'assistant' }),
    ...(model === undefined && { model: context.request?.model ?? '' }),
    ...(usage === undefined && { usage: encodeUsage(undefined) }),
  };
}

/** A whole `message` with all fields that the official type requires. Throws if the response is a failure. */
export function encodeResponse(response: CanonicalResponse, context: CodecContext): JsonObject {
  const { content, stop_details: details, usage, error } = response;
  const stop = resolveStopReason(response, details, error, context);
  if ((response.choices?.length ?? 0) > 1) dropChoices(context);
  const scope = createResponseScope(response, context);
  const { finish_reason: reason, stop_details: raw, container = null, diagnostics = null, ...fields } = readExtensions(response);
  const { id, type, role, model } = encodeEnvelope(response, scope);
  const message: JsonObject = {
    id,
    type,
    role,
    model,
    content: encodeContent(content, scope),
    stop_reason: encodeStop(stop, reason),
    stop_sequence: response.stop_sequence ?? null,
    stop_details: encodeStopDetails(stop, details, raw),
    usage: Object.assign(encodeUsage(usage), encodeTier(response.service_tier, scope)),
    container,
    diagnostics,
  };
  for (const name of Object.keys(fields)) if (!Object.hasOwn(message, name)) setOwn(message, name, fields[name]);
  return message;
}

function encodeContent(content: readonly ContentBlock[], scope: ResponseScope): JsonObject[] {
  const sink = new ContentSink();
  const encoder = new ContentEncoder(scope, sink);
  for (const [at, block] of content.entries()) encoder.add(at, block);
  encoder.end();
  return sink.content;
}
