/** Estimates of tokens, where nobody counts them. */

import type { ContentBlock } from '../canonical/message.ts';
import type { CanonicalCountTokensResponse, CanonicalRequest } from '../canonical/request.ts';
import { writeJson } from '../json/json.ts';

/**
 * Estimates the tokens of a request, for upstreams that cannot count. Clients use the number to see when a conversation
 * gets too long, so one that is 10 % off serves them better than an error.
 */
export function estimateTokens(request: CanonicalRequest): CanonicalCountTokensResponse {
  const { system = [], messages, tools = [], output_format: format } = request;
  let tokens = 0;
  for (const { text } of system) tokens += countText(text);
  for (const { content } of messages) tokens += PER_MESSAGE + countBlocks(content);
  for (const { extensions: _, ...tool } of tools) tokens += countJson(tool);
  if (format) tokens += countJson(format);
  return { input_tokens: Math.ceil(tokens), estimated: true };
}

/**
 * English and code have about four characters per token in the vocabularies of all large providers; other scripts about
 * one and a half.
 */
const ASCII_PER_TOKEN = 4;

const OTHER_PER_TOKEN = 1.5;

/** The role and the separators of a message. */
const PER_MESSAGE = 4;

/** Providers scale images down to about 1.5 megapixels, which cost about this much. */
const PER_IMAGE = 1500;

/** Documents and audio are estimated by size, since their content is not decoded: about a page, or a minute. */
const BASE64_PER_TOKEN = 40;

const countBlocks = (blocks: readonly ContentBlock[]): number => blocks.reduce((sum, block) => sum + countBlock(block), 0);

function countBlock(block: ContentBlock): number {
  switch (block.type) {
    case 'text':
      return countText(block.text);
    case 'thinking':
      return countText(block.thinking);
    case 'tool_use':
      return countText(block.name) + (block.input_raw === undefined ? countJson(block.input) : countText(block.input_raw));
    case 'tool_result':
      return typeof block.content === 'string' ? countText(block.content) : countBlocks(block.content);
    case 'image':
      return PER_IMAGE;
    case 'audio':
      return (block.source.data?.length ?? 0) / BASE64_PER_TOKEN;
    case 'file':
      return countFile(block.source);
    case 'opaque':
      return countJson(block.raw);
    default:
      return block satisfies never;
  }
}

function countFile({ text, content, file_data: data }: Extract<ContentBlock, { type: 'file' }>['source']): number {
  if (text !== undefined) return countText(text);
  return content ? countBlocks(content) : (data?.length ?? 0) / BASE64_PER_TOKEN;
}

const countJson = (value: unknown): number => countText(writeJson(value) ?? '');

function countText(text: string): number {
  let others = 0;
  for (let i = 0; i < text.length; i++) if (text.charCodeAt(i) > 127) others++;
  return (text.length - others) / ASCII_PER_TOKEN + others / OTHER_PER_TOKEN;
}
