import type { CanonicalMessage, CanonicalRequest } from '../canonical/request.ts';

/** For targets where user and assistant must take turns: neighbours of one role become one message. Tool messages stay, and keep others apart. */
export function mergeRoles(request: CanonicalRequest): CanonicalRequest {
  const messages: CanonicalMessage[] = [];
  for (const message of request.messages) {
    const last = messages.at(-1);
    const isNeighbour = last?.role === message.role && (message.role === 'user' || message.role === 'assistant');
    if (!last || !isNeighbour || last.name !== message.name) messages.push(message);
    else messages[messages.length - 1] = { ...last, ...message, content: [...last.content, ...message.content] };
  }
  return { ...request, messages };
}
