import { isObject, sameJson } from '../accumulate/overlay.ts';
import type { CanonicalRequest, CanonicalTool, ToolChoice } from '../canonical/request.ts';
import { changeAll } from './blocks.ts';
import { BUILT_IN_TOOLS, type BuiltIn } from './built-in-tools.ts';
import type { Rules } from './rules.ts';

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

/** A deferred tool is loaded by a search for tools. Without one nothing would ever load it. */
function undefer(tool: CanonicalTool, path: string, rules: Rules): CanonicalTool {
  const { defer_loading: isDeferred, ...rest } = tool;
  if (!isDeferred || !rules.says.tools.includes('defer_loading')) return tool;
  const message = 'the target has no tool search; the tool is sent without defer_loading';
  rules.drop({ path: `${path}/defer_loading`, feature: 'tools.defer_loading', message });
  return rest;
}

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
