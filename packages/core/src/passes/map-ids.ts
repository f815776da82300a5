import type { CanonicalRequest } from '../canonical/request.ts';
import { isClientCall } from '../canonical/response.ts';
import { changeBlocks } from './blocks.ts';
import { isLegal } from './call-names.ts';
import type { NameRule, Rules } from './rules.ts';
import { sha256 } from './sha256.ts';

/**
 * Ids of calls that the target would refuse, and ids that an earlier call has used, get new ones, with their results. Results stand behind
 * their calls here (pairTools), so the n-th result of an id answers its n-th call.
 */
export function mapIds(request: CanonicalRequest, rules: Pick<Rules, 'note' | 'toolId'>): CanonicalRequest {
  const { toolId: rule } = rules;
  const used = usedIds(request, rule);
  const seen = new Map<string, number>();
  const waiting = new Map<string, { names: string[]; next: number }>();
  const call = (id: string, path: string): string => {
    const count = seen.get(id) ?? 0;
    seen.set(id, count + 1);
    const name = count === 0 && isLegal(id, rule) ? id : freshId(id, count, rule, used);
    const queue = waiting.get(id);
    if (queue) queue.names.push(name);
    else waiting.set(id, { names: [name], next: 0 });
    if (name === id) return id;
    used.add(name);
    rules.note({ code: 'RENAMED', path, feature: 'messages.tool_use.id', message: `the call ${id} is called ${name} there` });
    return name;
  };
  // A result that answers none of these calls answers one that the upstream remembers, under the name that it would get here.
  const result = (id: string): string => {
    const queue = waiting.get(id);
    const name = queue?.names[queue.next];
    if (queue && name !== undefined) queue.next++;
    return name ?? (isLegal(id, rule) ? id : freshId(id, 0, rule, used));
  };
  return changeBlocks(request, (block, path) => {
    if (block.type === 'tool_use' && isClientCall(block.kind)) {
      const id = call(block.id, path);
      return id === block.id ? block : { ...block, id };
    }
    if (block.type !== 'tool_result' || !isClientCall(block.kind)) return block;
    const id = result(block.tool_use_id);
    return id === block.tool_use_id ? block : { ...block, tool_use_id: id };
  });
}

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
