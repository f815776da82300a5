import { type BlockDeltaEvent, blockDelta, type CanonicalStreamEvent } from '../canonical/events.ts';
import { BACKSLASH, QUOTE } from '../json/scanner.ts';
import { decodeUtf8, FIRST_NOT_ASCII, isAt, SPACE } from '../sse/bytes.ts';
import { FrameReader } from '../sse/decode.ts';
import type { SseFrame } from '../sse/frame.ts';

/** Longer texts gain nothing: decoding the text dominates. */
const MAX_TEXT = 1024;
/** Bounds the memory a template holds. */
const MAX_CHUNK = 8192;
/** After this many chunks in a row that did not repeat, no further template is built. */
const MAX_MISSES = 8;

/** A chunk split around its text: everything before and after it, and the event it decoded to. */
interface Template {
  head: Uint8Array;
  tail: Uint8Array;
  event: BlockDeltaEvent;
}

/**
 * A frame reader with a shortcut for chunks that equal the previous one except for their text. Most servers send the same bytes around
 * every piece of text, so such a chunk needs neither framing nor JSON.parse. The shortcut is exact: replacing one string literal
 * of a JSON document by another changes only that text. All byte comparison happens here.
 */
export class RepeatedChunkCache extends FrameReader {
  #template: Template | undefined;
  #misses = 0;
  /** The last chunk passed to `push` began at the start of a frame. */
  #beganFrame = false;

  /** The event of a chunk that repeats the previous one; the chunk is consumed. Undefined: pass the chunk to `push`. */
  replay(chunk: Uint8Array): BlockDeltaEvent | undefined {
    const event = this.#template && this.#match(chunk, this.#template);
    if (event) this.skip(chunk.length);
    return event;
  }

  override push(chunk: Uint8Array): readonly SseFrame[] {
    this.#template = undefined;
    this.#beganFrame = this.isBetweenFrames;
    return super.push(chunk);
  }

  /** Call after `push` with the events of that chunk, if its decoder is repeatable and reported nothing. */
  learn(chunk: Uint8Array, events: readonly CanonicalStreamEvent[]): void {
    const [event] = events;
    const isWholeFrames = this.#beganFrame && this.isBetweenFrames;
    if (isWholeFrames && events.length === 1 && event?.type === 'content_block_delta') this.#keep(chunk, event);
  }

  #match(chunk: Uint8Array, { head, tail, event }: Template): BlockDeltaEvent | undefined {
    const end = chunk.length - tail.length;
    const length = end - head.length;
    if (length <= 0 || length > MAX_TEXT || !isAt(head, chunk, 0) || !isAt(tail, chunk, end)) return undefined;
    this.#misses = 0;
    const text = readLiteral(chunk, head.length, end);
    return text === undefined ? undefined : blockDelta(event.index, event.choice, { type: 'text_delta', text });
  }

  #keep(chunk: Uint8Array, event: BlockDeltaEvent): void {
    if (event.delta.type !== 'text_delta' || chunk.length > MAX_CHUNK || this.#misses++ >= MAX_MISSES) return;
    const body = decodeUtf8(chunk);
    const literal = JSON.stringify(event.delta.text);
    const at = body.indexOf(literal);
    // Without escapes the literal appears verbatim; if it occurs once, its position is known.
    if (!isUnescapedAscii(chunk) || at < 0 || body.indexOf(literal, at + 1) >= 0) return;
    this.#template = { head: chunk.slice(0, at + 1), tail: chunk.slice(at + literal.length - 1), event };
  }
}

function isUnescapedAscii(chunk: Uint8Array): boolean {
  for (const byte of chunk) if (byte >= FIRST_NOT_ASCII || byte === BACKSLASH) return false;
  return true;
}

/** The inside of a string literal without escapes. Undefined when a parser has to read it, and for invalid UTF-8, which is reported there. */
function readLiteral(chunk: Uint8Array, from: number, to: number): string | undefined {
  let ascii = '';
  let isAscii = true;
  for (let at = from; at < to; at++) {
    const byte = chunk[at] ?? 0;
    if (byte === QUOTE || byte === BACKSLASH || byte < SPACE) return undefined;
    isAscii &&= byte < FIRST_NOT_ASCII;
    if (isAscii) ascii += String.fromCharCode(byte);
  }
  if (isAscii) return ascii;
  const text = decodeUtf8(chunk, from, to);
  return text.includes('\ufffd') ? undefined : text;
}
