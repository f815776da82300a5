/** Passes that give tools and calls names and ids that the target accepts. */

import { type ContentBlock, isClientCall } from '../canonical/message.ts';
import type { CanonicalRequest, CanonicalTool, ToolChoice } from '../canonical/request.ts';
import { changeAll, changeBlocks } from './content.ts';
import type { NameRule, Rules, ToolRules } from './rules.ts';

/** A tool, call or result with the name of a tool. */
export interface Named {
  /** The name of the tool. */
  name: string;
  /** The namespace of the tool, if it has one. */
  namespace?: string;
}

/**
 * Gives new names to tools whose names the target would reject, and makes unsupported namespaces part of the name, in
 * definitions, choice, calls and results. The names depend only on the source, so that the response decoder can
 * compute the same table.
 */
export function mapNames(original: CanonicalRequest, rules: Rules, source: CanonicalRequest): CanonicalRequest {
  const request = withoutRepeated(original, rules);
  const names = buildNameTable(source, rules.target);
  if (names.size === 0) return request;
  const places = findPlaces(request, rules);
  for (const [key, sent] of names) {
    const message = `tool name "${key.replace('\0', '.')}" is not valid for the target; sent as "${sent}"`;
    rules.note({ code: 'RENAMED', path: places.get(key) ?? '/tool_choice', feature: 'tools.name', message });
  }
  const rename = <T extends Named>(called: T): T => {
    const name = names.get(buildNameKey(called, rules.target));
    if (name === undefined) return called;
    const { namespace, ...rest } = called;
    return { ...rest, name, ...(rules.target.namespaces && namespace !== undefined && { namespace }) } as T; // the namespace is optional
  };
  const tools = request.tools?.map((tool) => (isClientCall(tool.kind) ? rename(tool) : tool));
  const named = indexTools(request);
  const chosen = (name: string): string => {
    const tool = named.get(name);
    return tool && !isClientCall(tool.kind) ? name : rename<Named>(tool ?? { name }).name;
  };
  return {
    ...changeBlocks(request, createRenamer(rename)),
    ...(tools && { tools }),
    ...(request.tool_choice && { tool_choice: renameChoice(request.tool_choice, chosen) }),
  };
}

/** Targets reject two tools with one name, or call either of them, so only the first is sent. */
function withoutRepeated(request: CanonicalRequest, rules: Rules): CanonicalRequest {
  const seen = new Set<string>();
  const tools =
    request.tools &&
    changeAll(request.tools, (tool, i) => {
      if (!isClientCall(tool.kind)) return tool;
      const key = `${tool.namespace ?? ''}\0${tool.name}`;
      if (seen.has(key)) {
        const message = `tool name "${tool.name}" is declared twice; only the first declaration is sent`;
        rules.repair({ path: `/tools/${i}`, feature: 'tools.name', message });
        return undefined;
      }
      seen.add(key);
      return tool;
    });
  return tools === request.tools ? request : { ...request, ...(tools && { tools }) };
}

/**
 * The first path of each name: its declaration, otherwise its first call. Names missing here occur only in
 * `tool_choice`.
 */
function findPlaces({ tools = [], messages }: CanonicalRequest, rules: Rules): ReadonlyMap<string, string> {
  const places = new Map<string, string>();
  const add = (called: Named, path: string): void => {
    const key = buildNameKey(called, rules.target);
    if (!places.has(key)) places.set(key, path);
  };
  for (const [i, tool] of tools.entries()) add(tool, `/tools/${i}`);
  for (const [i, { content }] of messages.entries())
    for (const [k, block] of content.entries()) if (isNamed(block)) add(block, `/messages/${i}/content/${k}`);
  return places;
}

const isNamed = (block: ContentBlock): block is ContentBlock & Named => 'name' in block && block.name !== undefined;

/**
 * Tools by name, for choices, which have only a name: client tools win over others, and tools without a namespace
 * over these.
 */
function indexTools({ tools = [] }: CanonicalRequest): Map<string, CanonicalTool> {
  const rank = ({ kind, namespace }: CanonicalTool): number => Number(isClientCall(kind)) * 2 + Number(namespace === undefined);
  return new Map(tools.toSorted((a, b) => rank(a) - rank(b)).map((tool) => [tool.name, tool]));
}

/**
 * Renames calls and results. A result gets the name of its call; since ids are reused, the call is found by id and
 * name.
 */
function createRenamer(rename: <T extends Named>(called: T) => T): (block: ContentBlock) => ContentBlock {
  const names = new Map<string, string>();
  const buildKey = (id: string, name: string): string => `${name}\0${id}`;
  return (block) => {
    if (block.type === 'tool_use' && isClientCall(block.kind)) {
      const renamed = rename(block);
      names.set(buildKey(block.id, block.name), renamed.name);
      return renamed;
    }
    if (block.type !== 'tool_result' || !isClientCall(block.kind) || block.name === undefined) return block;
    const name = names.get(buildKey(block.tool_use_id, block.name)) ?? rename({ name: block.name }).name;
    return name === block.name ? block : { ...block, name };
  };
}

const renameChoice = (choice: ToolChoice, to: (name: string) => string): ToolChoice =>
  choice.type === 'tool'
    ? { ...choice, name: to(choice.name) }
    : { ...choice, ...(choice.allowed_tools && { allowed_tools: choice.allowed_tools.map(to) }) };

/**
 * Gives new ids to calls whose ids the target would reject or an earlier call has used, and to their results. Results
 * follow their calls (pairTools), so the n-th result of an id belongs to its n-th call.
 */
export function mapIds(request: CanonicalRequest, rules: Rules): CanonicalRequest {
  const { toolId: rule } = rules.target;
  const used = listLegalIds(request, rule);
  const seen = new Map<string, number>();
  const waiting = new Map<string, { names: string[]; next: number }>();
  const call = (id: string, path: string): string => {
    const count = seen.get(id) ?? 0;
    seen.set(id, count + 1);
    const name = count === 0 && isLegal(id, rule) ? id : createId(id, count, rule, used);
    const queue = waiting.get(id);
    if (queue) queue.names.push(name);
    else waiting.set(id, { names: [name], next: 0 });
    if (name === id) return id;
    used.add(name);
    rules.note({
      code: 'RENAMED',
      path,
      feature: 'messages.tool_use.id',
      message: `tool call id "${id}" is not valid for the target; sent as "${name}"`,
    });
    return name;
  };
  // A result without a call belongs to one that the upstream stores, under the id that it would get here.
  const result = (id: string): string => {
    const queue = waiting.get(id);
    const name = queue?.names[queue.next];
    if (queue && name !== undefined) queue.next++;
    return name ?? (isLegal(id, rule) ? id : createId(id, 0, rule, used));
  };
  return changeBlocks(request, (block, path) => {
    if (block.type === 'tool_use' && isClientCall(block.kind)) {
      const id = call(block.id, path);
      return id === block.id ? block : { ...block, id };
    }
    if (block.type !== 'tool_result' || !isClientCall(block.kind)) return block;
    const id = result(block.tool_use_id);
    return id === block.tool_use_id ? block : { ...block, tool_use_id: id };
  });
}

function listLegalIds({ messages }: CanonicalRequest, rule: NameRule): Set<string> {
  const used = new Set<string>();
  for (const { content } of messages)
    for (const block of content) if (block.type === 'tool_use' && isLegal(block.id, rule)) used.add(block.id);
  return used;
}

const ID_DIGITS = 24;

/** The id with illegal characters replaced if that is unused; otherwise a hash of the id and of its previous uses. */
function createId(id: string, count: number, rule: NameRule, used: ReadonlySet<string>): string {
  const digits = sha256(count === 0 ? id : `${id}#${count}`);
  const hashed = `call_${digits.slice(0, ID_DIGITS)}`;
  // Mistral requires exactly nine letters or digits.
  const candidates = [...(count === 0 ? [id.replace(/[^A-Za-z0-9_-]/g, '_')] : []), hashed, digits.slice(0, rule.max)];
  return candidates.find((name) => isLegal(name, rule) && !used.has(name)) ?? hashed;
}

type Naming = Pick<ToolRules, 'toolName' | 'namespaces'>;

/** The new names of tools by key; unchanged names are not included. The same request always gives the same names. */
export function buildNameTable(request: CanonicalRequest, rules: Naming): ReadonlyMap<string, string> {
  const all = new Map([...listNamed(request)].map((called) => [buildNameKey(called, rules), called]));
  const isKept = (key: string, { name }: Named): boolean => key === name && isLegal(name, rules.toolName);
  const used = new Set([...all].filter(([key, called]) => isKept(key, called)).map(([key]) => key));
  const names = new Map<string, string>();
  for (const [key, called] of all) {
    if (isKept(key, called)) continue;
    const name = createName(key, rules.toolName, used);
    used.add(name);
    names.set(key, name);
  }
  return names;
}

/** A readable name if it is unused; otherwise one with a hash of the key, repeated until it is unused. */
function createName(key: string, rule: NameRule, used: ReadonlySet<string>): string {
  const wanted = key.replace('\0', '__');
  const plain = shorten(wanted, rule);
  if (isLegal(plain, rule) && !used.has(plain)) return plain;
  for (let salted = key; ; salted += '#') {
    const name = addHash(plain, salted, rule);
    if (!used.has(name)) return name;
  }
}

/** Replaces characters that some protocols reject; some require a letter or `_` first. */
function shorten(name: string, rule: NameRule): string {
  if (isLegal(name, rule)) return name;
  const plain = name.replace(/[^A-Za-z0-9_-]/g, '_');
  const begun = plain !== '' && !rule.pattern.test(plain) && rule.pattern.test(`_${plain}`) ? `_${plain}` : plain;
  return begun.length > rule.max ? addHash(begun, name, rule) : begun;
}

const isLegal = (name: string, { pattern, max }: NameRule): boolean => name.length <= max && pattern.test(name);

/** How many characters of a long name stay readable, before the digits of its hash. */
const READABLE = 48;

const DIGITS = 8;

function addHash(plain: string, name: string, { max }: NameRule): string {
  const head = plain.slice(0, Math.max(0, Math.min(READABLE, max - DIGITS - 1))) || 'tool';
  return `${head}_${sha256(name).slice(0, DIGITS)}`;
}

/** All tools that a request names, in order, except those that a provider runs. */
export function* listNamed({ tools, tool_choice: choice, messages }: CanonicalRequest): Iterable<Named & { kind?: string }> {
  for (const tool of tools ?? []) if (isClientCall(tool.kind)) yield tool;
  for (const { content } of messages) {
    for (const block of content) {
      if (block.type === 'tool_use' && isClientCall(block.kind)) yield block;
      else if (block.type === 'tool_result' && isClientCall(block.kind) && block.name !== undefined) yield { name: block.name };
    }
  }
  if (!choice) return;
  const isServed = new Set(tools?.filter(({ kind }) => !isClientCall(kind)).map(({ name }) => name));
  const chosen = choice.type === 'tool' ? [choice.name] : (choice.allowed_tools ?? []);
  for (const name of chosen) if (!isServed.has(name)) yield { name };
}

/** The key of a tool. It includes the namespace if the target does not support namespaces. */
export const buildNameKey = ({ name, namespace }: Named, { namespaces }: Naming): string =>
  namespace === undefined || namespaces ? name : `${namespace}\0${name}`;

const START: readonly number[] = [0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19];

/** SHA-256 of the text in UTF-8, in lower-case hex. The runtime's own digest is not synchronous. */
export function sha256(text: string): string {
  const words = pad(new TextEncoder().encode(text));
  const state = Uint32Array.from(START);
  for (let at = 0; at < words.length; at += 16) compress(state, words.subarray(at, at + 16));
  return Array.from(state, (word) => word.toString(16).padStart(8, '0')).join('');
}

/** The message as big-endian words: a one bit, zeros, and the length in bits at the end of the last block. */
function pad(bytes: Uint8Array): Uint32Array {
  const words = new Uint32Array(((bytes.length + 8) >>> 6) * 16 + 16);
  for (let i = 0; i < bytes.length; i++) words[i >>> 2] = at(words, i >>> 2) | (at(bytes, i) << (24 - 8 * (i & 3)));
  words[bytes.length >>> 2] = at(words, bytes.length >>> 2) | (0x80 << (24 - 8 * (bytes.length & 3)));
  words[words.length - 2] = Math.floor(bytes.length / 0x20000000);
  words[words.length - 1] = bytes.length << 3;
  return words;
}

/** The first 32 bits of the fractional parts of the cube roots of the first 64 primes (FIPS 180-4). */
// biome-ignore format: a table of numbers
const K: Uint32Array = Uint32Array.of(
  0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
  0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
  0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
  0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
  0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
  0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
  0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
  0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2,
);

function compress(state: Uint32Array, block: Uint32Array): void {
  const w = new Uint32Array(64);
  w.set(block);
  for (let i = 16; i < 64; i++) {
    const s0 = rotate(at(w, i - 15), 7) ^ rotate(at(w, i - 15), 18) ^ (at(w, i - 15) >>> 3);
    const s1 = rotate(at(w, i - 2), 17) ^ rotate(at(w, i - 2), 19) ^ (at(w, i - 2) >>> 10);
    w[i] = at(w, i - 16) + s0 + at(w, i - 7) + s1;
  }
  let [a = 0, b = 0, c = 0, d = 0, e = 0, f = 0, g = 0, h = 0] = state;
  for (let i = 0; i < 64; i++) {
    const s1 = rotate(e, 6) ^ rotate(e, 11) ^ rotate(e, 25);
    const t1 = (h + s1 + ((e & f) ^ (~e & g)) + at(K, i) + at(w, i)) | 0;
    const s0 = rotate(a, 2) ^ rotate(a, 13) ^ rotate(a, 22);
    const t2 = (s0 + ((a & b) ^ (a & c) ^ (b & c))) | 0;
    [h, g, f, e, d, c, b, a] = [g, f, e, (d + t1) | 0, c, b, a, (t1 + t2) | 0];
  }
  [a, b, c, d, e, f, g, h].forEach((word, i) => {
    state[i] = at(state, i) + word;
  });
}

const rotate = (word: number, bits: number): number => (word >>> bits) | (word << (32 - bits));

/** Typed arrays return undefined outside their range, which never happens here. */
const at = (words: Uint32Array | Uint8Array, index: number): number => words[index] ?? 0;
