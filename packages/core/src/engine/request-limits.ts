import type { CodecError } from '../canonical/notes.ts';
import { listOrEmpty } from '../codec/read.ts';
import { invalid } from '../codec/report.ts';
import { countKeys } from '../json/fast.ts';
import { isObject, type JsonObject } from '../json/json.ts';
import { MAX_CALLS, MAX_JSON_DEPTH } from '../json/limits.ts';

/** Upper bounds for the lists and objects of a request, whatever its protocol. */
export interface RequestLimits {
  /** Tools, with those inside namespaces and function declarations. */
  tools: number;
  messages: number;
  /** Content parts of all messages and the system prompt together, with those inside tool results. */
  contentParts: number;
  /** Tool calls of one message. */
  callsPerMessage: number;
  metadataKeys: number;
  topLevelKeys: number;
  /** Keys of any other object: tools, schemas, arguments, parameters. */
  objectKeys: number;
}

/** The limits that apply unless a caller sets others. */
export const REQUEST_LIMITS: Readonly<RequestLimits> = {
  tools: 2_000,
  messages: 10_000,
  contentParts: 20_000,
  callsPerMessage: MAX_CALLS,
  metadataKeys: 1_000,
  topLevelKeys: 4_096,
  objectKeys: 10_000,
};

/**
 * Throws a CodecError (400) that names the field and the limit. Counts each entry once, so that it may run before any
 * conversion. `nameLimit`: how the message names a limit, by default as the option `limits` does.
 */
export function checkRequestLimits(
  body: unknown,
  limits: RequestLimits = REQUEST_LIMITS,
  nameLimit: (limit: keyof RequestLimits) => string = (limit) => `limits.${limit}`,
): void {
  if (!isObject(body)) return;
  const excess: Excess = (param, count, what, limit) =>
    invalid(param, `${count} ${what}; the limit is ${limits[limit]} (${nameLimit(limit)})`);
  if (countKeys(body) > limits.topLevelKeys) throw excess('request', countKeys(body), 'keys', 'topLevelKeys');
  for (const name of METADATA) {
    const keys = isObject(body[name]) ? countKeys(body[name]) : 0;
    if (keys > limits.metadataKeys) throw excess(name, keys, 'keys', 'metadataKeys');
  }
  for (const name of TOOLS) {
    const tools = countTools(listOrEmpty(body[name]));
    if (tools > limits.tools) throw excess(name, tools, 'entries', 'tools');
  }
  for (const name of MESSAGES) checkMessages(name, body, limits, excess);
  for (const name in body) checkKeys(body[name], name, limits, excess);
}

/** Builds the error of a field that exceeds a limit. */
type Excess = (param: string, count: number, what: string, limit: keyof RequestLimits) => CodecError;

/** Checks the objects of a value. An object of a million different keys takes two seconds to convert. */
function checkKeys(value: unknown, param: string, limits: RequestLimits, excess: Excess): void {
  const crowded = findCrowded(value, limits.objectKeys, MAX_JSON_DEPTH);
  if (crowded) throw excess(param + crowded.path, crowded.keys, 'keys', 'objectKeys');
}

/** The first object with more keys than the limit, and its path. The path is built only when there is one. */
function findCrowded(value: unknown, limit: number, depth: number): { path: string; keys: number } | undefined {
  if (typeof value !== 'object' || value === null || depth === 0) return undefined;
  if (Array.isArray(value)) {
    for (let i = 0; i < value.length; i++) {
      const found = findCrowded(value[i], limit, depth - 1);
      if (found) return { ...found, path: `[${i}]${found.path}` };
    }
    return undefined;
  }
  let keys = 0;
  for (const name in value) {
    if (++keys > limit) return { path: '', keys: countKeys(value) };
    const found = findCrowded((value as JsonObject)[name], limit, depth - 1); // parsed JSON
    if (found) return { ...found, path: `.${name.slice(0, MAX_SHOWN_KEY)}${found.path}` };
  }
  return undefined;
}

const MAX_SHOWN_KEY = 64;

const METADATA = ['metadata', 'labels'];

const TOOLS = ['tools', 'functions'];

const MESSAGES = ['messages', 'input', 'contents'];

const SYSTEM = ['system', 'systemInstruction', 'system_instruction'];

function checkMessages(name: string, body: JsonObject, limits: RequestLimits, excess: Excess): void {
  const messages = listOrEmpty(body[name]);
  // The `input` of an embeddings request is a list of texts or tokens: its length is the provider's to limit.
  const count = messages.reduce<number>((sum, message) => sum + Number(isObject(message)), 0);
  if (count > limits.messages) throw excess(name, count, 'entries', 'messages');
  let parts = SYSTEM.reduce((sum, field) => sum + countParts(body[field]), 0);
  // OpenAI Responses has no messages around calls, so consecutive calls count as one message.
  let run = 0;
  for (const [i, message] of messages.entries()) {
    if (!isObject(message)) continue;
    parts += countParts(message);
    run = hasCallType(message) ? run + 1 : 0;
    const calls = Math.max(run, listOrEmpty(message['tool_calls']).length, countCalls(message));
    if (calls > limits.callsPerMessage) throw excess(run > 0 ? name : `${name}[${i}]`, calls, 'tool calls', 'callsPerMessage');
  }
  if (parts > limits.contentParts) throw excess(name, parts, 'content parts', 'contentParts');
}

const countTools = (tools: readonly unknown[]): number =>
  tools.reduce<number>((sum, tool) => {
    const { functionDeclarations, function_declarations: declarations, tools: inner }: JsonObject = isObject(tool) ? tool : {};
    return sum + Math.max(1, listOrEmpty(functionDeclarations ?? declarations ?? inner).length);
  }, 0);

function countParts(holder: unknown): number {
  if (Array.isArray(holder)) return holder.reduce<number>((sum, part) => sum + 1 + countParts(part), 0);
  if (!isObject(holder)) return 0;
  let count = 0;
  for (const name of HOLDERS) if (Array.isArray(holder[name])) count += countParts(holder[name]);
  for (const name of DEEPER) if (isObject(holder[name])) count += countParts(holder[name]);
  return count;
}

/** Fields of messages and parts that hold lists of parts. */
const HOLDERS = ['content', 'parts', 'output', 'summary'];

/** Fields that hold an object with further parts. */
const DEEPER = ['source', 'functionResponse', 'function_response'];

const countCalls = ({ content, parts }: JsonObject): number =>
  listOrEmpty(content ?? parts).reduce<number>((sum, part) => sum + Number(isObject(part) && isCall(part)), 0);

const isCall = (part: JsonObject): boolean => hasCallType(part) || isObject(part['functionCall'] ?? part['function_call']);

const hasCallType = ({ type }: JsonObject): boolean => typeof type === 'string' && CALL_TYPE.test(type);

const CALL_TYPE = /(?:_call|tool_use)$/;
