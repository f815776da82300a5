import type { ContentBlock } from '../canonical/blocks.ts';
import type { CanonicalMessage, CanonicalRequest } from '../canonical/request.ts';
import type { Rules } from './rules.ts';

const says = (text: string): CanonicalMessage => ({ role: 'user', content: [{ type: 'text', text }] });

/** For targets where the user begins: a conversation that was cut, that the assistant began (P10, P12), or that has only instructions. */
export function ensureFirstUser(request: CanonicalRequest, rules: Rules): CanonicalRequest {
  if (!rules.firstUser) return request;
  const { system = [], messages } = request;
  if (system.length > 0 && messages.every(({ content }) => content.length === 0))
    return beginWith([], '/system/0', request, rules);
  const [first] = messages;
  return !first || first.role === 'user' ? request : beginWith(messages, '/messages/0', request, rules);
}

function beginWith(rest: CanonicalMessage[], path: string, request: CanonicalRequest, rules: Rules): CanonicalRequest {
  const message = 'the conversation must start with a user message; inserted "(continued)"';
  rules.note({ code: 'APPROXIMATED', path, feature: 'messages.first_user', message });
  return { ...request, messages: [says('(continued)'), ...rest] };
}

/** The assistant's last word is a prefill: some targets take it without white space at its end, some take none (P13). */
export function trailingAssistant(request: CanonicalRequest, rules: Rules): CanonicalRequest {
  const last = request.messages.at(-1);
  if (rules.trailingAssistant === 'keep' || last?.role !== 'assistant' || last.content.some(isCall)) return request;
  const path = `/messages/${request.messages.length - 1}`;
  if (rules.trailingAssistant === 'trim') return trim(request, path, rules);
  if (rules.trailingAssistant === 'tell') {
    const message = 'the target does not continue a trailing assistant message; the model starts a new one';
    rules.note({ code: 'APPROXIMATED', path, feature: 'messages.prefill', message });
    return request;
  }
  const message = 'the model continues no message of its own; the user says "Continue."';
  rules.note({ code: 'APPROXIMATED', path, feature: 'messages.prefill', message });
  return { ...request, messages: [...request.messages, says('Continue.')] };
}

/** Open calls, and turns that a server paused in the middle of its own: to be gone on with as they are. */
const isCall = ({ type }: ContentBlock): boolean => type === 'tool_use' || type === 'tool_result';

/** What a provider signed stays as it is. */
const isBlank = (block: ContentBlock): boolean => block.type === 'text' && !block.signature && block.text.trim() === '';

/** From the end, until somebody says something. */
function trim(request: CanonicalRequest, path: string, rules: Rules): CanonicalRequest {
  const end = 1 + request.messages.findLastIndex(({ role, content }) => role !== 'assistant' || !content.every(isBlank));
  const kept = request.messages.slice(0, end);
  const last = kept.at(-1);
  const content = last?.role === 'assistant' && !last.content.some(isCall) ? trimContent(last.content) : last?.content;
  if (end === request.messages.length && content === last?.content) return request;
  const message = 'white space at the end of a prefill is not sent';
  rules.note({ code: 'APPROXIMATED', path, feature: 'messages.prefill', message });
  return { ...request, messages: last && content ? [...kept.slice(0, -1), { ...last, content }] : kept };
}

function trimContent(content: ContentBlock[]): ContentBlock[] {
  const end = 1 + content.findLastIndex((block) => !isBlank(block));
  const last = content[end - 1];
  const isTrimmed = last?.type !== 'text' || last.signature !== undefined || last.text === last.text.trimEnd();
  if (isTrimmed) return end === content.length ? content : content.slice(0, end);
  return [...content.slice(0, end - 1), { ...last, text: last.text.trimEnd() }];
}
