import { type JsonObject, parseJson } from '../../accumulate/overlay.ts';
import type { CanonicalChoice, CanonicalResponse, StopDetails } from '../../canonical/response.ts';
import { endingOf, failureOf, isForeign } from '../shared/answer.ts';
import { type CodecContext, CodecError } from '../shared/codec.ts';
import { tellInexactNumbers } from '../shared/exact-numbers.ts';
import { encodeEnvelope } from './answer-encode.ts';
import type { EncodedCall } from './call-encode.ts';
import { CandidateEncoder, type PartSink } from './candidate-encode.ts';
import { isBlocked, readKept } from './kept.ts';
import { callParts, signatureField } from './parts-encode.ts';
import { encodeUsage } from './usage.ts';

/** A whole GenerateContentResponse. Throws when the response is a failure that has no word here. */
export function encodeResponse(response: CanonicalResponse, context: CodecContext): JsonObject {
  if (response.error) throw new CodecError(response.error);
  const foreign = isForeign(response, 'gemini', context);
  const { content, stop_reason, extensions, usage } = response;
  const kept = readKept(extensions);
  const choices = response.choices ?? [{ index: 0, content, stop_reason, ...(extensions && { extensions }) }];
  const hasCandidates = content.length > 0 || !isBlocked(kept);
  return {
    ...(hasCandidates && {
      candidates: choices.map((choice) => encodeCandidate(choice, response.stop_details, foreign, context)),
    }),
    ...kept.response,
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
  if (stop === null) throw new CodecError(failureOf(stop, details));
  const kept = readKept(extensions);
  const list = new PartList(context);
  const blocks = new CandidateEncoder(isForeign, context, list);
  for (const [at, block] of content.entries()) {
    blocks.start(at, block);
    blocks.stop(at, undefined);
  }
  const own = index === 0 ? details : undefined;
  const fields = blocks.finish(stop, own, kept) ?? blocks.finish(endingOf(choice, details, undefined, context), own, kept);
  return { content: { ...kept.content, parts: list.hasParts ? list.parts : [{ text: '' }], role: 'model' }, ...fields, index };
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

  add(part: JsonObject): void {
    this.parts.push(part);
  }

  addCall({ at, block, args, isWrapped, signature }: EncodedCall): void {
    if (!isWrapped) tellInexactNumbers(args, `/content/${at}`, this.#context);
    const { outer, inner } = callParts(block, true);
    const functionCall = { ...inner, args: parseJson(args) };
    this.parts.push({ functionCall, ...outer, ...signatureField({ signature }, this.#context) });
  }
}
