import type { ContentBlock } from '../canonical/blocks.ts';
import type { CanonicalRequest } from '../canonical/request.ts';

/** Texts that say nothing, and instructions without any. A signature is something: its empty text stays. Users and assistants keep their turn. */
export function dropEmpty(request: CanonicalRequest): CanonicalRequest {
  const system = request.system?.filter(({ text }) => text !== '');
  const messages = request.messages
    .map((message) =>
      message.content.some(isEmpty) ? { ...message, content: message.content.filter((block) => !isEmpty(block)) } : message,
    )
    .filter(({ role, content }) => role !== 'system' || content.length > 0);
  return { ...request, ...(system && { system }), messages };
}

const isEmpty = (block: ContentBlock): boolean => block.type === 'text' && block.text === '' && !block.signature;
