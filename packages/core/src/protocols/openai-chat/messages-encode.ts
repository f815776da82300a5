import type { JsonObject } from '../../accumulate/overlay.ts';
import type {
  AudioBlock,
  ContentBlock,
  TextBlock,
  ThinkingBlock,
  ToolResultBlock,
  ToolUseBlock,
} from '../../canonical/blocks.ts';
import type { CacheControl } from '../../canonical/protocol.ts';
import type { CanonicalMessage, CanonicalRequest, SystemBlock } from '../../canonical/request.ts';
import { isClientCall } from '../../canonical/response.ts';
import { type CodecContext, drop } from '../shared/codec.ts';
import { objectOf } from '../shared/read.ts';
import { encodeCall } from './calls.ts';
import { encodeContent, encodeParts, encodeText, isPlainText } from './content-encode.ts';
import { encodeMark, fieldsOf } from './fields.ts';
import { encodeReasoning, encodeThinkingPart, sentField } from './reasoning.ts';

/** Instructions first, then the conversation in its order. */
export function encodeMessages({ system = [], messages }: CanonicalRequest, context: CodecContext): JsonObject[] {
  const encoded = messages.flatMap((message, i) => encodeMessage(message, `/messages/${i}`, context));
  if (context.profile.prefix && messages.at(-1)?.role === 'assistant') Object.assign(encoded.at(-1) ?? {}, { prefix: true });
  return [...encodeSystem(system, context), ...encoded];
}

/** A block that names a role begins a message; the others continue it. */
function encodeSystem(system: readonly SystemBlock[], context: CodecContext): JsonObject[] {
  const runs: SystemBlock[][] = [];
  for (const block of system) {
    const run = runs.at(-1);
    if (run && block.role === undefined) run.push(block);
    else runs.push([block]);
  }
  return runs.map((run) => {
    const [first] = run;
    const fields = objectOf(first && fieldsOf(first)['message']);
    const content = joinPlain(
      (context.profile.cache_control ? unmarked(run, fields) : run).map((block) => encodeText(withoutMessage(block), context)),
    );
    return { ...fields, role: systemRole(first?.role, context), content };
  });
}

/** A mark that the client itself set on the whole message stands there, and not on its last block too. */
function unmarked<T extends ContentBlock | SystemBlock>(blocks: readonly T[], message: JsonObject): readonly T[] {
  if (message['cache_control'] === undefined) return blocks;
  return blocks.map((block) => {
    const { cache_control: _, ...rest } = block as T & { cache_control?: CacheControl }; // opaque blocks have none
    return rest as T; // the mark is optional
  });
}

/** Instructions are one text, unless a part of them has more to say. */
const joinPlain = (parts: JsonObject[]): string | JsonObject[] =>
  parts.every(isPlainText) ? parts.map(({ text }) => text).join('\n\n') : parts;

function withoutMessage(block: SystemBlock): SystemBlock {
  const { message: _, ...fields } = fieldsOf(block);
  return { ...block, extensions: { 'openai-chat': fields } };
}

/** Who knows `developer` knows both roles; the others know only `system`. */
const systemRole = (role: unknown, { profile }: CodecContext): string =>
  profile.system_role === 'developer' ? (role === 'system' ? 'system' : 'developer') : 'system';

function encodeMessage(message: CanonicalMessage, at: string, context: CodecContext): JsonObject[] {
  const name = message.name !== undefined && { name: message.name };
  const content = `${at}/content`;
  const said = context.profile.cache_control ? unmarked(message.content, fieldsOf(message)) : message.content;
  switch (message.role) {
    case 'user':
      return [{ ...fieldsOf(message), role: 'user', content: encodeContent(said, content, context), ...name }];
    case 'system': {
      const { role = 'system', ...fields } = fieldsOf(message);
      const parts = encodeParts(said, content, context);
      return [{ ...fields, role: systemRole(role, context), content: joinPlain(parts), ...name }];
    }
    case 'assistant': {
      const encoded = encodeAssistant(message, content, context);
      return encoded ? [{ ...encoded, ...name }] : [];
    }
    case 'tool':
      return message.content.flatMap((block, i) =>
        block.type === 'tool_result' ? [encodeResult(block, `${content}/${i}`, context)] : [],
      );
    default:
      return message.role satisfies never;
  }
}

/** A block of thinking and where it stands. */
interface Thought {
  block: ThinkingBlock;
  path: string;
}

/** The blocks of an assistant message by what the wire makes of them. */
interface Sorted {
  /** Text and parts of our own; thinking too where that is a part. */
  content: (JsonObject | TextBlock)[];
  thinking: Thought[];
  refusals: string[];
  calls: ToolUseBlock[];
  audio: AudioBlock | undefined;
}

/** Undefined when all that it held was dropped. A message that was empty before stays, and so does one that keeps two user turns apart. */
function encodeAssistant(message: CanonicalMessage, at: string, context: CodecContext): JsonObject | undefined {
  const { content, thinking, refusals, calls, audio } = sort(message.content, at, context);
  const replayed = replay(thinking, calls.length > 0, context);
  const hasMore = calls.length + refusals.length > 0 || audio !== undefined;
  const isEmptied = !hasMore && content.length === 0 && message.content.length > 0 && Object.keys(replayed).length === 0;
  if (isEmptied && !context.profile.strict_alternation) return undefined;
  return {
    ...fieldsOf(message),
    role: 'assistant',
    ...replayed,
    content: joinContent(content, context) ?? (hasMore ? null : ''),
    ...(refusals.length > 0 && { refusal: refusals.join('') }),
    ...(audio && { audio: { ...fieldsOf(audio), id: audio.audio_id } }),
    ...(calls.length > 0 && { tool_calls: calls.map((call) => encodeCall(call, context)) }),
  };
}

function sort(blocks: readonly ContentBlock[], at: string, context: CodecContext): Sorted {
  const sorted: Sorted = { content: [], thinking: [], refusals: [], calls: [], audio: undefined };
  let late: string | undefined;
  blocks.forEach((block, i) => {
    const path = `${at}/${i}`;
    if (block.type === 'tool_use' && isClientCall(block.kind)) sorted.calls.push(block);
    else if (block.type === 'thinking') sortThinking({ block, path }, sorted, context);
    else if (block.type === 'text') {
      if (sorted.calls.length > 0) late ??= path;
      if (block.refusal) sorted.refusals.push(block.text);
      else if (block.text !== '') sorted.content.push(block);
    } else if (block.type === 'audio' && block.audio_id !== undefined && !sorted.audio) sorted.audio = block;
    else if (block.type === 'opaque') sorted.content.push(objectOf(block.raw));
    else
      drop(context, {
        path,
        feature: `assistant.${block.type}`,
        message: `an assistant of OpenAI Chat cannot hold this ${block.type}`,
      });
  });
  if (late !== undefined)
    context.note({
      code: 'APPROXIMATED',
      path: late,
      feature: 'assistant.order',
      message: 'text behind calls is put before them',
    });
  return sorted;
}

/** The thinking of others is gone by now: what is left was thought here, or nobody signed it. */
function sortThinking(thought: Thought, sorted: Sorted, { profile }: CodecContext): void {
  const { block } = thought;
  if (block.thinking === '' && Object.keys(fieldsOf(block)).length === 0) return;
  if (profile.reasoning_field === 'parts' && profile.reasoning_replay !== 'never') sorted.content.push(encodeThinkingPart(block));
  else sorted.thinking.push(thought);
}

/** Texts in one, parts where one has more to say than its text; undefined when there is nothing. */
function joinContent(content: Sorted['content'], context: CodecContext): string | JsonObject[] | undefined {
  if (content.length === 0) return undefined;
  const parts = content.map((item) => (isText(item) ? encodeText(item, context) : item));
  return parts.every(isPlainText) ? parts.map(({ text }) => text).join('') : parts;
}

const isText = (item: JsonObject | TextBlock): item is TextBlock => item['type'] === 'text' && typeof item['text'] === 'string';

/** Servers that want their reasoning back want it with every call, even when there is none to give. */
function replay(thinking: readonly Thought[], hasCalls: boolean, context: CodecContext): JsonObject {
  const { reasoning_replay: when, reasoning_field: field } = context.profile;
  const isNeeded = when === 'always' ? thinking.length > 0 || hasCalls : when === 'tool_turns' && hasCalls;
  // What a chat client replays is kept on every turn, unless the server is known to refuse it.
  const isKept = when !== 'never' && context.source === 'openai-chat' && thinking.length > 0;
  if ((isNeeded || isKept) && field !== 'parts') {
    const blocks = thinking.map(({ block }) => block);
    const sent = blocks.every(({ thinking: text }) => text === '') ? 'none' : (sentField(blocks, field) ?? field);
    const fields = encodeReasoning(blocks, isNeeded ? field : sent);
    if (thinking.length === 0 || Object.keys(fields).length > 0) return fields;
  }
  for (const { path } of thinking)
    drop(context, { path, feature: 'assistant.thinking', message: 'the thinking of an earlier turn is not sent' });
  return {};
}

/** The text says that it is an error: there is no other place for it. */
const SAYS_ERROR = /^\s*error/i;

function encodeResult(block: ToolResultBlock, at: string, context: CodecContext): JsonObject {
  const fields = fieldsOf(block);
  const said = typeof block.content === 'string' ? block.content : encodeResultParts(block.content, at, context);
  const content = markResult(said, encodeMark(block, context));
  return {
    ...fields,
    role: 'tool',
    tool_call_id: block.tool_use_id,
    // Only servers that were sent a name before know one.
    ...(fields['name'] !== undefined && block.name !== undefined && { name: block.name }),
    content: block.is_error ? markError(content, at, context) : content,
  };
}

/** A result as a whole has no place for a mark: its last part has. */
function markResult(content: string | JsonObject[], mark: JsonObject): string | JsonObject[] {
  if (Object.keys(mark).length === 0 || content.length === 0) return content;
  const parts = typeof content === 'string' ? [{ type: 'text', text: content }] : content;
  return parts.map((part, i) => (i === parts.length - 1 ? { ...part, ...mark } : part));
}

function encodeResultParts(blocks: readonly ContentBlock[], at: string, context: CodecContext): string | JsonObject[] {
  const parts = encodeParts(blocks, `${at}/content`, context);
  return parts.every(isPlainText) ? parts.map(({ text }) => text).join('\n') : parts;
}

function markError(content: string | JsonObject[], at: string, context: CodecContext): string | JsonObject[] {
  const text = typeof content === 'string' ? content : String(content.find(({ type }) => type === 'text')?.['text'] ?? '');
  if (SAYS_ERROR.test(text)) return content;
  context.note({
    code: 'APPROXIMATED',
    path: at,
    feature: 'tool_result.is_error',
    message: 'the error is told in the text of the result',
  });
  return typeof content === 'string' ? `Error: ${content}` : [{ type: 'text', text: 'Error:' }, ...content];
}
