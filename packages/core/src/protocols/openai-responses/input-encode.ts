import { deriveId } from '../../accumulate/derive-id.ts';
import type { JsonObject } from '../../accumulate/overlay.ts';
import type { ContentBlock, TextBlock, ThinkingBlock, ToolResultBlock, ToolUseBlock } from '../../canonical/blocks.ts';
import type { CanonicalMessage } from '../../canonical/request.ts';
import { argumentsOf, CharacterCount } from '../shared/answer.ts';
import { approximate, type CodecContext, drop } from '../shared/codec.ts';
import { listOf, objectOf } from '../shared/read.ts';
import { encodeBuiltIn } from './built-in-calls.ts';
import { encodeParts, isPlainText } from './content-encode.ts';
import { replayableId } from './ids.ts';
import { fieldsOf, PROTOCOL } from './kept.ts';
import { encodeCitation, encodeLogprobs } from './parts-encode.ts';
import { encodeReasoning, isOwnThinking, isSameItem, PART } from './reasoning.ts';

/** The conversation as items, in its order. `isOwn`: the client speaks this protocol, and lists of texts stay lists. */
export function encodeMessages(messages: readonly CanonicalMessage[], isOwn: boolean, context: CodecContext): JsonObject[] {
  const custom = customCalls(messages);
  return messages.flatMap((message, i) => {
    const at = `/messages/${i}`;
    switch (message.role) {
      case 'user':
        return [encodeSpoken(message, 'user', at, context)];
      case 'system':
        return [encodeSpoken(message, fieldsOf(message)['role'] === 'system' ? 'system' : 'developer', at, context)];
      case 'assistant':
        return new TurnEncoder(message, at, context).encode();
      case 'tool':
        return message.content.flatMap((block, k) => {
          if (block.type !== 'tool_result') return [];
          const form = { isCustom: custom.has(block.tool_use_id), isOwn };
          return [encodeBuiltIn(block) ?? encodeOutput(block, form, `${at}/content/${k}`, context)];
        });
      default:
        return message.role satisfies never;
    }
  });
}

function customCalls(messages: readonly CanonicalMessage[]): Set<string> {
  const ids = new Set<string>();
  for (const { content } of messages)
    for (const block of content) {
      if (block.type === 'tool_use' && block.kind === 'custom') ids.add(block.id);
      else if (block.type === 'tool_result' && block.kind === 'custom') ids.add(block.tool_use_id);
    }
  return ids;
}

function encodeSpoken(message: CanonicalMessage, role: string, at: string, context: CodecContext): JsonObject {
  const id = replayableId(message.id, 'msg');
  const { role: _, ...fields } = fieldsOf(message);
  return {
    ...fields,
    type: 'message',
    ...(id !== undefined && { id }),
    role,
    content: encodeParts(message.content, `${at}/content`, context),
  };
}

/** A turn of the assistant: its blocks as items, in the order in which they were made. */
class TurnEncoder {
  readonly #message: CanonicalMessage;
  readonly #at: string;
  readonly #context: CodecContext;
  readonly #items: JsonObject[] = [];
  #texts: TextBlock[] = [];
  /** The path of the first of them. */
  #textsAt = '';
  #thoughts: ThinkingBlock[] = [];
  /** Where the latest of them stands. */
  #lastThought = '';

  constructor(message: CanonicalMessage, at: string, context: CodecContext) {
    this.#message = message;
    this.#at = `${at}/content`;
    this.#context = context;
  }

  encode(): JsonObject[] {
    this.#message.content.forEach((block, i) => {
      this.#add(block, `${this.#at}/${i}`);
    });
    this.#flush();
    this.#dropTrailing();
    return this.#items;
  }

  #add(block: ContentBlock, path: string): void {
    if (block.type === 'text') this.#addText(block, path);
    else if (block.type === 'thinking') this.#addThinking(block, path);
    else {
      this.#flush();
      this.#addItem(block, path);
    }
  }

  #addText(block: TextBlock, path: string): void {
    if (block.text === '') return;
    const last = this.#texts.at(-1);
    if (this.#thoughts.length > 0 || (last && !isSameMessage(last, block))) this.#flush();
    if (this.#texts.length === 0) this.#textsAt = path;
    this.#texts.push(block);
  }

  /** What this protocol did not make has no item to go back to. */
  #addThinking(block: ThinkingBlock, path: string): void {
    if (!isOwnThinking(block)) {
      drop(this.#context, { path, feature: 'assistant.thinking', message: 'the thinking of an earlier turn is not sent' });
      return;
    }
    const last = this.#thoughts.at(-1);
    if (this.#texts.length > 0 || (last && !isSameItem(last, block))) this.#flush();
    this.#thoughts.push(block);
    this.#lastThought = path;
  }

  #addItem(block: Exclude<ContentBlock, TextBlock | ThinkingBlock>, path: string): void {
    if (block.type === 'tool_use') this.#items.push(encodeBuiltIn(block) ?? encodeCall(block));
    else if (block.type === 'opaque') this.#items.push(objectOf(block.raw));
    else
      drop(this.#context, {
        path,
        feature: `assistant.${block.type}`,
        message: `an assistant of OpenAI Responses cannot hold this ${block.type}`,
      });
  }

  #flush(): void {
    if (this.#thoughts.length > 0) this.#addReasoning(encodeReasoning(this.#thoughts));
    if (this.#texts.length > 0) this.#items.push(encodeSaid(this.#texts, this.#message, this.#textsAt));
    this.#thoughts = [];
    this.#texts = [];
  }

  /** An item that lost its id, which was no id of this API, may have nothing left to say. */
  #addReasoning(item: JsonObject): void {
    const { id, summary, content, encrypted_content: cipher } = item;
    if (id ?? cipher ?? content ?? listOf(summary)[0]) this.#items.push(item);
    else
      drop(this.#context, {
        path: this.#lastThought,
        feature: 'assistant.thinking',
        message: 'reasoning of which nothing is left',
      });
  }

  /** The API looks up reasoning by its id, and refuses it without the item it led to (P18). Without an id only the ciphertext counts. */
  #dropTrailing(): void {
    const led = 1 + this.#items.findLastIndex(({ type }) => type !== 'reasoning');
    const trailing = this.#items.splice(led);
    for (const { id, ...rest } of trailing) {
      if (id === undefined || rest['encrypted_content'] !== undefined) this.#items.push(rest);
      else
        drop(this.#context, {
          path: this.#lastThought,
          feature: 'assistant.thinking',
          message: 'reasoning that led to nothing is not sent',
        });
    }
  }
}

/** Texts of one item say so by its id or by their number in it; texts of other protocols run on. */
function isSameMessage(before: TextBlock, after: TextBlock): boolean {
  const own = after.extensions?.[PROTOCOL];
  if (own === undefined) return before.extensions?.[PROTOCOL] === undefined;
  return own[PART] !== undefined || (own['item_id'] !== undefined && own['item_id'] === fieldsOf(before)['item_id']);
}

/** Always `output_text`: the API refuses `input_text` of an assistant (P39), and llama.cpp refuses a string. */
function encodeSaid(texts: readonly TextBlock[], message: CanonicalMessage, path: string): JsonObject {
  const [first] = texts;
  const { item_id: itemId, phase, status, message: rest } = first ? fieldsOf(first) : {};
  const isUnnamed = itemId === undefined && first?.extensions?.[PROTOCOL] !== undefined;
  // The published type requires an id; an item that a client of this protocol sent without one stays as it is.
  const id = replayableId(itemId ?? message.id, 'msg') ?? (isUnnamed ? undefined : deriveId('msg_', path));
  const said = phase ?? message.phase;
  return {
    ...objectOf(rest),
    type: 'message',
    ...(id !== undefined && { id }),
    role: 'assistant',
    // Who names an output item by its id has to say how far it came.
    ...(status !== undefined ? { status } : id !== undefined && { status: 'completed' }),
    content: texts.map(encodeSaidPart),
    ...(said !== undefined && { phase: said }),
  };
}

function encodeSaidPart(block: TextBlock): JsonObject {
  const { item_id: _, phase: __, status: ___, message: ____, [PART]: _____, ...fields } = fieldsOf(block);
  if (block.refusal) return { ...fields, type: 'refusal', refusal: block.text };
  const length = new CharacterCount();
  length.add(block.text);
  const annotations = (block.citations ?? []).flatMap((citation) => encodeCitation(citation, length) ?? []);
  return {
    ...fields,
    type: 'output_text',
    text: block.text,
    annotations,
    ...(block.logprobs && { logprobs: encodeLogprobs(block.logprobs) }),
  };
}

function encodeCall(call: ToolUseBlock): JsonObject {
  const isCustom = call.kind === 'custom';
  const { parallel_call_id: _, ...fields } = fieldsOf(call);
  const id = replayableId(call.item_id, isCustom ? 'ctc' : 'fc');
  return {
    ...fields,
    type: isCustom ? 'custom_tool_call' : 'function_call',
    ...(id !== undefined && { id }),
    call_id: call.id,
    ...(call.namespace !== undefined && { namespace: call.namespace }),
    name: call.name,
    [isCustom ? 'input' : 'arguments']: argumentsOf(call, false),
    ...(call.status && { status: call.status }),
  };
}

/** The text says that it is an error: there is no other place for it (P40). */
const SAYS_ERROR = /^\s*error/i;

interface OutputForm {
  isCustom: boolean;
  isOwn: boolean;
}

function encodeOutput(block: ToolResultBlock, { isCustom, isOwn }: OutputForm, at: string, context: CodecContext): JsonObject {
  const fields = fieldsOf(block);
  const output = typeof block.content === 'string' ? block.content : encodeOutputParts(block.content, isOwn, at, context);
  const isUnsaid = block.is_error === true && fields['status'] !== 'incomplete';
  return {
    ...fields,
    type: isCustom ? 'custom_tool_call_output' : 'function_call_output',
    call_id: block.tool_use_id,
    output: isUnsaid ? markError(output, at, context) : output,
  };
}

/** Text alone is a string unless the client itself sent a list; images and files stay where they are (P31). */
function encodeOutputParts(
  blocks: readonly ContentBlock[],
  isOwn: boolean,
  at: string,
  context: CodecContext,
): string | JsonObject[] {
  const parts = encodeParts(blocks, `${at}/content`, context);
  if (isOwn && parts.length > 0) return parts;
  return parts.every(isPlainText) ? parts.map(({ text }) => text).join('\n') : parts;
}

function markError(output: string | JsonObject[], at: string, context: CodecContext): string | JsonObject[] {
  const text = typeof output === 'string' ? output : String(output.find(({ type }) => type === 'input_text')?.['text'] ?? '');
  if (SAYS_ERROR.test(text)) return output;
  approximate(context, { path: at, feature: 'tool_result.is_error', message: 'the error is told in the text of the output' });
  return typeof output === 'string' ? `Error: ${output}` : [{ type: 'input_text', text: 'Error:' }, ...output];
}
