import { writeJson } from '../accumulate/overlay.ts';
import type { ContentBlock } from '../canonical/blocks.ts';
import type { CanonicalCountTokensResponse } from '../canonical/interfaces.ts';
import type { CanonicalRequest } from '../canonical/request.ts';

/** English and code have about four characters a token in the vocabularies of all large providers; other scripts about one and a half. */
const ASCII_PER_TOKEN = 4;
const OTHER_PER_TOKEN = 1.5;
/** Roles and the marks between messages. */
const PER_MESSAGE = 4;
/** Providers scale images down to some 1.5 megapixels, which is about this much. */
const PER_IMAGE = 1500;
/** A page or so of a document, a minute or so of sound: by size, since nobody has looked inside. */
const BASE64_PER_TOKEN = 40;

/**
 * How many tokens a request has, about. For upstreams that cannot count: clients use the number to know when a conversation gets too long, and a
 * number that is some ten percent wrong is far better for them than an error (P129).
 */
export function estimateTokens(request: CanonicalRequest): CanonicalCountTokensResponse {
  const { system = [], messages, tools = [], output_format: format } = request;
  let tokens = 0;
  for (const { text } of system) tokens += tokensOf(text);
  for (const { content } of messages) tokens += PER_MESSAGE + blocksTokens(content);
  for (const { extensions: _, ...tool } of tools) tokens += jsonTokens(tool);
  if (format) tokens += jsonTokens(format);
  return { input_tokens: Math.ceil(tokens), estimated: true };
}

const blocksTokens = (blocks: readonly ContentBlock[]): number => blocks.reduce((sum, block) => sum + blockTokens(block), 0);

function blockTokens(block: ContentBlock): number {
  switch (block.type) {
    case 'text':
      return tokensOf(block.text);
    case 'thinking':
      return tokensOf(block.thinking);
    case 'tool_use':
      return tokensOf(block.name) + (block.input_raw === undefined ? jsonTokens(block.input) : tokensOf(block.input_raw));
    case 'tool_result':
      return typeof block.content === 'string' ? tokensOf(block.content) : blocksTokens(block.content);
    case 'image':
      return PER_IMAGE;
    case 'audio':
      return (block.source.data?.length ?? 0) / BASE64_PER_TOKEN;
    case 'file':
      return fileTokens(block.source);
    case 'opaque':
      return jsonTokens(block.raw);
    default:
      return block satisfies never;
  }
}

function fileTokens({ text, content, file_data: data }: Extract<ContentBlock, { type: 'file' }>['source']): number {
  if (text !== undefined) return tokensOf(text);
  return content ? blocksTokens(content) : (data?.length ?? 0) / BASE64_PER_TOKEN;
}

const jsonTokens = (value: unknown): number => tokensOf(writeJson(value) ?? '');

function tokensOf(text: string): number {
  let others = 0;
  for (let i = 0; i < text.length; i++) if (text.charCodeAt(i) > 127) others++;
  return (text.length - others) / ASCII_PER_TOKEN + others / OTHER_PER_TOKEN;
}
