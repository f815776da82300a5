/** Blocks of messages as sections that a person can read. Pure: also runs in browsers. */

import type { CanonicalMessage, ContentBlock } from '@sluice/core';

/** One block of a message. */
export interface Section {
  role: 'system' | 'user' | 'assistant' | 'tool';
  kind: 'text' | 'thinking' | 'tool_use' | 'tool_result' | 'media' | 'other';
  /** Text, arguments or result; a description of media. */
  text: string;
  /** The tool. */
  name?: string | undefined;
  call_id?: string | undefined;
  /** The tool failed. */
  is_error?: boolean | undefined;
}

/** The sections of a block. */
export function viewBlock(block: ContentBlock, role: CanonicalMessage['role']): Section[] {
  switch (block.type) {
    case 'text':
      return [{ role, kind: 'text', text: block.text }];
    case 'thinking':
      return [{ role, kind: 'thinking', text: block.thinking || `(${block.variant ?? 'hidden'})` }];
    case 'tool_use': {
      const input = block.input_raw ?? (typeof block.input === 'string' ? block.input : JSON.stringify(block.input));
      return [{ role, kind: 'tool_use', text: input, name: block.name, call_id: block.id }];
    }
    case 'tool_result': {
      const { content, tool_use_id, name, is_error } = block;
      const shown =
        typeof content === 'string' ? content : content.flatMap((part) => viewBlock(part, role)).map((part) => part.text);
      return [
        {
          role: 'tool',
          kind: 'tool_result',
          text: typeof shown === 'string' ? shown : shown.join('\n'),
          call_id: tool_use_id,
          ...(name !== undefined && { name }),
          ...(is_error && { is_error }),
        },
      ];
    }
    case 'image':
    case 'audio':
    case 'file':
      return [{ role, kind: 'media', text: describeMedia(block) }];
    case 'opaque':
      return [{ role, kind: 'other', text: block.text ?? JSON.stringify(block.raw) ?? '' }];
    default:
      return block satisfies never;
  }
}

type Media = Extract<ContentBlock, { type: 'image' | 'audio' | 'file' }>;

/** Without the data, and without a link that a page could follow. */
function describeMedia({ type, source }: Media): string {
  const { media_type, file_id } = source;
  const data = 'file_data' in source ? source.file_data : 'data' in source ? source.data : undefined;
  const url = 'file_url' in source ? source.file_url : 'url' in source ? source.url : undefined;
  const facts = [media_type, data && `${Math.ceil((data.length * 3) / 4)} bytes`, url, file_id].filter(Boolean);
  return `${type}: ${facts.join(', ') || 'no source'}`;
}
