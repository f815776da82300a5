import type { CanonicalChoice, CanonicalResponse, StopDetails } from '../../canonical/message.ts';
import { CodecError } from '../../canonical/notes.ts';
import {
  buildStopError,
  buildUpstreamError,
  expectResponse,
  isForeign,
  readWholeResponse,
  resolveStopReason,
} from '../../codec/answers.ts';
import type { Context } from '../../codec/context.ts';
import type { CodecContext } from '../../codec/protocol.ts';
import { reportInexactNumbers } from '../../codec/requests.ts';
import { isObject, type JsonObject, parseJson } from '../../json/json.ts';
import { encodeCallFields, encodeSignatureField } from './blocks.ts';
import { CandidateEncoder, type EncodedCall, encodeEnvelope, type PartSink } from './content-encode.ts';
import { decodeErrorBody, encodeUsage, findError } from './outcome.ts';
import { decodeStream } from './stream-decode.ts';
import { isBlocked, readCandidateExtensions } from './wire.ts';

/**
 * Reads a whole GenerateContentResponse, or the list of its fragments, through the stream decoder. Throws if it is an
 * error. A list without a finish reason is a stream that was cut; one response without it is complete.
 */
export function decodeResponse(body: unknown, context: Context): CanonicalResponse {
  const fragments: readonly unknown[] = Array.isArray(body) ? body : [body];
  if (!fragments.every(isObject)) throw new CodecError(decodeErrorBody(body));
  const { message, complete } = readWholeResponse(fragments, decodeStream(context, { isWhole: !Array.isArray(body) }));
  if (!complete) throw new CodecError(buildUpstreamError('the response has no finishReason'));
  return message;
}

/** The body of a response as an object. Throws if it is an error. */
export const expectBody = (wire: unknown): JsonObject =>
  expectResponse(wire, (body) => findError(body, undefined) !== undefined, decodeErrorBody);

/** A whole GenerateContentResponse. Throws if the response is a failure that has no finish reason in Gemini. */
export function encodeResponse(response: CanonicalResponse, context: CodecContext): JsonObject {
  if (response.error) throw new CodecError(response.error);
  const foreign = isForeign(response, 'gemini', context);
  const { content, stop_reason, extensions, usage } = response;
  const fields = readCandidateExtensions(extensions);
  const choices = response.choices ?? [{ index: 0, content, stop_reason, ...(extensions && { extensions }) }];
  const hasCandidates = content.length > 0 || !isBlocked(fields);
  return {
    ...(hasCandidates && {
      candidates: choices.map((choice) => encodeCandidate(choice, response.stop_details, foreign, context)),
    }),
    ...fields.response,
    ...(usage && { usageMetadata: encodeUsage(usage, (note) => context.note(note)) }),
    ...encodeEnvelope(response, context),
  };
}

function encodeCandidate(
  choice: CanonicalChoice,
  details: StopDetails | undefined,
  isForeign: boolean,
  context: CodecContext,
): JsonObject {
  const { index, content, stop_reason: stop, extensions } = choice;
  if (stop === null) throw new CodecError(buildStopError(stop, details));
  const original = readCandidateExtensions(extensions);
  const list = new PartList(context);
  const blocks = new CandidateEncoder(isForeign, context, list);
  for (const [at, block] of content.entries()) {
    blocks.start(at, block);
    blocks.stop(at, undefined);
  }
  const own = index === 0 ? details : undefined;
  const fields =
    blocks.finish(stop, own, original) ?? blocks.finish(resolveStopReason(choice, details, undefined, context), own, original);
  return {
    content: { ...original.content, parts: list.hasParts ? list.parts : [{ text: '' }], role: 'model' },
    ...fields,
    index,
  };
}

/** Writes the parts of a candidate into a list. */
class PartList implements PartSink {
  readonly #context: CodecContext;
  readonly parts: JsonObject[] = [];

  constructor(context: CodecContext) {
    this.#context = context;
  }

  get hasParts(): boolean {
    return this.parts.length > 0;
  }

  get length(): number {
    return this.parts.length;
  }

  add(part: JsonObject): void {
    this.parts.push(part);
  }

  addCall({ at, block, args, isWrapped, signature }: EncodedCall): void {
    if (!isWrapped) reportInexactNumbers(args, `/content/${at}`, this.#context);
    const { outer, inner } = encodeCallFields(block, true);
    const functionCall = { ...inner, args: parseJson(args) };
    this.parts.push({ functionCall, ...outer, ...encodeSignatureField({ signature }, this.#context) });
  }
}
