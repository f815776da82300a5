import type { JsonObject } from '../../accumulate/overlay.ts';
import type { Citation } from '../../canonical/blocks.ts';
import { approximate, type CodecContext, drop } from '../shared/codec.ts';

/** Characters that all segments of a response quote together; those above it have their offsets only. */
const MAX_QUOTED = 1_000_000;

interface Segment {
  startIndex: number;
  endIndex: number;
  text: string;
}

/** Citations of other protocols as groundingMetadata: every source once, and which stretch of the text it supports. */
export class Grounding {
  readonly #context: CodecContext;
  readonly #chunks = new Map<string, { at: number; web: JsonObject }>();
  readonly #supports: JsonObject[] = [];
  #quoted = 0;

  constructor(context: CodecContext) {
    this.#context = context;
  }

  /** `text`: of the block that cites. */
  add(citations: readonly Citation[], text: string, path: string): void {
    let offsets: TextOffsets | undefined;
    for (const citation of citations) {
      // The metadata that our own come from is kept whole.
      if (citation.origin === 'gemini') continue;
      const source = this.#sourceOf(citation);
      if (source === undefined) {
        const message = `a ${citation.kind} citation has no address that grounding could name`;
        drop(this.#context, { path: `${path}/citations`, feature: 'citations', message });
      } else {
        offsets ??= new TextOffsets(text);
        this.#supports.push({ segment: this.#quote(offsets.segmentOf(citation)), groundingChunkIndices: [source] });
        const message = 'citations are told as grounding: which source supports which stretch of the text';
        approximate(this.#context, { path: `${path}/citations`, feature: 'citations', message });
      }
    }
  }

  #sourceOf({ url, title, kind }: Citation): number | undefined {
    if (url === undefined || kind === 'file') return undefined;
    const known = this.#chunks.get(url);
    if (known) return known.at;
    const at = this.#chunks.size;
    this.#chunks.set(url, { at, web: { uri: url, ...(title !== undefined && { title }) } });
    return at;
  }

  /** A thousand citations of one long text would repeat it a thousand times; the offsets say the same. */
  #quote({ text, ...offsets }: Segment): JsonObject {
    this.#quoted += text.length;
    return this.#quoted > MAX_QUOTED ? offsets : { ...offsets, text };
  }

  get metadata(): JsonObject | undefined {
    if (this.#supports.length === 0) return undefined;
    return { groundingChunks: [...this.#chunks.values()].map(({ web }) => ({ web })), groundingSupports: this.#supports };
  }
}

/** Offsets are bytes here and code points elsewhere: both, and the offsets in the string, for every code point of a text. */
class TextOffsets {
  readonly #text: string;
  readonly #units: Uint32Array;
  readonly #bytes: Uint32Array;
  readonly #length: number;

  constructor(text: string) {
    this.#text = text;
    this.#units = new Uint32Array(text.length + 1);
    this.#bytes = new Uint32Array(text.length + 1);
    let [points, units, bytes] = [0, 0, 0];
    for (const point of text) {
      units += point.length;
      bytes += utf8Length(point.codePointAt(0) ?? 0);
      points++;
      this.#units[points] = units;
      this.#bytes[points] = bytes;
    }
    this.#length = points;
  }

  segmentOf({ start, end }: Citation): Segment {
    const from = Math.min(Math.max(0, start ?? 0), this.#length) | 0;
    const to = Math.min(Math.max(from, end ?? this.#length), this.#length) | 0;
    return {
      startIndex: this.#bytes[from] ?? 0,
      endIndex: this.#bytes[to] ?? 0,
      text: this.#text.slice(this.#units[from], this.#units[to]),
    };
  }
}

const utf8Length = (point: number): number => (point < 0x80 ? 1 : point < 0x800 ? 2 : point < 0x10000 ? 3 : 4);
