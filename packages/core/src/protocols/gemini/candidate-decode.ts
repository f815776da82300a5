import { countKeys, isObject, type JsonObject } from '../../accumulate/overlay.ts';
import { UnknownFields } from '../../accumulate/unknown-fields.ts';
import type { TokenLogprob } from '../../canonical/blocks.ts';
import type { BlockDelta } from '../../canonical/events.ts';
import { recomputeStop, type StopDetails, type StopReason } from '../../canonical/response.ts';
import type { RuleId } from '../../doctor/rules.ts';
import { BlockEmitter, type Emit, type Flow, unplaced } from '../shared/block-writer.ts';
import type { Context } from '../shared/context.ts';
import { textOf, unknownFields } from '../shared/read.ts';
import { decodeMedia, emptyBlock, opaque, signed } from './blocks.ts';
import { CallEmitter } from './calls.ts';
import { decodeCitations } from './citations.ts';
import { addLogprobs, decodeLogprobs } from './logprobs.ts';
import { decodeStop, finishName, isKnownFinish } from './stop.ts';
import {
  CANDIDATE_FIELDS,
  CANDIDATE_NAMES,
  CARRIER_FIELDS,
  CONTENT_FIELDS,
  camelKeys,
  camelObject,
  OPAQUE_PARTS,
  PART_FIELDS,
  respell,
  type WireCandidate,
  type WirePart,
} from './wire.ts';

type TextKind = 'text' | 'thinking';

/** One candidate: parts in, blocks out. finishReason is not the end: parts may follow it, and the last one counts. */
export class CandidateDecoder {
  readonly index: number;
  readonly #context: Context;
  readonly #emitter: BlockEmitter;
  readonly #calls: CallEmitter;
  readonly #fields = new UnknownFields(CANDIDATE_FIELDS);
  readonly #contentFields = new UnknownFields(CONTENT_FIELDS);
  #logprobs: JsonObject | undefined;
  /** The tokens of this fragment, which its first text brings. */
  #tokens: TokenLogprob[] | undefined;
  #offset = 0;

  /** The text-like block that is the last one so far; a signature seals it: what follows belongs to another part. */
  #flow: Flow | undefined;
  #isSealed = false;
  #flows = 0;
  /** The last text block, and what it says. */
  #textFlow: Flow | undefined;
  #text = '';
  #hasContent = false;
  #finish: string | number | undefined;

  constructor(index: number, context: Context, emit: Emit, responseId: string) {
    this.index = index;
    this.#context = context;
    this.#emitter = new BlockEmitter(emit, index);
    this.#calls = new CallEmitter(context, this.#emitter, `${responseId}\u0000${index}`);
  }

  /** The wire's own word; undefined as long as there is none. */
  get finishReason(): string | number | undefined {
    return this.#finish;
  }

  push(raw: JsonObject, offset: number): void {
    this.#offset = offset;
    const candidate: WireCandidate = this.#respell(raw);
    const { content, finishReason, logprobsResult } = candidate;
    this.#fields.look(candidate);
    if (isObject(logprobsResult)) this.#readLogprobs(logprobsResult);
    else this.#tokens = undefined;
    if (isObject(content)) this.#pushContent(content);
    // They came alone, for the text before.
    if (this.#tokens && this.#flow?.kind === 'text') this.#emitter.write(this.#flow, this.#textDelta(''));
    this.#readFinish(finishReason);
  }

  #readLogprobs(result: JsonObject): void {
    this.#logprobs = addLogprobs(this.#logprobs, result);
    this.#tokens = decodeLogprobs(result);
  }

  #respell(raw: JsonObject): JsonObject {
    const value = respell(raw);
    if (value !== raw) this.#report('gemini/snake-case');
    return value;
  }

  #pushContent(content: JsonObject): void {
    this.#contentFields.look(content);
    const { parts }: { parts?: unknown } = content;
    if (Array.isArray(parts)) for (const part of parts) this.#pushPart(part);
    else if (parts !== undefined && parts !== null) this.#report('gemini/malformed-part');
  }

  /** Unset values of the enum, and the empty text that Go servers write for them, say nothing over a reason that was given. */
  #readFinish(wire: unknown): void {
    if (typeof wire !== 'number' && (typeof wire !== 'string' || wire === '')) return;
    const name = finishName(wire);
    if (name === 'FINISH_REASON_UNSPECIFIED' && this.#finish !== undefined) return;
    if (typeof wire === 'number') this.#report('gemini/finish-reason-number');
    if (!isKnownFinish(name)) this.#report('gemini/unknown-finish-reason');
    this.#finish = wire;
  }

  #pushPart(raw: unknown): void {
    if (!isObject(raw)) {
      this.#report('gemini/malformed-part');
      return;
    }
    const part: WirePart = this.#respell(raw);
    const hasData =
      isObject(part.functionCall) || isObject(part.functionResponse) || isObject(part.inlineData) || isObject(part.fileData);
    const text = textOf(part.text);
    const unknown = unknownFields(part, PART_FIELDS);
    if (hasData) {
      // A part holds one thing. Where it holds two, the text is said first.
      if (text !== '') this.#writeText(kindOf(part), text, undefined);
      this.#pushData(part, unknown);
    } else if (typeof part.text === 'string') this.#pushText(kindOf(part), text, textOf(part.thoughtSignature), unknown);
    else this.#pushOther(part);
  }

  /** A call is tested first: a part can be both a call and a thought. */
  #pushData(part: WirePart, unknown: JsonObject | undefined): void {
    const signature = textOf(part.thoughtSignature);
    const isThought = part.thought === true;
    if (isObject(part.functionCall)) {
      this.#pushCall(part.functionCall, signature, isThought ? { thought: true, ...unknown } : unknown, part);
      return;
    }
    const signedFields = signature === '' ? {} : { thoughtSignature: signature };
    const fields =
      signature !== '' || isThought || unknown ? { ...unknown, ...(isThought && { thought: true }), ...signedFields } : undefined;
    if (isObject(part.functionResponse)) this.#pushAnswer(camelObject(part.functionResponse), fields);
    else this.#writeWhole(decodeMedia(part, fields) ?? opaque(part));
  }

  #pushCall(raw: JsonObject, signature: string, fields: JsonObject | undefined, part: JsonObject): void {
    const call = camelKeys(raw);
    const nested = textOf(call['thoughtSignature']);
    if (nested !== '' && signature === '') this.#report('gemini/nested-signature');
    const found = this.#calls.push(call, signature || nested, fields, this.#offset);
    if (found === 'opaque') this.#writeWhole(opaque(part));
    if (found !== 'call') return;
    this.#touch();
    this.#flow = undefined;
  }

  #pushAnswer(result: JsonObject, fields: JsonObject | undefined): void {
    this.#calls.answer(result, fields, this.#offset);
    this.#touch();
    this.#flow = undefined;
  }

  #pushOther(part: WirePart): void {
    const content = unknownFields(part, CARRIER_FIELDS);
    if (!content) {
      this.#carry(kindOf(part), textOf(part.thoughtSignature));
      return;
    }
    const isKnown = Object.keys(content).some((key) => OPAQUE_PARTS.has(key));
    if (!isKnown) this.#report('gemini/unknown-part');
    this.#writeWhole(opaque(part));
  }

  #writeWhole(block: Parameters<BlockEmitter['whole']>[0]): void {
    this.#calls.settle();
    this.#touch();
    this.#flow = undefined;
    this.#emitter.whole(block);
  }

  #pushText(kind: TextKind, text: string, signature: string, unknown: JsonObject | undefined): void {
    if (text === '' && !unknown) {
      this.#carry(kind, signature);
      return;
    }
    this.#writeText(kind, text, unknown);
    if (signature !== '') this.#seal(signature);
  }

  /** Adjacent plain parts of a kind are one block; one that says more about itself stands alone. */
  #writeText(kind: TextKind, text: string, unknown: JsonObject | undefined): void {
    this.#calls.settle();
    this.#touch();
    const flow =
      this.#flow && this.#flow.kind === kind && !this.#isSealed && !unknown ? this.#flow : this.#openFlow(kind, unknown);
    if (kind === 'text') this.#text += text;
    if (text === '') this.#emitter.open(flow);
    else this.#emitter.write(flow, kind === 'text' ? this.#textDelta(text) : { type: 'thinking_delta', thinking: text });
    if (unknown) this.#isSealed = true;
  }

  #textDelta(text: string): BlockDelta {
    const logprobs = this.#tokens;
    if (!logprobs) return { type: 'text_delta', text };
    this.#tokens = undefined;
    return { type: 'text_delta', text, logprobs };
  }

  #openFlow(kind: TextKind, fields: JsonObject | undefined): Flow {
    const flow: Flow = { kind, key: this.#flows++, start: () => emptyBlock(kind, fields) };
    this.#flow = flow;
    this.#isSealed = false;
    if (kind === 'text') {
      this.#text = '';
      this.#textFlow = flow;
    }
    return flow;
  }

  /** A signature on a part without content belongs to the block before it, or to nothing: then an empty block carries it. */
  #carry(kind: TextKind, signature: string): void {
    if (signature === '') return;
    const fits = this.#flow && !this.#isSealed && (kind === 'text' || this.#flow.kind === kind);
    if (!fits) {
      this.#calls.settle();
      this.#touch();
      this.#emitter.open(this.#openFlow('thinking', undefined));
    }
    this.#seal(signature);
  }

  #seal(signature: string): void {
    this.#isSealed = true;
    this.#emitter.sign(this.#flow?.key ?? '', { type: 'signature_delta', signature: signed(signature) });
  }

  #touch(): void {
    if (this.#finish !== undefined) this.#report('gemini/parts-after-finish');
    this.#hasContent = true;
  }

  #report(rule: RuleId): void {
    this.#context.report(rule, this.#offset);
  }

  /** Stops what is open. `isWhole`: the body came to its end without a failure. */
  end(isWhole: boolean): void {
    const isClean = isWhole && this.#finish !== undefined && decodeStop(finishName(this.#finish), true) === 'end_turn';
    this.#calls.end(isClean);
    const metadata = this.#fields.kept['groundingMetadata'];
    if (metadata && this.#textFlow) this.#cite(this.#textFlow, metadata);
    this.#emitter.end();
  }

  #cite(flow: Flow, metadata: unknown): void {
    const isOpen = flow === this.#flow;
    for (const citation of decodeCitations(metadata, this.#text))
      this.#emitter.write(flow, { type: 'citations_delta', citation: isOpen ? citation : unplaced(citation) });
  }

  get stop(): { stop_reason: StopReason; stop_details?: StopDetails } | undefined {
    if (this.#finish === undefined) return undefined;
    const name = finishName(this.#finish);
    const reason = recomputeStop(decodeStop(name, this.#hasContent), this.#calls.unanswered);
    if (reason !== 'content_filter' && reason !== 'error' && isKnownFinish(name)) return { stop_reason: reason };
    const explanation = textOf(this.#fields.kept['finishMessage']);
    return {
      stop_reason: reason,
      stop_details: { category: name, ...(explanation !== '' && { explanation }), raw: String(this.#finish) },
    };
  }

  /** What the candidate said beside its parts, in the words of the wire. */
  get extensions(): JsonObject {
    return {
      ...knownFirst(this.#fields.kept),
      ...(countKeys(this.#contentFields.kept) > 0 && { content: this.#contentFields.kept }),
      ...(this.#logprobs && { logprobsResult: this.#logprobs }),
      ...(this.#finish !== undefined && { finish_reason: this.#finish }),
    };
  }
}

/** Fields that nobody knows stand apart from those of the response, which are kept beside them. */
function knownFirst(fields: JsonObject): JsonObject {
  const unknown = Object.entries(fields).filter(([key]) => !CANDIDATE_NAMES.has(key));
  if (unknown.length === 0) return fields;
  const known = Object.entries(fields).filter(([key]) => CANDIDATE_NAMES.has(key));
  return { ...Object.fromEntries(known), candidate: Object.fromEntries(unknown) };
}

const kindOf = ({ thought }: WirePart): TextKind => (thought === true ? 'thinking' : 'text');
