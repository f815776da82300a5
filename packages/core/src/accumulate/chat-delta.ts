import { getOwn, isFilledText, isObject, type JsonObject, writeJson } from '../json/json.ts';
import { overlay } from './overlay.ts';

/** The parts of a chunk that are read by name. Everything is unknown until it is looked at: it comes from strangers. */
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

export interface WireChoice {
  index?: unknown;
  delta?: unknown;
  message?: unknown;
  /** The delta of the old completions: a piece of the text. */
  text?: unknown;
  finish_reason?: unknown;
  logprobs?: unknown;
  usage?: unknown;
  error?: unknown;
  content_filter_results?: unknown;
  /** In place of `finish_reason`: OpenAI's vision preview. */
  finish_details?: unknown;
  /** In place of `delta`: Azure, on your data. */
  messages?: unknown;
}

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
  /** LiteLLM: the reasoning once more, with its signature. */
  thinking_blocks?: unknown;
}

const keysOf = <T>(fields: Record<keyof T, 0>): ReadonlySet<string> => new Set(Object.keys(fields));

export const CHOICE_FIELDS: ReadonlySet<string> = keysOf<
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

export const DELTA_FIELDS: ReadonlySet<string> = keysOf<WireDelta>({
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

/** What a chat `content` value says: text, or a list of parts (Mistral mixes thinking and text in one delta). */
export interface ContentReading {
  text: string;
  thinking: string;
  images: JsonObject[];
  /** Parts nobody knows: they must survive. */
  other: JsonObject[];
}

/** Parts that may stand without a list around them. */
const PARTS: ReadonlySet<unknown> = new Set(['text', 'output_text', 'thinking', 'image_url']);

/** Any other object in place of text is structured output (Cloudflare): its JSON is the text. */
export const partsOf = (content: unknown): readonly unknown[] =>
  Array.isArray(content) ? content : [isObject(content) && !PARTS.has(content['type']) ? writeJson(content) : content];

export function readContentParts(parts: readonly unknown[]): ContentReading {
  const reading: ContentReading = { text: '', thinking: '', images: [], other: [] };
  for (const part of parts) {
    if (typeof part === 'string') reading.text += part;
    else if (isObject(part)) readPart(reading, part);
  }
  return reading;
}

function readPart(reading: ContentReading, part: JsonObject): void {
  const { type, text, thinking } = part;
  if (type === 'thinking') reading.thinking += typeof thinking === 'string' ? thinking : textOf(thinking);
  else if (type === 'image_url') reading.images.push(part);
  else if (typeof text === 'string' && (type === 'text' || type === 'output_text' || type === undefined)) reading.text += text;
  else reading.other.push(part);
}

/** Thoughts within a thought are left out: how deep they nest is up to strangers. */
const textOf = (parts: unknown): string => (Array.isArray(parts) ? readContentParts(parts.filter(isNoThought)).text : '');

const isNoThought = (part: unknown): boolean => !isObject(part) || part['type'] !== 'thinking';

export interface WireReasoning {
  reasoning_content?: unknown;
  reasoning?: unknown;
  reasoning_text?: unknown;
  reasoning_details?: unknown;
}

/**
 * The reasoning text of one delta: the first field that has any. Gateways that send two fields send the same text twice. `before`: the reasoning that
 * came before any details did. Details that then say all of it at once restate it, for clients that must send them back.
 */
export function readReasoning(
  { reasoning_content, reasoning, reasoning_text, reasoning_details }: WireReasoning,
  before: string,
): string {
  if (isFilledText(reasoning_content)) return reasoning_content;
  if (isFilledText(reasoning)) return reasoning;
  if (isFilledText(reasoning_text)) return reasoning_text;
  const detailed = Array.isArray(reasoning_details) ? reasoning_details.map(reasoningDetailText).join('') : '';
  return detailed === before ? '' : detailed;
}

function reasoningDetailText(entry: unknown): string {
  if (!isObject(entry)) return '';
  const { text, summary } = entry;
  if (typeof text === 'string') return text;
  return typeof summary === 'string' ? summary : '';
}

/**
 * `reasoning_details` of OpenRouter and MiniMax, `thinking_blocks` of LiteLLM: entries are incremental, told apart by type and index, and must go
 * back verbatim.
 */
export class ReasoningDetails {
  readonly entries: JsonObject[] = [];
  /** By what tells them apart, as JSON: it comes from strangers, and need not be a word. */
  readonly #byKey = new Map<string | undefined, JsonObject>();

  push(details: unknown): void {
    if (!Array.isArray(details)) return;
    for (const entry of details) if (isObject(entry)) this.#merge(entry);
  }

  #merge(entry: JsonObject): void {
    const key = writeJson([entry['type'], entry['index'] ?? entry['id']]);
    const known = this.#byKey.get(key);
    // LiteLLM does not number its blocks: what is thought after a signature is another one.
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

/** Signatures and ciphertexts come whole, in pieces, or twice: append unless identical. */
function appendUnlessSame(target: JsonObject, key: string, value: unknown): void {
  if (value !== target[key]) append(target, key, value);
}

/** A list that takes each value once: annotations are repeated word for word on later chunks. */
export class DistinctList {
  readonly items: unknown[] = [];
  readonly #seen = new Set<string>();

  /** Whether the value was new. */
  add(value: unknown): boolean {
    // What is nested too deeply to be compared counts as new.
    const key = writeJson(value) ?? `#${this.items.length}`;
    if (this.#seen.has(key)) return false;
    this.#seen.add(key);
    this.items.push(value);
    return true;
  }
}

/** Azure's `messages`, and `finish_details` of the vision preview, in the usual form. */
export function usualChoice(choice: WireChoice): WireChoice {
  const usual = { ...choice };
  const { messages, finish_details: details } = choice;
  if (isObject(details)) usual.finish_reason ??= details['type'];
  if (!Array.isArray(messages)) return usual;
  delete usual.messages;
  const delta: JsonObject = {};
  for (const message of messages.filter(isObject)) {
    const { index: _index, end_turn: isEnd, delta: inner, ...said } = message;
    Object.assign(said, inner);
    if (isEnd === true) usual.finish_reason ??= 'stop';
    // What the search found is a message of the tool; newer versions put it into `context`. The last delta is a "[DONE]" of its own.
    if (said['role'] === 'tool') delta['context'] = { messages: [said] };
    else if (said['content'] !== '[DONE]') Object.assign(delta, said);
  }
  usual.delta = delta;
  return usual;
}

/** Usage may ride on any chunk, in a choice (Moonshot) or under `x_groq`. */
export function readUsage(chunk: JsonObject): JsonObject | undefined {
  if (isObject(chunk['usage'])) return chunk['usage'];
  const choices = chunk['choices'];
  if (Array.isArray(choices))
    for (const choice of choices) if (isObject(choice) && isObject(choice['usage'])) return choice['usage'];
  const groq = chunk['x_groq'];
  return isObject(groq) && isObject(groq['usage']) ? groq['usage'] : undefined;
}

/**
 * Lays a usage snapshot over the one before: field by field the last non-null value wins. A zero, which relays put where they know no count,
 * replaces a count only beside another size of the input: that is of another request (server tools, compaction). Returns whether there was a
 * zero that did not.
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

const STRONG: ReadonlySet<string | null> = new Set([
  'length',
  'content_filter',
  'tool_calls',
  'function_call',
  'tool_use',
  'max_tokens',
]);

/** Some servers say "stop" on every chunk, or again after the real reason: a stronger reason is never weakened. */
export function strongerFinish(current: string | null, next: unknown): string | null {
  if (!isFilledText(next)) return current;
  return STRONG.has(current) && !STRONG.has(next) ? current : next;
}

const CUT: ReadonlySet<string> = new Set(['length', 'max_tokens', 'content_filter', 'error']);

/** Whether a message came to its own end, so that a call without arguments has none; otherwise they may have been lost. */
export const isCleanFinish = (finish: string | null): boolean => finish !== null && !CUT.has(finish);

/** The deprecated call, unless it is a blank: servers that dump a whole struct send an empty one with every message. */
export function readLegacyCall(call: unknown): JsonObject | undefined {
  return isObject(call) && (call['name'] || call['arguments']) ? call : undefined;
}

/** Replaces lone surrogates: left by a server that cuts between UTF-16 units, or by a stream that was cut there. */
export function wellFormed(text: string): string {
  // Missing in a few runtimes of 2023; a native scan costs next to nothing.
  if (typeof text.isWellFormed === 'function') return text.isWellFormed() ? text : text.toWellFormed();
  return text.replace(/\p{Surrogate}/gu, '\uFFFD');
}

/** So many deltas in a row must each begin with all the text before them, and be longer. */
const ENOUGH = 3;

/** And so long must the last of them be; shorter ones are decided when other content comes, or the end. */
const LONG_ENOUGH = 12;

/** What is saved of `Snapshots`. */
export interface SnapshotsState {
  /** The last delta, as long as every delta began with the one before it; null once one did not: then deltas are pieces. */
  last: string | null;
  count: number;
  /** How much of `last` has been passed on. */
  sent: number;
  /** Deltas that wait, one behind the other. */
  held: string;
}

/**
 * Turns text deltas that repeat all the text so far into pieces. Some servers send such snapshots; nearly all send pieces, which pass unchanged:
 * the second delta of a text almost never begins with the first one. One that does waits for the next, and for more as long as they are short.
 * A text that repeats itself ("ha", "haha") is no snapshot.
 */
export class Snapshots implements SnapshotsState {
  last: string | null = '';
  count = 0;
  sent = 0;
  held = '';

  /** Takes a delta and returns what can be passed on now. `isPiece`: it is known to be a piece (log probabilities come with it). */
  push(delta: string, isPiece = false): string {
    const { last } = this;
    if (last === null || delta === '') return delta;
    const isCertain = this.count >= ENOUGH && last.length >= LONG_ENOUGH;
    if (isCertain && delta === last) return '';
    this.held += delta;
    this.last = !isPiece && continues(last, delta, this.count) ? delta : null;
    this.count++;
    const waits = this.last !== null && (delta.length < LONG_ENOUGH || this.count < ENOUGH) && this.count > 1;
    return waits ? '' : this.flush();
  }

  /** What waits, decided: other content comes, or the end. */
  flush(): string {
    const { rest } = this;
    if (this.count > 1 && this.count < ENOUGH) this.last = null;
    this.sent = this.last?.length ?? 0;
    this.held = '';
    return rest;
  }

  /** What `flush` would return. */
  get rest(): string {
    return this.last === null || this.count < ENOUGH ? this.held : this.last.slice(this.sent);
  }
}

function continues(last: string, delta: string, count: number): boolean {
  if (delta.length <= last.length || !delta.startsWith(last)) return false;
  const rest = delta.slice(last.length);
  return count !== 1 || !(rest.startsWith(last) || last.startsWith(rest));
}

export interface ThinkSplit {
  reasoning: string;
  text: string;
}

const TAG = /<(\/?)think(?:ing)?>/g;

/**
 * Splits `<think>…</think>` out of a text: local servers without a reasoning parser leave the tags in the content. Templates that open the tag
 * in the prompt leave only the closing one. Only for callers who ask: tags may be literal output. null when there are none.
 */
export function splitThink(text: string): ThinkSplit | null {
  const split: ThinkSplit = { reasoning: '', text: '' };
  let from = 0;
  let isThinking: boolean | undefined;
  for (const match of text.matchAll(TAG)) {
    const isClosing = match[1] === '/';
    // The first tag closes: everything before it was thought. A closing tag that closes nothing is literal text.
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
