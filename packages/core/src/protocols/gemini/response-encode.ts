import type { JsonObject } from '../../accumulate/overlay.ts';
import { parseJson } from '../../accumulate/overlay.ts';
import type { AudioBlock, ContentBlock, OpaqueBlock, TextBlock, ThinkingBlock, ToolUseBlock } from '../../canonical/blocks.ts';
import type { CanonicalChoice, CanonicalResponse, StopDetails } from '../../canonical/response.ts';
import { argumentsOf, endingOf, failureOf, isForeign } from '../shared/answer.ts';
import { approximate, type CodecContext, CodecError, drop } from '../shared/codec.ts';
import { tellInexactNumbers } from '../shared/exact-numbers.ts';
import { objectOf } from '../shared/read.ts';
import { type Ending, encodeEnding, encodeEnvelope, showsThoughts } from './answer-encode.ts';
import { encodeServerResult } from './candidate-encode.ts';
import { Grounding } from './grounding.ts';
import { isBlocked, partFields, readKept } from './kept.ts';
import { argsText, callParts, encodeMedia, isBroken, isDoubtful, signatureField, tellWrapped } from './parts-encode.ts';
import { isCutStop } from './stop.ts';
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
      candidates: choices.map((choice) => new CandidateDraft(choice, response.stop_details, foreign, context).encode()),
    }),
    ...kept.response,
    ...(usage && { usageMetadata: encodeUsage(usage, (note) => context.note(note)) }),
    ...encodeEnvelope(response, context),
  };
}

/** One candidate on its way to the wire: blocks in, parts out. */
class CandidateDraft {
  readonly #choice: CanonicalChoice;
  readonly #details: StopDetails | undefined;
  readonly #isForeign: boolean;
  readonly #context: CodecContext;
  readonly #shows: boolean;
  readonly #grounding: Grounding;
  /** Calls that were written, and that were left out. */
  #sent = 0;
  #left = 0;

  constructor(choice: CanonicalChoice, details: StopDetails | undefined, foreign: boolean, context: CodecContext) {
    this.#choice = choice;
    this.#details = details;
    this.#isForeign = foreign;
    this.#context = context;
    this.#shows = showsThoughts(context);
    this.#grounding = new Grounding(context);
  }

  encode(): JsonObject {
    const { index, content, stop_reason: stop, extensions } = this.#choice;
    if (stop === null) throw new CodecError(failureOf(stop, this.#details));
    const kept = readKept(extensions);
    // What follows a call shows that it was not cut; other calls do not, for calls can overlap.
    const followed = content.findLastIndex(({ type }) => type !== 'tool_use');
    const parts = content.flatMap((block, i) => this.#parts(block, `/content/${i}`, isCutStop(stop) && i > followed));
    const tokens = content.flatMap((block) => (block.type === 'text' ? (block.logprobs ?? []) : []));
    const details = index === 0 ? this.#details : undefined;
    const ending: Omit<Ending, 'stop'> = {
      details,
      kept,
      hasContent: parts.length > 0,
      saysRefusal: content.some((block) => block.type === 'text' && block.refusal),
      isMalformed: this.#left > 0 && this.#sent === 0,
      grounding: this.#grounding,
      tokens,
    };
    const fields =
      encodeEnding({ ...ending, stop }, this.#context) ??
      encodeEnding({ ...ending, stop: endingOf(this.#choice, this.#details, undefined, this.#context) }, this.#context);
    return { content: { ...kept.content, parts: parts.length > 0 ? parts : [{ text: '' }], role: 'model' }, ...fields, index };
  }

  #parts(block: ContentBlock, path: string, isCut: boolean): JsonObject[] {
    switch (block.type) {
      case 'text':
        this.#grounding.add(block.citations ?? [], block.text, path);
        return this.#text(block);
      case 'thinking':
        return this.#thinking(block);
      case 'tool_use':
        return this.#call(block, path, isCut);
      case 'audio':
        return [...this.#media(block, path), ...this.#transcript(block, path)];
      case 'image':
      case 'file':
        return this.#media(block, path);
      case 'tool_result':
        if (!this.#isForeign) return [encodeServerResult(block)];
        return this.#lose(path, 'tool_result', 'an answer of Gemini holds no results of foreign tools');
      case 'opaque':
        return this.#opaque(block, path);
      default:
        return block satisfies never;
    }
  }

  #text(block: TextBlock): JsonObject[] {
    const part = { ...partFields(block), text: block.text, ...signatureField(block, this.#context) };
    return block.text === '' && Object.keys(part).length === 1 ? [] : [part];
  }

  /** What the client did not ask to see is left out; the signature still goes. One of our own that stands alone is no thought. */
  #thinking(block: ThinkingBlock): JsonObject[] {
    const isBare = block.thinking === '' && block.signature?.origin === 'gemini';
    const text = this.#shows ? block.thinking : '';
    const part = { ...partFields(block), text, ...(!isBare && { thought: true }), ...signatureField(block, this.#context) };
    return text === '' && !block.signature && (!this.#shows || Object.keys(part).length === 2) ? [] : [part];
  }

  #call(block: ToolUseBlock, path: string, isCut: boolean): JsonObject[] {
    if (this.#isForeign && (block.kind === 'server' || block.kind === 'mcp'))
      return this.#lose(path, 'server_tool_use', `${block.name} was called and run by the provider`);
    const text = argumentsOf(block, isCut);
    if (block.status === 'incomplete' || (isCut && isDoubtful(text, block))) return this.#leaveOut(block, path, 'was cut');
    if (isBroken(text, block)) return this.#leaveOut(block, path, 'has arguments that are no JSON');
    const { json, isWrapped } = argsText(text, block.kind === 'custom');
    if (isWrapped) tellWrapped(this.#context, path);
    else tellInexactNumbers(json, path, this.#context);
    this.#sent++;
    const { outer, inner } = callParts(block, true);
    return [{ functionCall: { ...inner, args: parseJson(json) }, ...outer, ...signatureField(block, this.#context) }];
  }

  /** Nobody may run it. */
  #leaveOut({ name }: ToolUseBlock, path: string, why: string): JsonObject[] {
    this.#left++;
    return this.#lose(path, 'tool_use', `the call of ${name} ${why}`);
  }

  #media(block: Parameters<typeof encodeMedia>[0], path: string): JsonObject[] {
    const isElsewhere = this.#isForeign && block.source.file_id !== undefined;
    const part = isElsewhere ? undefined : encodeMedia(block);
    if (part) return [part];
    if (block.type === 'audio' && block.transcript) return [];
    return this.#lose(path, block.type, `the ${block.type} has nothing that could leave its provider`);
  }

  #transcript({ transcript }: AudioBlock, path: string): JsonObject[] {
    if (!transcript) return [];
    approximate(this.#context, { path, feature: 'content.audio.transcript', message: 'a transcript is written as text' });
    return [{ text: transcript }];
  }

  #opaque({ origin, raw, text }: OpaqueBlock, path: string): JsonObject[] {
    if (origin === 'gemini') return [objectOf(raw)];
    return text ? [{ text }] : this.#lose(path, 'opaque', `a block of ${origin} has no form in Gemini`);
  }

  #lose(path: string, feature: string, message: string): JsonObject[] {
    drop(this.#context, { path, feature: `content.${feature}`, message });
    return [];
  }
}
