import { assignOwn, type JsonObject } from '../../accumulate/overlay.ts';
import type { CanonicalMessage, CanonicalRequest, SystemBlock } from '../../canonical/request.ts';
import { type CodecContext, invalid } from '../shared/codec.ts';
import { fieldsOf } from './fields.ts';
import { encodeBlocks, encodeText } from './parts-encode.ts';

/** The instructions: one plain text as it is, else blocks. */
export function encodeSystem(system: readonly SystemBlock[]): string | JsonObject[] | undefined {
  const blocks = system.map(encodeText).filter((block) => block !== undefined);
  const [first] = blocks;
  const isPlain = blocks.length === 1 && first && Object.keys(first).length === 2 && typeof first['text'] === 'string';
  if (isPlain) return String(first['text']);
  return blocks.length > 0 ? blocks : undefined;
}

interface Turn extends JsonObject {
  role: 'user' | 'assistant' | 'system';
  content: JsonObject[];
}

const ROLES = { user: 'user', tool: 'user', assistant: 'assistant', system: 'system' } satisfies Record<
  CanonicalMessage['role'],
  Turn['role']
>;

/**
 * The conversation: results of tools are folded into the user's turn. They stand before what the user says, since they stand behind their
 * calls (P01, P02).
 */
export function encodeMessages({ messages }: CanonicalRequest, context: CodecContext): Turn[] {
  const turns: Turn[] = [];
  messages.forEach((message, i) => {
    const role = ROLES[message.role];
    const content = encodeBlocks(message.content, `/messages/${i}/content`, context);
    if (content.length === 0) return;
    const last = turns.at(-1);
    if (last?.role !== role || role === 'system') turns.push({ ...fieldsOf(message), role, content });
    else {
      assignOwn(last, fieldsOf(message));
      for (const block of content) last.content.push(block);
    }
  });
  if (turns.length === 0) throw invalid('messages', 'must contain at least one message with content');
  return turns;
}
