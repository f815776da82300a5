import type { ContentBlock } from '../canonical/blocks.ts';
import type { CanonicalMessage, CanonicalRequest } from '../canonical/request.ts';
import { changeAll } from './blocks.ts';
import type { Rules } from './rules.ts';

type EmptyRules = Pick<Rules, 'repair' | 'dropWhitespace' | 'foldResults'>;

/**
 * Texts that say nothing, and messages without any. A signature is something: its empty text stays. Users and assistants keep their turn
 * where roles are of the message; where turns are what is sent, one without content is refused (P29).
 */
export function dropEmpty(request: CanonicalRequest, rules: EmptyRules): CanonicalRequest {
  const isBlank = (text: string): boolean => text === '' || (rules.dropWhitespace && text.trim() === '');
  const isEmpty = (block: ContentBlock): boolean => block.type === 'text' && !block.signature && isBlank(block.text);
  const system = request.system && changeAll(request.system, (block) => (isBlank(block.text) ? undefined : block));
  const messages = changeAll(request.messages, (message, i) => {
    const content = changeAll(message.content, (block) => (isEmpty(block) ? undefined : withoutEmpty(block, isEmpty)));
    if (content.length > 0) return content === message.content ? message : { ...message, content };
    return keepsTurn(message, i, rules) ? { ...message, content } : undefined;
  });
  if (system === request.system && messages === request.messages) return request;
  return { ...request, ...(system && { system }), messages };
}

/** A result may be empty, its parts may not. */
function withoutEmpty(block: ContentBlock, isEmpty: (block: ContentBlock) => boolean): ContentBlock {
  if (block.type !== 'tool_result' || typeof block.content === 'string' || !block.content.some(isEmpty)) return block;
  const content = block.content.filter((part) => !isEmpty(part));
  return { ...block, content: content.length > 0 ? content : '' };
}

function keepsTurn({ role }: CanonicalMessage, at: number, rules: EmptyRules): boolean {
  if (role === 'system' || role === 'tool') return false;
  if (!rules.foldResults && !rules.dropWhitespace) return true;
  rules.repair({ path: `/messages/${at}`, feature: 'messages.empty', message: 'a message that says nothing is not sent' });
  return false;
}
