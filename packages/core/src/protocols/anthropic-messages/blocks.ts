import { getOwn, isObject, type JsonObject } from '../../accumulate/overlay.ts';
import type {
  Citation,
  ContentBlock,
  OpaqueBlock,
  TextBlock,
  ThinkingBlock,
  ToolResultBlock,
  ToolUseBlock,
} from '../../canonical/blocks.ts';
import type { Node, SignedBlob } from '../../canonical/protocol.ts';
import { textOf, unknownFields } from '../shared/read.ts';
import type { WireBlock } from './wire.ts';

const ORIGIN = 'anthropic-messages';

/** The fields without a place of their own, as extensions; null says as little as absence. */
export function otherFields(source: JsonObject, known: ReadonlySet<string>): Node {
  const kept = unknownFields(source, known);
  return kept ? { extensions: { [ORIGIN]: kept } } : {};
}

export const signatureOf = (value: string, model: string): SignedBlob => ({
  origin: ORIGIN,
  form: 'signature',
  value,
  ...(model !== '' && { model }),
});

const REDACTED_FIELDS: ReadonlySet<string> = new Set(['type', 'data']);

export const decodeRedacted = (block: WireBlock, model: string): ThinkingBlock => ({
  type: 'thinking',
  thinking: '',
  variant: 'redacted',
  signature: { ...signatureOf(textOf(block.data), model), form: 'redacted' },
  ...otherFields(block, REDACTED_FIELDS),
});

export const decodeOpaque = (raw: unknown): OpaqueBlock => ({ type: 'opaque', origin: ORIGIN, raw });

/** A result that the provider produced itself. Its shapes are many, so the wire block is kept whole. */
export function decodeResult(block: WireBlock, name: string | undefined): ToolResultBlock {
  const { content } = block;
  const isError = block.is_error === true || (isObject(content) && textOf(content['type']).endsWith('_error'));
  return {
    type: 'tool_result',
    tool_use_id: textOf(block.tool_use_id),
    ...(name !== undefined && { name }),
    content: decodeResultContent(content),
    ...(isError && { is_error: true }),
    kind: block.type === 'mcp_tool_result' ? 'mcp' : 'server',
    extensions: { [ORIGIN]: block },
  };
}

function decodeResultContent(content: unknown): string | (TextBlock | OpaqueBlock)[] {
  if (typeof content === 'string') return content;
  if (content === undefined || content === null) return '';
  return (Array.isArray(content) ? content : [content]).map(decodeResultPart);
}

const decodeResultPart = (part: unknown): TextBlock | OpaqueBlock =>
  isObject(part) && part['type'] === 'text' && typeof part['text'] === 'string'
    ? { type: 'text', text: part['text'] }
    : decodeOpaque(part);

const CITATION_KINDS: Record<string, Citation['kind']> = {
  char_location: 'document',
  page_location: 'document',
  content_block_location: 'document',
  search_result_location: 'search_result',
  web_search_result_location: 'url',
};

/** The offsets of the wire point into the cited document, not into this text: they stay in `raw`. */
export function decodeCitation(raw: JsonObject): Citation {
  const type = textOf(raw['type']);
  const kind = getOwn(CITATION_KINDS, type);
  const url = raw['url'] ?? (type === 'search_result_location' ? raw['source'] : undefined);
  const title = raw['title'] ?? raw['document_title'];
  const { cited_text: cited, document_index: document, file_id: file } = raw;
  const page = range(raw['start_page_number'], raw['end_page_number']);
  const block = range(raw['start_block_index'], raw['end_block_index']);
  return {
    kind: kind ?? (typeof url === 'string' ? 'url' : 'document'),
    ...(typeof url === 'string' && { url }),
    ...(typeof title === 'string' && { title }),
    ...(typeof cited === 'string' && { cited_text: cited }),
    ...(typeof document === 'number' && { document_index: document }),
    ...(typeof file === 'string' && { file_id: file }),
    ...(page && { page }),
    ...(block && { block }),
    raw,
    origin: ORIGIN,
  };
}

const range = (start: unknown, end: unknown): [number, number] | undefined =>
  typeof start === 'number' && typeof end === 'number' ? [start, end] : undefined;

/** A canonical block in the words of the wire. */
export function encodeBlock(block: ContentBlock): JsonObject {
  const fields = block.extensions?.[ORIGIN] ?? {};
  switch (block.type) {
    case 'text':
      return {
        type: 'text',
        ...fields,
        text: block.text,
        ...(block.citations && { citations: block.citations.map(({ raw }) => raw) }),
      };
    case 'thinking':
      return encodeThinking(block);
    case 'tool_use':
      return encodeToolUse(block, fields);
    case 'tool_result':
      return fields;
    case 'opaque':
      return isObject(block.raw) ? block.raw : { type: 'opaque', raw: block.raw };
    case 'image':
    case 'audio':
    case 'file':
      // No such block comes from this protocol's own stream.
      return { type: block.type, source: block.source };
    default:
      return block satisfies never;
  }
}

export function encodeThinking({ thinking, variant, signature, extensions }: ThinkingBlock): JsonObject {
  const fields = extensions?.[ORIGIN] ?? {};
  if (variant === 'redacted') return { type: 'redacted_thinking', ...fields, data: signature?.value ?? '' };
  return { type: 'thinking', ...fields, thinking, signature: signature?.value ?? '' };
}

const TOOL_TYPES = { function: 'tool_use', custom: 'tool_use', server: 'server_tool_use', mcp: 'mcp_tool_use' } satisfies Record<
  NonNullable<ToolUseBlock['kind']>,
  string
>;

const encodeToolUse = ({ id, name, input, kind }: ToolUseBlock, fields: JsonObject): JsonObject => ({
  type: TOOL_TYPES[kind ?? 'function'],
  ...fields,
  id,
  name,
  input,
});
