import { isObject, type JsonObject } from '../../accumulate/overlay.ts';
import type { ContentBlock, FileBlock, TextBlock, ThinkingBlock, ToolResultBlock } from '../../canonical/blocks.ts';
import { isClientCall } from '../../canonical/response.ts';
import { type CodecContext, drop } from '../shared/codec.ts';
import { objectOf } from '../shared/read.ts';
import { encodeInput } from './call-input.ts';
import { encodeCacheControl, fieldsOf } from './fields.ts';
import { documentSource, encodeImage } from './media-encode.ts';

/** The blocks of a message as the wire has them; `at` is their JSON pointer. */
export function encodeBlocks(blocks: readonly ContentBlock[], at: string, context: CodecContext): JsonObject[] {
  return blocks.map((block, i) => encodeBlock(block, `${at}/${i}`, context)).filter((block) => block !== undefined);
}

function encodeBlock(block: ContentBlock, at: string, context: CodecContext): JsonObject | undefined {
  switch (block.type) {
    case 'text':
      return encodeText(block);
    case 'image':
      return encodeImage(block);
    case 'file':
      return block.search_result ? encodeSearchResult(block, at, context) : encodeDocument(block, at, context);
    case 'thinking':
      return encodeThinking(block);
    case 'tool_use':
      return {
        type: isClientCall(block.kind) ? 'tool_use' : 'server_tool_use',
        ...fieldsOf(block),
        id: block.id,
        name: block.name,
        input: encodeInput(block, at, context),
        ...encodeCacheControl(block),
      };
    case 'tool_result':
      return encodeResult(block, at, context);
    case 'opaque':
      if (block.origin === 'anthropic-messages' && isObject(block.raw)) return { ...block.raw };
      return block.text ? { type: 'text', text: block.text } : lose(block.type, at, context);
    case 'audio':
      return lose(block.type, at, context);
    default:
      return block satisfies never;
  }
}

function lose(type: string, path: string, context: CodecContext): undefined {
  drop(context, { path, feature: `messages.${type}`, message: `Anthropic Messages has no form for this ${type}` });
}

/** White space alone is refused (P29). */
export function encodeText(block: Omit<TextBlock, 'type'>): JsonObject | undefined {
  const { text, citations = [] } = block;
  if (text.trim() === '') return undefined;
  const own = citations.flatMap(({ raw }) => (raw === undefined ? [] : [raw]));
  return { ...fieldsOf(block), type: 'text', text, ...(own.length > 0 && { citations: own }), ...encodeCacheControl(block) };
}

/** Only signed thinking is left here, and all of it is this provider's. */
function encodeThinking(block: ThinkingBlock): JsonObject {
  const { thinking, signature } = block;
  return signature?.form === 'redacted'
    ? { ...fieldsOf(block), type: 'redacted_thinking', data: signature.value }
    : { ...fieldsOf(block), type: 'thinking', thinking, signature: signature?.value ?? '' };
}

function encodeDocument(block: FileBlock, at: string, context: CodecContext): JsonObject | undefined {
  const { content } = block.source;
  const { source: rest, ...fields } = fieldsOf(block);
  const source = content
    ? { type: 'content', content: encodeBlocks(content, `${at}/source/content`, context) }
    : documentSource(block.source);
  const title = block.title ?? block.source.filename;
  return (
    source && {
      ...fields,
      type: 'document',
      source: { ...objectOf(rest), ...source },
      ...(title !== undefined && { title }),
      ...(block.context !== undefined && { context: block.context }),
      ...citationsOf(block),
      ...encodeCacheControl(block),
    }
  );
}

const citationsOf = ({ citations_enabled: enabled }: FileBlock): JsonObject =>
  enabled === undefined ? {} : { citations: { enabled } };

function encodeSearchResult(block: FileBlock, at: string, context: CodecContext): JsonObject {
  return {
    ...fieldsOf(block),
    type: 'search_result',
    source: block.search_result?.source ?? '',
    title: block.title ?? '',
    content: encodeBlocks(block.source.content ?? [], `${at}/source/content`, context),
    ...citationsOf(block),
    ...encodeCacheControl(block),
  };
}

/** A result of the client's tool. One of the provider's own goes back as it came. */
function encodeResult(block: ToolResultBlock, at: string, context: CodecContext): JsonObject {
  const fields = fieldsOf(block);
  if (!isClientCall(block.kind))
    return { ...fields, tool_use_id: block.tool_use_id, ...isErrorOf(block, fields), ...encodeCacheControl(block) };
  const content = typeof block.content === 'string' ? block.content : encodeBlocks(block.content, `${at}/content`, context);
  return {
    ...fields,
    type: 'tool_result',
    tool_use_id: block.tool_use_id,
    ...(content.length > 0 && { content }),
    ...(block.is_error !== undefined && { is_error: block.is_error }),
    ...encodeCacheControl(block),
  };
}

/** Only MCP says it beside the content; elsewhere the type of the content does. */
const isErrorOf = ({ kind, is_error: isError }: ToolResultBlock, { type }: JsonObject): JsonObject =>
  kind === 'mcp' || type === 'mcp_tool_result' ? { is_error: isError ?? false } : {};
