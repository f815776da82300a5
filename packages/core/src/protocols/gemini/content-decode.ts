import { deriveId } from '../../accumulate/argument-text.ts';
import { UnknownFields } from '../../accumulate/unknown-fields.ts';
import type { BlockDelta } from '../../canonical/events.ts';
import {
  recomputeStop,
  type StopDetails,
  type StopReason,
  type TokenLogprob,
  type ToolResultBlock,
  type ToolUseBlock,
} from '../../canonical/message.ts';
import { CallLimits } from '../../codec/answers.ts';
import { BlockEmitter, type Emit, type Flow, unplaced } from '../../codec/block-emitter.ts';
import type { Context } from '../../codec/context.ts';
import { listOf, textOf, unknownFields } from '../../codec/read.ts';
import { countKeys } from '../../json/fast.ts';
import { getOwn, isObject, type JsonObject, parseJson, setOwn, writeJson } from '../../json/json.ts';
import { MAX_PARTIAL_ARGS_DEPTH, MAX_PARTIAL_ARGS_GAP } from '../../json/limits.ts';
import type { RuleId } from '../../rules/index.ts';
import {
  Answers,
  addLogprobs,
  type Call,
  decodeCitations,
  decodeLogprobs,
  decodeMedia,
  decodeServerResult,
  emptyBlock,
  extended,
  opaque,
  signed,
} from './blocks.ts';
import { decodeStop, finishName, isKnownFinish } from './outcome.ts';
import {
  CALL_FIELDS,
  CANDIDATE_FIELDS,
  CANDIDATE_NAMES,
  CARRIER_FIELDS,
  CONTENT_FIELDS,
  camelKeys,
  camelObject,
  OPAQUE_PARTS,
  PART_FIELDS,
  respell,
  type WireCall,
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

interface PendingCall {
  call: Call;
  args: PartialArgs;
  /** Where the last piece of it was. */
  offset: number;
}

/**
 * The calls of one candidate. A whole call waits for the next part that is no call, or for the end: when that part is a functionResponse,
 * Google has run the call itself, and nothing before it tells so, not even finishReason, which stands beside such calls, too. Mostly the end
 * is next, and nobody waits. A call with streamed arguments starts at once, and only its stop waits: those are of Vertex AI, and the servers
 * that Google calls itself (`mcpServers`) of the Gemini API.
 */
export class CallEmitter {
  readonly #context: Context;
  readonly #emitter: BlockEmitter;
  /** What makes derived ids differ between messages and candidates. */
  readonly #seed: string;
  readonly #ids = new Set<string>();
  readonly #answers = new Answers();
  readonly #limits = new CallLimits();
  /** Calls and the results that Google gave them, in their order. */
  #held: (Call | ToolResultBlock)[] = [];
  #pending: PendingCall | undefined;

  constructor(context: Context, emitter: BlockEmitter, seed: string) {
    this.#context = context;
    this.#emitter = emitter;
    this.#seed = seed;
  }

  /** The calls that are left to the client. */
  get unanswered(): ToolUseBlock[] {
    return this.#answers.open.map(({ block }) => block);
  }

  /** Reads a functionCall, or a piece of one, and says what it was: `opaque` must be kept in another way. */
  push(wire: WireCall, signature: string, fields: JsonObject | undefined, offset: number): 'call' | 'nothing' | 'opaque' {
    const name = textOf(wire.name);
    const pieces = listOf(wire.partialArgs);
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
    const id = textOf(wire.id);
    return name === call.block.name && Array.isArray(wire.partialArgs) && (id === '' || id === call.block.id);
  }

  #pushNameless(wire: WireCall, pieces: readonly unknown[], signature: string, offset: number): 'nothing' | 'opaque' {
    const isEmpty = pieces.length === 0 && (wire.args === undefined || wire.args === null) && signature === '';
    this.#context.report(isEmpty ? 'gemini/stray-call-end' : 'gemini/nameless-call', offset);
    return isEmpty ? 'nothing' : 'opaque';
  }

  #add(wire: WireCall, name: string, fields: JsonObject | undefined, offset: number): Call {
    this.#limits.open();
    const unknown = unknownFields(wire, CALL_FIELDS);
    const more = unknown ? { ...fields, functionCall: unknown } : fields;
    const block: ToolUseBlock = { type: 'tool_use', id: this.#idOf(wire, name, offset), name, input: {}, ...extended(more) };
    const call: Call = { index: undefined, block, isStopped: false, isAnswered: false };
    this.#answers.add(call);
    return call;
  }

  #open(call: Call): number {
    if (call.index !== undefined) return call.index;
    call.index = this.#emitter.openTool(call.block);
    if (call.signature !== undefined) this.#sign(call, call.signature);
    if (call.text !== undefined) this.#emitter.writeTool(call.index, call.text);
    return call.index;
  }

  /** What comes next can be told from them: they keep their place. */
  #openAll(): void {
    for (const held of this.#held) if ('block' in held) this.#open(held);
  }

  #idOf(wire: WireCall, name: string, offset: number): string {
    const given = typeof wire.id === 'number' ? String(wire.id) : textOf(wire.id);
    if (given !== '' && this.#ids.has(given)) this.#context.report('gemini/duplicate-call-id', offset);
    let id = given;
    for (let attempt = 0; id === '' || this.#ids.has(id); attempt++)
      id = deriveId('call_', this.#seed, this.#answers.size, name, attempt);
    this.#ids.add(id);
    return id;
  }

  #sign(call: Call, signature: string): void {
    if (call.index !== undefined) this.#emitter.emitDelta(call.index, { type: 'signature_delta', signature: signed(signature) });
  }

  #wholeText(args: unknown, offset: number): string {
    const text = args === undefined || args === null ? '{}' : typeof args === 'string' ? args : writeJson(args);
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
    for (const piece of listOf(wire.partialArgs)) pending.args.push(piece);
    if (wire.willContinue !== true) this.#endPending(true);
  }

  /** Another call, or the end, came where the end of the arguments was due. */
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

  #finish(call: Call, text: string): void {
    this.#emitter.writeTool(this.#open(call), text);
    call.text = text;
    this.#held.push(call);
  }

  /** A call that is not whole says so, and its text is no JSON: nobody may run it. */
  #cut(call: Call, text: string): void {
    const index = this.#open(call);
    this.#emitter.writeTool(index, text);
    call.isStopped = true;
    this.#emitter.stopTool(index, { ...call.block, status: 'incomplete' });
  }

  /** A part that is neither call nor result follows: the calls before it that nobody has answered are the client's. */
  settle(): void {
    const held = this.#held;
    this.#held = [];
    for (const one of held) {
      if ('block' in one) this.#stop(one);
      else this.#emitter.whole(one);
    }
  }

  /** Of a call that Google ran after it had been passed on, whose it is can only be told now. */
  #stop(call: Call): void {
    if (call.isStopped) return;
    call.isStopped = true;
    const isLate = call.index !== undefined && call.block.kind === 'server';
    const index = this.#open(call);
    const input = isLate && call.text !== undefined ? parseJson(call.text) : undefined;
    this.#emitter.stopTool(index, isLate ? { ...call.block, input: isObject(input) ? input : {} } : undefined);
  }

  /** A functionResponse was found: the call that it answers is now known to be the provider's own. */
  answer(result: JsonObject, fields: JsonObject | undefined, offset: number): void {
    const id = textOf(result['id']);
    const name = textOf(result['name']);
    const call = this.#answers.take(id, name);
    if (!call || call.index !== undefined) this.#context.report('gemini/late-function-response', offset);
    const answered = call?.block.id ?? (id || deriveId('call_', this.#seed, this.#answers.size, name, 'answer'));
    if (call && !call.isStopped) call.block = { ...call.block, kind: 'server' };
    if (call && this.#pending?.call === call) {
      this.#pending = undefined;
      this.#held.push(call);
    }
    this.#held.push(decodeServerResult(result, answered, fields));
  }

  /** `isClean`: the model says that it came to its end, so that arguments whose end was not marked are whole. */
  end(isClean: boolean): void {
    if (isClean) this.#endUnended();
    else this.#endPending(false);
    this.settle();
  }
}

type Step = string | number;

/**
 * Arguments that arrive in pieces (Vertex, streamFunctionCallArguments): each piece names a place by a JSONPath and brings a value, or a
 * part of a string. What cannot be placed makes the whole unreadable, so that half an object is never taken for the arguments.
 */
class PartialArgs {
  readonly #root: JsonObject;
  readonly #limits: CallLimits;
  isReadable = true;
  /** The last piece was a string that has not ended. */
  isInString = false;

  constructor(base: unknown, limits: CallLimits) {
    this.#limits = limits;
    // A copy: the payload belongs to everybody who looks at it.
    const text = isObject(base) ? (writeJson(base) ?? '') : '';
    limits.count(text.length);
    const copy = parseJson(text);
    this.#root = isObject(copy) ? copy : {};
  }

  push(piece: unknown): void {
    const { jsonPath, willContinue, ...value }: { jsonPath?: unknown; willContinue?: unknown } & JsonObject = camelObject(piece);
    const path = textOf(jsonPath);
    const steps = parsePath(path);
    const brings = readValue(value);
    this.#limits.count(path.length + textOf(brings).length);
    this.isInString = willContinue === true && typeof brings === 'string';
    if (!steps || !this.#place(steps, brings)) this.isReadable = false;
  }

  /** The object as JSON. Of a call that was cut, or cannot be read, the last brace is left out: it must not look whole. */
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

/** `$.a.b[0]['c d']`, also without the `$`; undefined when it is not a path to one place. */
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

/** A piece has exactly one of these; a null is told by its key. */
function readValue(piece: JsonObject): unknown {
  if (Object.hasOwn(piece, 'nullValue')) return null;
  return piece['stringValue'] ?? piece['numberValue'] ?? piece['boolValue'];
}

function put(node: JsonObject | unknown[], step: Step, value: unknown): boolean {
  if (!fits(node, step)) return false;
  const current = read(node, step);
  // A place without a value only announces itself.
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

const kindOf = ({ thought }: WirePart): TextKind => (thought === true ? 'thinking' : 'text');

function fits(node: JsonObject | unknown[], step: Step): boolean {
  return Array.isArray(node) ? typeof step === 'number' && step <= node.length + MAX_PARTIAL_ARGS_GAP : typeof step === 'string';
}

/** Fields that nobody knows stand apart from those of the response, which are kept beside them. */
function knownFirst(fields: JsonObject): JsonObject {
  const unknown = Object.entries(fields).filter(([key]) => !CANDIDATE_NAMES.has(key));
  if (unknown.length === 0) return fields;
  const known = Object.entries(fields).filter(([key]) => CANDIDATE_NAMES.has(key));
  return { ...Object.fromEntries(known), candidate: Object.fromEntries(unknown) };
}
