import type { ContentBlock, ToolResultBlock, ToolUseBlock } from '../canonical/blocks.ts';
import type { CanonicalMessage, CanonicalRequest } from '../canonical/request.ts';
import { isClientCall } from '../canonical/response.ts';
import { locate, at as placedAt, SOURCE } from '../canonical/source.ts';
import { inPlaceOf } from './blocks.ts';
import type { Rules, Telling } from './rules.ts';

const NO_RESULT = 'No result was recorded for this call.';
const EARLIER = 'Result of an earlier tool call';

/** The results of one id in their order; `next` is the first that no call has taken or passed. */
interface Queue {
  found: { block: ToolResultBlock; message: number; path: string }[];
  next: number;
}

type PairRules = Telling & Pick<Rules, 'remembersCalls'>;

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

/** The first result behind `at` that no call has taken. */
function take(queue: Queue | undefined, at: number): Queue['found'][number] | undefined {
  if (!queue) return undefined;
  while ((queue.found[queue.next]?.message ?? at + 1) <= at) queue.next++;
  return queue.found[queue.next++];
}

/** The calls that the client has to answer, each with its path. */
const callsOf = (content: readonly ContentBlock[], list: string): { call: ToolUseBlock; path: string }[] =>
  content.flatMap((block, i) =>
    block.type === 'tool_use' && isClientCall(block.kind) ? [{ call: block, path: `${list}/${i}` }] : [],
  );

function tellMove(id: string, path: string, rules: Telling): void {
  const message = `the result of ${id} was moved behind its call`;
  rules.repair({ path, feature: 'messages.tool_order', message });
}

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

function tell({ name, content }: ToolResultBlock): ContentBlock[] {
  const head = name ? `${EARLIER} (${name})` : EARLIER;
  if (typeof content === 'string') return [{ type: 'text', text: `${head}: ${content}` }];
  const [first, ...rest] = content;
  return first?.type === 'text'
    ? [{ ...first, text: `${head}: ${first.text}` }, ...rest]
    : [{ type: 'text', text: `${head}:` }, ...content];
}
