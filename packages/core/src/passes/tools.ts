import { type ContentBlock, isClientCall, type ToolResultBlock, type ToolUseBlock } from '../canonical/message.ts';
import type { JsonSchema } from '../canonical/protocol.ts';
import type { CanonicalMessage, CanonicalRequest, CanonicalTool, ToolChoice } from '../canonical/request.ts';
import { locate, at as placedAt, SOURCE } from '../canonical/source.ts';
import { isObject, parseJson, sameJson } from '../json/json.ts';
import { changeAll, changeBlocks, inPlaceOf } from './content.ts';
import { type Called, nameKey } from './names.ts';
import type { Rules, Telling } from './rules.ts';
import { isObjectRoot, wrapRoot } from './schema/nodes.ts';

/** Custom tools, and what was called of them, for a target that knows none: functions with one text. */
export function customAsFunctions(request: CanonicalRequest, rules: Rules): CanonicalRequest {
  if (rules.custom) return request;
  const tools =
    request.tools &&
    changeAll(request.tools, (tool, i) => {
      if (tool.kind !== 'custom') return tool;
      const message = `the custom tool ${tool.name} is a function there`;
      rules.note({ code: 'APPROXIMATED', path: `/tools/${i}`, feature: 'tools.custom', message });
      return asFunction(tool);
    });
  const spoken = changeBlocks(request, callAsFunction);
  return { ...spoken, ...(tools && { tools }) };
}

/** The text may have a grammar, which the function can only tell. */
export function asFunction(tool: CanonicalTool): CanonicalTool {
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

/** Tools that take any value, for a target where arguments are an object: the value is its one property, in earlier calls too (P57). */
export function wrapRoots(request: CanonicalRequest, rules: Rules): CanonicalRequest {
  if (!rules.objectRoot || !request.tools) return request;
  const wrapped = new Set<string>();
  const id = (called: Called): string => nameKey(called, { ...rules, namespaces: false });
  const tools = changeAll(request.tools, (tool, i): CanonicalTool => {
    if (!isClientCall(tool.kind) || !tool.input_schema || isObjectRoot(tool.input_schema)) return tool;
    wrapped.add(id(tool));
    const message = `${tool.name} takes no object; what it takes is the property "input" of one`;
    rules.note({ code: 'APPROXIMATED', path: `/tools/${i}`, feature: 'tools.schema', message });
    return { ...tool, input_schema: wrapRoot(tool.input_schema) };
  });
  if (tools === request.tools) return request;
  const spoken = changeBlocks(request, (block) =>
    block.type === 'tool_use' && isClientCall(block.kind) && wrapped.has(id(block)) ? wrapInput(block) : block,
  );
  return { ...spoken, tools };
}

/** Decoders keep what is no object as the text it was. */
function wrapInput({ input_raw: raw, input, ...rest }: ToolUseBlock): ToolUseBlock {
  const value = raw === undefined ? input : parseJson(raw);
  return { ...rest, input: { input: value === undefined ? (raw ?? input) : value } };
}

type PairRules = Telling & Pick<Rules, 'remembersCalls'>;

/** The results of one id in their order; `next` is the first that no call has taken or passed. */
interface Queue {
  found: { block: ToolResultBlock; message: number; path: string }[];
  next: number;
}

interface Results {
  byId: ReadonlyMap<string, Queue>;
  taken: Set<ToolResultBlock>;
}

/**
 * Every call is answered directly behind its message, in the order of the calls, and every result has a call. What is missing is made
 * up for, with a note. A last message whose calls nobody has answered yet is left alone.
 */
export function pairTools(request: CanonicalRequest, rules: PairRules): CanonicalRequest {
  const results: Results = { byId: collect(request.messages), taken: new Set() };
  const answers = request.messages.map((message, at) =>
    message.role === 'assistant' ? answer(at, request.messages, results, rules) : undefined,
  );
  const messages = request.messages.flatMap((message, at) => {
    const behind = answers[at];
    if (behind) return [message, behind];
    return message.role === 'tool' ? orphans(message, at, results.taken, rules) : [message];
  });
  return { ...request, messages };
}

function collect(messages: readonly CanonicalMessage[]): Map<string, Queue> {
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

/** The tool message that belongs behind the assistant message at `at`: none when it calls nothing, or when it is the last word. */
function answer(
  at: number,
  messages: readonly CanonicalMessage[],
  results: Results,
  rules: Telling,
): CanonicalMessage | undefined {
  const calls = callsOf(messages[at]?.content ?? [], `/messages/${at}/content`);
  if (calls.length === 0 || at === messages.length - 1) return undefined;
  let end = at + 1;
  while (messages[end]?.role === 'tool') end++;
  const content = calls.map(({ call, path }) => {
    const found = take(results.byId.get(call.id), at);
    if (!found) return synthesise(call, path, rules);
    results.taken.add(found.block);
    if (found.message >= end) tellMove(call.id, found.path, rules);
    return found.block;
  });
  const next = messages[at + 1];
  const isInPlace =
    next?.role === 'tool' && next.content.length === content.length && next.content.every((b, i) => b === content[i]);
  return isInPlace ? next : inPlaceOf<CanonicalMessage>(messages[at] ?? {}, { role: 'tool', content });
}

/** The calls that the client has to answer, each with its path. */
const callsOf = (content: readonly ContentBlock[], list: string): { call: ToolUseBlock; path: string }[] =>
  content.flatMap((block, i) =>
    block.type === 'tool_use' && isClientCall(block.kind) ? [{ call: block, path: `${list}/${i}` }] : [],
  );

/** The first result behind `at` that no call has taken. */
function take(queue: Queue | undefined, at: number): Queue['found'][number] | undefined {
  if (!queue) return undefined;
  while ((queue.found[queue.next]?.message ?? at + 1) <= at) queue.next++;
  return queue.found[queue.next++];
}

const NO_RESULT = 'No result was recorded for this call.';

function synthesise(call: ToolUseBlock, path: string, rules: Telling): ToolResultBlock {
  const { id, name, kind } = call;
  rules.repair({
    path,
    feature: 'messages.tool_use',
    message: `the call ${id} of ${name} has no result; one that says so was added`,
  });
  const result: ToolResultBlock = {
    type: 'tool_result',
    tool_use_id: id,
    name,
    content: NO_RESULT,
    is_error: true,
    ...(kind && { kind }),
  };
  // All that is told of it is told of the call.
  const place = locate('/call', { call });
  return placedAt(place, result, { trace: SOURCE in call }, { is_error: place });
}

function tellMove(id: string, path: string, rules: Telling): void {
  const message = `the result of ${id} was moved behind its call`;
  rules.repair({ path, feature: 'messages.tool_order', message });
}

/** What of a tool message no call has taken: as the user would tell it, or as it is when the upstream remembers the call. */
function orphans(message: CanonicalMessage, at: number, taken: ReadonlySet<ContentBlock>, rules: PairRules): CanonicalMessage[] {
  if (rules.remembersCalls) {
    const content = message.content.filter((block) => !taken.has(block));
    return content.length === message.content.length ? [message] : content.length > 0 ? [{ ...message, content }] : [];
  }
  const content = message.content.flatMap((block, i): ContentBlock[] => {
    if (block.type !== 'tool_result') return [block];
    if (taken.has(block)) return [];
    const told = `the result ${block.tool_use_id} answers no call; it became text of the user`;
    rules.repair({ path: `/messages/${at}/content/${i}`, feature: 'messages.tool_result', message: told });
    return tell(block).map((part) => inPlaceOf(SOURCE in part ? part : block, part));
  });
  return content.length > 0 ? [inPlaceOf<CanonicalMessage>(message, { role: 'user', content })] : [];
}

const EARLIER = 'Result of an earlier tool call';

function tell({ name, content }: ToolResultBlock): ContentBlock[] {
  const head = name ? `${EARLIER} (${name})` : EARLIER;
  if (typeof content === 'string') return [{ type: 'text', text: `${head}: ${content}` }];
  const [first, ...rest] = content;
  return first?.type === 'text'
    ? [{ ...first, text: `${head}: ${first.text}` }, ...rest]
    : [{ type: 'text', text: `${head}:` }, ...content];
}

/** Tools that another protocol's servers know: the target's counterpart, a function where the client runs them, or nothing. */
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

const isForeignSearch = ({ server }: CanonicalTool, { protocol }: Rules): boolean =>
  server?.type === 'tool_search' && server.origin !== protocol;

export interface BuiltIn {
  description: string;
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
 * Tools that a protocol knows by a type of their own, but that the client runs: elsewhere they are functions, and the calls that come back
 * are the same. By canonical type. (A computer is none of them: its screenshots need the protocol's own blocks.)
 */
export const BUILT_IN_TOOLS: ReadonlyMap<string, BuiltIn> = new Map([
  [
    'bash',
    {
      description: 'Run a command in a persistent bash session.',
      schema: object({ command: text, restart: { type: 'boolean', description: 'Start the session anew.' } }),
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
  const { server, kind: _, ...rest } = tool;
  if (!server || server.origin === rules.protocol) return tool;
  const told = { path, feature: `tools.${server.type}` };
  const rule = Object.hasOwn(rules.serverTools ?? {}, server.type) ? rules.serverTools?.[server.type] : undefined;
  if (rule) {
    const own = rule.write(server.config);
    for (const field of unread(server.config, rule.reads)) {
      const name = field.replaceAll('/', '.');
      const message = `${server.wire_type} field "${name}" is not supported by the target; dropped`;
      rules.drop({ path: `${path}/${field}`, feature: `${told.feature}.${name}`, message });
    }
    rules.note({ code: 'APPROXIMATED', ...told, message: `${server.wire_type} is sent as ${own.wire_type}` });
    return { ...tool, server: { type: server.type, origin: rules.protocol, ...own } };
  }
  const known = BUILT_IN_TOOLS.get(server.type) ?? clientSearch(server);
  if (known) {
    rules.note({ code: 'APPROXIMATED', ...told, message: `${server.wire_type} is a function there` });
    return { ...rest, description: tool.description ?? known.description, input_schema: known.schema };
  }
  rules.drop({ ...told, message: `${server.wire_type} is no tool of this provider` });
  return undefined;
}

/** Values that a field has when it is left out. `name` says no more than the tool. */
const IDLE: Readonly<Record<string, unknown>> = { search_context_size: 'medium', container: { type: 'auto' } };

/** The fields of a configuration that say something and are not read, as paths. */
function unread(config: Record<string, unknown>, reads: readonly string[], within = ''): string[] {
  return Object.entries(config).flatMap(([name, value]) => {
    const field = `${within}${name}`;
    const saysNothing = value === undefined || value === null || (typeof value === 'object' && Object.keys(value).length === 0);
    if (field === 'name' || saysNothing || reads.includes(field) || sameJson(IDLE[field], value)) return [];
    const isPart = isObject(value) && reads.some((read) => read.startsWith(`${field}/`));
    return isPart ? unread(value, reads, `${field}/`) : [field];
  });
}

/** A search for tools that the client runs brings its own description and schema. */
function clientSearch({ type, config }: NonNullable<CanonicalTool['server']>): BuiltIn | undefined {
  const { execution, description, parameters } = config;
  if (type !== 'tool_search' || execution !== 'client') return undefined;
  return {
    description: typeof description === 'string' ? description : 'Find tools that fit a task.',
    schema: isObject(parameters) ? parameters : { type: 'object', properties: { query: { type: 'string' } } },
  };
}

/** A deferred tool is loaded by a search for tools. Without one nothing would ever load it. */
function undefer(tool: CanonicalTool, path: string, rules: Rules): CanonicalTool {
  const { defer_loading: isDeferred, ...rest } = tool;
  if (!isDeferred || !rules.says.tools.includes('defer_loading')) return tool;
  const message = 'the target has no tool search; the tool is sent without defer_loading';
  rules.drop({ path: `${path}/defer_loading`, feature: 'tools.defer_loading', message });
  return rest;
}

/** A tool that must be called and is not there would be a different question. */
function withoutLost(choice: ToolChoice, lost: ReadonlySet<string>, rules: Rules): ToolChoice {
  if (choice.type === 'tool') {
    if (!lost.has(choice.name)) return choice;
    const message = `${choice.name} must be called, but this provider has no such tool`;
    return rules.refuse({ path: '/tool_choice', feature: 'tool_choice', message });
  }
  const allowed = choice.allowed_tools?.filter((name) => !lost.has(name));
  if (!allowed || allowed.length === choice.allowed_tools?.length) return choice;
  rules.drop({
    path: '/tool_choice',
    feature: 'tool_choice.allowed_tools',
    message: 'some of the allowed tools are not tools of this provider',
  });
  return allowed.length === 0 ? { type: 'none' } : { ...choice, allowed_tools: allowed };
}
