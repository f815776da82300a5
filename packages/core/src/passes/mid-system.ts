import type { ContentBlock } from '../canonical/blocks.ts';
import type { CanonicalMessage, CanonicalRequest } from '../canonical/request.ts';
import { inPlaceOf } from './blocks.ts';
import type { Rules } from './rules.ts';

/**
 * Instructions in the middle of a conversation, for targets that do not take them everywhere: the user reminds of them, at the same place.
 * They are never moved to the front: their place has a meaning, and the caches of the prompt live by its beginning (P14).
 */
export function midSystem(request: CanonicalRequest, rules: Rules): CanonicalRequest {
  if (rules.midSystem === 'keep' || request.messages.every(({ role }) => role !== 'system')) return request;
  const messages: CanonicalMessage[] = [];
  request.messages.forEach((message, i) => {
    const last = messages.at(-1);
    if (message.role !== 'system') messages.push(message);
    else if (rules.midSystem === 'reminder' || !last || last.role === 'assistant')
      messages.push(remind(message, `/messages/${i}`, rules));
    // Several behind one turn are one; the content is a copy, to be added to.
    else if (last.role === 'system') for (const block of message.content) last.content.push(block);
    else messages.push({ ...message, content: [...message.content] });
  });
  return { ...request, messages };
}

function remind(message: CanonicalMessage, path: string, rules: Rules): CanonicalMessage {
  const told = 'instructions cannot stand here; the user reminds of them';
  rules.note({ code: 'APPROXIMATED', path, feature: 'messages.system', message: told });
  return inPlaceOf(message, { role: 'user', content: message.content.map(wrap) });
}

const wrap = (block: ContentBlock): ContentBlock =>
  block.type === 'text' ? { ...block, text: `<system-reminder>${block.text}</system-reminder>` } : block;
