import type { ContentBlock } from '../canonical/blocks.ts';
import type { CanonicalRequest, CanonicalTool, ToolChoice } from '../canonical/request.ts';
import { isClientCall } from '../canonical/response.ts';
import { changeAll, changeBlocks } from './blocks.ts';
import { type Called, keyOf, sentNames } from './call-names.ts';
import type { Rules } from './rules.ts';

/**
 * Tool names that the target would refuse get new ones, and namespaces it does not know become part of the name: in definitions, in the
 * choice, in calls and in results alike. The names are those of the source, so that whoever reads the answer can make the same table again.
 */
export function mapNames(given: CanonicalRequest, rules: Rules, source: CanonicalRequest): CanonicalRequest {
  const request = withoutRepeated(given, rules);
  const names = sentNames(source, rules);
  if (names.size === 0) return request;
  const places = findPlaces(request, rules);
  for (const [key, sent] of names) {
    const message = `the tool ${key.replace('\0', '.')} is called ${sent} there`;
    rules.note({ code: 'RENAMED', path: places.get(key) ?? '/tool_choice', feature: 'tools.name', message });
  }
  const rename = <T extends Called>(called: T): T => {
    const name = names.get(keyOf(called, rules));
    if (name === undefined) return called;
    const { namespace, ...rest } = called;
    return { ...rest, name, ...(rules.namespaces && namespace !== undefined && { namespace }) } as T; // the namespace is optional
  };
  const tools = request.tools?.map((tool) => (isClientCall(tool.kind) ? rename(tool) : tool));
  const named = toolsByName(request);
  const chosen = (name: string): string => {
    const tool = named.get(name);
    return tool && !isClientCall(tool.kind) ? name : rename<Called>(tool ?? { name }).name;
  };
  return {
    ...changeBlocks(request, renamer(rename)),
    ...(tools && { tools }),
    ...(request.tool_choice && { tool_choice: renameChoice(request.tool_choice, chosen) }),
  };
}

/** Targets refuse two tools with one name, or call either of them: the first one is sent. */
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

/** The first place of each name: where it is declared, else where it was called. Only `tool_choice` names the others. */
function findPlaces({ tools = [], messages }: CanonicalRequest, rules: Rules): ReadonlyMap<string, string> {
  const places = new Map<string, string>();
  const add = (called: Called, path: string): void => {
    const key = keyOf(called, rules);
    if (!places.has(key)) places.set(key, path);
  };
  for (const [i, tool] of tools.entries()) add(tool, `/tools/${i}`);
  for (const [i, { content }] of messages.entries())
    for (const [k, block] of content.entries()) if (isNamed(block)) add(block, `/messages/${i}/content/${k}`);
  return places;
}

const isNamed = (block: ContentBlock): block is ContentBlock & Called => 'name' in block && block.name !== undefined;

/** A result is of the name of its call, which stands before it. Ids may be used again: call and name tell which. */
function renamer(rename: <T extends Called>(called: T) => T): (block: ContentBlock) => ContentBlock {
  const names = new Map<string, string>();
  const keyOfResult = (id: string, name: string): string => `${name}\0${id}`;
  return (block) => {
    if (block.type === 'tool_use' && isClientCall(block.kind)) {
      const renamed = rename(block);
      names.set(keyOfResult(block.id, block.name), renamed.name);
      return renamed;
    }
    if (block.type !== 'tool_result' || !isClientCall(block.kind) || block.name === undefined) return block;
    const name = names.get(keyOfResult(block.tool_use_id, block.name)) ?? rename({ name: block.name }).name;
    return name === block.name ? block : { ...block, name };
  };
}

const renameChoice = (choice: ToolChoice, to: (name: string) => string): ToolChoice =>
  choice.type === 'tool'
    ? { ...choice, name: to(choice.name) }
    : { ...choice, ...(choice.allowed_tools && { allowed_tools: choice.allowed_tools.map(to) }) };

/** A choice says only a name: of several tools it means one that the client runs, and of these one without a namespace. */
function toolsByName({ tools = [] }: CanonicalRequest): Map<string, CanonicalTool> {
  const rank = ({ kind, namespace }: CanonicalTool): number => Number(isClientCall(kind)) * 2 + Number(namespace === undefined);
  return new Map(tools.toSorted((a, b) => rank(a) - rank(b)).map((tool) => [tool.name, tool]));
}
