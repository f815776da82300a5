import type { ContentBlock } from '../canonical/blocks.ts';
import type { CanonicalStreamEvent } from '../canonical/events.ts';
import type { Note } from '../canonical/notes.ts';
import type { Node } from '../canonical/protocol.ts';
import { type CanonicalResponse, isClientCall } from '../canonical/response.ts';
import type { Codec } from '../protocols/shared/codec.ts';
import { eachUnsaid } from '../protocols/shared/unsaid.ts';

type Tell = (note: Note) => void;

/** What is around the blocks, in a whole answer and in the events of a stream. */
type Envelope = Node & { system_fingerprint?: string };

/**
 * Fields of an answer that only its own protocol knows do not reach a client of another one: each is told, once. Nothing is refused for them,
 * whatever the policy: nobody asked for them, and the answer is there.
 */
export class UnknownTeller {
  readonly #from: Codec;
  readonly #to: Codec;
  readonly #note: Tell;
  #told: Set<string> | undefined;

  constructor({ from, to }: { from: Codec; to: Codec }, note: Tell) {
    this.#from = from;
    this.#to = to;
    this.#note = note;
  }

  response(response: CanonicalResponse): void {
    this.#envelope(response);
    for (const [i, block] of response.content.entries()) this.#block(block, i);
  }

  event(event: CanonicalStreamEvent): void {
    switch (event.type) {
      case 'message_start':
        this.#envelope(event.message);
        return;
      case 'message_delta':
        this.#envelope(event);
        if (event.message) this.#envelope(event.message);
        return;
      case 'content_block_start':
      case 'content_block_stop':
        if (event.content_block) this.#block(event.content_block, event.index);
        return;
      default:
        return;
    }
  }

  #envelope(node: Envelope): void {
    this.#fields(node, '', '');
    if (node.system_fingerprint !== undefined && !this.#to.hasFingerprint)
      this.#tell({ path: '/system_fingerprint', feature: 'system_fingerprint', message: 'only OpenAI Chat has a fingerprint' });
  }

  #block(block: ContentBlock, index: number): void {
    if (block.extensions && isPassed(block)) this.#fields(block, `/content/${index}`, 'content/');
  }

  #fields({ extensions }: Node, path: string, within: string): void {
    const { id } = this.#from;
    const fields = extensions?.[id];
    if (fields) eachUnsaid(fields, this.#from, `${path}/extensions/${id}`, within, (loss, field) => this.#tell(loss, field));
  }

  #tell(loss: Omit<Note, 'code'>, field = loss.path): void {
    this.#told ??= new Set();
    if (!this.#told.has(field)) this.#note({ code: 'DROPPED', ...loss });
    this.#told.add(field);
  }
}

/** A block that is lost as a whole is told as such. */
const isPassed = (block: ContentBlock): boolean =>
  block.type === 'tool_use' ? isClientCall(block.kind) : block.type !== 'tool_result' && block.type !== 'opaque';
