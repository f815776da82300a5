/** Reduces a canonical request to a digest that is the same in every protocol. docs/cache.md lists what does not count. */

import { createHash } from 'node:crypto';
import type { CanonicalRequest } from '@sluice/core';

/** The digest of everything in a request that the response depends on. `scope`: what else it depends on. */
export function digestRequest(request: CanonicalRequest, scope: readonly unknown[] = []): string {
  const hash = createHash('sha256').update(JSON.stringify(scope));
  return hash.update(writeRequest(request)).digest('base64');
}

/** Fields that change how a response is delivered, recorded or charged, and not what it says. */
const TRANSPORT_FIELDS: ReadonlySet<string> = new Set([
  'model',
  'stream',
  'stream_options',
  'user_id',
  'metadata',
  'prompt_cache',
  'store',
] satisfies (keyof CanonicalRequest)[]);

/** The same fields under their names in a protocol. */
const TRANSPORT_NAMES: ReadonlySet<string> = new Set([
  ...['user', 'safety_identifier', 'metadata', 'labels', 'stream', 'stream_options', 'store'],
  ...['prompt_cache_key', 'prompt_cache_retention', 'prompt_cache_options', 'anthropic-version'],
]);

function writeRequest(request: CanonicalRequest): string {
  const { system = [], messages, tools = [], extensions, ...rest } = request;
  const instructions = system.map(({ role, ...block }) => (role === 'developer' ? { ...block, role } : block));
  const own = Object.entries(extensions ?? {}).map(([protocol, fields]) => [protocol, dropNames(fields, TRANSPORT_NAMES)]);
  const body = { ...dropNames(rest, TRANSPORT_FIELDS), system: instructions, messages, tools };
  return writeNode({ ...body, extensions: Object.fromEntries(own) });
}

const dropNames = (fields: object, names: ReadonlySet<string>): object =>
  Object.fromEntries(Object.entries(fields).filter(([name]) => !names.has(name)));

/**
 * JSON with sorted fields: every decoder sets them in its own order. Values of clients keep theirs, because models write
 * fields in the order of a schema.
 */
function writeNode(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(writeNode).join()}]`;
  if (typeof value !== 'object' || value === null) return JSON.stringify(value) ?? 'null';
  const fields = Object.entries(normalize(value as Record<string, unknown>)); // any object has text keys
  const known = fields.filter(([, field]) => field !== undefined).toSorted(([a], [b]) => (a < b ? -1 : 1));
  return `{${known.map(([name, field]) => `${JSON.stringify(name)}:${VERBATIM.has(name) ? JSON.stringify(field) : writeNode(field)}`).join()}}`;
}

/** Fields that hold JSON of the client. */
const VERBATIM: ReadonlySet<string> = new Set([
  'input_schema',
  'output_schema',
  'schema',
  'input',
  'config',
  'raw',
  'native',
  'input_examples',
  'logit_bias',
]);

/** Removes what says the same as its absence, and what is about prompt caching. */
function normalize(node: Record<string, unknown>): Record<string, unknown> {
  const { cache_control: _, input_raw: raw, kind, extensions, ...rest } = node;
  // The text of arguments counts only where it says more than their value, such as a number that is too long.
  const isExact = raw === undefined || JSON.stringify(rest['input']) === raw;
  return {
    ...rest,
    ...(!isExact && { input_raw: raw }),
    ...(kind !== 'function' && { kind }),
    ...(rest['type'] === 'tool_result' &&
      typeof rest['content'] === 'string' && { content: [{ type: 'text', text: rest['content'] }] }),
    extensions: normalizeExtensions(extensions, rest['input_schema']),
  };
}

/** Fields of one protocol count, except those that only repeat a canonical field or its place. */
function normalizeExtensions(extensions: unknown, schema: unknown): unknown {
  if (typeof extensions !== 'object' || extensions === null) return undefined;
  const kept = Object.entries(extensions).flatMap(([protocol, fields]) => {
    const counted = Object.entries((fields ?? {}) as Record<string, unknown>).filter(([name, value]) => {
      if (name === 'instructions') return value !== true;
      return name !== 'parameters' || JSON.stringify(value) !== JSON.stringify(schema);
    });
    return counted.length === 0 ? [] : [[protocol, JSON.stringify(counted)]];
  });
  return kept.length === 0 ? undefined : Object.fromEntries(kept);
}
