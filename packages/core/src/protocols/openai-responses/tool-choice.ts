import { type JsonObject, sameJson } from '../../accumulate/overlay.ts';
import type { CanonicalTool, ToolChoice } from '../../canonical/request.ts';
import { expectList, expectName, expectObject, expectText } from '../shared/expect.ts';
import { objectOf, textOf } from '../shared/read.ts';
import { unknownChoice } from '../shared/tool-choice.ts';
import { PROTOCOL } from './kept.ts';

const MODES: Readonly<Record<string, 'auto' | 'none' | 'any'>> = { auto: 'auto', none: 'none', required: 'any', any: 'any' };
const TO_WIRE: Record<'auto' | 'none' | 'any', string> = { auto: 'auto', none: 'none', any: 'required' };

const modeOf = (word: unknown): 'auto' | 'none' | 'any' | undefined =>
  typeof word === 'string' && Object.hasOwn(MODES, word) ? MODES[word] : undefined;

export function decodeToolChoice(choice: unknown): ToolChoice | undefined {
  if (choice === undefined || choice === null) return undefined;
  const mode = modeOf(choice);
  if (mode) return { type: mode };
  if (typeof choice === 'string') return unknownChoice(choice, PROTOCOL);
  const body = expectObject(choice, 'tool_choice');
  if (body['type'] === 'allowed_tools') return decodeAllowed(body);
  // Modes of Chat and Anthropic that were put into an object; a tool without a name is any tool.
  const named = modeOf(body['type'] === 'tool' && !textOf(body['name']) ? 'any' : body['type']);
  if (named) return { type: named };
  return { type: 'tool', name: nameIn(body, 'tool_choice') };
}

/** By name, by the label of an MCP server, or by the type alone; chat nests the name in `function`. */
function nameIn(entry: JsonObject, param: string): string {
  const type = expectText(entry['type'], `${param}.type`);
  const isNamed = type === 'function' || type === 'custom';
  const name = textOf(entry['name']) || textOf(objectOf(entry[type])['name']);
  if (isNamed) return expectName(name || entry['name'], `${param}.name`);
  return textOf(entry['server_label']) || name || type;
}

function decodeAllowed(body: JsonObject): ToolChoice {
  const names = expectList(body['tools'], 'tool_choice.tools').map((item, i) =>
    nameIn(expectObject(item, `tool_choice.tools[${i}]`), `tool_choice.tools[${i}]`),
  );
  return { type: modeOf(body['mode']) === 'any' ? 'any' : 'auto', allowed_tools: names };
}

/** `kept`: the client's own words, which say more, and stand as long as they say the same. */
export function encodeToolChoice(choice: ToolChoice, tools: readonly CanonicalTool[], kept: unknown): unknown {
  if (kept !== undefined && sameJson(decodeToolChoice(kept), choice)) return kept;
  const entry = (name: string): JsonObject => entryOf(name, tools);
  if (choice.type === 'tool') return entry(choice.name);
  if (choice.native) return choice.native.value;
  if (!choice.allowed_tools) return TO_WIRE[choice.type];
  const mode = choice.type === 'any' ? 'required' : 'auto';
  return { type: 'allowed_tools', mode, tools: choice.allowed_tools.map(entry) };
}

function entryOf(name: string, tools: readonly CanonicalTool[]): JsonObject {
  const tool = tools.find((one) => one.name === name);
  if (tool?.kind === 'mcp') return { type: 'mcp', server_label: name };
  if (tool?.server) return { type: tool.server.wire_type };
  return { type: tool?.kind === 'custom' ? 'custom' : 'function', name };
}

/** What `encodeToolChoice` would not find by itself. */
export function keptToolChoice(choice: unknown, tools: readonly CanonicalTool[]): JsonObject {
  const decoded = decodeToolChoice(choice);
  return decoded && !sameJson(encodeToolChoice(decoded, tools, undefined), choice) ? { tool_choice: choice } : {};
}
