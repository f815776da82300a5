import { ArgumentText } from './argument-text.ts';
import { deriveId } from './derive-id.ts';
import { countKeys, isObject, type JsonObject, overlay, parseJson, sameJson, writeJson } from './overlay.ts';
import { readToolCall, type ToolCallReading, type WireFunction, type WireToolCall } from './tool-call-delta.ts';

export type ToolCallType = 'function' | 'custom';

/** A call in the making. */
export class PendingCall {
  readonly position: number;
  /** The first id the wire gave. */
  wireId: string | undefined;
  /** The same, unless another call had it first. */
  id: string | undefined;
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
  #firstValue: unknown;

  constructor(position: number) {
    this.position = position;
  }

  get isOpen(): boolean {
    return !this.arguments.isComplete;
  }

  /** Whether these arguments say again what this call's say. The call's own text is parsed at most once. */
  isRestatedBy(delta: ToolCallReading): boolean {
    this.#firstValue ??= parseJson(this.arguments.decide().text);
    const value = delta.snapshot ?? parseJson(delta.fragment);
    return value !== undefined && sameJson(this.#firstValue, value);
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
 * index 0 for everything, change the id within a call, repeat the name or cut it in pieces. Two facts settle all of them: an opener carries
 * a name, and the JSON document before it is either open or closed.
 */
export class CallTracker {
  readonly calls: PendingCall[] = [];
  readonly byIndex: Map<number, PendingCall> = new Map();
  readonly byId: Map<string, PendingCall> = new Map();
  latest: PendingCall | undefined;
  /** Calls touched by the last chunk that had more than one entry. */
  batch: PendingCall[] = [];
  /** Of all arguments so far. */
  characters = 0;
  readonly #maxCalls: number;
  readonly #maxCharacters: number;
  readonly #sink: ToolCallSink | undefined;
  readonly #idSeed: string;

  /** `idSeed`: derived ids are made from this (the id of the response) and the position of the call. `sink`: told about every delta. */
  constructor(limits: ToolCallLimits, idSeed: string, sink?: ToolCallSink) {
    this.#idSeed = idSeed;
    this.#maxCalls = limits.maxCalls ?? 4096;
    this.#maxCharacters = limits.maxCharacters ?? 64 * 1024 * 1024;
    this.#sink = sink;
  }

  get size(): number {
    return this.calls.length;
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
      if (isObject(entry) && !this.continue(entry)) this.#accept(readToolCall(entry), undefined);
      return;
    }
    const readings = entries.filter(isObject).map((entry) => readToolCall(entry));
    const batch = this.#isContinuedBatch(readings) ? this.batch : undefined;
    this.batch = readings.map((reading, i) => this.#accept(reading, batch?.[i]));
  }

  /**
   * Takes the plainest and by far the most common delta, `{index, function: {arguments}}` of a call that is known: rule 4 without a name.
   * Counting the keys shows that there is nothing else to read, so no reading is made. False when the delta is another one.
   */
  continue(entry: WireToolCall): boolean {
    const { index, function: body } = entry;
    const call = typeof index === 'number' ? this.byIndex.get(index) : undefined;
    if (call === undefined || typeof body !== 'object' || body === null || countKeys(entry) !== 2) return false;
    const { arguments: fragment }: WireFunction = body;
    if (typeof fragment !== 'string' || countKeys(body) !== 1) return false;
    const text = this.#append(call, fragment);
    this.latest = call;
    this.#sink?.(call, text);
    return true;
  }

  #accept(delta: ToolCallReading, batched: PendingCall | undefined): PendingCall {
    const found = batched ?? this.#resolve(delta);
    const call = found ?? this.open();
    this.#bind(call, delta);
    const text = this.#feed(call, delta);
    this.latest = call;
    this.#sink?.(call, text, delta.name);
    return call;
  }

  /** The call that a delta continues; undefined means a new one. The numbers are those of the rule list in docs/tool-call-identity.md. */
  #resolve(delta: ToolCallReading): PendingCall | undefined {
    const bound = delta.index === undefined ? undefined : this.byIndex.get(delta.index);
    if (delta.id !== undefined) return this.#resolveById(delta.id, bound, delta);
    if (bound) return opensAnother(bound, delta) ? undefined : bound; // 4
    const { latest } = this;
    if (delta.index !== undefined) return delta.name === undefined && latest?.isOpen ? latest : undefined; // 5
    if (delta.name === undefined || latest === undefined) return latest; // 8
    return latest.name === '' || (latest.name === delta.name && latest.isOpen) ? latest : undefined; // 7
  }

  #resolveById(id: string, bound: PendingCall | undefined, delta: ToolCallReading): PendingCall | undefined {
    const known = bound?.wireId === id ? bound : this.byId.get(id);
    if (known) return continuesKnownId(known, delta) ? known : undefined; // 1
    if (bound) return continuesWithNewId(bound, delta) ? bound : undefined; // 2
    const isAnonymous = delta.index === undefined && delta.name === undefined;
    return isAnonymous && this.latest?.isOpen && this.latest.name !== '' ? this.latest : undefined; // 3
  }

  /** 6: as many anonymous entries as the last batch had calls: position tells them apart. */
  #isContinuedBatch(readings: ToolCallReading[]): boolean {
    if (readings.length !== this.batch.length) return false;
    return readings.every((delta, i) => {
      const call = this.batch[i];
      const sameName = delta.name === undefined || (delta.name === call?.name && call.isOpen);
      return delta.id === undefined && delta.index === undefined && sameName;
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

/** 1: the id is known. Servers that reuse an id for another call give it another index, or another name after a closed document. */
function continuesKnownId(call: PendingCall, delta: ToolCallReading): boolean {
  if (delta.name === undefined) return true;
  if (delta.index !== undefined && call.index !== undefined && call.index !== delta.index) return false;
  return delta.name === call.name || call.name === '' || call.isOpen;
}

/** 2: the index is known, the id is not: an id that changes within a call, or an index that is reused. An opener carries a name. */
function continuesWithNewId(call: PendingCall, delta: ToolCallReading): boolean {
  if (delta.name === undefined || call.name === '') return true;
  if (!call.isOpen || delta.name !== call.name) return false;
  // A late id belongs to the call; a second id on a call that has nothing to say opens another call without arguments.
  return call.id === undefined || !call.arguments.isEmpty || delta.fragment !== '' || delta.snapshot !== undefined;
}

/** 4: only the index is known. A name after a closed document opens another call, unless the call is merely said again. */
function opensAnother(call: PendingCall, delta: ToolCallReading): boolean {
  if (delta.name === undefined || call.isOpen) return false;
  if (delta.name !== call.name && call.name !== '') return true;
  return (delta.snapshot !== undefined || delta.fragment.trim() !== '') && !call.isRestatedBy(delta);
}

/** Empty: set. Equal or longer, with the same beginning: a snapshot. Anything else: the next piece. */
function joinName(current: string, name: string): string {
  return name.startsWith(current) ? name : current + name;
}

/** xAI and others list calls they ran themselves among the client's (`web_search_call` …); some set a flag. */
export function isProviderExecuted(call: PendingCall): boolean {
  if (call.extra?.['builtin'] === true || call.extra?.['provider_executed'] === true) return true;
  return call.wireType?.endsWith('_call') ?? false;
}
