/** The parts of a candidate in a stream, from the wire to canonical blocks. */

import { deriveId } from '../../accumulate/argument-text.ts';
import { UnknownFields } from '../../accumulate/unknown-fields.ts';
import type { BlockDelta } from '../../canonical/events.ts';
import {
  type Citation,
  recomputeStop,
  type StopDetails,
  type StopReason,
  type TokenLogprob,
  type ToolResultBlock,
  type ToolUseBlock,
} from '../../canonical/message.ts';
import { CallLimits, countCodePoints } from '../../codec/answers.ts';
import { BlockEmitter, type Emit, type Flow } from '../../codec/block-emitter.ts';
import type { Context } from '../../codec/context.ts';
import { listOrEmpty, textOrEmpty, unknownFields } from '../../codec/read.ts';
import { countKeys } from '../../json/fast.ts';
import { getOwn, isObject, type JsonObject, parseJson, setOwn, writeJson } from '../../json/json.ts';
import { MAX_PARTIAL_ARGS_DEPTH, MAX_PARTIAL_ARGS_GAP } from '../../json/limits.ts';
import { writeExact } from '../../json/literals.ts';
import type { RuleId } from '../../rules/index.ts';
import {
  addLogprobs,
  asExtensions,
  buildSignature,
  CallMatcher,
  createEmptyBlock,
  decodeCitations,
  decodeLogprobs,
  decodeMedia,
  decodeOpaque,
  decodeServerResult,
  type TrackedCall,
} from './blocks.ts';
import { decodeStop, isKnownFinish, readFinishName } from './outcome.ts';
import {
  CALL_FIELDS,
  CANDIDATE_FIELDS,
  CANDIDATE_NAMES,
  CARRIER_FIELDS,
  CONTENT_FIELDS,
  normaliseNames,
  OPAQUE_PARTS,
  PART_FIELDS,
  toCamelKeys,
  toCamelObject,
  type WireCall,
  type WireCandidate,
  type WirePart,
} from './wire.ts';

type TextKind = 'text' | 'thinking';

/**
 * Decodes the parts of one candidate to blocks. finishReason is not the end: parts may follow it, and the last reason
 * counts.
 */
export class CandidateDecoder {
  /** The index of the candidate. */
  readonly index: number;
  readonly #context: Context;
  readonly #emitter: BlockEmitter;
  readonly #calls: CallEmitter;
  readonly #fields = new UnknownFields(CANDIDATE_FIELDS);
  readonly #contentFields = new UnknownFields(CONTENT_FIELDS);
  #logprobs: JsonObject | undefined;
  /** Log probabilities of this fragment; they are emitted with its first text. */
  #tokens: TokenLogprob[] | undefined;
  #offset = 0;

  /** The last block if it is text or thinking. A signature seals it: later text starts a new block. */
  #flow: Flow | undefined;
  #isSealed = false;
  #flows = 0;
  /** The last text block and its text. */
  #textFlow: Flow | undefined;
  #text = '';
  /** The texts of the text blocks before. */
  #earlier: string[] = [];
  /** The citations of each part, where the first fragment has them: most likely it is a whole response. */
  #cited: ReadonlyMap<number, Citation[]> | undefined;
  #fragments = 0;
  #hasContent = false;
  #finish: string | number | undefined;
  #isComplete = false;

  constructor(index: number, context: Context, emit: Emit, responseId: string) {
    this.index = index;
    this.#context = context;
    this.#emitter = new BlockEmitter(emit, index);
    this.#calls = new CallEmitter(context, this.#emitter, `${responseId}\u0000${index}`);
  }

  get isFinished(): boolean {
    return this.#reason !== undefined;
  }

  /** Nothing of the candidate is missing, also when it has no finish reason. */
  complete(): void {
    this.#isComplete = true;
  }

  /** The name of the finish reason, once there is one. */
  get #reason(): string | undefined {
    if (this.#finish === undefined) return this.#isComplete ? 'STOP' : undefined;
    return readFinishName(this.#finish);
  }

  /** Reads the candidate of a fragment. */
  push(raw: JsonObject, offset: number): void {
    this.#offset = offset;
    const candidate: WireCandidate = this.#respell(raw);
    const { content, finishReason, logprobsResult } = candidate;
    this.#fields.look(candidate);
    if (isObject(logprobsResult)) this.#readLogprobs(logprobsResult);
    else this.#tokens = undefined;
    if (isObject(content)) {
      if (this.#fragments++ === 0) this.#cited = findCitations(candidate['groundingMetadata'], content);
      this.#pushContent(content);
    }
    // Log probabilities without text belong to the text before.
    if (this.#tokens && this.#flow?.kind === 'text') this.#emitter.write(this.#flow, this.#textDelta(''));
    this.#readFinish(finishReason);
  }

  #readLogprobs(result: JsonObject): void {
    this.#logprobs = addLogprobs(this.#logprobs, result);
    this.#tokens = decodeLogprobs(result);
  }

  #respell(raw: JsonObject): JsonObject {
    const value = normaliseNames(raw);
    if (value !== raw) this.#report('gemini/snake-case');
    return value;
  }

  #pushContent(content: JsonObject): void {
    this.#contentFields.look(content);
    const { parts }: { parts?: unknown } = content;
    if (Array.isArray(parts) && this.#cited && this.#fragments === 1) this.#pushCited(parts, this.#cited);
    else if (Array.isArray(parts)) for (const part of parts) this.#pushPart(part);
    else if (parts !== undefined && parts !== null) this.#report('gemini/malformed-part');
  }

  /** Writes each citation behind the part that it belongs to, as long as its block is open. */
  #pushCited(parts: readonly unknown[], cited: ReadonlyMap<number, Citation[]>): void {
    /** Code points of the open text block before the part. */
    let before = 0;
    for (const [i, part] of parts.entries()) {
      const flow = this.#textFlow;
      this.#pushPart(part);
      if (this.#textFlow !== flow) before = 0;
      const text = readVisibleText(part);
      if (text === undefined || !this.#textFlow) continue;
      const offset = this.#flow === this.#textFlow ? before : undefined;
      for (const citation of cited.get(i) ?? []) this.#cite(this.#textFlow, citation, offset);
      before += countCodePoints(text);
    }
  }

  /** `offset`: where the text that the citation counts from begins in its block; undefined when the block has ended. */
  #cite(flow: Flow, citation: Citation, offset: number | undefined): void {
    if (offset === undefined) {
      this.#context.note({ code: 'DROPPED', path: '/content', feature: 'citations', message: LATE_CITATION });
      return;
    }
    const { start = 0, end = 0 } = citation;
    const moved = offset === 0 ? citation : { ...citation, start: start + offset, end: end + offset };
    this.#emitter.write(flow, { type: 'citations_delta', citation: moved });
  }

  /** An unset enum value, and the empty string that Go servers write for it, do not replace a reason. */
  #readFinish(wire: unknown): void {
    if (typeof wire !== 'number' && (typeof wire !== 'string' || wire === '')) return;
    const name = readFinishName(wire);
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
    const text = textOrEmpty(part.text);
    const unknown = unknownFields(part, PART_FIELDS);
    if (hasData) {
      // A part should hold one thing; if it also holds text, the text comes first.
      if (text !== '') this.#writeText(findKind(part), text, undefined);
      this.#pushData(part, unknown);
    } else if (typeof part.text === 'string') this.#pushText(findKind(part), text, textOrEmpty(part.thoughtSignature), unknown);
    else this.#pushOther(part);
  }

  /** Calls are tested first, because a part can be both a call and a thought. */
  #pushData(part: WirePart, unknown: JsonObject | undefined): void {
    const signature = textOrEmpty(part.thoughtSignature);
    const isThought = part.thought === true;
    if (isObject(part.functionCall)) {
      this.#pushCall(part.functionCall, signature, isThought ? { thought: true, ...unknown } : unknown, part);
      return;
    }
    const signedFields = signature === '' ? {} : { thoughtSignature: signature };
    const fields =
      signature !== '' || isThought || unknown ? { ...unknown, ...(isThought && { thought: true }), ...signedFields } : undefined;
    if (isObject(part.functionResponse)) this.#pushResult(toCamelObject(part.functionResponse), fields);
    else this.#writeWhole(decodeMedia(part, fields) ?? decodeOpaque(part));
  }

  #pushCall(raw: JsonObject, signature: string, fields: JsonObject | undefined, part: JsonObject): void {
    const call = toCamelKeys(raw);
    const nested = textOrEmpty(call['thoughtSignature']);
    if (nested !== '' && signature === '') this.#report('gemini/nested-signature');
    const found = this.#calls.push(call, signature || nested, fields, this.#offset);
    if (found === 'opaque') this.#writeWhole(decodeOpaque(part));
    if (found !== 'call') return;
    this.#touch();
    this.#flow = undefined;
  }

  #pushResult(result: JsonObject, fields: JsonObject | undefined): void {
    this.#calls.answer(result, fields, this.#offset);
    this.#touch();
    this.#flow = undefined;
  }

  #pushOther(part: WirePart): void {
    const content = unknownFields(part, CARRIER_FIELDS);
    if (!content) {
      this.#carry(findKind(part), textOrEmpty(part.thoughtSignature));
      return;
    }
    const isKnown = Object.keys(content).some((key) => OPAQUE_PARTS.has(key));
    if (!isKnown) this.#report('gemini/unknown-part');
    this.#writeWhole(decodeOpaque(part));
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

  /** Adjacent plain parts of one kind form one block; a part with unknown fields gets its own. */
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
    const flow: Flow = { kind, key: this.#flows++, start: () => createEmptyBlock(kind, fields) };
    this.#flow = flow;
    this.#isSealed = false;
    if (kind === 'text') {
      if (this.#text !== '') this.#earlier.push(this.#text);
      this.#text = '';
      this.#textFlow = flow;
    }
    return flow;
  }

  /**
   * A signature on a part without content belongs to the block before it; if there is none, an empty block carries
   * it.
   */
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
    this.#emitter.sign(this.#flow?.key ?? '', { type: 'signature_delta', signature: buildSignature(signature) });
  }

  #touch(): void {
    if (this.#finish !== undefined) this.#report('gemini/parts-after-finish');
    this.#hasContent = true;
  }

  #report(rule: RuleId): void {
    this.#context.report(rule, this.#offset);
  }

  /** Stops all open blocks. `isWhole`: the body ended without a failure. */
  end(isWhole: boolean): void {
    const name = this.#reason;
    const isClean = isWhole && name !== undefined && decodeStop(name, true) === 'end_turn';
    // Before the calls that are held, while the text block is open.
    const isCited = this.#cited && this.#fragments === 1;
    if (!isCited && this.#textFlow) this.#citeAll(this.#textFlow, this.#fields.kept['groundingMetadata']);
    this.#calls.end(isClean);
    this.#emitter.end();
  }

  /** The metadata comes at the end of a stream: only the last text block can still be open. */
  #citeAll(flow: Flow, metadata: unknown): void {
    if (!metadata) return;
    const isOpen = this.#emitter.isOpen(flow.key ?? '');
    const known = new Set([...(this.#cited?.values() ?? [])].flat().map(({ url, raw }) => writeJson([url, raw])));
    for (const { part, citation } of decodeCitations(metadata, [...this.#earlier, this.#text]))
      if (!known.has(writeJson([citation.url, citation.raw])))
        this.#cite(flow, citation, isOpen && part === this.#earlier.length ? 0 : undefined);
  }

  /** The stop reason and its details, once there is a finish reason. */
  get stop(): { stop_reason: StopReason; stop_details?: StopDetails } | undefined {
    const name = this.#reason;
    if (name === undefined) return undefined;
    const reason = recomputeStop(decodeStop(name, this.#hasContent), this.#calls.unanswered);
    if (reason !== 'content_filter' && reason !== 'error' && isKnownFinish(name)) return { stop_reason: reason };
    const explanation = textOrEmpty(this.#fields.kept['finishMessage']);
    return {
      stop_reason: reason,
      stop_details: { category: name, ...(explanation !== '' && { explanation }), raw: String(this.#finish) },
    };
  }

  /** The fields of the candidate beside its parts, as they were on the wire. */
  get extensions(): JsonObject {
    return {
      ...separateUnknown(this.#fields.kept),
      ...(countKeys(this.#contentFields.kept) > 0 && { content: this.#contentFields.kept }),
      ...(this.#logprobs && { logprobsResult: this.#logprobs }),
      ...(this.#finish !== undefined && { finish_reason: this.#finish }),
    };
  }
}

const LATE_CITATION = 'a citation arrived after the text that it belongs to had ended; dropped';

/** The text of a part that is neither a thought nor anything else. */
function readVisibleText(raw: unknown): string | undefined {
  const { text, thought }: WirePart = isObject(raw) ? raw : {};
  return typeof text === 'string' && text !== '' && thought !== true ? text : undefined;
}

/** The citations of a candidate that is whole, by the places of their parts; undefined without any. */
function findCitations(metadata: unknown, { parts }: JsonObject): ReadonlyMap<number, Citation[]> | undefined {
  if (!metadata || !Array.isArray(parts)) return undefined;
  const cited = new Map<number, Citation[]>();
  for (const { part, citation } of decodeCitations(metadata, parts.map(readVisibleText))) {
    const known = cited.get(part);
    if (known) known.push(citation);
    else cited.set(part, [citation]);
  }
  return cited.size > 0 ? cited : undefined;
}

interface PendingCall {
  call: TrackedCall;
  args: PartialArgs;
  /** The offset of its last piece. */
  offset: number;
}

/**
 * Emits the calls of one candidate. A complete call is held until the next part that is not a call, or until the end:
 * if that part is a functionResponse, Google has run the call itself, and nothing before it shows that. Usually the
 * end comes next, so this causes no delay. A call with streamed arguments (only on Vertex AI) starts at once, and
 * only its stop is held; calls that Google runs (`mcpServers`) exist only in the Gemini API.
 */
export class CallEmitter {
  readonly #context: Context;
  readonly #emitter: BlockEmitter;
  /** Makes derived ids differ between messages and candidates. */
  readonly #seed: string;
  readonly #ids = new Set<string>();
  readonly #matcher = new CallMatcher();
  readonly #limits = new CallLimits();
  /** Held calls and the results of Google's own tools, in order. */
  #held: (TrackedCall | ToolResultBlock)[] = [];
  #pending: PendingCall | undefined;

  constructor(context: Context, emitter: BlockEmitter, seed: string) {
    this.#context = context;
    this.#emitter = emitter;
    this.#seed = seed;
  }

  /** The calls that the client has to run. */
  get unanswered(): ToolUseBlock[] {
    return this.#matcher.open.map(({ block }) => block);
  }

  /** Reads a functionCall or a piece of one. Returns `opaque` if the caller has to keep the part whole. */
  push(wire: WireCall, signature: string, fields: JsonObject | undefined, offset: number): 'call' | 'nothing' | 'opaque' {
    const name = textOrEmpty(wire.name);
    const pieces = listOrEmpty(wire.partialArgs);
    if (this.#pending && this.#isContinuation(this.#pending, wire, name)) {
      this.#continue(this.#pending, wire, signature, offset);
      return 'call';
    }
    if (name === '') return this.#pushNameless(wire, pieces, signature, offset);
    this.#endUnended();
    const call = this.#add(wire, name, fields, offset);
    if (signature !== '') call.signature = signature;
    if (pieces.length === 0 && wire.willContinue !== true) {
      call.text = this.#wholeText(wire.args, offset);
      this.#held.push(call);
    } else {
      this.#openAll();
      this.#open(call);
      this.#continue({ call, args: new PartialArgs(wire.args, this.#limits), offset }, wire, '', offset);
    }
    return 'call';
  }

  #isContinuation({ call }: PendingCall, wire: WireCall, name: string): boolean {
    if (name === '') return true;
    const id = textOrEmpty(wire.id);
    return name === call.block.name && Array.isArray(wire.partialArgs) && (id === '' || id === call.block.id);
  }

  #pushNameless(wire: WireCall, pieces: readonly unknown[], signature: string, offset: number): 'nothing' | 'opaque' {
    const isEmpty = pieces.length === 0 && (wire.args === undefined || wire.args === null) && signature === '';
    this.#context.report(isEmpty ? 'gemini/stray-call-end' : 'gemini/nameless-call', offset);
    return isEmpty ? 'nothing' : 'opaque';
  }

  #add(wire: WireCall, name: string, fields: JsonObject | undefined, offset: number): TrackedCall {
    this.#limits.open();
    const unknown = unknownFields(wire, CALL_FIELDS);
    const more = unknown ? { ...fields, functionCall: unknown } : fields;
    const block: ToolUseBlock = {
      type: 'tool_use',
      id: this.#chooseId(wire, name, offset),
      name,
      input: {},
      ...asExtensions(more),
    };
    const call: TrackedCall = { index: undefined, block, isStopped: false, isAnswered: false };
    this.#matcher.add(call);
    return call;
  }

  #open(call: TrackedCall): number {
    if (call.index !== undefined) return call.index;
    call.index = this.#emitter.openTool(call.block);
    if (call.signature !== undefined) this.#sign(call, call.signature);
    if (call.text !== undefined) this.#emitter.writeTool(call.index, call.text);
    return call.index;
  }

  /** Starts the held calls, so that they precede the next block. */
  #openAll(): void {
    for (const held of this.#held) if ('block' in held) this.#open(held);
  }

  #chooseId(wire: WireCall, name: string, offset: number): string {
    const given = typeof wire.id === 'number' ? String(wire.id) : textOrEmpty(wire.id);
    if (given !== '' && this.#ids.has(given)) this.#context.report('gemini/duplicate-call-id', offset);
    let id = given;
    for (let attempt = 0; id === '' || this.#ids.has(id); attempt++)
      id = deriveId('call_', this.#seed, this.#matcher.size, name, attempt);
    this.#ids.add(id);
    return id;
  }

  #sign(call: TrackedCall, signature: string): void {
    if (call.index !== undefined)
      this.#emitter.emitDelta(call.index, { type: 'signature_delta', signature: buildSignature(signature) });
  }

  #wholeText(args: unknown, offset: number): string {
    const text = args === undefined || args === null ? '{}' : typeof args === 'string' ? args : writeExact(args);
    if (text) this.#limits.count(text.length);
    if (args !== undefined && args !== null && !isObject(args)) this.#context.report('gemini/args-not-object', offset);
    if (text === undefined)
      this.#context.report('gemini/args-not-object', offset, 'The arguments of a call are nested too deeply');
    return text ?? '{';
  }

  #continue(pending: PendingCall, wire: WireCall, signature: string, offset: number): void {
    this.#pending = pending;
    pending.offset = offset;
    if (signature !== '') this.#sign(pending.call, signature);
    for (const piece of listOrEmpty(wire.partialArgs)) pending.args.push(piece);
    if (wire.willContinue !== true) this.#endPending(true);
  }

  /** The arguments of the pending call were not marked as ended when another call or the end came. */
  #endUnended(): void {
    if (!this.#pending) return;
    this.#context.report('gemini/call-not-ended', this.#pending.offset);
    this.#endPending(!this.#pending.args.isInString);
  }

  #endPending(isWhole: boolean): void {
    if (!this.#pending) return;
    const { call, args, offset } = this.#pending;
    this.#pending = undefined;
    if (!args.isReadable) this.#context.report('gemini/bad-json-path', offset);
    const text = args.toText(isWhole);
    if (isWhole && args.isReadable) this.#finish(call, text);
    else this.#cut(call, text);
  }

  #finish(call: TrackedCall, text: string): void {
    this.#emitter.writeTool(this.#open(call), text);
    call.text = text;
    this.#held.push(call);
  }

  /** An incomplete call is marked as such, and its text is not valid JSON, so that nothing runs it. */
  #cut(call: TrackedCall, text: string): void {
    const index = this.#open(call);
    this.#emitter.writeTool(index, text);
    call.isStopped = true;
    this.#emitter.stopTool(index, { ...call.block, status: 'incomplete' });
  }

  /** A part follows that is neither call nor result: the held calls without a result are the client's. */
  settle(): void {
    const held = this.#held;
    this.#held = [];
    for (const one of held) {
      if ('block' in one) this.#stop(one);
      else this.#emitter.whole(one);
    }
  }

  /** A call that Google ran after it had started is marked as a server call when it stops. */
  #stop(call: TrackedCall): void {
    if (call.isStopped) return;
    call.isStopped = true;
    const isLate = call.index !== undefined && call.block.kind === 'server';
    const index = this.#open(call);
    const input = isLate && call.text !== undefined ? parseJson(call.text) : undefined;
    this.#emitter.stopTool(index, isLate ? { ...call.block, input: isObject(input) ? input : {} } : undefined);
  }

  /** Reads a functionResponse; its call is thereby known to be Google's own. */
  answer(result: JsonObject, fields: JsonObject | undefined, offset: number): void {
    const id = textOrEmpty(result['id']);
    const name = textOrEmpty(result['name']);
    const call = this.#matcher.take(id, name);
    if (!call || call.index !== undefined) this.#context.report('gemini/late-function-response', offset);
    const callId = call?.block.id ?? (id || deriveId('call_', this.#seed, this.#matcher.size, name, 'answer'));
    if (call && !call.isStopped) call.block = { ...call.block, kind: 'server' };
    if (call && this.#pending?.call === call) {
      this.#pending = undefined;
      this.#held.push(call);
    }
    this.#held.push(decodeServerResult(result, callId, fields));
  }

  /** Settles all calls. `isClean`: the model finished normally, so arguments without an end mark are complete. */
  end(isClean: boolean): void {
    if (isClean) this.#endUnended();
    else this.#endPending(false);
    this.settle();
  }
}

type Step = string | number;

/**
 * Arguments that arrive in pieces (Vertex, streamFunctionCallArguments): each piece has a JSONPath and a value or a
 * part of a string. A piece that cannot be placed makes the arguments unreadable, so that a partial object is never
 * used.
 */
class PartialArgs {
  readonly #root: JsonObject;
  readonly #limits: CallLimits;
  isReadable = true;
  /** Whether the last piece was an unfinished string. */
  isInString = false;

  constructor(base: unknown, limits: CallLimits) {
    this.#limits = limits;
    // A copy, because the payload has other readers.
    const text = isObject(base) ? (writeJson(base) ?? '') : '';
    limits.count(text.length);
    const copy = parseJson(text);
    this.#root = isObject(copy) ? copy : {};
  }

  push(piece: unknown): void {
    const { jsonPath, willContinue, ...value }: { jsonPath?: unknown; willContinue?: unknown } & JsonObject =
      toCamelObject(piece);
    const path = textOrEmpty(jsonPath);
    const steps = parsePath(path);
    const brings = readValue(value);
    this.#limits.count(path.length + textOrEmpty(brings).length);
    this.isInString = willContinue === true && typeof brings === 'string';
    if (!steps || !this.#place(steps, brings)) this.isReadable = false;
  }

  /**
   * The object as JSON. The closing brace of incomplete or unreadable arguments is left out, so that they do not look
   * valid.
   */
  toText(isWhole: boolean): string {
    const text = writeJson(this.#root) ?? '{}';
    return isWhole && this.isReadable ? text : text.slice(0, -1);
  }

  #place(steps: readonly Step[], value: unknown): boolean {
    let node: JsonObject | unknown[] = this.#root;
    for (const [at, step] of steps.entries()) {
      if (at === steps.length - 1) return put(node, step, value);
      const next = enter(node, step, steps[at + 1]);
      if (!next) return false;
      node = next;
    }
    return false;
  }
}

const STEP = /\.([^.[\]]+)|\[(\d{1,9})\]|\['((?:[^'\\]|\\.)*)'\]|\["((?:[^"\\]|\\.)*)"\]/y;

/** `$.a.b[0]['c d']`, also without the `$`; undefined if it is not a path to a single place. */
function parsePath(text: string): Step[] | undefined {
  const steps: Step[] = [];
  const path = /^[$.[]/.test(text) ? text : `.${text}`;
  STEP.lastIndex = path.startsWith('$') ? 1 : 0;
  while (STEP.lastIndex < path.length) {
    const match = STEP.exec(path);
    if (!match || steps.length === MAX_PARTIAL_ARGS_DEPTH) return undefined;
    const [, name, index, single, double] = match;
    steps.push(index !== undefined ? Number(index) : (name ?? (single ?? double ?? '').replace(/\\(.)/g, '$1')));
  }
  return steps.length > 0 ? steps : undefined;
}

/** A piece has exactly one of these fields; null is recognised by its key. */
function readValue(piece: JsonObject): unknown {
  if (Object.hasOwn(piece, 'nullValue')) return null;
  return piece['stringValue'] ?? piece['numberValue'] ?? piece['boolValue'];
}

function put(node: JsonObject | unknown[], step: Step, value: unknown): boolean {
  if (!fits(node, step)) return false;
  const current = read(node, step);
  // A piece without a value only announces the path.
  if (value === undefined) return true;
  write(node, step, typeof current === 'string' && typeof value === 'string' ? current + value : value);
  return true;
}

function enter(node: JsonObject | unknown[], step: Step, next: Step | undefined): JsonObject | unknown[] | undefined {
  if (!fits(node, step)) return undefined;
  const current = read(node, step);
  if (current === undefined || current === null) {
    const made: JsonObject | unknown[] = typeof next === 'number' ? [] : {};
    write(node, step, made);
    return made;
  }
  return isObject(current) || Array.isArray(current) ? current : undefined;
}

function read(node: JsonObject | unknown[], step: Step): unknown {
  if (Array.isArray(node)) return node[Number(step)];
  return getOwn(node, step);
}

function write(node: JsonObject | unknown[], step: Step, value: unknown): void {
  if (!Array.isArray(node)) {
    setOwn(node, String(step), value);
    return;
  }
  while (node.length < Number(step)) node.push(null);
  node[Number(step)] = value;
}

const findKind = ({ thought }: WirePart): TextKind => (thought === true ? 'thinking' : 'text');

function fits(node: JsonObject | unknown[], step: Step): boolean {
  return Array.isArray(node) ? typeof step === 'number' && step <= node.length + MAX_PARTIAL_ARGS_GAP : typeof step === 'string';
}

/** Moves unknown fields under `candidate`, because the known ones are kept beside the fields of the response. */
function separateUnknown(fields: JsonObject): JsonObject {
  const unknown = Object.entries(fields).filter(([key]) => !CANDIDATE_NAMES.has(key));
  if (unknown.length === 0) return fields;
  const known = Object.entries(fields).filter(([key]) => CANDIDATE_NAMES.has(key));
  return { ...Object.fromEntries(known), candidate: Object.fromEntries(unknown) };
}
