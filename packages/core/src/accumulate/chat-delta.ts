/** Reads the parts of a chat delta, in the variants that compatible servers send. */
import { assignOwn, getOwn, isFilledText, isObject, type JsonObject, writeJson } from '../json/json.ts';
import { overlay } from './overlay.ts';

/** The fields of a chunk that are read by name. All values are untrusted. */
export interface WireChunk {
  id?: unknown;
  object?: unknown;
  created?: unknown;
  model?: unknown;
  choices?: unknown;
  usage?: unknown;
  service_tier?: unknown;
  system_fingerprint?: unknown;
  x_groq?: unknown;
  error?: unknown;
}

/** The fields of a choice that are read by name. */
export interface WireChoice {
  index?: unknown;
  delta?: unknown;
  message?: unknown;
  /** The delta of legacy completions: a piece of the text. */
  text?: unknown;
  finish_reason?: unknown;
  logprobs?: unknown;
  usage?: unknown;
  error?: unknown;
  content_filter_results?: unknown;
  /** Instead of `finish_reason`: OpenAI's vision preview. */
  finish_details?: unknown;
  /** Instead of `delta`: Azure, on your data. */
  messages?: unknown;
}

/** The fields of a delta that are read by name. */
export interface WireDelta {
  role?: unknown;
  content?: unknown;
  refusal?: unknown;
  tool_calls?: unknown;
  function_call?: unknown;
  reasoning_content?: unknown;
  reasoning?: unknown;
  reasoning_text?: unknown;
  reasoning_details?: unknown;
  annotations?: unknown;
  images?: unknown;
  audio?: unknown;
  /** LiteLLM: the reasoning repeated, with its signature. */
  thinking_blocks?: unknown;
}

const keySet = <T>(fields: Record<keyof T, 0>): ReadonlySet<string> => new Set(Object.keys(fields));

/** The fields of a choice that are not kept as unknown. */
export const CHOICE_FIELDS: ReadonlySet<string> = keySet<
  Omit<WireChoice, 'content_filter_results' | 'finish_details' | 'messages'>
>({
  index: 0,
  delta: 0,
  message: 0,
  text: 0,
  finish_reason: 0,
  logprobs: 0,
  usage: 0,
  error: 0,
});

/** The fields of a delta that are not kept as unknown. */
export const DELTA_FIELDS: ReadonlySet<string> = /* @__PURE__ */ keySet<WireDelta>({
  role: 0,
  content: 0,
  refusal: 0,
  tool_calls: 0,
  function_call: 0,
  reasoning_content: 0,
  reasoning: 0,
  reasoning_text: 0,
  reasoning_details: 0,
  annotations: 0,
  images: 0,
  audio: 0,
  thinking_blocks: 0,
});

/** A choice with Azure's `messages`, or `finish_details` of the vision preview, in the standard form. */
export function normalizeChoice(choice: WireChoice): WireChoice {
  const usual = { ...choice };
  const { messages, finish_details: details } = choice;
  const reason = isObject(details) ? details['type'] : details;
  if (isFilledText(reason) && !isFilledText(usual.finish_reason)) usual.finish_reason = reason;
  if (!Array.isArray(messages)) return usual;
  delete usual.messages;
  const delta: JsonObject = {};
  for (const message of messages.filter(isObject)) {
    const { index: _index, end_turn: isEnd, delta: inner, ...fields } = message;
    if (isObject(inner)) assignOwn(fields, inner);
    if (isEnd === true) usual.finish_reason ??= 'stop';
    // Search results are a message of the tool; newer versions put them into `context`. The last delta is "[DONE]".
    if (fields['role'] === 'tool') delta['context'] = { messages: [fields] };
    else if (fields['content'] !== '[DONE]') assignOwn(delta, fields);
  }
  usual.delta = delta;
  return usual;
}

// ---- content

/**
 * The parts of a chat `content` value. An object of another type is structured output (Cloudflare): its JSON is the
 * text.
 */
export const toParts = (content: unknown): readonly unknown[] =>
  Array.isArray(content) ? content : [isObject(content) && !PART_TYPES.has(content['type']) ? writeJson(content) : content];

/** Parts that may occur without a list around them. */
const PART_TYPES: ReadonlySet<unknown> = new Set(['text', 'output_text', 'thinking', 'image_url']);

/** Sorts content parts by kind. */
export function readContentParts(parts: readonly unknown[]): ContentReading {
  const reading: ContentReading = { text: '', thinking: '', images: [], other: [] };
  for (const part of parts) {
    if (typeof part === 'string') reading.text += part;
    else if (isObject(part)) readPart(reading, part);
  }
  return reading;
}

/** The content of a delta by kind. Mistral mixes thinking and text in one delta. */
interface ContentReading {
  text: string;
  thinking: string;
  images: JsonObject[];
  /** Unknown parts, which are kept. */
  other: JsonObject[];
}

function readPart(reading: ContentReading, part: JsonObject): void {
  const { type, text, thinking } = part;
  if (type === 'thinking') reading.thinking += typeof thinking === 'string' ? thinking : joinTexts(thinking);
  else if (type === 'image_url') reading.images.push(part);
  else if (typeof text === 'string' && (type === 'text' || type === 'output_text' || type === undefined)) reading.text += text;
  else reading.other.push(part);
}

/** The text of a thinking part. Nested thinking is ignored, because its depth is untrusted. */
const joinTexts = (parts: unknown): string => (Array.isArray(parts) ? readContentParts(parts.filter(isNotThinking)).text : '');

const isNotThinking = (part: unknown): boolean => !isObject(part) || part['type'] !== 'thinking';

/** Replaces lone surrogates: left by servers that split between UTF-16 units, or by a stream that ended there. */
export function wellFormed(text: string): string {
  // Some runtimes of 2023 have no isWellFormed; the native scan is nearly free.
  if (typeof text.isWellFormed === 'function') return text.isWellFormed() ? text : text.toWellFormed();
  return text.replace(/\p{Surrogate}/gu, '\uFFFD');
}

/**
 * Turns text deltas that repeat all the text so far into pieces. Some servers send such snapshots; nearly all send
 * pieces, which pass unchanged: the second delta of a text almost never begins with the first. One that does is held
 * until the next, and longer while they are short. A text that repeats itself ("ha", "haha") is not a snapshot.
 */
export class Snapshots implements SnapshotsState {
  last: string | null = '';
  count = 0;
  sent = 0;
  held = '';

  /**
   * Adds a delta and returns the text that can be released. `isPiece`: it is known to be a piece (it has log
   * probabilities).
   */
  push(delta: string, isPiece = false): string {
    const { last } = this;
    if (last === null || delta === '') return delta;
    const isCertain = this.count >= MIN_SNAPSHOTS && last.length >= MIN_LENGTH;
    if (isCertain && delta === last) return '';
    this.held += delta;
    this.last = !isPiece && extendsSnapshot(last, delta, this.count) ? delta : null;
    this.count++;
    const waits = this.last !== null && (delta.length < MIN_LENGTH || this.count < MIN_SNAPSHOTS) && this.count > 1;
    return waits ? '' : this.flush();
  }

  /** Decides and releases held text, because other content follows or the text ended. */
  flush(): string {
    const { rest } = this;
    if (this.count > 1 && this.count < MIN_SNAPSHOTS) this.last = null;
    this.sent = this.last?.length ?? 0;
    this.held = '';
    return rest;
  }

  /** Whether the text that was released last came from a delta with all the text before it. */
  get isCumulative(): boolean {
    return this.last !== null && this.count >= MIN_SNAPSHOTS && this.held === '';
  }

  /** What `flush` would return. */
  get rest(): string {
    return this.last === null || this.count < MIN_SNAPSHOTS ? this.held : this.last.slice(this.sent);
  }
}

/** The state of `Snapshots` as JSON. */
export interface SnapshotsState {
  /** The last delta, while every delta began with the one before it; null once one did not: then deltas are pieces. */
  last: string | null;
  count: number;
  /** How much of `last` has been released. */
  sent: number;
  /** Deltas that are held back, concatenated. */
  held: string;
}

/** This many deltas in a row must each begin with all the text before them, and be longer. */
const MIN_SNAPSHOTS = 3;

/** The minimum length of the last of them; shorter ones are decided when other content follows, or at the end. */
const MIN_LENGTH = 12;

function extendsSnapshot(last: string, delta: string, count: number): boolean {
  if (delta.length <= last.length || !delta.startsWith(last)) return false;
  const rest = delta.slice(last.length);
  return count !== 1 || !(rest.startsWith(last) || last.startsWith(rest));
}

/** A list that takes each value once: annotations are repeated verbatim on later chunks. */
export class DistinctList {
  readonly items: unknown[] = [];
  readonly #seen = new Set<string>();

  /** Adds a value; returns whether it was new. */
  add(value: unknown): boolean {
    // Values nested too deeply to compare count as new.
    const key = writeJson(value) ?? `#${this.items.length}`;
    if (this.#seen.has(key)) return false;
    this.#seen.add(key);
    this.items.push(value);
    return true;
  }
}

// ---- reasoning

/**
 * The reasoning text of one delta: the first field that has any, because gateways that send two fields send the same
 * text twice. `before`: the reasoning that arrived before any details. Details that then repeat all of it are for
 * clients that send them back.
 */
export function readReasoning(
  { reasoning_content, reasoning, reasoning_text, reasoning_details }: WireReasoning,
  before: string,
): string {
  const plain = readReasoningText(reasoning_content) || readReasoningText(reasoning) || readReasoningText(reasoning_text);
  if (plain !== '') return plain;
  const detailed = Array.isArray(reasoning_details) ? reasoning_details.map(reasoningDetailText).join('') : '';
  return detailed === before ? '' : detailed;
}

/** A reasoning field: text, or one or more objects with text (SAP AI Core: `[{content, signature}]`). */
export function readReasoningText(value: unknown): string {
  if (typeof value === 'string') return value;
  if (typeof value !== 'object' || value === null) return '';
  const entries: readonly unknown[] = Array.isArray(value) ? value : [value];
  return entries.map((entry) => (isObject(entry) ? (TEXT_KEYS.map((key) => entry[key]).find(isFilledText) ?? '') : '')).join('');
}

const TEXT_KEYS = ['text', 'content', 'thinking', 'summary'];

/** The fields of a delta that can hold reasoning. */
interface WireReasoning {
  reasoning_content?: unknown;
  reasoning?: unknown;
  reasoning_text?: unknown;
  reasoning_details?: unknown;
}

function reasoningDetailText(entry: unknown): string {
  if (!isObject(entry)) return '';
  const { text, summary } = entry;
  if (typeof text === 'string') return text;
  return typeof summary === 'string' ? summary : '';
}

/**
 * `reasoning_details` of OpenRouter and MiniMax, `thinking_blocks` of LiteLLM: entries are incremental, identified by
 * type and index, and must be sent back verbatim.
 */
export class ReasoningDetails {
  readonly entries: JsonObject[] = [];
  /** Entries by the JSON of type and index, which are untrusted and need not be text. */
  readonly #byKey = new Map<string | undefined, JsonObject>();

  /** Merges the entries of one delta. */
  push(details: unknown): void {
    if (!Array.isArray(details)) return;
    for (const entry of details) if (isObject(entry)) this.#merge(entry);
  }

  #merge(entry: JsonObject): void {
    const key = writeJson([entry['type'], entry['index'] ?? entry['id']]);
    const known = this.#byKey.get(key);
    // LiteLLM does not number its blocks: thinking after a signature starts a new one.
    if (!known || (entry['thinking'] && known['signature'])) {
      const copy = overlay({}, entry);
      this.#byKey.set(key, copy);
      this.entries.push(copy);
      return;
    }
    const { text, thinking, summary, data, signature, ...rest } = entry;
    overlay(known, rest);
    append(known, 'text', text);
    append(known, 'thinking', thinking);
    append(known, 'summary', summary);
    appendUnlessSame(known, 'data', data);
    appendUnlessSame(known, 'signature', signature);
  }
}

function append(target: JsonObject, key: string, value: unknown): void {
  if (typeof value !== 'string') return;
  const current = target[key];
  target[key] = typeof current === 'string' ? current + value : value;
}

/** Signatures and ciphertexts arrive complete, in pieces, or twice. */
function appendUnlessSame(target: JsonObject, key: string, value: unknown): void {
  if (value !== target[key]) append(target, key, value);
}

/**
 * Splits `<think>…</think>` out of a text: local servers without a reasoning parser leave the tags in the content.
 * Templates that open the tag in the prompt leave only the closing one. Opt-in, because tags may be literal output.
 * null when there are none.
 *
 * ```ts
 * const split = splitThink('<think>2 + 2</think>4'); // { reasoning: '2 + 2', text: '4' }
 * ```
 */
export function splitThink(text: string): ThinkSplit | null {
  const split: ThinkSplit = { reasoning: '', text: '' };
  let from = 0;
  let isThinking: boolean | undefined;
  for (const match of text.matchAll(TAG)) {
    const isClosing = match[1] === '/';
    // If the first tag closes, everything before it is reasoning. A closing tag without an opening one is literal text.
    if (isClosing && isThinking === false) continue;
    if (!isClosing && isThinking) continue;
    split[isClosing ? 'reasoning' : 'text'] += text.slice(from, match.index);
    from = match.index + match[0].length;
    isThinking = !isClosing;
  }
  if (isThinking === undefined) return null;
  split[isThinking ? 'reasoning' : 'text'] += text.slice(from);
  return split;
}

/** A text without its thinking, and the thinking. */
export interface ThinkSplit {
  reasoning: string;
  text: string;
}

const TAG = /<(\/?)think(?:ing)?>/g;

// ---- calls, finish reason and usage

/**
 * The deprecated call, unless it is blank: servers that serialise a whole struct send an empty one with every message.
 */
export function readLegacyCall(call: unknown): JsonObject | undefined {
  return isObject(call) && (call['name'] || call['arguments']) ? call : undefined;
}

/**
 * The finish reason after `next`. Some servers send "stop" on every chunk, or again after the real reason: a stronger
 * reason is never weakened.
 */
export function strongerFinish(current: string | null, next: unknown): string | null {
  if (!isFilledText(next)) return current;
  return STRONG.has(current) && !STRONG.has(next) ? current : next;
}

const STRONG: ReadonlySet<string | null> = new Set([
  'length',
  'content_filter',
  'tool_calls',
  'function_call',
  'tool_use',
  'max_tokens',
]);

/** Whether a message ended by itself, so that empty arguments are final; otherwise they may have been cut off. */
export const isCleanFinish = (finish: string | null): boolean => finish !== null && !CUT.has(finish);

const CUT: ReadonlySet<string> = new Set(['length', 'max_tokens', 'content_filter', 'error']);

/** The usage of a chunk: on the chunk, in a choice (Moonshot) or under `x_groq`. */
export function readUsage(chunk: JsonObject): JsonObject | undefined {
  if (isObject(chunk['usage'])) return chunk['usage'];
  const choices = chunk['choices'];
  if (Array.isArray(choices))
    for (const choice of choices) if (isObject(choice) && isObject(choice['usage'])) return choice['usage'];
  const groq = chunk['x_groq'];
  return isObject(groq) && isObject(groq['usage']) ? groq['usage'] : undefined;
}

/**
 * Merges a usage snapshot into the one before: field by field the last non-null value wins. Relays send zero for
 * unknown counts, so a zero replaces a count only beside another input count, which belongs to another request (server
 * tools, compaction). Returns whether a zero was ignored.
 */
export function mergeUsage(target: JsonObject, next: JsonObject): boolean {
  let hasZeros = false;
  const hasOtherInput = INPUTS.some((key) => next[key] && next[key] !== target[key]);
  for (const key of Object.keys(next)) {
    const [value, current] = [next[key], getOwn(target, key)];
    if (value === 0 && current && !hasOtherInput) hasZeros = true;
    else if (isObject(value) && isObject(current)) hasZeros = mergeUsage(current, value) || hasZeros;
    else overlay(target, { [key]: value });
  }
  return hasZeros;
}

const INPUTS = ['prompt_tokens', 'input_tokens'];
