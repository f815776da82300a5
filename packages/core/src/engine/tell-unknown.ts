import type { ContentBlock } from '../canonical/blocks.ts';
import type { Note } from '../canonical/notes.ts';
import type { Node } from '../canonical/protocol.ts';
import { type CanonicalResponse, isClientCall } from '../canonical/response.ts';
import type { ProtocolCodec } from '../protocols/shared/codec.ts';
import { eachUnsaid } from '../protocols/shared/unsaid.ts';

/**
 * Fields of an answer that only its own protocol knows do not reach a client of another one: each is told, once. Nothing is refused for them,
 * whatever the policy: nobody asked for them, and the answer is there.
 */
export function tellUnknown(response: CanonicalResponse, from: ProtocolCodec, note: (note: Note) => void): void {
  const told = new Set<string>();
  const tell = ({ extensions }: Node, path: string, within: string): void =>
    eachUnsaid(extensions?.[from.id] ?? {}, from, `${path}/extensions/${from.id}`, within, (loss, field) => {
      if (!told.has(field)) note({ code: 'DROPPED', ...loss });
      told.add(field);
    });
  tell(response, '', '');
  for (const [i, block] of response.content.entries()) if (isPassed(block)) tell(block, `/content/${i}`, 'content/');
}

/** A block that is lost as a whole is told as such. */
const isPassed = (block: ContentBlock): boolean =>
  block.type === 'tool_use' ? isClientCall(block.kind) : block.type !== 'tool_result' && block.type !== 'opaque';
