import { countKeys, isSet, present } from '../json/fast.ts';
import { isFilledText, isObject, type JsonObject, parseJson, sameJson, writeJson } from '../json/json.ts';
import { MAX_ARGUMENT_CHARACTERS, MAX_CALLS } from '../json/limits.ts';
import { ArgumentText, deriveId } from './argument-text.ts';
import { overlay } from './overlay.ts';

/** A tool-call delta as compatible servers send it, made comparable: blanks are absent, numbers are numbers. */
export interface ToolCallReading {
  id: string | undefined;
  index: number | undefined;
  name: string | undefined;
  /** `"null"` where a name should be: some gateways stringify their null. A name only if nothing better comes. */
  literalName: string | undefined;
  type: string | undefined;
  /** A fragment of the argument text. */
  fragment: string;
  /** Arguments that came as an object or array: a whole snapshot. */
  snapshot: unknown;
  /** Fields nobody knows: they must survive. */
  extra: JsonObject | undefined;
}

/** The fields of a tool-call delta that have a meaning. Named reads are several times cheaper than a walk over the keys. */
export interface WireToolCall {
  index?: unknown;
  id?: unknown;
  type?: unknown;
  function?: unknown;
  custom?: unknown;
}

interface WireFunction {
  name?: unknown;
  arguments?: unknown;
  input?: unknown;
}

export function readToolCall(delta: WireToolCall): ToolCallReading {
  const { index, id, type, function: body, custom } = delta;
  const reading: ToolCallReading = {
    id: readId(id),
    index: readIndex(index),
    name: undefined,
    literalName: undefined,
    type: isFilledText(type) ? type.toLowerCase() : undefined,
    fragment: '',
    snapshot: undefined,
    extra: undefined,
  };
  if (isObject(body)) readFunction(reading, body, 'function');
  if (isObject(custom)) {
    reading.type ??= 'custom';
    readFunction(reading, custom, 'custom');
  }
  const known = present(index) + present(id) + present(type) + present(body) + present(custom);
  if (countKeys(delta) !== known) keepUnknown(reading, delta);
  return reading;
}

function readFunction(reading: ToolCallReading, body: WireFunction, wireKey: 'function' | 'custom'): void {
  const { name, arguments: text, input } = body;
  const value = wireKey === 'custom' ? input : text;
  if (isSet(value)) readArguments(reading, value);
  readName(reading, name);
  if (countKeys(body) !== present(name) + present(value)) keepUnknownOf(reading, body, wireKey);
}

function keepUnknown(reading: ToolCallReading, delta: WireToolCall): void {
  const { index: _index, id: _id, type: _type, function: _function, custom: _custom, ...unknown } = delta;
  for (const [key, value] of Object.entries(unknown)) keep(reading, key, value);
}

function keepUnknownOf(reading: ToolCallReading, body: WireFunction, wireKey: 'function' | 'custom'): void {
  const { name: _name, [wireKey === 'custom' ? 'input' : 'arguments']: _text, ...unknown } = body;
  if (countKeys(unknown) > 0) keep(reading, wireKey, unknown);
}

function readArguments(reading: ToolCallReading, value: unknown): void {
  // Servers that dump a whole struct send both `function` and `custom`, one of them blank.
  if (typeof value === 'string') reading.fragment ||= value;
  else if (typeof value === 'object') reading.snapshot = value;
  // A bare number or boolean is no document; as text it is at least seen and flagged.
  else reading.fragment = String(value);
}

function readName(reading: ToolCallReading, value: unknown): void {
  if (typeof value !== 'string' || value.trim() === '') return;
  if (value === 'null') reading.literalName = value;
  else reading.name = value;
}

function keep(reading: ToolCallReading, key: string, value: unknown): void {
  if (value === null) return;
  reading.extra ??= Object.create(null) as JsonObject; // no prototype: `__proto__` is a key like any other
  reading.extra[key] = value;
}

/** What servers write where they have no id. Blanks are none either. */
export const ABSENT_IDS: ReadonlySet<unknown> = new Set([null, '', 'null', 'None', 'undefined']);

function readId(value: unknown): string | undefined {
  if (typeof value === 'number') return String(value);
  return typeof value === 'string' && !ABSENT_IDS.has(value.trim()) ? value : undefined;
}

/** An integer, negative ones too (an opaque key), or text that looks like one. Anything else is no index. */
function readIndex(value: unknown): number | undefined {
  if (typeof value === 'number') return Number.isSafeInteger(value) ? value : undefined;
  if (typeof value !== 'string' || !/^-?\d{1,15}$/.test(value)) return undefined;
  return Number(value);
}

export type ToolCallType = 'function' | 'custom';

/** A header (name, id) that came when the arguments were whole: it repeats the call, unless other arguments follow. */
export interface PendingHeader {
  id?: string | undefined;
  name?: string | undefined;
  /** The name that the call had before. */
  nameBefore: string;
  /** How many characters of the call's own arguments have been repeated since. */
  repeated: number;
}

/** A call in the making. */
export class PendingCall {
  /** The place among the calls; -1 once the call turned out to be a piece of the one before. */
  position: number;
  /** The first id the wire gave. */
  wireId: string | undefined;
  /** The same, unless another call had it first. */
  id: string | undefined;
  /** The first delta had an id. Then every call of the server begins with one, and a delta without an id continues a call. */
  opensWithId = false;
  /** The name came when the arguments were whole: more of it may follow. */
  isNamedLate = false;
  /** The first index the wire gave: it orders the calls when every call has its own. */
  index: number | undefined;
  name = '';
  literalName: string | undefined;
  type: ToolCallType = 'function';
  /** A type other than function and custom, as the wire had it. */
  wireType: string | undefined;
  arguments: ArgumentText = new ArgumentText();
  extra: JsonObject | undefined;
  /** Stands in for an id that the wire never gave; fixed once it was told to anyone. */
  derivedId: string | undefined;
  header: PendingHeader | undefined;
  /** The open call before it on the same index: this one is a piece of its name if the id changes again. */
  pieceOf: PendingCall | undefined;
  #whole: { length: number; text: string; value: unknown } | undefined;

  constructor(position: number) {
    this.position = position;
  }

  get isOpen(): boolean {
    return !this.arguments.isComplete;
  }

  /** The whole arguments, decided and parsed once for as long as nothing is added. */
  get whole(): { text: string; value: unknown } {
    const { length } = this.arguments.text;
    if (this.#whole?.length !== length) {
      const text = this.arguments.decide().text.trim();
      this.#whole = { length, text, value: parseJson(text) };
    }
    return this.#whole;
  }

  /** The arguments of a delta beside the whole ones. */
  compare(delta: ToolCallReading): Compared {
    if (hasNoArguments(delta)) return IS_BLANK;
    const { text, value } = this.whole;
    const fragment = delta.fragment.trim();
    if (delta.snapshot === undefined && text !== fragment && text.startsWith(fragment)) return IS_BEGUN;
    const other = delta.snapshot ?? (text === fragment ? value : parseJson(fragment));
    return other !== undefined && sameJson(value, other) ? IS_SAME : IS_OTHER;
  }
}

export interface ToolCallLimits {
  /** Calls in one message; more are refused with a `LimitError`. Default 4096. */
  maxCalls?: number;
  /** Characters of all arguments of one message. Default 64 Mi. */
  maxCharacters?: number;
}

export class LimitError extends Error {
  override readonly name = 'LimitError';
}

/** Told about every delta: the call it went to, and the argument text that is certain now. */
export type ToolCallSink = (call: PendingCall, text: string, name?: string) => void;

/**
 * Decides which call a tool-call delta belongs to: the one place where this is known. Servers leave out the id, the index or both, send
 * index 0 for everything, change the id within a call, repeat the name or cut it in pieces. Three facts settle them: the first delta of a
 * call carries a name, a server that gives one call an id gives all of them one, and the JSON document before is either open or closed.
 */
export class CallTracker {
  readonly calls: PendingCall[] = [];
  readonly byIndex: Map<number, PendingCall> = new Map();
  readonly byId: Map<string, PendingCall> = new Map();
  latest: PendingCall | undefined;
  /** Calls touched by the last chunk that had more than one entry. */
  batch: PendingCall[] = [];
  /** Whether ids change within calls, so that a new id has no meaning. Known once an open call gets a second id, or its own again. */
  idsChange: boolean | undefined;
  /** Of all arguments so far. */
  characters = 0;
  readonly #maxCalls: number;
  readonly #maxCharacters: number;
  readonly #sink: ToolCallSink | undefined;
  readonly #idSeed: string;

  /** `idSeed`: derived ids are made from this (the id of the response) and the position of the call. `sink`: told about every delta. */
  constructor(limits: ToolCallLimits, idSeed: string, sink?: ToolCallSink) {
    this.#idSeed = idSeed;
    this.#maxCalls = limits.maxCalls ?? MAX_CALLS;
    this.#maxCharacters = limits.maxCharacters ?? MAX_ARGUMENT_CHARACTERS;
    this.#sink = sink;
  }

  /** Whether there is a call for the client to run. */
  get hasClientCall(): boolean {
    return this.calls.some((call) => !isProviderExecuted(call));
  }

  /** Takes the `tool_calls` of one delta. Anything that is not a list of objects is ignored. */
  push(entries: unknown): void {
    if (!Array.isArray(entries) || entries.length === 0) return;
    if (entries.length === 1) {
      const entry = entries[0];
      if (isObject(entry) && !this.continue(entry)) this.#accept(readToolCall(entry), undefined, []);
      return;
    }
    const readings = entries.filter(isObject).map(readToolCall);
    const before = this.#isContinuedBatch(readings) ? this.batch : undefined;
    const batch: PendingCall[] = [];
    for (const [i, reading] of readings.entries()) batch.push(this.#accept(reading, before?.[i], batch));
    // A call that joined the one before as a piece of its name is none any more.
    this.batch = batch.filter(({ position }) => position >= 0);
  }

  /**
   * Takes the most common delta, `{index, function: {arguments}}` of a known call: rule 4 without a name. Counting the keys shows that there is
   * nothing else to read: 65 ns a chunk instead of 240 ns. Returns false for any other delta.
   */
  continue(entry: WireToolCall): boolean {
    const { index, function: body } = entry;
    const call = typeof index === 'number' ? this.byIndex.get(index) : undefined;
    if (!call || typeof body !== 'object' || body === null || countKeys(entry) !== 2) return false;
    const { arguments: fragment }: WireFunction = body;
    if (typeof fragment !== 'string' || countKeys(body) !== 1 || call.header) return false;
    if (call !== this.latest && this.latest?.index === undefined) return false;
    const text = this.#append(call, fragment);
    this.latest = call;
    call.pieceOf = undefined;
    this.#sink?.(call, text);
    return true;
  }

  /** `siblings`: the calls that earlier entries of the same chunk went to. */
  #accept(delta: ToolCallReading, batched: PendingCall | undefined, siblings: readonly PendingCall[]): PendingCall {
    const candidate = batched ? asSibling(batched) : this.#findCandidate(delta);
    let call = candidate && this.#continued(candidate, delta, siblings);
    if (!call) {
      call = this.open();
      call.opensWithId = delta.id !== undefined;
      if (candidate) this.#inherit(call, candidate, delta, siblings);
    } else call.pieceOf = undefined;
    this.#bind(call, delta);
    const text = this.#feed(call, delta);
    this.latest = call;
    this.#sink?.(call, text, delta.name);
    return call;
  }

  /** The call that a delta may continue. The numbers are those of the rules in docs/tool-call-identity.md. */
  #findCandidate(delta: ToolCallReading): Candidate | undefined {
    const { id, index } = delta;
    const { latest } = this;
    const bound = index === undefined ? undefined : this.byIndex.get(index);
    if (id !== undefined) {
      const known = bound?.wireId === id ? bound : this.byId.get(id);
      if (known) return { call: known, says: SAYS_SAME, isBound: true }; // 1
    } else if (index !== undefined && delta.name === undefined && latest && takesIndex(latest, bound, delta))
      return { call: latest, says: SAYS_NOTHING, isBound: true }; // 5
    const call = index === undefined ? latest : bound;
    const isBound = bound !== undefined;
    return call && { call, says: readSays(call, id, isBound, this.idsChange), isBound }; // 2, 3, 4, 7, 8
  }

  /** The call that takes the delta; undefined when a new one has to. */
  #continued(candidate: Candidate, delta: ToolCallReading, siblings: readonly PendingCall[]): PendingCall | undefined {
    const { call, says } = candidate;
    const isAnonymous = delta.id === undefined && delta.index === undefined;
    if (isAnonymous && delta.name !== undefined && siblings.includes(call)) return undefined; // 6
    const { isOpen } = call;
    if (!continuesCall(candidate, delta, this.idsChange)) return undefined;
    if (!isOpen) return this.#repeats(call, says, delta) ? call : undefined;
    if (says === SAYS_SAME) this.idsChange ??= false;
    if (says !== SAYS_OTHER) return call;
    this.idsChange = true;
    return this.#joinPieces(call);
  }

  /**
   * 9: what follows whole arguments. A header waits, and so do arguments that begin like the call's own; false as soon as they differ: then
   * they are those of a new call, which the header opened.
   */
  #repeats(call: PendingCall, says: Says, delta: ToolCallReading): boolean {
    const { fragment, snapshot, name } = delta;
    if (call.name === '') {
      call.isNamedLate = name !== undefined;
      return true;
    }
    if (!call.header) {
      const isHeader = name !== undefined || (delta.id !== undefined && says >= SAYS_NOTHING);
      const compared = call.compare(delta);
      if (!isHeader || compared === IS_SAME || snapshot !== undefined) return true;
      const isReal = says <= SAYS_CONTINUES || (compared !== IS_BLANK && name === undefined);
      if (call.arguments.isEmptyObject && isReal) return true; // the real arguments follow
      call.header = { nameBefore: call.name, repeated: 0 };
    }
    const { header } = call;
    // While ids change, the first one is the id of the call.
    if (name !== undefined || header.name === undefined) header.id = delta.id ?? header.id;
    if (name !== undefined) header.name = name;
    if (snapshot !== undefined)
      return call.compare(delta) === IS_SAME || (call.arguments.snapshot && call.opensWithId && header.id === undefined);
    const piece = header.repeated === 0 ? fragment.trimStart() : fragment;
    if (piece === '') return true;
    const { text } = call.whole;
    if (!text.startsWith(piece, header.repeated)) return false;
    header.repeated += piece.length;
    delta.fragment = '';
    if (header.repeated < text.length) return true;
    // The same arguments under another id are the same call made twice.
    if (header.id !== undefined && header.id !== call.wireId && !this.idsChange) return false;
    delta.fragment = text;
    call.header = undefined;
    return true;
  }

  /** What a new call takes over from the one before it: a header that waited there, or the chance of being a piece of its name. */
  #inherit(
    call: PendingCall,
    { call: before, says, isBound }: Candidate,
    delta: ToolCallReading,
    siblings: readonly PendingCall[],
  ): void {
    const { header } = before;
    before.header = undefined;
    if (header) {
      const isNamer = delta.name === undefined && header.name !== undefined;
      const isIdentifier = header.id !== undefined && (delta.id ?? header.id) === header.id;
      if (!isNamer && !isIdentifier) return; // it only repeated the call
      before.name = header.nameBefore;
      if (header.id !== undefined && header.id !== before.wireId) this.byId.delete(header.id);
      delta.id = header.id ?? delta.id;
      delta.name ??= header.name;
      delta.fragment = before.whole.text.slice(0, header.repeated) + delta.fragment;
      call.opensWithId = before.opensWithId;
    } else if (says === SAYS_OTHER && isBound && before.isOpen && before.name !== '' && !siblings.includes(before))
      call.pieceOf = before;
  }

  /** 10: ids change within calls, so a call that only brought another id and name was a piece of the one before. */
  #joinPieces(last: PendingCall): PendingCall {
    let call = last;
    while (call.pieceOf) {
      const { pieceOf: first, position, name, arguments: own } = call;
      this.calls.splice(position, 1);
      call.position = -1;
      for (const [at, later] of this.calls.entries()) later.position = at;
      first.name = joinName(first.name, name);
      const text = this.#append(first, own.text);
      rebind(this.byIndex, call, first);
      rebind(this.byId, call, first);
      this.batch = this.batch.filter((one) => one !== call);
      this.#sink?.(first, text, name);
      call = first;
    }
    return call;
  }

  /** 6: as many entries as the last batch had calls, and nothing but their position tells them apart. */
  #isContinuedBatch(readings: ToolCallReading[]): boolean {
    const { batch } = this;
    if (readings.length !== batch.length || new Set(batch).size !== batch.length) return false;
    return readings.every((delta, i) => {
      const call = batch[i];
      if (!call || delta.id !== undefined || !(call.isOpen || call.arguments.isEmptyObject || hasNoArguments(delta)))
        return false;
      if (delta.index !== readings[0]?.index || (delta.index !== undefined && delta.index !== call.index)) return false;
      return continuesCall(asSibling(call), delta);
    });
  }

  /** A new call, the last one. */
  open(): PendingCall {
    if (this.calls.length >= this.#maxCalls) throw new LimitError(`more than ${this.#maxCalls} tool calls in one message`);
    const call = new PendingCall(this.calls.length);
    this.calls.push(call);
    return call;
  }

  #bind(call: PendingCall, delta: ToolCallReading): void {
    if (delta.index !== undefined) {
      call.index ??= delta.index;
      this.byIndex.set(delta.index, call);
    }
    if (delta.id !== undefined) {
      if (call.wireId === undefined && !this.byId.has(delta.id)) call.id = delta.id;
      call.wireId ??= delta.id;
      this.byId.set(delta.id, call);
    }
    if (delta.name !== undefined) call.name = joinName(call.name, delta.name);
    if (delta.literalName !== undefined) call.literalName = delta.literalName;
    if (delta.type === 'custom') call.type = 'custom';
    else if (delta.type !== undefined && delta.type !== 'function') call.wireType = delta.type;
    if (delta.extra) call.extra = overlay(call.extra ?? {}, delta.extra);
  }

  #feed(call: PendingCall, delta: ToolCallReading): string {
    if (delta.snapshot !== undefined) {
      const text = toText(delta.snapshot);
      this.#count(text.length);
      call.arguments.replace(text);
      return '';
    }
    return this.#append(call, delta.fragment);
  }

  #append(call: PendingCall, fragment: string): string {
    this.#count(fragment.length);
    if (this.#sink) return call.arguments.push(fragment);
    call.arguments.append(fragment);
    return '';
  }

  #count(characters: number): void {
    this.characters += characters;
    if (this.characters > this.#maxCharacters)
      throw new LimitError(`more than ${this.#maxCharacters} characters of tool arguments`);
  }

  /** The id a reader may rely on: the wire's, or a derived one that is unique in the message. */
  idOf(call: PendingCall): string {
    if (call.id !== undefined) return call.id;
    if (call.derivedId === undefined) {
      let salt = 0;
      do call.derivedId = deriveId('call_', this.#idSeed, call.position, call.name, salt++);
      while (this.byId.has(call.derivedId));
    }
    return call.derivedId;
  }

  nameOf(call: PendingCall): string {
    return call.name || call.literalName || `tool_${call.position}`;
  }
}

/** Choices of one response must not derive the same ids. */
export const callIdSeed = (responseId: string, choice: number): string => (choice === 0 ? responseId : `${responseId}#${choice}`);

function toText(value: unknown): string {
  const text = writeJson(value);
  if (text === undefined) throw new LimitError('arguments nested too deeply to be written as text');
  return text;
}

function rebind<K>(calls: Map<K, PendingCall>, from: PendingCall, to: PendingCall): void {
  for (const [key, call] of calls) if (call === from) calls.set(key, to);
}

/** Empty: set. Equal or longer, with the same beginning: a snapshot. Anything else: the next piece. */
function joinName(current: string, name: string): string {
  return name.startsWith(current) ? name : current + name;
}

/** No name ever came: the call stands under a made-up one, and must not be run. */
export const isNameless = ({ name, literalName }: PendingCall): boolean => name === '' && literalName === undefined;

/** xAI and others list calls they ran themselves among the client's (`web_search_call` …); some set a flag. */
export const isProviderExecuted = ({ extra, wireType }: PendingCall): boolean =>
  extra?.['builtin'] === true || extra?.['provider_executed'] === true || wireType?.endsWith('_call') === true;

// Whether a delta continues a call: the rules of docs/tool-call-identity.md, by their numbers. The tracker only applies them.
// This file imports types only and begins with its constants: bundlers inline them then.

/** The id is the call's. */
const SAYS_SAME = 0;

/** No id, from a server that begins calls with one; or the first id of a call that has none. */
const SAYS_CONTINUES = 1;

/** No id, from a server that gives none; or an id that means nothing, because ids change within calls. */
const SAYS_NOTHING = 2;

/** An id that no call has. */
const SAYS_OTHER = 3;

/** What the id of a delta says about a call. */
export type Says = typeof SAYS_SAME | typeof SAYS_CONTINUES | typeof SAYS_NOTHING | typeof SAYS_OTHER;

/** The arguments of a delta beside the whole ones of a call. `IS_BEGUN`: so far they are the beginning of the same text. */
const IS_BLANK = 0;

const IS_SAME = 1;

const IS_BEGUN = 2;

const IS_OTHER = 3;

export type Compared = typeof IS_BLANK | typeof IS_SAME | typeof IS_BEGUN | typeof IS_OTHER;

/** The call that a delta speaks to. `isBound`: its id or index names the call; otherwise it is only the latest one. */
export interface Candidate {
  call: PendingCall;
  says: Says;
  isBound: boolean;
}

/** 5: whether the latest call goes on under an index that is not its own: one that drifts, or that it never had before. */
function takesIndex(latest: PendingCall, bound: PendingCall | undefined, delta: ToolCallReading): boolean {
  if (bound?.isOpen) return false;
  const isUnbound = latest.index === undefined;
  return latest.isOpen ? !bound || isUnbound : !bound && isUnbound && hasNoArguments(delta);
}

/** What the id of a delta says about a call that does not have it. `idsChange`: as far as it is known. */
function readSays(call: PendingCall, id: string | undefined, isBound: boolean, idsChange?: boolean): Says {
  if (id === undefined) return call.opensWithId ? SAYS_CONTINUES : SAYS_NOTHING;
  if (call.wireId === undefined) return SAYS_CONTINUES;
  return idsChange && isBound ? SAYS_NOTHING : SAYS_OTHER;
}

/** 6: a call that is known by its position in the chunk alone. */
const asSibling = (call: PendingCall): Candidate => ({ call, says: readSays(call, undefined, false), isBound: false });

/** Whether a delta goes on with the call that it speaks to. `idsChange`: as far as it is known. */
function continuesCall(candidate: Candidate, delta: ToolCallReading, idsChange?: boolean): boolean {
  if (candidate.call.isOpen) return continuesOpen(candidate, delta, idsChange);
  // The arguments are whole: the delta repeats the call, or they were not the real ones.
  return delta.name === undefined ? continuesUnnamed(candidate, delta) : continuesNamed(candidate, delta, delta.name);
}

/** Whether a delta goes on with a call whose arguments are not whole yet. */
function continuesOpen({ call, says, isBound }: Candidate, delta: ToolCallReading, idsChange?: boolean): boolean {
  const { name, id } = delta;
  if (name === undefined || call.name === '') return says !== SAYS_OTHER || isBound || call.name !== ''; // 3
  const isSameName = name === call.name;
  switch (says) {
    case SAYS_SAME:
      return !isElsewhere(call, delta); // 1
    case SAYS_CONTINUES:
      return isBound || id === undefined || isSameName || call.arguments.isEmpty; // 2, 3, 7
    case SAYS_NOTHING:
      return isBound || isSameName; // 4, 7
    case SAYS_OTHER:
      if (!isBound || idsChange === false) return false; // 3, 2
      // The arguments of a new call begin with a brace: anything else goes on with an open document.
      if (!call.arguments.isEmpty && /^\s*[^\s{]/.test(delta.fragment)) return true; // 2
      // A second id on a call without arguments opens another call without arguments.
      if (!isSameName || hasNoArguments(delta)) return false; // 2
      // A brace goes on with an open document where a value is due.
      return call.arguments.isEmpty || /[:,[]\s*$/.test(call.arguments.text.slice(-16)); // 2
    default:
      return says satisfies never;
  }
}

function continuesUnnamed({ call, says, isBound }: Candidate, delta: ToolCallReading): boolean {
  if (delta.id === undefined || says === SAYS_SAME) return true; // 1, 4, 8
  if (says === SAYS_OTHER && call.header?.name !== undefined) return false; // 9
  if (hasNoArguments(delta)) return true; // 2, 3
  const isAddressed = isBound || says !== SAYS_OTHER;
  return isAddressed && (call.arguments.isEmptyObject || call.compare(delta) !== IS_OTHER); // 2, 3
}

function continuesNamed({ call, says, isBound }: Candidate, delta: ToolCallReading, name: string): boolean {
  if (says === SAYS_SAME && isElsewhere(call, delta)) return false; // 1
  if (delta.id === undefined && call.header?.id !== undefined) return false; // 9
  const compared = call.compare(delta);
  if (call.name === '') return compared !== IS_OTHER || call.arguments.isEmptyObject; // 2, 4, 7
  if (name === call.name) return repeatsName(call, says, isBound, compared, delta); // 1, 2, 4, 7
  const grows = name.startsWith(call.name);
  if (says === SAYS_OTHER) return false; // 2
  if (grows && compared === IS_BLANK && (isBound || delta.id === undefined)) return isBound || says === SAYS_CONTINUES; // 1, 2, 4, 7
  if (says === SAYS_SAME) return compared === IS_SAME; // 1
  if (says === SAYS_NOTHING) return grows && compared === IS_SAME; // 4
  return delta.id === undefined ? continuesName(call, compared) : isBound && compared === IS_BLANK; // 2, 4, 7
}

/** The name once more. */
function repeatsName(call: PendingCall, says: Says, isBound: boolean, compared: Compared, delta: ToolCallReading): boolean {
  const isTold = says <= SAYS_CONTINUES;
  if (compared !== IS_OTHER) return isTold || (says === SAYS_NOTHING && isBound);
  const { isEmptyObject, snapshot } = call.arguments;
  return isTold && (isEmptyObject || (snapshot && delta.snapshot !== undefined));
}

/** Another name without an id, from a server that begins calls with one: a piece, if the arguments leave room for it. */
function continuesName({ arguments: own, isNamedLate }: PendingCall, compared: Compared): boolean {
  if (compared === IS_SAME || own.isEmptyObject) return true;
  return compared === IS_BLANK && (own.snapshot || isNamedLate);
}

/** 1: servers that give one id to several calls give each its own index. */
const isElsewhere = ({ index }: PendingCall, delta: ToolCallReading): boolean =>
  delta.index !== undefined && index !== undefined && index !== delta.index;

const hasNoArguments = ({ fragment, snapshot }: ToolCallReading): boolean => snapshot === undefined && fragment.trim() === '';
