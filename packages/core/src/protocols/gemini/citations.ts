import { isObject, type JsonObject } from '../../accumulate/overlay.ts';
import type { Citation } from '../../canonical/blocks.ts';
import { listOf, textOf } from '../shared/read.ts';
import { camelObject } from './wire.ts';

/**
 * The citations that groundingMetadata gives for one text. Its segments are byte offsets, of a part that a stream does not show; so a
 * segment counts only where the text really says what it quotes. The metadata itself is kept whole elsewhere.
 */
export function decodeCitations(metadata: unknown, text: string): Citation[] {
  const grounding = camelObject(metadata);
  const supports = listOf(grounding['groundingSupports']);
  if (supports.length === 0) return [];
  const sources = listOf(grounding['groundingChunks']).map(decodeSource);
  const places = new BytePlaces(text);
  return supports.flatMap((support) => citationsOf(camelObject(support), sources, places));
}

type Source = Pick<Citation, 'kind' | 'url' | 'title' | 'filename' | 'cited_text'>;

function citationsOf(support: JsonObject, sources: readonly (Source | undefined)[], places: BytePlaces): Citation[] {
  const {
    startIndex,
    endIndex,
    text,
  }: {
    startIndex?: unknown;
    endIndex?: unknown;
    text?: unknown;
  } = camelObject(support['segment']);
  const range = places.find(offsetOf(startIndex), offsetOf(endIndex), textOf(text));
  if (!range) return [];
  return listOf(support['groundingChunkIndices']).flatMap((index) => {
    const source = typeof index === 'number' ? sources[index] : undefined;
    return source ? [{ ...source, ...range, raw: support, origin: 'gemini' as const }] : [];
  });
}

/** proto3 leaves out a 0. */
const offsetOf = (value: unknown): number => (value === undefined ? 0 : typeof value === 'number' ? value : Number.NaN);

function decodeSource(chunk: unknown): Source | undefined {
  const { web, maps, retrievedContext }: { web?: unknown; maps?: unknown; retrievedContext?: unknown } = camelObject(chunk);
  const from = camelObject(web ?? maps ?? retrievedContext);
  const url = textOf(from['uri']);
  const title = textOf(from['title']);
  if (!isObject(web) && !isObject(maps) && !isObject(retrievedContext)) return undefined;
  const isDocument = isObject(retrievedContext);
  return {
    kind: isDocument ? 'document' : 'url',
    ...(url !== '' && { url }),
    ...(title !== '' && { title }),
    ...(isDocument && textOf(from['text']) !== '' && { cited_text: textOf(from['text']) }),
  };
}

/** Byte offsets of a text as offsets in code points. */
class BytePlaces {
  readonly #bytes: Uint8Array;
  /** How many code points begin before each byte. */
  readonly #points: Uint32Array;
  readonly #decoder = new TextDecoder();

  constructor(text: string) {
    this.#bytes = new TextEncoder().encode(text);
    this.#points = new Uint32Array(this.#bytes.length + 1);
    let points = 0;
    for (const [at, byte] of this.#bytes.entries()) {
      this.#points[at] = points;
      if ((byte & 0xc0) !== 0x80) points++;
    }
    this.#points[this.#bytes.length] = points;
  }

  /** The place of a quotation; undefined when the bytes there say something else. */
  find(start: number, end: number, quoted: string): { start: number; end: number } | undefined {
    // The length is compared first: the cost stays that of the quotation, whatever the offsets claim.
    if (quoted === '' || !(start >= 0 && start < end && end - start <= quoted.length * 3)) return undefined;
    if (this.#decoder.decode(this.#bytes.subarray(start, end)) !== quoted) return undefined;
    return { start: this.#points[start] ?? 0, end: this.#points[end] ?? 0 };
  }
}
