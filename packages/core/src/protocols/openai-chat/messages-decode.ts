import { deriveId } from '../../accumulate/derive-id.ts';
import type { JsonObject } from '../../accumulate/overlay.ts';
import type { AudioBlock, ContentBlock, TextBlock, ToolResultBlock } from '../../canonical/blocks.ts';
import type { CacheControl } from '../../canonical/protocol.ts';
import type { CanonicalMessage, SystemBlock } from '../../canonical/request.ts';
import { type CodecContext, invalid, repair } from '../shared/codec.ts';
import { expectConversation, expectList, expectName, expectObject, expectText, optional, pointerOf } from '../shared/expect.ts';
import { objectOf, textOf, unknownFields } from '../shared/read.ts';
import { CallBook } from './call-book.ts';
import { decodeCalls, decodeLegacyCall } from './calls.ts';
import {
  type AssistantPart,
  decodeAssistantContent,
  decodeContent,
  decodeSystemContent,
  type Part,
  placed,
} from './content-decode.ts';
import { decodeCacheControl, keep } from './fields.ts';
import { decodeReasoning, REASONING_FIELDS, signNext } from './reasoning.ts';

/** What all messages of one request share. */
interface Scope {
  context: CodecContext;
  book: CallBook;
}

type DecodeMessage = (message: JsonObject, at: string, scope: Scope) => CanonicalMessage;

const ROLES: Readonly<Record<string, DecodeMessage>> = {
  system: decodeSystem,
  developer: decodeSystem,
  user: decodeUser,
  assistant: decodeAssistant,
  tool: decodeTool,
  function: decodeFunction,
};

interface Conversation {
  system: SystemBlock[];
  messages: CanonicalMessage[];
}

export function expectMessages(value: unknown): readonly unknown[] {
  const list = expectList(value, 'messages');
  if (list.length === 0) throw invalid('messages', 'must not be empty');
  expectConversation(list, 'messages');
  return list;
}

export function decodeMessages(list: readonly unknown[], context: CodecContext): Conversation {
  const scope: Scope = { context, book: new CallBook() };
  const conversation: Conversation = { system: [], messages: [] };
  list.forEach((item, i) => {
    const at = `messages[${i}]`;
    const message = expectObject(item, at);
    const role = expectText(message['role'], `${at}.role`);
    const decode = Object.hasOwn(ROLES, role) ? ROLES[role] : undefined;
    if (!decode) throw invalid(`${at}.role`, `must be one of ${Object.keys(ROLES).join(', ')}`);
    add(conversation, placed(at, decode(message, at, scope), context), context);
  });
  return conversation;
}

/** Instructions before anyone has spoken are the system's; results that follow each other are one message. */
function add({ system, messages }: Conversation, message: CanonicalMessage, { policy }: CodecContext): void {
  const isHoisted = message.role === 'system' && (messages.length === 0 || policy.systemHoist === 'all');
  const last = messages.at(-1);
  if (isHoisted && message.content.every((block) => block.type === 'text'))
    for (const block of hoist(message)) system.push(block);
  else if (message.role === 'tool' && last?.role === 'tool') for (const block of message.content) last.content.push(block);
  else messages.push(message);
}

/** The first block of each message names its role, and brings the fields of the message: a block without a role continues one. */
function hoist({ content, name, extensions }: CanonicalMessage): SystemBlock[] {
  const { role = 'system', ...rest } = objectOf(extensions?.['openai-chat']);
  const message = { ...rest, ...(name !== undefined && { name }) };
  return content
    .filter((block) => block.type === 'text')
    .map(({ extensions: own, ...block }, i): SystemBlock => {
      const fields = { ...own?.['openai-chat'], ...(i === 0 && Object.keys(message).length > 0 && { message }) };
      return { ...block, ...(i === 0 && { role: role === 'developer' ? 'developer' : 'system' }), ...keep(fields) };
    });
}

const nameOf = (message: JsonObject, at: string): { name?: string } => {
  const name = optional(message['name'], `${at}.name`, expectText);
  return name === undefined ? {} : { name };
};

const SPOKEN_FIELDS = new Set(['role', 'content', 'name']);

/** The role is kept only when it is not the usual one. */
function decodeSystem(message: JsonObject, at: string, scope: Scope): CanonicalMessage {
  const content = decodeSpoken(message, at, decodeSystemContent, scope);
  const fields = unknownFields(message, SPOKEN_FIELDS);
  const role = message['role'] === 'developer' && { role: 'developer' };
  return { role: 'system', content, ...nameOf(message, at), ...keep({ ...fields, ...role }) };
}

function decodeUser(message: JsonObject, at: string, scope: Scope): CanonicalMessage {
  const content = decodeSpoken(message, at, decodeContent, scope);
  return { role: 'user', content, ...nameOf(message, at), ...keep(unknownFields(message, SPOKEN_FIELDS)) };
}

/** Users and systems must say something; a cache mark on the message is one on its last block. */
function decodeSpoken(message: JsonObject, at: string, decode: typeof decodeContent, { context }: Scope): Part[] {
  const { content } = message;
  if (typeof content !== 'string') expectList(content, `${at}.content`);
  const blocks = decode(content, { at: `${at}.content`, context });
  const last = blocks.at(-1);
  return last?.type === 'text' ? [...blocks.slice(0, -1), { ...last, ...markOf(message, at, context) }] : blocks;
}

function markOf(message: JsonObject, at: string, context: CodecContext): { cache_control?: CacheControl } {
  const { cache_control: mark } = decodeCacheControl(message);
  return mark ? { cache_control: placed(`${at}.cache_control`, mark, context) } : {};
}

const ASSISTANT_FIELDS = new Set([
  'role',
  'content',
  'name',
  'refusal',
  'audio',
  'tool_calls',
  'function_call',
  ...REASONING_FIELDS,
]);

/** The wire has no order between these: thinking, text, refusal, calls. */
function decodeAssistant(message: JsonObject, at: string, { context, book }: Scope): CanonicalMessage {
  const { blocks, next } = decodeReasoning(message);
  const spoken: ContentBlock[] = [
    ...decodeAssistantContent(message['content'], { at: `${at}.content`, context }).toSorted(refusalLast),
    ...decodeRefusal(message['refusal'], at).map((block) => placed(`${at}.refusal`, block, context)),
    ...decodeAudio(message['audio'], `${at}.audio`).map((block) => placed(`${at}.audio`, block, context)),
    ...decodeCalls(message['tool_calls'], `${at}.tool_calls`, context).map((call, i) =>
      placed(`${at}.tool_calls[${i}]`, call, context),
    ),
    ...decodeLegacyCall(message['function_call'], `${at}.function_call`, book, context).map((call) =>
      placed(`${at}.function_call`, call, context),
    ),
  ];
  const thought = blocks.map(({ block, place }) => placed(`${at}.${place}`, block, context));
  const signing = next.map(({ blob, place }) => placed(`${at}.${place}`, blob, context));
  const content = [...thought, ...signNext(spoken, signing)];
  for (const block of content) if (block.type === 'tool_use') book.ask(block.id, block.name);
  const fields = unknownFields(message, ASSISTANT_FIELDS);
  return { role: 'assistant', content, ...nameOf(message, at), ...keep(fields) };
}

const refusalLast = (a: AssistantPart, b: AssistantPart): number => Number(isRefusal(a)) - Number(isRefusal(b));
const isRefusal = (block: AssistantPart): boolean => block.type === 'text' && block.refusal === true;

function decodeRefusal(refusal: unknown, at: string): TextBlock[] {
  const text = optional(refusal, `${at}.refusal`, expectText);
  return text ? [{ type: 'text', text, refusal: true }] : [];
}

/** An earlier answer in audio, by its id. */
function decodeAudio(value: unknown, at: string): AudioBlock[] {
  const audio = optional(value, at, expectObject);
  if (!audio) return [];
  const { id, ...rest } = audio;
  return [{ type: 'audio', source: {}, audio_id: expectName(id, `${at}.id`), ...keep(rest) }];
}

const TOOL_FIELDS = new Set(['role', 'content', 'tool_call_id']);

function decodeTool(message: JsonObject, at: string, scope: Scope): CanonicalMessage {
  const { book, context } = scope;
  const named = textOf(optional(message['tool_call_id'], `${at}.tool_call_id`, expectText));
  const id = named || (book.takeOldest() ?? deriveId('call_', at));
  if (!named) tellId(`${at}.tool_call_id`, `the result names no call; it is taken for that of ${id}`, context);
  return decodeResult(message, id, at, TOOL_FIELDS, scope);
}

const FUNCTION_FIELDS = new Set(['role', 'content', 'name']);

/** Deprecated: the result of the last open call of that name. */
function decodeFunction(message: JsonObject, at: string, scope: Scope): CanonicalMessage {
  const name = expectName(message['name'], `${at}.name`);
  return decodeResult(message, scope.book.takeNamed(name) ?? deriveId('fc_', at, name), at, FUNCTION_FIELDS, scope);
}

function decodeResult(
  message: JsonObject,
  id: string,
  at: string,
  known: ReadonlySet<string>,
  { book, context }: Scope,
): CanonicalMessage {
  const { content } = message;
  const called = book.answer(id);
  const name = optional(message['name'], `${at}.name`, expectText) ?? called;
  const result: ToolResultBlock = {
    type: 'tool_result',
    tool_use_id: id,
    content: typeof content === 'string' ? content : emptyAsText(decodeContent(content, { at: `${at}.content`, context })),
    ...(name !== undefined && { name }),
    ...decodeCacheControl(message),
    ...keep(unknownFields(message, known)),
  };
  return { role: 'tool', content: [placed(at, result, context)] };
}

const emptyAsText = (blocks: Part[]): string | Part[] => (blocks.length === 0 ? '' : blocks);

function tellId(param: string, message: string, context: CodecContext): void {
  repair(context, { path: pointerOf(param), feature: 'messages.tool_use.id', message });
}
