import type { ContentBlock } from '../canonical/blocks.ts';
import type { CanonicalMessage, CanonicalRequest } from '../canonical/request.ts';
import { SOURCE } from '../canonical/source.ts';

/** What becomes of a block: itself, another, or nothing. */
type Change = (block: ContentBlock, path: string, message: CanonicalMessage) => ContentBlock | undefined;

/** The request with its blocks changed; what was not changed is the same object, up to the request itself. */
export function changeBlocks(request: CanonicalRequest, change: Change): CanonicalRequest {
  const messages = changeAll(request.messages, (message, i) => {
    const content = changeAll(message.content, (block, k) => change(block, `/messages/${i}/content/${k}`, message));
    return content === message.content ? message : { ...message, content };
  });
  return messages === request.messages ? request : { ...request, messages };
}

/** Without the assistant messages that lost all of their blocks since `before`, which has the same messages. */
export function withoutEmptied(request: CanonicalRequest, before: CanonicalRequest): CanonicalRequest {
  const messages = changeAll(request.messages, (message, i) => {
    const isEmptied = message.role === 'assistant' && message.content.length === 0 && before.messages[i]?.content.length !== 0;
    return isEmptied ? undefined : message;
  });
  return messages === request.messages ? request : { ...request, messages };
}

/** The list with its items changed, without those that became nothing; the same list when all stayed. */
export function changeAll<T>(list: T[], change: (item: T, index: number) => T | undefined): T[] {
  const changed = list.map(change);
  if (changed.every((item, i) => item === list[i])) return list;
  return changed.filter((item) => item !== undefined);
}

/** A node made of another stands where that stood. */
export const inPlaceOf = <T extends object>(old: object, node: T): T =>
  SOURCE in old ? { ...node, [SOURCE]: old[SOURCE] } : node;
