/** Passes about the order and content of messages. */

import type { ContentBlock } from '../canonical/message.ts';
import type { CanonicalMessage, CanonicalRequest, SystemBlock } from '../canonical/request.ts';
import { changeAll, copySource } from './content.ts';
import type { Rules } from './rules.ts';

/**
 * Drops empty texts and the messages that become empty. An empty text with a signature stays. Dropped white space is
 * noted.
 */
export function dropEmpty(request: CanonicalRequest, rules: Rules): CanonicalRequest {
  const isBlank = (text: string): boolean => text === '' || (rules.target.dropWhitespace && text.trim() === '');
  const isEmpty = (block: ContentBlock): boolean => block.type === 'text' && !block.signature && isBlank(block.text);
  const system =
    request.system &&
    changeAll(request.system, (block, i) => {
      if (!isBlank(block.text)) return block;
      noteBlank(block, `/system/${i}`, rules);
      return undefined;
    });
  const isAllEmpty =
    rules.target.emptyMessages === 'drop_beside' && request.messages.every(({ content }) => content.every(isEmpty));
  const messages = changeAll(request.messages, (message, i) => {
    const content = changeAll(message.content, (block) => (isEmpty(block) ? undefined : withoutEmpty(block, isEmpty)));
    if (content.length === 0)
      return (isAllEmpty && message.role === 'user') || keepsTurn(message, i, rules) ? { ...message, content } : undefined;
    if (content === message.content) return message;
    for (const [k, block] of message.content.entries())
      if (isEmpty(block)) noteBlank(block, `/messages/${i}/content/${k}`, rules);
    return { ...message, content };
  });
  if (system === request.system && messages === request.messages) return request;
  return { ...request, ...(system && { system }), messages };
}

function noteBlank(block: ContentBlock | SystemBlock, path: string, rules: Rules): void {
  if (block.type === 'text' && block.text !== '')
    rules.repair({
      path,
      feature: 'messages.whitespace',
      message: 'text with only whitespace is not accepted by the target; dropped',
    });
}

/** A result may be empty, but its parts may not. */
function withoutEmpty(block: ContentBlock, isEmpty: (block: ContentBlock) => boolean): ContentBlock {
  if (block.type !== 'tool_result' || typeof block.content === 'string' || !block.content.some(isEmpty)) return block;
  const content = block.content.filter((part) => !isEmpty(part));
  return { ...block, content: content.length > 0 ? content : '' };
}

function keepsTurn({ role }: CanonicalMessage, at: number, rules: Rules): boolean {
  if (role === 'system' || role === 'tool') return false;
  if (rules.target.emptyMessages === 'keep') return true;
  rules.repair({
    path: `/messages/${at}`,
    feature: 'messages.empty',
    message: 'a message without content is not accepted by the target; dropped',
  });
  return false;
}

/**
 * For targets where roles must alternate: consecutive user or assistant messages become one. Tool messages are not
 * merged.
 */
export function mergeRoles(request: CanonicalRequest, rules: Rules): CanonicalRequest {
  if (!rules.target.alternate) return request;
  const runs: { start: number; messages: CanonicalMessage[] }[] = [];
  request.messages.forEach((message, i) => {
    const run = runs.at(-1);
    const isNeighbour = run?.messages[0]?.role === message.role && (message.role === 'user' || message.role === 'assistant');
    if (run && isNeighbour) run.messages.push(message);
    else runs.push({ start: i, messages: [message] });
  });
  if (runs.length === request.messages.length) return request;
  return { ...request, messages: runs.flatMap(({ start, messages }) => merge(messages, start, rules)) };
}

/** A merged message has at most one name. */
function merge(run: readonly CanonicalMessage[], start: number, rules: Rules): CanonicalMessage[] {
  const [first, ...others] = run;
  if (!first || others.length === 0) return [...run];
  const content = run.flatMap((message) => message.content);
  const merged = { ...run.reduce((all, message) => Object.assign(all, message), { ...first }), content };
  const other = others.findIndex(({ name }) => name !== first.name);
  if (other < 0) return [merged];
  const path = `/messages/${start + 1 + other}`;
  rules.drop({
    path,
    feature: 'messages.name',
    message: 'consecutive messages with different names were merged; the names are dropped',
  });
  const { name: _, ...nameless } = merged;
  return [nameless];
}

/**
 * For targets that do not accept system messages within the conversation: they become reminders in user messages, at
 * the same place. They are not moved to the front: their position has a meaning, and prompt caches depend on the
 * beginning (P14).
 */
export function convertMidSystem(request: CanonicalRequest, rules: Rules): CanonicalRequest {
  if (rules.target.midSystem === 'keep' || request.messages.every(({ role }) => role !== 'system')) return request;
  const { system, messages: given } = hoistFirst(request);
  const first = request.messages.length - given.length;
  const messages: CanonicalMessage[] = [];
  given.forEach((message, i) => {
    const last = messages.at(-1);
    if (message.role !== 'system') messages.push(message);
    else if (rules.target.midSystem === 'reminder' || !last || last.role === 'assistant')
      messages.push(remind(message, `/messages/${first + i}`, rules));
    // Consecutive system messages are merged into a copy of the first.
    else if (last.role === 'system') for (const block of message.content) last.content.push(block);
    else messages.push({ ...message, content: [...message.content] });
  });
  return { ...request, ...(system && { system }), messages };
}

/** System messages before the first turn are the system prompt, once what was not text in them is dropped. */
function hoistFirst({ system, messages }: CanonicalRequest): Pick<CanonicalRequest, 'system' | 'messages'> {
  const isPrompt = ({ role, content }: CanonicalMessage): boolean =>
    role === 'system' && content.every((block) => block.type === 'text' && block.text !== '' && !block.signature);
  const end = messages.findIndex((message) => !isPrompt(message));
  if (end <= 0) return { messages, ...(system && { system }) };
  const blocks = messages
    .slice(0, end)
    .flatMap(({ content }) => content.filter((block) => block.type === 'text').map((block): SystemBlock => ({ ...block })));
  return { system: [...(system ?? []), ...blocks], messages: messages.slice(end) };
}

function remind(message: CanonicalMessage, path: string, rules: Rules): CanonicalMessage {
  const note = 'a system message is not supported here; sent as a reminder in a user message';
  rules.note({ code: 'APPROXIMATED', path, feature: 'messages.system', message: note });
  return copySource(message, { role: 'user', content: message.content.map(wrap) });
}

const wrap = (block: ContentBlock): ContentBlock =>
  block.type === 'text' ? { ...block, text: `<system-reminder>${block.text}</system-reminder>` } : block;

/**
 * For targets where the first message must be the user's: conversations that were cut, that the assistant began (P10,
 * P12), or that have only instructions.
 */
export function ensureFirstUser(request: CanonicalRequest, rules: Rules): CanonicalRequest {
  if (!rules.target.firstUser) return request;
  const { system = [], messages } = request;
  if (system.length > 0 && messages.every(({ content }) => content.length === 0))
    return beginWith([], '/system/0', request, rules);
  const [first] = messages;
  return !first || first.role === 'user' ? request : beginWith(messages, '/messages/0', request, rules);
}

function beginWith(rest: CanonicalMessage[], path: string, request: CanonicalRequest, rules: Rules): CanonicalRequest {
  const message = 'the conversation must start with a user message; inserted "(continued)"';
  rules.note({ code: 'APPROXIMATED', path, feature: 'messages.first_user', message });
  return { ...request, messages: [createUser('(continued)'), ...rest] };
}

/**
 * A trailing assistant message is a prefill. Some targets accept it without trailing white space, some do not accept
 * it (P13).
 */
export function fitTrailingAssistant(request: CanonicalRequest, rules: Rules): CanonicalRequest {
  const last = request.messages.at(-1);
  if (rules.target.trailingAssistant === 'keep' || last?.role !== 'assistant' || last.content.some(isCall)) return request;
  const path = `/messages/${request.messages.length - 1}`;
  if (rules.target.trailingAssistant === 'trim') return trim(request, path, rules);
  if (rules.target.trailingAssistant === 'note') {
    const message = 'the target does not continue a trailing assistant message; the model starts a new one';
    rules.note({ code: 'APPROXIMATED', path, feature: 'messages.prefill', message });
    return request;
  }
  const message = 'the target does not continue a trailing assistant message; inserted a user message "Continue."';
  rules.note({ code: 'APPROXIMATED', path, feature: 'messages.prefill', message });
  return { ...request, messages: [...request.messages, createUser('Continue.')] };
}

/** Removes white space from the end of the conversation. */
function trim(request: CanonicalRequest, path: string, rules: Rules): CanonicalRequest {
  const end = 1 + request.messages.findLastIndex(({ role, content }) => role !== 'assistant' || !content.every(isBlank));
  const messages = request.messages.slice(0, end);
  const last = messages.at(-1);
  const content = last?.role === 'assistant' && !last.content.some(isCall) ? trimContent(last.content) : last?.content;
  if (end === request.messages.length && content === last?.content) return request;
  const message = 'trailing whitespace of a prefill is not accepted by the target; removed';
  rules.note({ code: 'APPROXIMATED', path, feature: 'messages.prefill', message });
  return { ...request, messages: last && content ? [...messages.slice(0, -1), { ...last, content }] : messages };
}

/** Open calls and turns that a server paused are continued as they are. */
const isCall = ({ type }: ContentBlock): boolean => type === 'tool_use' || type === 'tool_result';

function trimContent(content: ContentBlock[]): ContentBlock[] {
  const end = 1 + content.findLastIndex((block) => !isBlank(block));
  const last = content[end - 1];
  const isTrimmed = last?.type !== 'text' || last.signature !== undefined || last.text === last.text.trimEnd();
  if (isTrimmed) return end === content.length ? content : content.slice(0, end);
  return [...content.slice(0, end - 1), { ...last, text: last.text.trimEnd() }];
}

/** Text with a signature is never changed. */
const isBlank = (block: ContentBlock): boolean => block.type === 'text' && !block.signature && block.text.trim() === '';

const createUser = (text: string): CanonicalMessage => ({ role: 'user', content: [{ type: 'text', text }] });
