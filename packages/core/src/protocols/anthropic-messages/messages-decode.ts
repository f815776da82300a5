import type { JsonObject } from '../../accumulate/overlay.ts';
import type { CanonicalMessage, SystemBlock } from '../../canonical/request.ts';
import { type CodecContext, invalid } from '../shared/codec.ts';
import { expectConversation, expectList, expectObject, expectText } from '../shared/expect.ts';
import { unknownFields } from '../shared/read.ts';
import { keep, placed } from './fields.ts';
import { decodeContent, decodeText, type Scope } from './parts-decode.ts';

const ROLES: Readonly<Record<string, (message: JsonObject, at: string, scope: Scope) => CanonicalMessage[]>> = {
  user: decodeUser,
  assistant: decodeAssistant,
  system: decodeInstruction,
};

interface Conversation {
  system: SystemBlock[];
  messages: CanonicalMessage[];
}

/** The instructions and the conversation. Clients put instructions among the messages, too: in front they are what `system` is. */
export function decodeConversation(body: JsonObject, context: CodecContext): Conversation {
  const list = expectList(body['messages'], 'messages');
  if (list.length === 0) throw invalid('messages', 'must not be empty');
  expectConversation(list, 'messages');
  const scope: Scope = { context, names: new Map(), next: undefined };
  const messages = list.flatMap((item, i) => {
    const at = `messages[${i}]`;
    return decodeMessage(expectObject(item, at), at, scope).map((message) => placed(at, message, context));
  });
  return hoist(decodeSystem(body['system'], scope), messages, context);
}

function decodeMessage(message: JsonObject, at: string, scope: Scope): CanonicalMessage[] {
  const role = expectText(message['role'], `${at}.role`);
  const decode = Object.hasOwn(ROLES, role) ? ROLES[role] : undefined;
  if (!decode) throw invalid(`${at}.role`, `must be one of ${Object.keys(ROLES).join(', ')}`);
  return decode(message, at, scope);
}

/** A text, or texts with marks. */
function decodeSystem(system: unknown, scope: Scope): SystemBlock[] {
  if (system === undefined || system === null || system === '') return [];
  if (typeof system === 'string') return [placed('system', { type: 'text', text: system }, scope.context)];
  return expectList(system, 'system').flatMap((item, i): SystemBlock[] => {
    const at = `system[${i}]`;
    const block = expectObject(item, at);
    if (block['type'] !== 'text') throw invalid(`${at}.type`, 'must be text');
    const text = decodeText(block, at, scope);
    return text ? [placed(at, text, scope.context)] : [];
  });
}

/** Only what stands before everything else is hoisted, unless the policy says all: position carries meaning. */
function hoist(system: SystemBlock[], messages: CanonicalMessage[], { policy }: CodecContext): Conversation {
  const isAll = policy.systemHoist === 'all';
  const conversation: Conversation = { system, messages: [] };
  for (const message of messages) {
    const isLeading = isAll || conversation.messages.length === 0;
    const texts = message.content.filter((block) => block.type === 'text');
    const canMove = message.role === 'system' && isLeading && texts.length === message.content.length;
    if (canMove) for (const text of texts) conversation.system.push(text);
    else conversation.messages.push(message);
  }
  return conversation;
}

const MESSAGE_FIELDS: ReadonlySet<string> = new Set(['role', 'content']);

const keptOf = (message: JsonObject) => keep(unknownFields(message, MESSAGE_FIELDS));

/** Results of tools are a turn of their own here, before what the user says beside them (P03). */
function decodeUser(message: JsonObject, at: string, scope: Scope): CanonicalMessage[] {
  const content = decodeContent(message['content'], `${at}.content`, 'user', scope);
  const results = content.filter((block) => block.type === 'tool_result');
  const spoken = content.filter((block) => block.type !== 'tool_result');
  const kept = keptOf(message);
  if (results.length === 0) return [{ role: 'user', content: spoken, ...kept }];
  if (spoken.length === 0) return [{ role: 'tool', content: results, ...kept }];
  return [
    { role: 'tool', content: results },
    { role: 'user', content: spoken, ...kept },
  ];
}

/** Opus 4.8 and later take instructions in the middle; Claude Code sends them (P15). */
function decodeInstruction(message: JsonObject, at: string, scope: Scope): CanonicalMessage[] {
  return [{ role: 'system', content: decodeContent(message['content'], `${at}.content`, 'system', scope), ...keptOf(message) }];
}

/** A signature for the next block that none follows is kept in a block of its own. */
function decodeAssistant(message: JsonObject, at: string, scope: Scope): CanonicalMessage[] {
  const content = decodeContent(message['content'], `${at}.content`, 'assistant', scope);
  if (scope.next) content.push({ type: 'thinking', thinking: '', signature: scope.next });
  scope.next = undefined;
  return [{ role: 'assistant', content, ...keptOf(message) }];
}
