import { type JsonObject, writeJson } from '../../accumulate/overlay.ts';
import { CodecError } from '../shared/codec.ts';

/** Sends a frame. */
export type Send = (event: string, data: string) => void;

/** Input from a server may be nested more deeply than can be written. */
export function written(value: unknown): string {
  const json = writeJson(value);
  if (json !== undefined) return json;
  throw new CodecError({ code: 'UPSTREAM_ERROR', message: 'the answer is nested too deeply to be written', http_status: 502 });
}

/** Where blocks are written: into the frames of a stream, or into the content of a whole message. */
export interface BlockSink {
  /** Whether blocks grow after their start. */
  readonly isLive: boolean;
  /** Starts a block and returns its index. Only blocks that are written get one: the SDK appends at a start and reads by index at a delta. */
  start(block: JsonObject): number;
  /** Adds one field of one delta to a block. */
  delta(index: number, type: string, field: string, value: unknown): void;
  stop(index: number): void;
  /** Adds a block without deltas. */
  whole(block: JsonObject): void;
  /** Adds a text block that is known as a whole. */
  text(text: string): void;
}

/** Writes blocks as the frames of a stream. */
export class FrameSink implements BlockSink {
  readonly isLive = true;
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

  delta(index: number, type: string, field: string, value: unknown): void {
    this.#send(
      'content_block_delta',
      `{"type":"content_block_delta","index":${index},"delta":{"type":"${type}","${field}":${written(value)}}}`,
    );
  }

  stop(index: number): void {
    this.#send('content_block_stop', `{"type":"content_block_stop","index":${index}}`);
  }

  whole(block: JsonObject): void {
    this.stop(this.start(block));
  }

  text(text: string): void {
    const index = this.start({ type: 'text', text: '', citations: null });
    this.delta(index, 'text_delta', 'text', text);
    this.stop(index);
  }
}

/** Writes blocks into the content of a whole message. */
export class ContentSink implements BlockSink {
  readonly isLive = false;
  readonly content: JsonObject[] = [];

  start(block: JsonObject): number {
    return this.content.push(block) - 1;
  }

  delta(index: number, _type: string, field: string, value: unknown): void {
    const block = this.content[index];
    if (!block) return;
    if (field !== 'citation') block[field] = value;
    else if (Array.isArray(block['citations'])) block['citations'].push(value);
    else block['citations'] = [value];
  }

  stop(): void {}

  whole(block: JsonObject): void {
    this.content.push(block);
  }

  text(text: string): void {
    this.content.push({ type: 'text', text, citations: null });
  }
}
