/**
 * Tool calls of OpenAI-compatible servers: which call a delta belongs to, by the rules of docs/tool-call-identity.md.
 */
import { countKeys, isSet, present } from '../json/fast.ts';
import { isFilledText, isObject, type JsonObject, parseJson, sameJson, writeJson } from '../json/json.ts';
import { MAX_ARGUMENT_CHARACTERS, MAX_CALLS } from '../json/limits.ts';
import { ArgumentText, deriveId } from './argument-text.ts';
import { overlay } from './overlay.ts';

/**
 * Decides which call a tool-call delta belongs to. Servers omit the id, the index or both, send index 0 for every call,
 * change the id within a call, repeat the name or split it. Three facts decide: the first delta of a call carries a
 * name, a server that gives one call an id gives every call one, and the JSON document before is either open or closed.
 */
export class CallTracker {
  readonly calls: PendingCall[] = [];
  readonly byIndex: Map<number, PendingCall> = new Map();
  readonly byId: Map<string, PendingCall> = new Map();
  latest: PendingCall | undefined;
  /** Calls touched by the last chunk that had more than one entry. */
  batch: PendingCall[] = [];
  /**
   * Whether ids change within calls, so that a new id has no meaning. Known once an open call gets a second id, or its
   * own again.
   */
  idsChange: boolean | undefined;
  /** Characters of all arguments so far. */
  characters = 0;
  readonly #maxCalls: number;
  readonly #maxCharacters: number;
  readonly #sink: ToolCallSink | undefined;
  readonly #idSeed: string;
  readonly #write: typeof writeJson;

  /**
   * `idSeed`: derived ids are computed from it (the id of the response) and the position of the call. `write`: makes text
   * of arguments that are objects.
   */
  constructor(limits: ToolCallLimits, idSeed: string, sink?: ToolCallSink, write: typeof writeJson = writeJson) {
    this.#idSeed = idSeed;
    this.#write = write;
    this.#maxCalls = limits.maxCalls ?? MAX_CALLS;
    this.#maxCharacters = limits.maxCharacters ?? MAX_ARGUMENT_CHARACTERS;
    this.#sink = sink;
  }

  /** Whether there is a call for the client to run. */
  get hasClientCall(): boolean {
    return this.calls.some((call) => !isProviderExecuted(call));
  }

  /**
   * Adds the `tool_calls` of one delta, or of a whole message (`isWhole`). Anything that is not a list of objects is
   * ignored.
   */
  push(entries: unknown, isWhole = false): void {
    if (!Array.isArray(entries) || entries.length === 0) return;
    if (entries.length === 1) {
      const entry = entries[0];
      if (isObject(entry) && !this.continue(entry)) this.#accept(readToolCall(entry), undefined, []);
      return;
    }
    const readings = entries.filter(isObject).map(readToolCall);
    const before = !isWhole && this.#isContinuedBatch(readings) ? this.batch : undefined;
    const batch: PendingCall[] = [];
    for (const [i, reading] of readings.entries()) batch.push(this.#accept(reading, before?.[i], batch, isWhole));
    // A call that was merged into the one before no longer exists.
    this.batch = batch.filter(({ position }) => position >= 0);
  }

  /**
   * Adds the most common delta, `{index, function: {arguments}}` of a known call: rule 4 without a name. Counting keys
   * shows that there is nothing else to read: 65 ns a chunk instead of 240 ns. Comparing with undefined and writing
   * only what changes is 8 % of that. Returns false for any other delta.
   */
  continue(entry: WireToolCall): boolean {
    const { index, function: body } = entry;
    const call = typeof index === 'number' ? this.byIndex.get(index) : undefined;
    if (call === undefined || typeof body !== 'object' || body === null || countKeys(entry) !== 2) return false;
    const { arguments: fragment }: WireFunction = body;
    if (typeof fragment !== 'string' || countKeys(body) !== 1 || call.header !== undefined) return false;
    if (call !== this.latest && this.latest?.index === undefined) return false;
    const text = this.#append(call, fragment);
    if (call !== this.latest) this.latest = call;
    if (call.pieceOf !== undefined) call.pieceOf = undefined;
    this.#sink?.(call, text);
    return true;
  }

  /** `siblings`: the calls of earlier entries of the same chunk. `isWhole`: 11, an entry with a name is a call of its own. */
  #accept(
    delta: ToolCallReading,
    batched: PendingCall | undefined,
    siblings: readonly PendingCall[],
    isWhole = false,
  ): PendingCall {
    const isOwn = isWhole && delta.name !== undefined;
    const candidate = batched ? asSibling(batched) : isOwn ? undefined : this.#findCandidate(delta);
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
      if (known) return { call: known, idMatch: ID_SAME, isBound: true }; // 1
    } else if (index !== undefined && delta.name === undefined && latest && takesIndex(latest, bound, delta))
      return { call: latest, idMatch: ID_NEUTRAL, isBound: true }; // 5
    const call = index === undefined ? latest : bound;
    const isBound = bound !== undefined;
    return call && { call, idMatch: matchId(call, id, isBound, this.idsChange), isBound }; // 2, 3, 4, 7, 8
  }

  /** The call that the delta continues; undefined when it opens a new one. */
  #continued(candidate: Candidate, delta: ToolCallReading, siblings: readonly PendingCall[]): PendingCall | undefined {
    const { call, idMatch } = candidate;
    if (isAnotherEntry(call, delta) && siblings.includes(call)) return undefined; // 6
    const { isOpen } = call;
    if (!continuesCall(candidate, delta, this.idsChange)) return undefined;
    if (!isOpen) return this.#repeats(call, idMatch, delta) ? call : undefined;
    if (idMatch === ID_SAME) this.idsChange ??= false;
    if (idMatch !== ID_OTHER) return call;
    this.idsChange = true;
    return this.#joinPieces(call);
  }

  /**
   * 9: what follows complete arguments. A header waits, and so do arguments that begin like the call's own. False as
   * soon as they differ: they belong to a new call, which the header opened.
   */
  #repeats(call: PendingCall, idMatch: IdMatch, delta: ToolCallReading): boolean {
    const { fragment, snapshot, name } = delta;
    if (call.name === '') {
      call.isNamedLate = name !== undefined;
      return true;
    }
    if (!call.header) {
      const isHeader = name !== undefined || (delta.id !== undefined && idMatch >= ID_NEUTRAL);
      const compared = call.compare(delta);
      if (!isHeader || compared === IS_SAME || snapshot !== undefined) return true;
      const isReal = idMatch <= ID_CONTINUES || (compared !== IS_BLANK && name === undefined);
      if (call.arguments.isEmptyObject && isReal) return true; // `{}` was a placeholder
      call.header = { nameBefore: call.name, repeated: 0 };
    }
    const { header } = call;
    // While ids change, the first id identifies the call.
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
    // The same arguments under another id are a second call.
    if (header.id !== undefined && header.id !== call.wireId && !this.idsChange) return false;
    delta.fragment = text;
    call.header = undefined;
    return true;
  }

  /** What a new call takes over from the one before: a pending header, or that it may be a piece of its name. */
  #inherit(
    call: PendingCall,
    { call: before, idMatch, isBound }: Candidate,
    delta: ToolCallReading,
    siblings: readonly PendingCall[],
  ): void {
    const { header } = before;
    before.header = undefined;
    if (header) {
      const isNamer = delta.name === undefined && header.name !== undefined;
      const isIdentifier = header.id !== undefined && (delta.id ?? header.id) === header.id;
      if (!isNamer && !isIdentifier) return; // the header only repeated the call
      before.name = header.nameBefore;
      if (header.id !== undefined && header.id !== before.wireId) this.byId.delete(header.id);
      delta.id = header.id ?? delta.id;
      delta.name ??= header.name;
      delta.fragment = before.whole.text.slice(0, header.repeated) + delta.fragment;
      call.opensWithId = before.opensWithId;
    } else if (idMatch === ID_OTHER && isBound && before.isOpen && before.name !== '' && !siblings.includes(before))
      call.pieceOf = before;
  }

  /** 10: ids change within calls, so a call that only brought another id and name was a piece of the one before. */
  #joinPieces(last: PendingCall): PendingCall {
    let call = last;
    while (call.pieceOf) {
      const { pieceOf: first, position, name, arguments: argumentText } = call;
      this.calls.splice(position, 1);
      call.position = -1;
      for (const [at, later] of this.calls.entries()) later.position = at;
      first.name = joinName(first.name, name);
      const text = this.#append(first, argumentText.text);
      rebind(this.byIndex, call, first);
      rebind(this.byId, call, first);
      this.batch = this.batch.filter((one) => one !== call);
      this.#sink?.(first, text, name);
      call = first;
    }
    return call;
  }

  /** 6: as many entries as the last batch had calls, which only their position distinguishes. */
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

  /** Opens a new call at the end of the list. */
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
      const text = expectShallow(this.#write(delta.snapshot));
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

  /** The id of a call: the one on the wire, or a derived one that is unique in the message. */
  idOf(call: PendingCall): string {
    if (call.id !== undefined) return call.id;
    if (call.derivedId === undefined) {
      let salt = 0;
      do call.derivedId = deriveId('call_', this.#idSeed, call.position, call.name, salt++);
      while (this.byId.has(call.derivedId));
    }
    return call.derivedId;
  }

  /** The name of a call; made up from its position when the wire sent none. */
  nameOf(call: PendingCall): string {
    return call.name || call.literalName || `tool_${call.position}`;
  }
}

/** Called for every delta with its call and the argument text that can no longer change. */
export type ToolCallSink = (call: PendingCall, text: string, name?: string) => void;

/** Limits on the tool calls of one message. */
export interface ToolCallLimits {
  /** Calls in one message; more throw a `LimitError`. Default 4096. */
  maxCalls?: number;
  /** Characters of all arguments of one message; more throw a `LimitError`. Default 64 Mi. */
  maxCharacters?: number;
}

/**
 * A message exceeds a limit.
 *
 * ```ts
 * const calls = new ToolCallAssembler({ maxCalls: 8 });
 * try {
 *   for (const chunk of chunks) calls.push(chunk);
 * } catch (error) {
 *   if (!(error instanceof LimitError)) throw error;
 *   console.error(error.message); // more than 8 tool calls in one message
 * }
 * ```
 */
export class LimitError extends Error {
  override readonly name = 'LimitError';
}

/** The seed of derived call ids, different for each choice of a response. */
export const callIdSeed = (responseId: string, choice: number): string => (choice === 0 ? responseId : `${responseId}#${choice}`);

function rebind<K>(calls: Map<K, PendingCall>, from: PendingCall, to: PendingCall): void {
  for (const [key, call] of calls) if (call === from) calls.set(key, to);
}

/**
 * An empty name is set. An equal or longer name with the same beginning is a snapshot. Anything else is the next piece.
 */
function joinName(current: string, name: string): string {
  return name.startsWith(current) ? name : current + name;
}

function expectShallow(text: string | undefined): string {
  if (text === undefined) throw new LimitError('arguments nested too deeply to be written as text');
  return text;
}

/** Whether no name ever arrived: the call has a made-up name and must not be run. */
export const isNameless = ({ name, literalName }: PendingCall): boolean => name === '' && literalName === undefined;

/**
 * Whether the provider ran the call itself. xAI and others list such calls among the client's (`web_search_call` …);
 * some set a flag.
 */
export const isProviderExecuted = ({ extra, wireType }: PendingCall): boolean =>
  extra?.['builtin'] === true || extra?.['provider_executed'] === true || wireType?.endsWith('_call') === true;

/** A call that is being assembled. */
export class PendingCall {
  /** The position among the calls; -1 after the call was merged into the one before. */
  position: number;
  /** The first id on the wire. */
  wireId: string | undefined;
  /** `wireId`, unless an earlier call has it. */
  id: string | undefined;
  /**
   * The first delta had an id. Then every call of the server begins with one, and a delta without an id continues a
   * call.
   */
  opensWithId = false;
  /** The name arrived after the arguments were complete: more of it may follow. */
  isNamedLate = false;
  /** The first index on the wire: it orders the calls when every call has its own. */
  index: number | undefined;
  name = '';
  literalName: string | undefined;
  type: ToolCallType = 'function';
  /** A type other than function and custom, as on the wire. */
  wireType: string | undefined;
  arguments: ArgumentText = new ArgumentText();
  extra: JsonObject | undefined;
  /** Replaces an id that the wire never sent; fixed once it was read. */
  derivedId: string | undefined;
  header: PendingHeader | undefined;
  /** The open call before it on the same index: this one is a piece of its name if the id changes again. */
  pieceOf: PendingCall | undefined;
  #whole: { length: number; text: string; value: unknown } | undefined;

  constructor(position: number) {
    this.position = position;
  }

  /** Whether the arguments are incomplete. */
  get isOpen(): boolean {
    return !this.arguments.isComplete;
  }

  /** The complete arguments, parsed once per length. */
  get whole(): { text: string; value: unknown } {
    const { length } = this.arguments.text;
    if (this.#whole?.length !== length) {
      const text = this.arguments.decide().text.trim();
      this.#whole = { length, text, value: parseJson(text) };
    }
    return this.#whole;
  }

  /** Compares the arguments of a delta with the complete ones of the call. */
  compare(delta: ToolCallReading): Compared {
    if (hasNoArguments(delta)) return IS_BLANK;
    const { text, value } = this.whole;
    const fragment = delta.fragment.trim();
    if (delta.snapshot === undefined && text !== fragment && text.startsWith(fragment)) return IS_BEGUN;
    const other = delta.snapshot ?? (text === fragment ? value : parseJson(fragment));
    return other !== undefined && sameJson(value, other) ? IS_SAME : IS_OTHER;
  }
}

/** A header (name, id) that arrived after complete arguments: it repeats the call, unless other arguments follow. */
export interface PendingHeader {
  id?: string | undefined;
  name?: string | undefined;
  /** The name of the call before the header. */
  nameBefore: string;
  /** How many characters of the call's arguments have been repeated since. */
  repeated: number;
}

/** The kinds of calls that clients run. */
export type ToolCallType = 'function' | 'custom';

// ---- the rules, by their numbers

/** The id is the id of the call. */
const ID_SAME = 0;

/** No id, from a server that begins calls with one; or the first id of a call that has none. */
const ID_CONTINUES = 1;

/** No id, from a server that sends none; or an id without meaning, because ids change within calls. */
const ID_NEUTRAL = 2;

/** An id that no call has. */
const ID_OTHER = 3;

/** How the id of a delta relates to a call. */
type IdMatch = typeof ID_SAME | typeof ID_CONTINUES | typeof ID_NEUTRAL | typeof ID_OTHER;

const IS_BLANK = 0;
const IS_SAME = 1;
const IS_BEGUN = 2;
const IS_OTHER = 3;

/**
 * How the arguments of a delta compare to the complete ones of a call. `IS_BEGUN`: so far they are the beginning of the
 * same text.
 */
type Compared = typeof IS_BLANK | typeof IS_SAME | typeof IS_BEGUN | typeof IS_OTHER;

/**
 * The call that a delta may continue. `isBound`: the id or index names the call; otherwise it is only the latest one.
 */
interface Candidate {
  call: PendingCall;
  idMatch: IdMatch;
  isBound: boolean;
}

/**
 * 5: whether the latest call continues under an index that is not its own: one that drifts, or the first one it gets.
 */
function takesIndex(latest: PendingCall, bound: PendingCall | undefined, delta: ToolCallReading): boolean {
  if (bound?.isOpen) return false;
  const isUnbound = latest.index === undefined;
  return latest.isOpen ? !bound || isUnbound : !bound && isUnbound && hasNoArguments(delta);
}

/** How an id that the call does not have relates to it. `idsChange`: undefined while unknown. */
function matchId(call: PendingCall, id: string | undefined, isBound: boolean, idsChange?: boolean): IdMatch {
  if (id === undefined) return call.opensWithId ? ID_CONTINUES : ID_NEUTRAL;
  if (call.wireId === undefined) return ID_CONTINUES;
  return idsChange && isBound ? ID_NEUTRAL : ID_OTHER;
}

/** 6: a call that is known only by its position in the chunk. */
const asSibling = (call: PendingCall): Candidate => ({ call, idMatch: matchId(call, undefined, false), isBound: false });

/** Whether a delta continues its candidate. `idsChange`: undefined while unknown. */
function continuesCall(candidate: Candidate, delta: ToolCallReading, idsChange?: boolean): boolean {
  if (candidate.call.isOpen) return continuesOpen(candidate, delta, idsChange);
  // The arguments are complete: the delta repeats the call, or they were a placeholder.
  return delta.name === undefined ? continuesUnnamed(candidate, delta) : continuesNamed(candidate, delta, delta.name);
}

/** Whether a delta continues a call with incomplete arguments. */
function continuesOpen({ call, idMatch, isBound }: Candidate, delta: ToolCallReading, idsChange?: boolean): boolean {
  const { name, id } = delta;
  if (name === undefined || call.name === '') return idMatch !== ID_OTHER || isBound || call.name !== ''; // 3
  const isSameName = name === call.name;
  switch (idMatch) {
    case ID_SAME:
      return !isElsewhere(call, delta); // 1
    case ID_CONTINUES:
      return isBound || id === undefined || isSameName || call.arguments.isEmpty; // 2, 3, 7
    case ID_NEUTRAL:
      return isBound || isSameName; // 4, 7
    case ID_OTHER:
      if (!isBound || idsChange === false) return false; // 3, 2
      // Arguments of a new call begin with a brace: anything else continues an open document.
      if (!call.arguments.isEmpty && /^\s*[^\s{]/.test(delta.fragment)) return true; // 2
      // A second id on a call without arguments opens another call without arguments.
      if (!isSameName || hasNoArguments(delta)) return false; // 2
      // A brace continues an open document where a value is expected.
      return call.arguments.isEmpty || /[:,[]\s*$/.test(call.arguments.text.slice(-16)); // 2
    default:
      return idMatch satisfies never;
  }
}

function continuesUnnamed({ call, idMatch, isBound }: Candidate, delta: ToolCallReading): boolean {
  if (delta.id === undefined || idMatch === ID_SAME) return true; // 1, 4, 8
  if (idMatch === ID_OTHER && call.header?.name !== undefined) return false; // 9
  if (hasNoArguments(delta)) return true; // 2, 3
  const isAddressed = isBound || idMatch !== ID_OTHER;
  return isAddressed && (call.arguments.isEmptyObject || call.compare(delta) !== IS_OTHER); // 2, 3
}

function continuesNamed({ call, idMatch, isBound }: Candidate, delta: ToolCallReading, name: string): boolean {
  if (idMatch === ID_SAME && isElsewhere(call, delta)) return false; // 1
  if (delta.id === undefined && call.header?.id !== undefined) return false; // 9
  const compared = call.compare(delta);
  if (call.name === '') return compared !== IS_OTHER || call.arguments.isEmptyObject; // 2, 4, 7
  if (name === call.name) return repeatsName(call, idMatch, isBound, compared, delta); // 1, 2, 4, 7
  const grows = name.startsWith(call.name);
  if (idMatch === ID_OTHER) return false; // 2
  if (grows && compared === IS_BLANK && (isBound || delta.id === undefined)) return isBound || idMatch === ID_CONTINUES; // 1, 2, 4, 7
  if (idMatch === ID_SAME) return compared === IS_SAME; // 1
  if (idMatch === ID_NEUTRAL) return grows && compared === IS_SAME; // 4
  return delta.id === undefined ? continuesName(call, compared) : isBound && compared === IS_BLANK; // 2, 4, 7
}

/** Whether a delta that repeats the name continues a call with complete arguments. */
function repeatsName(call: PendingCall, idMatch: IdMatch, isBound: boolean, compared: Compared, delta: ToolCallReading): boolean {
  const isSameCall = idMatch <= ID_CONTINUES;
  if (compared !== IS_OTHER) return isSameCall || (idMatch === ID_NEUTRAL && isBound);
  const { isEmptyObject, snapshot } = call.arguments;
  return isSameCall && (isEmptyObject || (snapshot && delta.snapshot !== undefined));
}

/** Whether another name without an id, from a server that begins calls with one, is a piece of the name. */
function continuesName({ arguments: argumentText, isNamedLate }: PendingCall, compared: Compared): boolean {
  if (compared === IS_SAME || argumentText.isEmptyObject) return true;
  return compared === IS_BLANK && (argumentText.snapshot || isNamedLate);
}

/** 6: whether a delta cannot belong to a call that another entry of the same chunk opened or continued. */
function isAnotherEntry(call: PendingCall, delta: ToolCallReading): boolean {
  const { id, index, name } = delta;
  if (name === undefined) return false;
  if (id === undefined && index === undefined) return true;
  return call.name !== '' && name !== call.name && !call.isOpen && call.compare(delta) === IS_SAME;
}

/** 1: servers that give one id to several calls give each its own index. */
const isElsewhere = ({ index }: PendingCall, delta: ToolCallReading): boolean =>
  delta.index !== undefined && index !== undefined && index !== delta.index;

const hasNoArguments = ({ fragment, snapshot }: ToolCallReading): boolean => snapshot === undefined && fragment.trim() === '';

// ---- reading a delta

/** Normalises a tool-call delta. */
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
  if (countKeys(delta) !== known) collectUnknown(reading, delta);
  return reading;
}

/** A tool-call delta of any compatible server, normalised: blanks are absent, numbers are numbers. */
export interface ToolCallReading {
  id: string | undefined;
  index: number | undefined;
  name: string | undefined;
  /** The text `"null"` as a name: some gateways stringify null. Used only if no better name arrives. */
  literalName: string | undefined;
  type: string | undefined;
  /** A fragment of the argument text. */
  fragment: string;
  /** Arguments that arrived as an object or array: a complete snapshot. */
  snapshot: unknown;
  /** Unknown fields, which are kept. */
  extra: JsonObject | undefined;
}

/**
 * The known fields of a tool-call delta. Reading them by name is several times cheaper than iterating over the keys.
 */
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

function readFunction(reading: ToolCallReading, body: WireFunction, wireKey: 'function' | 'custom'): void {
  const { name, arguments: text, input } = body;
  const value = wireKey === 'custom' ? input : text;
  if (isSet(value)) readArguments(reading, value);
  readName(reading, name);
  if (countKeys(body) !== present(name) + present(value)) collectUnknownInside(reading, body, wireKey);
}

function readArguments(reading: ToolCallReading, value: unknown): void {
  // Servers that serialise a whole struct send both `function` and `custom`, one of them blank.
  if (typeof value === 'string') reading.fragment ||= value;
  else if (typeof value === 'object') reading.snapshot = value;
  // A bare number or boolean is no valid document; as text it is flagged later.
  else reading.fragment = String(value);
}

function readName(reading: ToolCallReading, value: unknown): void {
  if (typeof value !== 'string' || value.trim() === '') return;
  if (value === 'null') reading.literalName = value;
  else reading.name = value;
}

function readId(value: unknown): string | undefined {
  if (typeof value === 'number') return String(value);
  return typeof value === 'string' && !ABSENT_IDS.has(value.trim()) ? value : undefined;
}

/** Placeholders that servers send instead of an id. Blank ids are absent, too. */
export const ABSENT_IDS: ReadonlySet<unknown> = new Set([null, '', 'null', 'None', 'undefined']);

/** An integer (a negative one is an opaque key) or text that looks like one. Anything else is absent. */
function readIndex(value: unknown): number | undefined {
  if (typeof value === 'number') return Number.isSafeInteger(value) ? value : undefined;
  if (typeof value !== 'string' || !/^-?\d{1,15}$/.test(value)) return undefined;
  return Number(value);
}

function collectUnknown(reading: ToolCallReading, delta: WireToolCall): void {
  const { index: _index, id: _id, type: _type, function: _function, custom: _custom, ...unknown } = delta;
  for (const [key, value] of Object.entries(unknown)) addExtra(reading, key, value);
}

function collectUnknownInside(reading: ToolCallReading, body: WireFunction, wireKey: 'function' | 'custom'): void {
  const { name: _name, [wireKey === 'custom' ? 'input' : 'arguments']: _text, ...unknown } = body;
  if (countKeys(unknown) > 0) addExtra(reading, wireKey, unknown);
}

function addExtra(reading: ToolCallReading, key: string, value: unknown): void {
  if (value === null) return;
  reading.extra ??= Object.create(null) as JsonObject; // no prototype, so that `__proto__` is an ordinary key
  reading.extra[key] = value;
}
