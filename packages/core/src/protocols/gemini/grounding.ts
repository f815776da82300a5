import type { JsonObject } from '../../accumulate/overlay.ts';
import type { Citation } from '../../canonical/blocks.ts';
import { approximate, type CodecContext, drop } from '../shared/codec.ts';

/** Citations of other protocols as groundingMetadata: every source once, and which stretch of the text it supports. */
export class Grounding {
  readonly #context: CodecContext;
  readonly #chunks = new Map<string, { at: number; web: JsonObject }>();
  readonly #supports: JsonObject[] = [];

  constructor(context: CodecContext) {
    this.#context = context;
  }

  /** `text`: of the block that cites. */
  add(citations: readonly Citation[], text: string, path: string): void {
    for (const citation of citations) {
      // The metadata that our own come from is kept whole.
      if (citation.origin === 'gemini') continue;
      const source = this.#sourceOf(citation);
      if (source === undefined) {
        const message = `a ${citation.kind} citation has no address that grounding could name`;
        drop(this.#context, { path: `${path}/citations`, feature: 'citations', message });
      } else {
        this.#supports.push({ segment: segmentOf(citation, text), groundingChunkIndices: [source] });
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

  get metadata(): JsonObject | undefined {
    if (this.#supports.length === 0) return undefined;
    return { groundingChunks: [...this.#chunks.values()].map(({ web }) => ({ web })), groundingSupports: this.#supports };
  }
}

/** Offsets are bytes here, and characters there. */
function segmentOf({ start, end }: Citation, text: string): JsonObject {
  const points = [...text];
  const from = Math.min(Math.max(0, start ?? 0), points.length);
  const to = Math.min(Math.max(from, end ?? points.length), points.length);
  const quoted = points.slice(from, to).join('');
  const startIndex = bytesOf(points.slice(0, from).join(''));
  return { startIndex, endIndex: startIndex + bytesOf(quoted), text: quoted };
}

const bytesOf = (text: string): number => new TextEncoder().encode(text).length;
