import type { ContentBlock, FileBlock, ToolResultBlock, ToolUseBlock } from '../packages/core/src/canonical/message.ts';
import type { CacheControl } from '../packages/core/src/canonical/protocol.ts';
import { locate } from '../packages/core/src/canonical/source.ts';
import type { SourceBody } from '../packages/core/src/engine/request.ts';
import type { CanonicalMessage, CanonicalRequest, Note } from '../packages/core/src/index.ts';
import { isObject } from '../packages/core/src/json/json.ts';

/**
 * One thing that a request says. Two requests of different shape can be compared by what they say: messages may be merged or split, texts
 * joined, ids renamed, and nothing is lost as long as every fact is still there.
 */
export interface Fact {
  /** What is said, without its place. */
  key: string;
  /** Text that may have become part of a longer one. */
  text?: string;
  /** Where it stands in the canonical request. */
  path: string;
  /** Where the call stands whose result it is part of: a note about a call tells of its result, too. */
  call?: string;
}

const json = (value: unknown): string =>
  JSON.stringify(value, (_, node) => (isObject(node) ? Object.fromEntries(Object.entries(node).toSorted()) : node));

type Calls = Map<string, { block: ToolUseBlock; path: string }>;

/** Parts that have facts of their own, or say nothing about the question itself. */
const APART = new Set(['system', 'messages', 'tools', 'extensions', 'model', 'stream', 'stream_options']);

export function* factsOf(request: CanonicalRequest): Iterable<Fact> {
  for (const [name, value] of Object.entries(request)) if (!APART.has(name)) yield* leaves(value, `/${name}`);
  for (const [i, { text, cache_control: cache }] of (request.system ?? []).entries()) {
    yield { key: 'system', text, path: `/system/${i}` };
    yield* markFacts(cache, 'system', `/system/${i}`);
  }
  for (const [i, tool] of (request.tools ?? []).entries()) yield* toolFacts(tool, `/tools/${i}`);
  const calls: Calls = new Map();
  for (const [i, message] of request.messages.entries()) yield* messageFacts(message, `/messages/${i}`, calls);
}

function* leaves(value: unknown, path: string): Iterable<Fact> {
  if (path === '/output_format/json_schema/schema') yield* propertyFacts(value, path, 'answer');
  else if (path === '/include' && Array.isArray(value)) for (const entry of value) yield { key: `${path} ${entry}`, path };
  else if (isObject(value) && Object.keys(value).length > 0)
    for (const [name, inner] of Object.entries(value)) yield* leaves(inner, `${path}/${name}`);
  else yield { key: `${path} ${json(value)}`, path };
}

function* markFacts(mark: CacheControl | undefined, on: string, path: string): Iterable<Fact> {
  if (!mark) return;
  yield { key: `${on} marked`, path: `${path}/cache_control` };
  if (mark.ttl) yield { key: `${on} marked for ${mark.ttl}`, path: `${path}/cache_control/ttl` };
}

/** Dialects differ in how they say a schema; the names of its properties are the same in all of them. */
function* propertyFacts(schema: unknown, path: string, of: string): Iterable<Fact> {
  for (const name of new Set(propertiesOf(schema))) yield { key: `${of} has ${name}`, path };
}

function* propertiesOf(schema: unknown): Iterable<string> {
  if (typeof schema !== 'object' || schema === null) return;
  const properties = isObject(schema) && isObject(schema['properties']) ? schema['properties'] : {};
  yield* Object.keys(properties);
  for (const inner of Object.values(schema)) yield* propertiesOf(inner);
}

function* toolFacts(tool: NonNullable<CanonicalRequest['tools']>[number], path: string): Iterable<Fact> {
  const { name, namespace, description, input_schema: schema, kind = 'function', strict, cache_control: cache, server } = tool;
  const called = `${kind} ${namespace ?? ''} ${server ? server.type : name}`;
  yield { key: `tool ${called}`, path };
  if (description !== undefined) yield { key: `tool ${called} is`, text: description, path: `${path}/description` };
  if (strict) yield { key: `tool ${called} is strict`, path: `${path}/strict` };
  yield* markFacts(cache, `tool ${called}`, path);
  if (kind === 'function') yield* propertyFacts(schema ?? {}, `${path}/input_schema`, `tool ${called}`);
}

function* messageFacts({ role, content, name }: CanonicalMessage, path: string, calls: Calls): Iterable<Fact> {
  const speaker = role === 'tool' ? 'user' : role;
  if (name !== undefined) yield { key: `${role} is called ${name}`, path: `${path}/name` };
  for (const [i, block] of content.entries()) yield* blockFacts(block, speaker, `${path}/content/${i}`, calls);
}

function* blockFacts(block: ContentBlock, speaker: string, path: string, calls: Calls): Iterable<Fact> {
  if ('cache_control' in block) yield* markFacts(block.cache_control, `${speaker} ${block.type}`, path);
  if ('signature' in block && block.signature) yield { key: `signature ${block.signature.value}`, path: `${path}/signature` };
  switch (block.type) {
    case 'text':
      if (block.text.trim() !== '') yield { key: speaker, text: block.text, path };
      if (block.citations?.length) yield { key: `${speaker} cites ${block.citations.length}`, path: `${path}/citations` };
      return;
    case 'thinking':
      if (block.thinking !== '') yield { key: 'thought', text: block.thinking, path };
      return;
    case 'tool_use':
      calls.set(block.id, { block, path });
      yield { key: callKey(block), path };
      return;
    case 'tool_result': {
      const call = calls.get(block.tool_use_id);
      for (const fact of resultFacts(block, call ? callKey(call.block) : 'a call that is not there', path, calls))
        yield { ...fact, ...(call && { call: call.path }) };
      return;
    }
    case 'image':
    case 'audio':
      yield { key: `${block.type} ${json(block.source.data ?? block.source.url ?? block.source.file_id)}`, path };
      return;
    case 'file': {
      const { file_data: data, file_url: url, file_id: id, content } = block.source;
      const text = textOf(block.source);
      // A document of text may have become what its reader says.
      if (text === undefined) yield { key: `file ${json(data ?? url ?? id ?? content)}`, path };
      else yield { key: speaker, text, path };
      if (block.title !== undefined) yield { key: `file is called ${block.title}`, path: `${path}/title` };
      if (block.context !== undefined) yield { key: `file is about ${block.context}`, path: `${path}/context` };
      if (block.citations_enabled) yield { key: 'file may be cited', path: `${path}/citations_enabled` };
      return;
    }
    case 'opaque':
      yield { key: `opaque ${json(block.raw)}`, path };
      return;
    default:
      block satisfies never;
  }
}

const textOf = ({ text, file_data: data, media_type: type }: FileBlock['source']): string | undefined =>
  text ?? (type?.startsWith('text/') && data !== undefined ? Buffer.from(data, 'base64').toString() : undefined);

function* resultFacts(block: ToolResultBlock, answered: string, path: string, calls: Calls): Iterable<Fact> {
  if (block.is_error) yield { key: `error of ${answered}`, path: `${path}/is_error` };
  if (typeof block.content === 'string') yield { key: `result of ${answered}`, text: block.content, path };
  else
    for (const [i, inner] of block.content.entries()) {
      const at = `${path}/content/${i}`;
      if (inner.type === 'text') yield { key: `result of ${answered}`, text: inner.text, path: at };
      else yield* blockFacts(inner, 'user', at, calls);
    }
}

const callKey = ({ kind = 'function', namespace, name, input }: ToolUseBlock): string =>
  `call ${kind} ${namespace ?? ''} ${name} ${json(input)}`;

/** Whether a request still says something. */
export function hasFact({ key, text }: Fact, facts: readonly Fact[]): boolean {
  if (text === undefined) return facts.some((fact) => fact.key === key);
  const said = text.trim();
  // A text may have been put together with others, or told as a part of one.
  return facts.some((fact) => fact.text?.includes(said) && fact.key === key) || joined(facts, key).includes(said);
}

const joined = (facts: readonly Fact[], key: string): string =>
  facts.flatMap((fact) => (fact.key === key && fact.text !== undefined ? [fact.text] : [])).join('\n\n');

/** Whether one of the notes tells of a fact. */
export function isTold(fact: Fact, notes: readonly Note[], request: CanonicalRequest, source: SourceBody): boolean {
  const paths = [fact.path, ...(fact.call === undefined ? [] : [fact.call])];
  const places = paths.map((path) => source.spell(locate(path, request)));
  return notes.some((note) => places.some((place) => tells(note, place)));
}

/** Whether a note tells of what stands at the pointer: of it, of what it is a part of, or of a part of it. */
export const tells = ({ path }: Pick<Note, 'path'>, pointer: string): boolean =>
  path === pointer || pointer.startsWith(`${path}/`) || path.startsWith(`${pointer}/`);
