import type { ContentBlock } from '../canonical/blocks.ts';
import type { CanonicalMessage, CanonicalRequest, SystemBlock } from '../canonical/request.ts';
import { changeAll } from './blocks.ts';
import type { Rules } from './rules.ts';

type EmptyRules = Pick<Rules, 'repair' | 'dropWhitespace' | 'emptyMessages'>;

/** Texts that say nothing, and messages without any. A signature is something: its empty text stays. Text that was white space is told. */
export function dropEmpty(request: CanonicalRequest, rules: EmptyRules): CanonicalRequest {
  const isBlank = (text: string): boolean => text === '' || (rules.dropWhitespace && text.trim() === '');
  const isEmpty = (block: ContentBlock): boolean => block.type === 'text' && !block.signature && isBlank(block.text);
  const system =
    request.system &&
    changeAll(request.system, (block, i) => {
      if (!isBlank(block.text)) return block;
      tellBlank(block, `/system/${i}`, rules);
      return undefined;
    });
  const messages = changeAll(request.messages, (message, i) => {
    const content = changeAll(message.content, (block) => (isEmpty(block) ? undefined : withoutEmpty(block, isEmpty)));
    if (content.length === 0) return keepsTurn(message, i, rules) ? { ...message, content } : undefined;
    if (content === message.content) return message;
    for (const [k, block] of message.content.entries())
      if (isEmpty(block)) tellBlank(block, `/messages/${i}/content/${k}`, rules);
    return { ...message, content };
  });
  if (system === request.system && messages === request.messages) return request;
  return { ...request, ...(system && { system }), messages };
}

function tellBlank(block: ContentBlock | SystemBlock, path: string, rules: EmptyRules): void {
  if (block.type === 'text' && block.text !== '')
    rules.repair({ path, feature: 'messages.whitespace', message: 'text of nothing but white space is not accepted; dropped' });
}

/** A result may be empty, its parts may not. */
function withoutEmpty(block: ContentBlock, isEmpty: (block: ContentBlock) => boolean): ContentBlock {
  if (block.type !== 'tool_result' || typeof block.content === 'string' || !block.content.some(isEmpty)) return block;
  const content = block.content.filter((part) => !isEmpty(part));
  return { ...block, content: content.length > 0 ? content : '' };
}

function keepsTurn({ role }: CanonicalMessage, at: number, rules: EmptyRules): boolean {
  if (role === 'system' || role === 'tool') return false;
  if (rules.emptyMessages === 'keep') return true;
  rules.repair({
    path: `/messages/${at}`,
    feature: 'messages.empty',
    message: 'a message without content is not accepted; dropped',
  });
  return false;
}
