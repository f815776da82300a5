import { isObject } from '../accumulate/overlay.ts';
import type { ContentBlock, OpaqueBlock, TextBlock, ToolResultBlock, ToolUseBlock } from '../canonical/blocks.ts';
import type { CanonicalMessage, CanonicalRequest } from '../canonical/request.ts';
import { isClientCall } from '../canonical/response.ts';
import { changeAll, changeBlocks, inPlaceOf, withoutEmptied } from './blocks.ts';
import type { Rules } from './rules.ts';

/** What another server stores cannot be looked up here, and nothing less would do. */
export function refuseHeld(request: CanonicalRequest, rules: Rules): CanonicalRequest {
  for (const [i, { content }] of request.messages.entries())
    for (const [k, block] of content.entries())
      if (block.type === 'opaque' && block.held !== undefined && block.origin !== rules.protocol)
        rules.refuse({
          path: `/messages/${i}/content/${k}`,
          feature: 'state.item_reference',
          message: `item_reference "${block.held}" names an item stored by another server; set store: false, or send the items themselves`,
        });
  return request;
}

/** Blocks that only another protocol understands go; a call and its result go together, and a stand-in that the source gave stays. */
export function filterForeign(request: CanonicalRequest, rules: Rules): CanonicalRequest {
  const own = ownServerCalls(request, rules);
  const filtered = changeBlocks(request, (block, path) => {
    switch (block.type) {
      case 'opaque':
        return filterOpaque(block, path, rules);
      case 'tool_use':
        return isClientCall(block.kind) || own.has(block.id) ? block : drop(block, path, rules);
      case 'tool_result':
        if (isClientCall(block.kind)) return filterResult(block, path, rules);
        return own.has(block.tool_use_id) ? block : drop(block, path, rules);
      default:
        return block;
    }
  });
  return filtered === request ? request : withoutEmptied(dropBereft(filtered, request, rules), request);
}

/** The calls that this protocol's own servers ran. The decoder of a protocol keeps something of each call or result that its server made. */
function ownServerCalls({ messages }: CanonicalRequest, { protocol }: Rules): Set<string> {
  const own = new Set<string>();
  for (const { content } of messages)
    for (const block of content) {
      if (block.extensions?.[protocol] === undefined) continue;
      if (block.type === 'tool_use' && !isClientCall(block.kind)) own.add(block.id);
      else if (block.type === 'tool_result' && !isClientCall(block.kind)) own.add(block.tool_use_id);
    }
  return own;
}

function drop({ type, name }: ToolUseBlock | ToolResultBlock, path: string, rules: Rules): undefined {
  const message = `${name ?? 'a tool'} was run by another provider; neither its call nor its result is sent`;
  rules.drop({ path, feature: `assistant.${type}`, message });
}

function filterOpaque(block: OpaqueBlock, path: string, rules: Rules): OpaqueBlock | TextBlock | undefined {
  if (block.origin === rules.protocol) return block;
  const told = { path, feature: 'messages.opaque' };
  const type = typeOf(block.raw);
  if (block.text) {
    rules.note({ code: 'APPROXIMATED', ...told, message: `${type} is not supported by the target; its text is sent` });
    return inPlaceOf<TextBlock>(block, { type: 'text', text: block.text });
  }
  if (block.hoisted) {
    const message = `${type} is not supported by the target; its tools are declared in the tools of the request`;
    rules.note({ code: 'APPROXIMATED', ...told, message });
  } else rules.drop({ ...told, message: `${type} is not supported by the target; dropped` });
  return undefined;
}

const typeOf = (raw: unknown): string =>
  isObject(raw) && typeof raw['type'] === 'string' ? raw['type'] : 'a block of another protocol';

function filterResult(block: ToolResultBlock, path: string, rules: Rules): ToolResultBlock {
  if (typeof block.content === 'string') return block;
  const content = changeAll(block.content, (part, i) =>
    part.type === 'opaque' ? filterOpaque(part, `${path}/content/${i}`, rules) : part,
  );
  return content === block.content ? block : { ...block, content };
}

/** Responses refuses an encrypted reasoning item without the item that followed it (P18). */
function dropBereft(filtered: CanonicalRequest, before: CanonicalRequest, rules: Rules): CanonicalRequest {
  const messages = changeAll(filtered.messages, (message, i) => {
    const original = before.messages[i];
    if (!original || message === original) return message;
    const lone = bereft(message, original);
    for (const k of lone.values())
      rules.drop({
        path: `/messages/${i}/content/${k}`,
        feature: 'assistant.thinking',
        message: 'what this reasoning led to is not sent, so neither is it',
      });
    return lone.size === 0 ? message : { ...message, content: message.content.filter((block) => !lone.has(block)) };
  });
  return messages === filtered.messages ? filtered : { ...filtered, messages };
}

/** The reasoning whose follower is gone, with its place in the original. */
function bereft(message: CanonicalMessage, original: CanonicalMessage): Map<ContentBlock, number> {
  const kept = new Set(message.content);
  const lone = new Map<ContentBlock, number>();
  let isGone = false;
  for (let i = original.content.length - 1; i >= 0; i--) {
    const block = original.content[i];
    if (!block) continue;
    if (block.type === 'thinking' && block.signature?.form === 'encrypted' && kept.has(block)) {
      if (isGone) lone.set(block, i);
    } else isGone = !kept.has(block) && !(block.type === 'opaque' && block.text);
  }
  return lone;
}
