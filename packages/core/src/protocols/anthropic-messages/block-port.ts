import { type JsonObject, writeJson } from '../../accumulate/overlay.ts';
import { CodecError } from '../shared/codec.ts';

/** A frame goes out. */
export type Send = (event: string, data: string) => void;

/** What a server sent may be nested deeper than can be written. */
export function written(value: unknown): string {
  const json = writeJson(value);
  if (json !== undefined) return json;
  throw new CodecError({ code: 'UPSTREAM_ERROR', message: 'the answer is nested too deeply to be written', http_status: 502 });
}

/**
 * The blocks that go out. Indexes are given here and nowhere else, so that what is left out takes none: the SDK pushes at a start and reads
 * by index at a delta (P134).
 */
export class BlockPort {
  readonly #send: Send;
  #next = 0;

  constructor(send: Send) {
    this.#send = send;
  }

  start(block: JsonObject): number {
    const index = this.#next++;
    this.#send('content_block_start', `{"type":"content_block_start","index":${index},"content_block":${written(block)}}`);
    return index;
  }

  /** One field of one delta: nearly all frames of a stream. */
  delta(index: number, type: string, field: string, value: unknown): void {
    this.#send(
      'content_block_delta',
      `{"type":"content_block_delta","index":${index},"delta":{"type":"${type}","${field}":${written(value)}}}`,
    );
  }

  stop(index: number): void {
    this.#send('content_block_stop', `{"type":"content_block_stop","index":${index}}`);
  }

  /** A block without deltas. */
  whole(block: JsonObject): void {
    this.stop(this.start(block));
  }

  /** A text that is known as a whole. */
  text(text: string): void {
    const index = this.start({ type: 'text', text: '', citations: null });
    this.delta(index, 'text_delta', 'text', text);
    this.stop(index);
  }
}
