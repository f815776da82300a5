import type { ContentBlock } from '../canonical/blocks.ts';
import type { CanonicalMessage, CanonicalRequest, ToolChoice } from '../canonical/request.ts';
import { isClientCall } from '../canonical/response.ts';
import type { NameRule, Telling } from './rules.ts';
import { sha256 } from './sha256.ts';

/** New names by old ones. Names that stay are not in it; the same request always gives the same table. */
export type Renames = ReadonlyMap<string, string>;

/** The old names by the new ones, for the way back. */
export const reverse = (renames: Renames): Renames => new Map([...renames].map(([from, to]) => [to, from]));

const isLegal = (name: string, { pattern, max }: NameRule): boolean => name.length <= max && pattern.test(name);

/** Tool names that the target would refuse get new ones: in definitions, in the choice, in calls and in results alike. */
export function mapNames(
  request: CanonicalRequest,
  rule: NameRule,
  rules: Pick<Telling, 'note'>,
): { request: CanonicalRequest; names: Renames } {
  const names = nameTable(request, rule);
  if (names.size === 0) return { request, names };
  for (const [from, to] of names)
    rules.note({ code: 'RENAMED', path: '/tools', feature: 'tools.name', message: `the tool ${from} is called ${to} there` });
  const to = (name: string): string => names.get(name) ?? name;
  return {
    names,
    request: {
      ...request,
      ...(request.tools && {
        tools: request.tools.map((tool) => (isClientCall(tool.kind) ? { ...tool, name: to(tool.name) } : tool)),
      }),
      ...(request.tool_choice && { tool_choice: renameChoice(request.tool_choice, to) }),
      messages: request.messages.map((message) => mapBlocks(message, (block) => renameBlock(block, to))),
    },
  };
}

/** Alone, so that whoever reads the answer can make the same table again. */
export function nameTable(request: CanonicalRequest, rule: NameRule): Renames {
  const all = new Set(namesOf(request));
  const used = new Set([...all].filter((name) => isLegal(name, rule)));
  const table = new Map<string, string>();
  for (const name of all) {
    if (used.has(name)) continue;
    const plain = shorten(name, rule);
    const legal = used.has(plain) || !isLegal(plain, rule) ? hashed(plain, name, rule) : plain;
    used.add(legal);
    table.set(name, legal);
  }
  return table;
}

function* namesOf({ tools, tool_choice: choice, messages }: CanonicalRequest): Iterable<string> {
  for (const { name, kind } of tools ?? []) if (isClientCall(kind)) yield name;
  if (choice?.type === 'tool') yield choice.name;
  else yield* choice?.allowed_tools ?? [];
  for (const { content } of messages) {
    for (const block of content) {
      if (block.type === 'tool_use' && isClientCall(block.kind)) yield block.name;
      else if (block.type === 'tool_result' && isClientCall(block.kind) && block.name !== undefined) yield block.name;
    }
  }
}

/** Characters that all protocols allow; some want a letter or `_` first. */
function shorten(name: string, rule: NameRule): string {
  const plain = name.replace(/[^A-Za-z0-9_-]/g, '_');
  const begun = plain !== '' && !rule.pattern.test(plain) && rule.pattern.test(`_${plain}`) ? `_${plain}` : plain;
  return begun.length > rule.max ? hashed(begun, name, rule) : begun;
}

/** Long enough to be read, and eight digits of the hash of the whole. */
const KEPT = 48;
const DIGITS = 8;

function hashed(plain: string, name: string, { max }: NameRule): string {
  const kept = plain.slice(0, Math.max(0, Math.min(KEPT, max - DIGITS - 1))) || 'tool';
  return `${kept}_${sha256(name).slice(0, DIGITS)}`;
}

const renameChoice = (choice: ToolChoice, to: (name: string) => string): ToolChoice =>
  choice.type === 'tool'
    ? { ...choice, name: to(choice.name) }
    : { ...choice, ...(choice.allowed_tools && { allowed_tools: choice.allowed_tools.map(to) }) };

function renameBlock(block: ContentBlock, to: (name: string) => string): ContentBlock {
  if (block.type === 'tool_use' && isClientCall(block.kind)) return { ...block, name: to(block.name) };
  if (block.type === 'tool_result' && isClientCall(block.kind) && block.name !== undefined)
    return { ...block, name: to(block.name) };
  return block;
}

/**
 * Ids of calls that the target would refuse, and ids that an earlier call has used, get new ones, with their results. Results stand behind
 * their calls here (pairTools), so the n-th result of an id answers its n-th call.
 */
export function mapIds(
  request: CanonicalRequest,
  rule: NameRule,
  rules: Pick<Telling, 'note'>,
): { request: CanonicalRequest; ids: Renames } {
  const used = usedIds(request, rule);
  const seen = new Map<string, number>();
  const waiting = new Map<string, string[]>();
  const ids = new Map<string, string>();
  const call = (id: string, path: string): string => {
    const count = seen.get(id) ?? 0;
    seen.set(id, count + 1);
    const name = count === 0 && isLegal(id, rule) ? id : freshId(id, count, rule, used);
    const queue = waiting.get(id);
    if (queue) queue.push(name);
    else waiting.set(id, [name]);
    if (name === id) return id;
    used.add(name);
    ids.set(id, name);
    rules.note({ code: 'RENAMED', path, feature: 'messages.tool_use.id', message: `the call ${id} is called ${name} there` });
    return name;
  };
  const result = (id: string): string => waiting.get(id)?.shift() ?? ids.get(id) ?? id;
  const messages = request.messages.map((message, at) =>
    mapBlocks(message, (block) => {
      if (block.type === 'tool_use' && isClientCall(block.kind)) return withId(block, call(block.id, `/messages/${at}`));
      if (block.type !== 'tool_result' || !isClientCall(block.kind)) return block;
      const id = result(block.tool_use_id);
      return id === block.tool_use_id ? block : { ...block, tool_use_id: id };
    }),
  );
  return { request: { ...request, messages }, ids };
}

const withId = <T extends { id: string }>(block: T, id: string): T => (block.id === id ? block : { ...block, id });

function usedIds({ messages }: CanonicalRequest, rule: NameRule): Set<string> {
  const used = new Set<string>();
  for (const { content } of messages)
    for (const block of content) if (block.type === 'tool_use' && isLegal(block.id, rule)) used.add(block.id);
  return used;
}

const ID_DIGITS = 24;

/** The id with its odd characters replaced, when nobody has that; else a hash of the id and of how often it was used before. */
function freshId(id: string, count: number, rule: NameRule, used: ReadonlySet<string>): string {
  const digits = sha256(count === 0 ? id : `${id}#${count}`);
  const hashed = `call_${digits.slice(0, ID_DIGITS)}`;
  // Mistral wants nine letters or digits and nothing else.
  const candidates = [...(count === 0 ? [id.replace(/[^A-Za-z0-9_-]/g, '_')] : []), hashed, digits.slice(0, rule.max)];
  return candidates.find((name) => isLegal(name, rule) && !used.has(name)) ?? hashed;
}

/** The message with its blocks changed; the same object when none was. */
function mapBlocks(message: CanonicalMessage, change: (block: ContentBlock) => ContentBlock): CanonicalMessage {
  let isChanged = false;
  const content = message.content.map((block) => {
    const next = change(block);
    isChanged ||= next !== block;
    return next;
  });
  return isChanged ? { ...message, content } : message;
}
