import { deriveId } from '../../accumulate/derive-id.ts';
import type { JsonObject } from '../../accumulate/overlay.ts';
import type { ContentBlock, OpaqueBlock, TextBlock, ToolResultBlock } from '../../canonical/blocks.ts';
import type { SignedBlob } from '../../canonical/protocol.ts';
import type { CanonicalMessage, SystemBlock } from '../../canonical/request.ts';
import { at } from '../../canonical/source.ts';
import { invalid, repair } from '../shared/codec.ts';
import { expectConversation, expectList, expectObject, expectText, optional, pointerOf } from '../shared/expect.ts';
import { textOf, unknownFields } from '../shared/read.ts';
import { decodeBuiltInCall, decodeBuiltInOutput } from './built-in-calls.ts';
import { decodeContent, type Part, placesOf, type Scope } from './content-decode.ts';
import { decodeAssistantItem } from './input-assistant.ts';
import { decodeCall, decodeOutput } from './input-calls.ts';
import { fieldsOf, keep, PROTOCOL } from './kept.ts';
import { decodeReasoning } from './reasoning.ts';

export interface Conversation {
  system: SystemBlock[];
  messages: CanonicalMessage[];
}

export function expectInput(value: unknown): readonly unknown[] {
  if (typeof value === 'string') return [{ role: 'user', content: value }];
  const list = expectList(value, 'input');
  expectConversation(list, 'input');
  return list;
}

export function decodeInput(list: readonly unknown[], scope: Scope): Conversation {
  const reader = new InputReader(scope);
  list.forEach((item, i) => {
    reader.read(expectObject(item, `input[${i}]`), `input[${i}]`);
  });
  return reader.conversation;
}

type ReadItem = (reader: InputReader, item: JsonObject, param: string) => void;

const ITEMS: Readonly<Record<string, ReadItem>> = {
  message: (reader, item, param) => reader.message(item, param),
  reasoning: (reader, item, param) => reader.reasoning(item, param),
  item_reference: (reader, item, param) => reader.reference(item, param),
  function_call: (reader, item, param) => reader.call(item, param),
  custom_tool_call: (reader, item, param) => reader.call(item, param),
  function_call_output: (reader, item, param) => reader.output(item, param),
  custom_tool_call_output: (reader, item, param) => reader.output(item, param),
};

const ROLES = ['user', 'assistant', 'system', 'developer'];

/** Items to turns: reasoning, words and calls that follow each other are one turn of the assistant, outputs one message of tools. */
class InputReader {
  readonly conversation: Conversation = { system: [], messages: [] };
  readonly #scope: Scope;
  /** Names of the calls by id, and the ids nobody has answered. */
  readonly #calls = new Map<string, string>();
  readonly #unanswered = new Set<string>();
  /** A blob for the call or text that follows. */
  #next: SignedBlob | undefined;

  constructor(scope: Scope) {
    this.#scope = scope;
  }

  read(item: JsonObject, param: string): void {
    const type = optional(item['type'], `${param}.type`, expectText) || untyped(item);
    if (type === undefined) throw invalid(`${param}.type`, 'is required unless the item has a role or an id');
    const read = Object.hasOwn(ITEMS, type) ? ITEMS[type] : undefined;
    if (read) read(this, item, param);
    else this.#readOther(item, param);
  }

  /** Tools that the client runs are calls like any other; what only the server understands is kept as it is. */
  #readOther(item: JsonObject, param: string): void {
    const call = decodeBuiltInCall(item);
    const result = decodeBuiltInOutput(item);
    if (call) this.#say(this.#signed(call), param);
    else if (result) this.#answer(result, param);
    else {
      const hoisted = item['type'] === 'additional_tools' && { hoisted: true };
      this.#say({ type: 'opaque', origin: PROTOCOL, raw: item, ...hoisted } satisfies OpaqueBlock, param);
    }
  }

  /** An item that the server stored, which only a server of this protocol can look up. */
  reference(item: JsonObject, param: string): void {
    this.#say({ type: 'opaque', origin: PROTOCOL, raw: item, held: textOf(item['id']) } satisfies OpaqueBlock, param);
  }

  message(item: JsonObject, param: string): void {
    const role = expectText(item['role'], `${param}.role`);
    if (role === 'assistant') {
      const blocks = decodeAssistantItem(item, param, this.#next !== undefined);
      for (const [block, place] of blocks) this.#say(this.#signed(block), place);
      if (blocks.length === 0) {
        const message = 'a message without content is not accepted; dropped';
        repair(this.#scope.context, { path: pointerOf(param), feature: 'messages.empty', message });
      }
      return;
    }
    if (!ROLES.includes(role)) throw invalid(`${param}.role`, `must be one of ${ROLES.join(', ')}`);
    if (typeof item['content'] !== 'string') expectList(item['content'], `${param}.content`);
    const content = decodeContent(item['content'], `${param}.content`, this.#scope);
    if (role === 'user') this.#add({ role, content, ...idOf(item), ...keep(unknownFields(item, MESSAGE_FIELDS)) }, param);
    else this.#instruct(item, role, content, param);
  }

  /** Instructions before anyone has spoken are the system's. */
  #instruct(item: JsonObject, role: string, content: Part[], param: string): void {
    const { system, messages } = this.conversation;
    const fields = unknownFields(item, MESSAGE_FIELDS);
    const isHoisted = messages.length === 0 || this.#scope.context.policy.systemHoist === 'all';
    const texts = content.filter((block) => block.type === 'text');
    if (isHoisted && texts.length === content.length)
      for (const [i, block] of texts.entries())
        system.push(hoist(block, i === 0 ? { role, fields: { ...idOf(item), ...fields } } : undefined));
    else this.#add({ role: 'system', content, ...idOf(item), ...keep({ ...fields, role }) }, param);
  }

  reasoning(item: JsonObject, param: string): void {
    const { blocks, signs } = decodeReasoning(item);
    for (const block of blocks) this.#say(block, param);
    const blob = signs && at(pointerOf(`${param}.encrypted_content`), signs.blob, this.#scope.context);
    if (blob && (signs.which === 'next' || !this.#signLast(blob))) this.#next = blob;
  }

  /** The text that stands before; false when there is none to sign. */
  #signLast(signature: SignedBlob): boolean {
    const content = this.conversation.messages.at(-1)?.content;
    const last = content?.at(-1);
    if (!content || last?.type !== 'text' || this.conversation.messages.at(-1)?.role !== 'assistant') return false;
    content[content.length - 1] = { ...last, signature };
    return true;
  }

  call(item: JsonObject, param: string): void {
    const block = decodeCall(item, param, this.#scope.context);
    this.#calls.set(block.id, block.name);
    this.#unanswered.add(block.id);
    this.#say(this.#signed(block), param);
  }

  #signed<T extends ContentBlock>(block: T): T {
    const signature = this.#next;
    if (!signature || (block.type !== 'text' && block.type !== 'tool_use')) return block;
    this.#next = undefined;
    return { ...block, signature };
  }

  output(item: JsonObject, param: string): void {
    const [oldest] = this.#unanswered;
    const named = textOf(optional(item['call_id'], `${param}.call_id`, expectText));
    const id = named || oldest || deriveId('call_', param);
    if (!named) {
      const message = `the output names no call; it is taken for that of ${id}`;
      repair(this.#scope.context, { path: pointerOf(`${param}.call_id`), feature: 'messages.tool_use.id', message });
    }
    this.#unanswered.delete(id);
    const name = this.#calls.get(id);
    this.#answer({ ...decodeOutput(item, id, param, this.#scope), ...(name !== undefined && { name }) }, param);
  }

  #answer(result: ToolResultBlock, param: string): void {
    const last = this.conversation.messages.at(-1);
    const placed = at(pointerOf(param), result, this.#scope.context);
    if (last?.role === 'tool') last.content.push(placed);
    else this.#add({ role: 'tool', content: [placed] }, param);
  }

  /** A block of the assistant's turn. */
  #say(block: ContentBlock, param: string): void {
    const last = this.conversation.messages.at(-1);
    const place = pointerOf(param);
    const placed = at(place, block, this.#scope.context, placesOf(place));
    if (last?.role === 'assistant') last.content.push(placed);
    else this.#add({ role: 'assistant', content: [placed] }, param);
  }

  #add(message: CanonicalMessage, param: string): void {
    this.conversation.messages.push(at(pointerOf(param), message, this.#scope.context));
  }
}

/** The type is optional for messages, and for references, which are an id alone. */
const untyped = ({ role, id }: JsonObject): string | undefined =>
  role !== undefined ? 'message' : typeof id === 'string' && id !== '' ? 'item_reference' : undefined;

const MESSAGE_FIELDS = new Set(['type', 'role', 'content', 'id']);

const idOf = ({ id }: JsonObject): { id?: string } => (typeof id === 'string' && id !== '' ? { id } : {});

/** The first block of each message names its role, and brings the fields of the message: a block without a role continues one. */
function hoist(block: TextBlock, message: { role: string; fields: JsonObject } | undefined): SystemBlock {
  const { refusal: _, citations: __, logprobs: ___, signature: ____, ...rest } = block;
  if (!message) return rest;
  const role = message.role === 'developer' ? 'developer' : 'system';
  return { ...rest, role, ...keep({ ...fieldsOf(block), message: message.fields }) };
}
