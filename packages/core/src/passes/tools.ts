/** Passes about tools: results and calls, server tools, custom tools, and schemas whose root is not an object. */

import { type ContentBlock, isClientCall, type ToolResultBlock, type ToolUseBlock } from '../canonical/message.ts';
import type { JsonSchema } from '../canonical/protocol.ts';
import type { CanonicalMessage, CanonicalRequest, CanonicalTool, ToolChoice } from '../canonical/request.ts';
import { locate, withSource as placedAt, SOURCE } from '../canonical/source.ts';
import { isObject, parseJson, sameJson } from '../json/json.ts';
import { changeAll, changeBlocks, copySource } from './content.ts';
import { buildNameKey, type Named } from './names.ts';
import type { Reporter, Rules } from './rules.ts';
import { isObjectRoot, wrapRoot } from './schema/nodes.ts';

/** The results of one id in order; `next` is the first that no call has taken or skipped. */
interface Queue {
  found: { block: ToolResultBlock; message: number; path: string }[];
  next: number;
}

interface Results {
  byId: ReadonlyMap<string, Queue>;
  taken: Set<ToolResultBlock>;
}

/**
 * Puts the results of each message's calls directly after it, in the order of the calls. Missing results are added,
 * and results without a call become text, with notes. Open calls in the last message are left alone.
 */
export function pairTools(request: CanonicalRequest, rules: Rules): CanonicalRequest {
  const found: Results = { byId: groupResults(request.messages), taken: new Set() };
  const toolMessages = request.messages.map((message, at) =>
    message.role === 'assistant' ? collectResults(at, request.messages, found, rules) : undefined,
  );
  const messages = request.messages.flatMap((message, at) => {
    const results = toolMessages[at];
    if (results) return [message, results];
    return message.role === 'tool' ? convertOrphans(message, at, found.taken, rules) : [message];
  });
  return { ...request, messages };
}

/** The results of the request by id, in order. */
function groupResults(messages: readonly CanonicalMessage[]): Map<string, Queue> {
  const byId = new Map<string, Queue>();
  messages.forEach(({ role, content }, message) => {
    if (role !== 'tool') return;
    for (const [i, block] of content.entries()) {
      if (block.type !== 'tool_result') continue;
      const queue = byId.get(block.tool_use_id) ?? { found: [], next: 0 };
      queue.found.push({ block, message, path: `/messages/${message}/content/${i}` });
      byId.set(block.tool_use_id, queue);
    }
  });
  return byId;
}

/**
 * The tool message that belongs after the assistant message at `at`; undefined if it has no calls or is the last
 * message.
 */
function collectResults(
  at: number,
  messages: readonly CanonicalMessage[],
  results: Results,
  rules: Reporter,
): CanonicalMessage | undefined {
  const calls = listCalls(messages[at]?.content ?? [], `/messages/${at}/content`);
  if (calls.length === 0 || at === messages.length - 1) return undefined;
  let end = at + 1;
  while (messages[end]?.role === 'tool') end++;
  const content = calls.map(({ call, path }) => {
    const found = take(results.byId.get(call.id), at);
    if (!found) return addMissingResult(call, path, rules);
    results.taken.add(found.block);
    if (found.message >= end) noteMove(call.id, found.path, rules);
    return found.block;
  });
  const next = messages[at + 1];
  const isInPlace =
    next?.role === 'tool' && next.content.length === content.length && next.content.every((b, i) => b === content[i]);
  return isInPlace ? next : copySource<CanonicalMessage>(messages[at] ?? {}, { role: 'tool', content });
}

/** The calls that the client has to run, with their paths. */
const listCalls = (content: readonly ContentBlock[], list: string): { call: ToolUseBlock; path: string }[] =>
  content.flatMap((block, i) =>
    block.type === 'tool_use' && isClientCall(block.kind) ? [{ call: block, path: `${list}/${i}` }] : [],
  );

/** The first result after `at` that no call has taken. */
function take(queue: Queue | undefined, at: number): Queue['found'][number] | undefined {
  if (!queue) return undefined;
  while ((queue.found[queue.next]?.message ?? at + 1) <= at) queue.next++;
  return queue.found[queue.next++];
}

const NO_RESULT = 'No result was recorded for this call.';

function addMissingResult(call: ToolUseBlock, path: string, rules: Reporter): ToolResultBlock {
  const { id, name, kind } = call;
  rules.repair({
    path,
    feature: 'messages.tool_use',
    message: `tool call ${id} of ${name} has no result; inserted an error result`,
  });
  const result: ToolResultBlock = {
    type: 'tool_result',
    tool_use_id: id,
    name,
    content: NO_RESULT,
    is_error: true,
    ...(kind && { kind }),
  };
  // Notes about the result point to the call.
  const place = locate('/call', { call });
  return placedAt(place, result, { trace: SOURCE in call }, { is_error: place });
}

function noteMove(id: string, path: string, rules: Reporter): void {
  const message = `the result of tool call ${id} must follow its call; moved`;
  rules.repair({ path, feature: 'messages.tool_order', message });
}

/** Results that no call has taken become text of the user, or stay if the upstream stores their calls. */
function convertOrphans(
  message: CanonicalMessage,
  at: number,
  taken: ReadonlySet<ContentBlock>,
  rules: Rules,
): CanonicalMessage[] {
  if (rules.remembersCalls) {
    const content = message.content.filter((block) => !taken.has(block));
    return content.length === message.content.length ? [message] : content.length > 0 ? [{ ...message, content }] : [];
  }
  const content = message.content.flatMap((block, i): ContentBlock[] => {
    if (block.type !== 'tool_result') return [block];
    if (taken.has(block)) return [];
    const note = `tool result ${block.tool_use_id} has no matching call; sent as user text`;
    rules.repair({ path: `/messages/${at}/content/${i}`, feature: 'messages.tool_result', message: note });
    return resultToText(block).map((part) => copySource(SOURCE in part ? part : block, part));
  });
  return content.length > 0 ? [copySource<CanonicalMessage>(message, { role: 'user', content })] : [];
}

const EARLIER = 'Result of an earlier tool call';

function resultToText({ name, content }: ToolResultBlock): ContentBlock[] {
  const head = name ? `${EARLIER} (${name})` : EARLIER;
  if (typeof content === 'string') return [{ type: 'text', text: `${head}: ${content}` }];
  const [first, ...rest] = content;
  return first?.type === 'text'
    ? [{ ...first, text: `${head}: ${first.text}` }, ...rest]
    : [{ type: 'text', text: `${head}:` }, ...content];
}

/**
 * Server tools of another protocol become the target's counterpart, a function if the client runs them, or are
 * dropped.
 */
export function mapServerTools(request: CanonicalRequest, rules: Rules): CanonicalRequest {
  if (!request.tools) return request;
  const lost = new Set<string>();
  const losesSearch = request.tools.some((tool) => isForeignSearch(tool, rules));
  const tools = changeAll(request.tools, (tool, i) => {
    const mapped = mapTool(losesSearch ? undefer(tool, `/tools/${i}`, rules) : tool, `/tools/${i}`, rules);
    if (!mapped) lost.add(tool.name);
    return mapped;
  });
  if (tools === request.tools) return request;
  for (const { name } of tools) lost.delete(name);
  const { tool_choice: choice, ...rest } = request;
  const left = choice && withoutLost(choice, lost, rules);
  return { ...rest, tools, ...(left && { tool_choice: left }) };
}

const isForeignSearch = ({ server }: CanonicalTool, { target: { protocol } }: Rules): boolean =>
  server?.type === 'tool_search' && server.origin !== protocol;

/** A tool that is a function in protocols without a type for it. */
export interface BuiltInTool {
  /** The description of the function. */
  description: string;
  /** The schema of its arguments. */
  schema: JsonSchema;
}

const text: JsonSchema = { type: 'string' };

const count: JsonSchema = { type: 'integer' };

const lines: JsonSchema = { type: 'array', items: count, description: 'First and last line.' };

const texts: JsonSchema = { type: 'array', items: text };

const object = (properties: JsonSchema, ...required: string[]): JsonSchema => ({
  type: 'object',
  properties,
  ...(required.length > 0 && { required }),
});

const words = (...values: string[]): JsonSchema => ({ type: 'string', enum: values });

/**
 * Tools that have a type of their own in one protocol, but that the client runs, by canonical type: in other
 * protocols they are functions with the same calls. (The computer tool is not one of them: its screenshots need the
 * protocol's own blocks.)
 */
export const BUILT_IN_TOOLS: ReadonlyMap<string, BuiltInTool> = new Map([
  [
    'bash',
    {
      description: 'Run a command in a persistent bash session.',
      schema: object({ command: text, restart: { type: 'boolean', description: 'Restart the session.' } }),
    },
  ],
  [
    'text_editor',
    {
      description: 'View, create and edit text files.',
      schema: object(
        {
          command: words('view', 'create', 'str_replace', 'insert'),
          path: text,
          file_text: text,
          old_str: text,
          new_str: text,
          insert_line: count,
          insert_text: text,
          view_range: lines,
        },
        'command',
        'path',
      ),
    },
  ],
  [
    'memory',
    {
      description: 'Keep notes in files below /memories.',
      schema: object(
        {
          command: words('view', 'create', 'str_replace', 'insert', 'delete', 'rename'),
          path: text,
          file_text: text,
          old_str: text,
          new_str: text,
          insert_line: count,
          insert_text: text,
          old_path: text,
          new_path: text,
          view_range: lines,
        },
        'command',
      ),
    },
  ],
  [
    'apply_patch',
    {
      description: 'Create, update or delete one file by a diff.',
      schema: object({ type: words('create_file', 'update_file', 'delete_file'), path: text, diff: text }, 'type', 'path'),
    },
  ],
  [
    'shell',
    {
      description: 'Run commands in a shell.',
      schema: object({ commands: texts, timeout_ms: count, max_output_length: count }, 'commands'),
    },
  ],
  [
    'local_shell',
    {
      description: 'Run a command on the machine of the user.',
      schema: object({ command: texts, working_directory: text, timeout_ms: count }, 'command'),
    },
  ],
]);

function mapTool(tool: CanonicalTool, path: string, rules: Rules): CanonicalTool | undefined {
  const { server, kind: _, withdrawn = rules.target.protocol, ...rest } = tool;
  if (withdrawn !== rules.target.protocol) {
    rules.note({
      code: 'APPROXIMATED',
      path,
      feature: 'tools',
      message: 'the conversation withdraws the tool; it is not declared',
    });
    return undefined;
  }
  if (!server || server.origin === rules.target.protocol) return tool;
  const place = { path, feature: `tools.${server.type}` };
  const rule = Object.hasOwn(rules.target.serverTools ?? {}, server.type) ? rules.target.serverTools?.[server.type] : undefined;
  if (rule) {
    const own = rule.write(server.config);
    for (const field of listUnread(server.config, rule.reads)) {
      const name = field.replaceAll('/', '.');
      const message = `${server.wire_type} field "${name}" is not supported by the target; dropped`;
      rules.drop({ path: `${path}/${field}`, feature: `${place.feature}.${name}`, message });
    }
    rules.note({ code: 'APPROXIMATED', ...place, message: `${server.wire_type} is sent as ${own.wire_type}` });
    return { ...tool, server: { type: server.type, origin: rules.target.protocol, ...own } };
  }
  const known = BUILT_IN_TOOLS.get(server.type) ?? readClientSearch(server);
  if (known) {
    rules.note({
      code: 'APPROXIMATED',
      ...place,
      message: `${server.wire_type} is not supported by the target; sent as a function`,
    });
    return { ...rest, description: tool.description ?? known.description, input_schema: known.schema };
  }
  rules.drop({ ...place, message: `${server.wire_type} is not supported by the target; dropped` });
  return undefined;
}

/** Default values of configuration fields, which can be dropped without a note. */
const DEFAULTS: Readonly<Record<string, unknown>> = { search_context_size: 'medium', container: { type: 'auto' } };

/** Paths of the configuration fields that are set but not in `reads`. `name` only repeats the tool. */
function listUnread(config: Record<string, unknown>, reads: readonly string[], within = ''): string[] {
  return Object.entries(config).flatMap(([name, value]) => {
    const field = `${within}${name}`;
    const isUnset = value === undefined || value === null || (typeof value === 'object' && Object.keys(value).length === 0);
    if (field === 'name' || isUnset || reads.includes(field) || sameJson(DEFAULTS[field], value)) return [];
    const isPart = isObject(value) && reads.some((read) => read.startsWith(`${field}/`));
    return isPart ? listUnread(value, reads, `${field}/`) : [field];
  });
}

/** A tool search that the client runs has its own description and schema. */
function readClientSearch({ type, config }: NonNullable<CanonicalTool['server']>): BuiltInTool | undefined {
  const { execution, description, parameters } = config;
  if (type !== 'tool_search' || execution !== 'client') return undefined;
  return {
    description: typeof description === 'string' ? description : 'Find tools that fit a task.',
    schema: isObject(parameters) ? parameters : { type: 'object', properties: { query: { type: 'string' } } },
  };
}

/** A deferred tool is loaded by a tool search; without one, it would never be loaded. */
function undefer(tool: CanonicalTool, path: string, rules: Rules): CanonicalTool {
  const { defer_loading: isDeferred, ...rest } = tool;
  if (!isDeferred || !rules.target.supports.tools.includes('defer_loading')) return tool;
  const message = 'the target has no tool search; the tool is sent without defer_loading';
  rules.drop({ path: `${path}/defer_loading`, feature: 'tools.defer_loading', message });
  return rest;
}

/** Removes dropped tools from the choice. If a dropped tool must be called, the request is rejected. */
function withoutLost(choice: ToolChoice, lost: ReadonlySet<string>, rules: Rules): ToolChoice {
  if (choice.type === 'tool') {
    if (!lost.has(choice.name)) return choice;
    const message = `tool_choice requires "${choice.name}", which is not supported by the target`;
    return rules.refuse({ path: '/tool_choice', feature: 'tool_choice', message });
  }
  const allowed = choice.allowed_tools?.filter((name) => !lost.has(name));
  if (!allowed || allowed.length === choice.allowed_tools?.length) return choice;
  rules.drop({
    path: '/tool_choice',
    feature: 'tool_choice.allowed_tools',
    message: 'some of the allowed tools are not supported by the target; dropped',
  });
  return allowed.length === 0 ? { type: 'none' } : { ...choice, allowed_tools: allowed };
}

/** For targets without custom tools: they and their calls become functions with one text argument. */
export function convertCustomTools(request: CanonicalRequest, rules: Rules): CanonicalRequest {
  if (rules.target.custom) return request;
  const tools =
    request.tools &&
    changeAll(request.tools, (tool, i) => {
      if (tool.kind !== 'custom') return tool;
      const message = `custom tool "${tool.name}" is not supported by the target; sent as a function`;
      rules.note({ code: 'APPROXIMATED', path: `/tools/${i}`, feature: 'tools.custom', message });
      return convertCustomTool(tool);
    });
  const changed = changeBlocks(request, callAsFunction);
  return { ...changed, ...(tools && { tools }) };
}

/** A custom tool as a function. Its grammar is only described. */
export function convertCustomTool(tool: CanonicalTool): CanonicalTool {
  const { kind: _, format, ...rest } = tool;
  const grammar =
    format?.type === 'grammar' ? { description: `Text by this ${format.syntax} grammar:\n${format.definition}` } : {};
  const input_schema = { type: 'object', properties: { input: { type: 'string', ...grammar } }, required: ['input'] };
  return { ...rest, input_schema };
}

function callAsFunction(block: ContentBlock): ContentBlock {
  if (block.type === 'tool_result' && block.kind === 'custom') {
    const { kind: _, ...rest } = block;
    return rest;
  }
  if (block.type !== 'tool_use' || block.kind !== 'custom') return block;
  const { kind: _, input_raw: __, input, ...rest } = block;
  return { ...rest, input: typeof input === 'string' ? { input } : input };
}

/**
 * For targets where arguments are an object: a tool that takes another value gets it as the property `input`, also in
 * earlier calls (P57).
 */
export function wrapRoots(request: CanonicalRequest, rules: Rules): CanonicalRequest {
  if (!rules.target.objectRoot || !request.tools) return request;
  const wrapped = new Set<string>();
  const id = (called: Named): string => buildNameKey(called, { ...rules.target, namespaces: false });
  const tools = changeAll(request.tools, (tool, i): CanonicalTool => {
    if (!isClientCall(tool.kind) || !tool.input_schema || isObjectRoot(tool.input_schema)) return tool;
    wrapped.add(id(tool));
    const message = `the arguments of tool "${tool.name}" must be an object; wrapped in the property "input"`;
    rules.note({ code: 'APPROXIMATED', path: `/tools/${i}`, feature: 'tools.schema', message });
    return { ...tool, input_schema: wrapRoot(tool.input_schema) };
  });
  if (tools === request.tools) return request;
  const changed = changeBlocks(request, (block) =>
    block.type === 'tool_use' && isClientCall(block.kind) && wrapped.has(id(block)) ? wrapInput(block) : block,
  );
  return { ...changed, tools };
}

/** Decoders keep input that is not an object as text. */
function wrapInput({ input_raw: raw, input, ...rest }: ToolUseBlock): ToolUseBlock {
  const value = raw === undefined ? input : parseJson(raw);
  return { ...rest, input: { input: value === undefined ? (raw ?? input) : value } };
}
