import type { JsonObject } from '../../accumulate/overlay.ts';
import type { CanonicalTool } from '../../canonical/request.ts';
import type { ServerToolRule } from '../../passes/rules.ts';
import { objectOf } from '../shared/read.ts';
import { fieldsOf } from './kept.ts';

/** Tools that other protocols' servers know, in the words of this one. */
export const SERVER_TOOLS: Readonly<Record<string, ServerToolRule>> = {
  web_search: {
    reads: ['allowed_domains', 'search_context_size', 'user_location'],
    write: (config) => ({ wire_type: 'web_search', config: encodeSearch(config) }),
  },
  code_execution: {
    reads: [],
    write: () => ({ wire_type: 'code_interpreter', config: { container: { type: 'auto' } } }),
  },
};

/** The portable core of a search: where to look, and where the user is. */
function encodeSearch(config: JsonObject): JsonObject {
  const { allowed_domains: domains, search_context_size: size, user_location: place } = config;
  const { approximate, ...flat } = objectOf(place);
  return {
    ...(Array.isArray(domains) && domains.length > 0 && { filters: { allowed_domains: domains } }),
    ...(typeof size === 'string' && { search_context_size: size }),
    ...(place !== undefined && { user_location: { ...flat, ...objectOf(approximate), type: 'approximate' } }),
  };
}

/** `isOwn`: the client sent the request in this protocol, and what it left out stays out. */
export function encodeTools(tools: readonly CanonicalTool[], isOwn: boolean): JsonObject[] {
  const encoded: JsonObject[] = [];
  const groups = new Map<string, JsonObject[]>();
  for (const tool of tools) {
    const { namespace } = tool;
    const one = encodeTool(tool, isOwn);
    const group = namespace === undefined ? encoded : groups.get(namespace);
    if (group) group.push(one);
    else if (namespace !== undefined) {
      const inner = [one];
      groups.set(namespace, inner);
      encoded.push({
        description: '',
        ...objectOf(fieldsOf(tool)['group']),
        type: 'namespace',
        name: namespace,
        tools: inner,
      });
    }
  }
  return encoded;
}

function encodeTool(tool: CanonicalTool, isOwn: boolean): JsonObject {
  const { server } = tool;
  if (server) return { ...server.config, type: server.wire_type };
  return tool.kind === 'custom' ? encodeCustom(tool) : encodeFunction(tool, isOwn);
}

/** Left out, `strict` means "if the schema allows it", which fills optional parameters: other protocols mean no (P55). */
function encodeFunction(tool: CanonicalTool, isOwn: boolean): JsonObject {
  const strict = tool.strict ?? (isOwn ? undefined : false);
  return {
    ...encodeCommon(tool, 'function'),
    ...(tool.input_schema ? { parameters: tool.input_schema } : !isOwn && { parameters: { type: 'object', properties: {} } }),
    ...(strict !== undefined && { strict }),
    ...(tool.output_schema && { output_schema: tool.output_schema }),
  };
}

const encodeCustom = (tool: CanonicalTool): JsonObject => ({
  ...encodeCommon(tool, 'custom'),
  ...(tool.format && { format: tool.format }),
});

function encodeCommon(tool: CanonicalTool, type: string): JsonObject {
  const { group: _, ...fields } = fieldsOf(tool);
  const { name, description, defer_loading: deferred, allowed_callers: callers } = tool;
  return {
    ...fields,
    type,
    name,
    ...(description !== undefined && { description }),
    ...(deferred !== undefined && { defer_loading: deferred }),
    ...(callers && { allowed_callers: callers }),
  };
}
