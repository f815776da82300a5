/** One part, citation, signature or list of log probabilities, in both directions. */

import type {
  AudioBlock,
  Citation,
  ContentBlock,
  FileBlock,
  ImageBlock,
  OpaqueBlock,
  TextBlock,
  ThinkingBlock,
  TokenLogprob,
  ToolResultBlock,
  ToolUseBlock,
  TopLogprob,
} from '../../canonical/message.ts';
import type { Node, SignedBlob } from '../../canonical/protocol.ts';
import { carryBlob, countCodePoints, decodeCarrier, isCarriedAsBase64 } from '../../codec/answers.ts';
import { findMediaType } from '../../codec/media.ts';
import type { CodecContext } from '../../codec/protocol.ts';
import { listOrEmpty, objectOrEmpty, textOrEmpty, unknownFields } from '../../codec/read.ts';
import { noteApproximated, noteDropped } from '../../codec/report.ts';
import { isObject, type JsonObject, parseJson, setOwn, writeJson } from '../../json/json.ts';
import { writeExact } from '../../json/literals.ts';
import {
  BLOB_FIELDS,
  CARRIER_FIELDS,
  FUNCTION_RESPONSE_FIELDS,
  readExtensions,
  readNestedExtensions,
  readPartExtensions,
  toCamelObject,
  type WirePart,
} from './wire.ts';

/** The start of a text or thinking block. Gemini shows thoughts as summaries only. */
export function createEmptyBlock(kind: 'text' | 'thinking', fields: JsonObject | undefined): TextBlock | ThinkingBlock {
  if (kind === 'text') return { type: 'text', text: '', ...asExtensions(fields) };
  return { type: 'thinking', thinking: '', variant: 'summary', ...asExtensions(fields) };
}

/** A functionResponse in the model's content: the result of a call that Google ran itself (tools[].mcpServers). */
export const decodeServerResult = (result: JsonObject, tool_use_id: string, fields: JsonObject | undefined): ToolResultBlock => ({
  ...decodeResult(result, tool_use_id, fields),
  kind: 'server',
});

const MEDIA_FIELDS: ReadonlySet<string> = new Set(['inlineData', 'fileData']);

/** A functionResponse. `fields` are the unknown fields of its part. */
export function decodeResult(result: JsonObject, tool_use_id: string, fields: JsonObject | undefined): ToolResultBlock {
  const { response }: { response?: unknown } = result;
  const isError = isFailure(response);
  const text = readResponse(response);
  const media = listOrEmpty(result['parts'])
    .filter((part) => isObject(part) && unknownFields(part, CARRIER_FIELDS))
    .map(
      (part) =>
        decodeMedia(toCamelObject(part), unknownFields(toCamelObject(part), MEDIA_FIELDS)) ?? decodeOpaque(objectOrEmpty(part)),
    );
  const nested = { ...unknownFields(result, FUNCTION_RESPONSE_FIELDS), ...(!isPlainResult(response) && { response }) };
  const all = { ...fields, ...(Object.keys(nested).length > 0 && { functionResponse: nested }) };
  return {
    type: 'tool_result',
    tool_use_id,
    ...(textOrEmpty(result['name']) !== '' && { name: textOrEmpty(result['name']) }),
    content: media.length > 0 ? [{ type: 'text', text }, ...media] : text,
    ...(isError && { is_error: true }),
    ...asExtensions(Object.keys(all).length > 0 ? all : undefined),
  };
}

type MediaBlock = ImageBlock | AudioBlock | FileBlock;

/**
 * The block of a part with inlineData or fileData. `fields` are the other fields of the part (a signature,
 * `thought`).
 */
export function decodeMedia({ inlineData, fileData }: WirePart, fields?: JsonObject): MediaBlock | undefined {
  const blob = toCamelObject(isObject(inlineData) ? inlineData : fileData);
  const { mimeType, data, fileUri }: { mimeType?: unknown; data?: unknown; fileUri?: unknown } = blob;
  const media_type = textOrEmpty(mimeType);
  const unknown = unknownFields(blob, BLOB_FIELDS);
  const nested = unknown && { [isObject(inlineData) ? 'inlineData' : 'fileData']: unknown };
  // The extensions of a node mark its file id as Google's.
  const isOwn = typeof fileUri === 'string' && !isRemote(fileUri);
  const node = asExtensions(fields || nested || isOwn ? { ...fields, ...nested } : undefined);
  if (isObject(inlineData) && typeof data === 'string') return buildInlineBlock(media_type, standardBase64(data), node);
  return typeof fileUri === 'string' ? buildFileBlock(media_type, fileUri, node) : undefined;
}

function buildInlineBlock(media_type: string, data: string, node: Node): MediaBlock {
  const type = media_type && { media_type };
  if (media_type.startsWith('image/')) return { type: 'image', source: { data, media_type }, ...node };
  if (media_type.startsWith('audio/')) return { type: 'audio', source: { data, media_type }, ...node };
  return { type: 'file', source: { file_data: data, ...(type || {}) }, ...node };
}

/** proto3 accepts both base64 alphabets; other protocols accept only the standard one. */
const standardBase64 = (data: string): string => (/[-_]/.test(data) ? data.replaceAll('-', '+').replaceAll('_', '/') : data);

function buildFileBlock(media_type: string, uri: string, node: Node): MediaBlock {
  const type = media_type === '' ? {} : { media_type };
  const at = isRemote(uri) ? { url: uri } : { file_id: uri };
  if (media_type.startsWith('image/')) return { type: 'image', source: { ...at, ...type }, ...node };
  if (media_type.startsWith('audio/')) return { type: 'audio', source: { ...at, ...type }, ...node };
  return { type: 'file', source: { ...(isRemote(uri) ? { file_url: uri } : { file_id: uri }), ...type }, ...node };
}

/** Files of the API and of Cloud Storage have URIs that others cannot fetch. */
const isRemote = (uri: string): boolean => /^https?:/.test(uri) && !uri.startsWith('https://generativelanguage.googleapis.com/');

/** A part that only Gemini understands (executableCode, toolCall, unknown ones), kept whole. */
export const decodeOpaque = (raw: JsonObject): OpaqueBlock => ({ type: 'opaque', origin: 'gemini', raw });

/** Whether the text alone is enough to restore the response. */
const isPlainResult = (response: unknown): boolean =>
  isObject(response) &&
  Object.keys(response).length === 1 &&
  (typeof response['output'] === 'string' || typeof response['error'] === 'string');

/** Wraps fields that only Gemini knows as extensions, if there are any. */
export const asExtensions = (fields: JsonObject | undefined): Node => (fields ? { extensions: { gemini: fields } } : {});

/**
 * The citations in groundingMetadata, with their places in the texts of the parts. Segments are byte offsets into the part
 * of their `partIndex`; in a stream, whose parts are pieces, and at servers that ignore the index, into the joined texts.
 * So a segment is used only if the text at its offsets equals its quotation. The metadata itself is kept whole elsewhere.
 * `texts`: of each part; undefined for those without visible text.
 */
export function decodeCitations(metadata: unknown, texts: readonly (string | undefined)[]): PlacedCitation[] {
  const grounding = toCamelObject(metadata);
  const supports = listOrEmpty(grounding['groundingSupports']);
  if (supports.length === 0) return [];
  const sources = listOrEmpty(grounding['groundingChunks']).map(decodeSource);
  const places = new PartPlaces(texts);
  return supports.flatMap((support) => decodeSupport(toCamelObject(support), sources, places));
}

/** A citation and the part that its offsets belong to. */
export interface PlacedCitation {
  part: number;
  citation: Citation;
}

type Source = Pick<Citation, 'kind' | 'url' | 'title' | 'filename' | 'cited_text'>;

function decodeSource(chunk: unknown): Source | undefined {
  const { web, maps, retrievedContext }: { web?: unknown; maps?: unknown; retrievedContext?: unknown } = toCamelObject(chunk);
  const from = toCamelObject(web ?? maps ?? retrievedContext);
  const url = textOrEmpty(from['uri']);
  const title = textOrEmpty(from['title']);
  if (!isObject(web) && !isObject(maps) && !isObject(retrievedContext)) return undefined;
  const isDocument = isObject(retrievedContext);
  return {
    kind: isDocument ? 'document' : 'url',
    ...(url !== '' && { url }),
    ...(title !== '' && { title }),
    ...(isDocument && textOrEmpty(from['text']) !== '' && { cited_text: textOrEmpty(from['text']) }),
  };
}

function decodeSupport(support: JsonObject, sources: readonly (Source | undefined)[], places: PartPlaces): PlacedCitation[] {
  const segment: Readonly<Record<'partIndex' | 'startIndex' | 'endIndex' | 'text', unknown>> = {
    partIndex: undefined,
    startIndex: undefined,
    endIndex: undefined,
    text: undefined,
    ...toCamelObject(support['segment']),
  };
  const { partIndex, startIndex, endIndex, text } = segment;
  const place = places.find(readOffset(partIndex), readOffset(startIndex), readOffset(endIndex), textOrEmpty(text));
  if (!place) return [];
  const { part, ...range } = place;
  return listOrEmpty(support['groundingChunkIndices']).flatMap((index) => {
    const source = typeof index === 'number' ? sources[index] : undefined;
    return source ? [{ part, citation: { ...source, ...range, raw: support, origin: 'gemini' as const } }] : [];
  });
}

interface Range {
  start: number;
  end: number;
}

/** Finds segments in the texts of parts. Each text is measured once, when the first segment is looked for in it. */
class PartPlaces {
  readonly #texts: readonly (string | undefined)[];
  readonly #parts = new Map<number, BytePlaces>();
  #joined: { places: BytePlaces; starts: { part: number; at: number }[] } | undefined;

  constructor(texts: readonly (string | undefined)[]) {
    this.#texts = texts;
  }

  /** The part and the range in its text, in code points; undefined if the quotation is not there. */
  find(index: number, start: number, end: number, quoted: string): ({ part: number } & Range) | undefined {
    return (
      this.#findIn(index, start, end, quoted) ??
      this.#findJoined(start, end, quoted) ??
      this.#findIn(this.#texts.length - 1, start, end, quoted)
    );
  }

  #findIn(part: number, start: number, end: number, quoted: string): ({ part: number } & Range) | undefined {
    const range = this.#findPart(part)?.find(start, end, quoted);
    return range && { part, ...range };
  }

  #findPart(index: number): BytePlaces | undefined {
    const known = this.#parts.get(index);
    if (known) return known;
    const text = this.#texts[index];
    if (text === undefined) return undefined;
    const places = new BytePlaces(text);
    this.#parts.set(index, places);
    return places;
  }

  #findJoined(start: number, end: number, quoted: string): ({ part: number } & Range) | undefined {
    this.#joined ??= this.#join();
    const { places, starts } = this.#joined;
    const range = places.find(start, end, quoted);
    let [low, high] = [0, starts.length - 1];
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if ((starts[middle]?.at ?? 0) <= (range?.start ?? 0)) low = middle;
      else high = middle - 1;
    }
    const found = starts[low];
    return range && found && { part: found.part, start: range.start - found.at, end: range.end - found.at };
  }

  #join(): { places: BytePlaces; starts: { part: number; at: number }[] } {
    let at = 0;
    const starts = this.#texts.flatMap((text, part) => {
      if (!text) return [];
      const start = { part, at };
      at += countCodePoints(text);
      return start;
    });
    return { places: new BytePlaces(this.#texts.join('')), starts };
  }
}

/** Converts byte offsets in a text to code points. */
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

  /** The code point range of a quotation; undefined if the text there differs. */
  find(start: number, end: number, quoted: string): Range | undefined {
    // Comparing the length first bounds the cost by the quotation, whatever the offsets are.
    if (quoted === '' || !(start >= 0 && start < end && end - start <= quoted.length * 3)) return undefined;
    if (this.#decoder.decode(this.#bytes.subarray(start, end)) !== quoted) return undefined;
    return { start: this.#points[start] ?? 0, end: this.#points[end] ?? 0 };
  }
}

/** proto3 leaves out a 0. */
const readOffset = (value: unknown): number => (value === undefined ? 0 : typeof value === 'number' ? value : Number.NaN);

/** The tokens of one fragment; undefined if it has none. Google sends no bytes. */
export function decodeLogprobs(result: JsonObject): TokenLogprob[] | undefined {
  const { chosenCandidates, topCandidates } = toCamelObject(result);
  const tops = listOrEmpty(topCandidates).map((top) => listOrEmpty(toCamelObject(top)['candidates']).flatMap(decodeToken));
  const tokens = listOrEmpty(chosenCandidates).flatMap((chosen, i) =>
    decodeToken(chosen).map((token) => ({ ...token, ...(tops[i] && { top: tops[i] }) })),
  );
  return tokens.length > 0 ? tokens : undefined;
}

function decodeToken(value: unknown): TopLogprob[] {
  const { token, logProbability } = toCamelObject(value);
  return typeof logProbability === 'number' ? [{ token: textOrEmpty(token), logprob: logProbability }] : [];
}

/** Each fragment has the log probabilities of its own tokens: lists are appended, other fields replaced. */
export function addLogprobs(sum: JsonObject = {}, result: JsonObject): JsonObject {
  for (const key of Object.keys(result)) {
    const value = result[key];
    const list = Object.hasOwn(sum, key) ? sum[key] : undefined;
    if (!Array.isArray(value)) setOwn(sum, key, value);
    else if (Array.isArray(list)) for (const token of value) list.push(token);
    else setOwn(sum, key, [...value]);
  }
  return sum;
}

/** A carrier names the issuer of its signature; all other signatures are Gemini's. */
export function decodeSignature(value: string, context: CodecContext): SignedBlob {
  return (isCarriedAsBase64(value) ? readCarrier(value, context) : undefined) ?? buildSignature(value);
}

function readCarrier(value: string, context: CodecContext): SignedBlob | undefined {
  try {
    return decodeCarrier(atob(value.replaceAll('-', '+').replaceAll('_', '/')), context)?.blob;
  } catch {
    return undefined;
  }
}

/** A signature issued by Gemini. */
export const buildSignature = (value: string): SignedBlob => ({ origin: 'gemini', form: 'thought_signature', value });

/** A call and what is known about it so far. */
export interface TrackedCall {
  /** The index of its block, once that has started. */
  index: number | undefined;
  /** The block of the call. */
  block: ToolUseBlock;
  /** The signature of the call, if it has one. */
  signature?: string;
  /** The arguments as JSON text, once they are complete. */
  text?: string;
  /** Whether its block has stopped. */
  isStopped: boolean;
  /** Whether a result was found. */
  isAnswered: boolean;
}

/**
 * Finds the call of a functionResponse: by id and name, since ids repeat, otherwise the first call of that name
 * without a result.
 */
export class CallMatcher {
  readonly #calls: TrackedCall[] = [];
  readonly #byId = new Map<string, TrackedCall>();
  readonly #byName = new Map<string, { calls: TrackedCall[]; next: number }>();

  /** The number of calls. */
  get size(): number {
    return this.#calls.length;
  }

  /** The calls without a result. */
  get open(): TrackedCall[] {
    return this.#calls.filter(({ isAnswered }) => !isAnswered);
  }

  /** Adds a call. */
  add(call: TrackedCall): void {
    this.#calls.push(call);
    this.#byId.set(call.block.id, call).set(buildKey(call.block.id, call.block.name), call);
    const queue = this.#byName.get(call.block.name);
    if (queue) queue.calls.push(call);
    else this.#byName.set(call.block.name, { calls: [call], next: 0 });
  }

  /** Finds the call of a result, and marks it as answered. */
  take(id: string, name: string): TrackedCall | undefined {
    const byId = this.#byId.get(buildKey(id, name)) ?? this.#byId.get(id);
    const call = byId && !byId.isAnswered ? byId : this.#firstNamed(name);
    if (call) call.isAnswered = true;
    return call;
  }

  #firstNamed(name: string): TrackedCall | undefined {
    const queue = this.#byName.get(name);
    if (!queue) return undefined;
    while (queue.calls[queue.next]?.isAnswered) queue.next++;
    return queue.calls[queue.next];
  }
}

const buildKey = (id: string, name: string): string => `${id}\0${name}`;

// ---- encode

/**
 * The fields of a call's part and of its functionCall, without arguments. `hasId`: the target supports ids; calls
 * that came without one are sent without.
 */
export function encodeCallFields(block: ToolUseBlock, hasId: boolean): { outer: JsonObject; inner: JsonObject } {
  const { id, ...inner } = readNestedExtensions(block, 'functionCall');
  return {
    outer: readPartExtensions(block),
    inner: { ...inner, ...(hasId && id !== null && { id: block.id }), name: block.name },
  };
}

const LINE_ENDS = /[\r\n]+/g;

/**
 * The arguments of a call as the text of a JSON object, on one line. Anything else, and the text of a custom tool, is
 * wrapped under `input`. The text is not parsed and rewritten, so numbers stay exact.
 */
export function encodeArgs(text: string, isCustom = false): { json: string; isWrapped: boolean } {
  const value = isCustom ? text : text.trim() === '' ? null : parseJson(text);
  if (value === null) return { json: '{}', isWrapped: false }; // Groq sends null for no arguments
  // JSON strings cannot contain line ends, so each one is white space.
  if (isObject(value)) return { json: text.replace(LINE_ENDS, ' '), isWrapped: false };
  return { json: writeJson({ input: value ?? text }) ?? '{}', isWrapped: true };
}

/** Whether the text does not prove that it is complete: the rest may have been cut off. */
export const isDoubtful = (text: string, block: ToolUseBlock): boolean =>
  block.kind === 'custom' || text.trim() === '' || isBroken(text, block);

/**
 * Whether the arguments of a function are not valid JSON. They must not be wrapped, because the call would then look
 * valid.
 */
export const isBroken = (text: string, { kind }: ToolUseBlock): boolean =>
  kind !== 'custom' && text.trim() !== '' && parseJson(text) === undefined;

/** Notes that arguments were wrapped in an object. */
export function noteWrappedInput(context: CodecContext, path: string): void {
  const message = 'the arguments of a tool call must be an object; wrapped in the property "input"';
  noteApproximated(context, { path, feature: 'tool_use.input', message });
}

/**
 * A functionResponse without its media. `{output}` and `{error}` are Google's convention; the original object is sent
 * back if it still has the same meaning.
 */
export function encodeResult(block: ToolResultBlock, name: string, hasId: boolean): JsonObject {
  const { response: original, id, ...inner } = readNestedExtensions(block, 'functionResponse');
  const text = joinTexts(block.content);
  const isSame = isObject(original) && readResponse(original) === text && isFailure(original) === (block.is_error === true);
  return {
    ...inner,
    ...(hasId && id !== null && { id: id ?? block.tool_use_id }),
    name,
    response: isSame ? original : { [block.is_error ? 'error' : 'output']: text },
  };
}

/** The texts of a result, without its media. */
function joinTexts(content: ToolResultBlock['content']): string {
  if (typeof content === 'string') return content;
  return content
    .flatMap((block) => (block.type === 'text' ? [block.text] : block.type === 'opaque' && block.text ? [block.text] : []))
    .join('\n');
}

const RESULT_KEYS: ReadonlySet<string> = new Set(['output', 'result', 'error']);

/**
 * `{output}`, `{result}` and `{error}` are Google's convention; an object with other or more fields is the result
 * itself.
 */
function readResponse(response: unknown): string {
  const entries = isObject(response) ? Object.entries(response).filter(([, value]) => value !== null) : [];
  const [only] = entries;
  const value = entries.length === 1 && only && RESULT_KEYS.has(only[0]) ? only[1] : response;
  return typeof value === 'string' ? value : (writeExact(value) ?? '');
}

const isFailure = (response: unknown): boolean =>
  isObject(response) && response['error'] !== undefined && response['error'] !== null;

/** The images, audios and files of a result. */
export const listResultMedia = (content: ToolResultBlock['content']): MediaBlock[] =>
  typeof content === 'string' ? [] : content.filter(isMedia);

/** Whether a block is an image, audio or file. */
export const isMedia = (block: ContentBlock): block is MediaBlock =>
  block.type === 'image' || block.type === 'audio' || block.type === 'file';

/** The parts of several media blocks; those without data and URI are left out. */
export const encodeAllMedia = (blocks: readonly MediaBlock[]): JsonObject[] =>
  blocks.map(encodeMedia).filter((part) => part !== undefined);

/** A part with inlineData or fileData; undefined without data and URI. */
export function encodeMedia(block: MediaBlock): JsonObject | undefined {
  const { data, uri } = findSource(block);
  const mimeType = chooseMediaType(block, data);
  if (data !== undefined)
    return {
      ...readPartExtensions(block),
      inlineData: { ...readNestedExtensions(block, 'inlineData'), mimeType, data },
      ...encodeVideo(block),
    };
  if (uri === undefined) return undefined;
  const isTyped = block.source.media_type !== undefined || readExtensions(block)['fileData'] === undefined;
  const fileData = { ...readNestedExtensions(block, 'fileData'), ...(isTyped && { mimeType }), fileUri: uri };
  return { ...readPartExtensions(block), fileData, ...encodeVideo(block) };
}

function findSource(block: MediaBlock): { data?: string | undefined; uri?: string | undefined } {
  if (block.type !== 'file') return { data: block.source.data, uri: block.source.url ?? block.source.file_id };
  return { data: block.source.file_data, uri: block.source.file_url ?? block.source.file_id };
}

const DEFAULTS = { image: 'image/png', audio: 'audio/wav', file: 'application/pdf' } as const;

/** Gemini requires a media type. */
function chooseMediaType(block: MediaBlock, data: string | undefined): string {
  const { media_type: type } = block.source;
  if (!type && block.type === 'audio' && block.source.format) return `audio/${block.source.format}`;
  return findMediaType({ type, name: findName(block), data }) ?? (type || DEFAULTS[block.type]);
}

const findName = (block: ImageBlock | AudioBlock | FileBlock): string =>
  (block.type === 'file' ? (block.source.filename ?? block.source.file_url) : block.source.url) ?? '';

/** The clip range and frame rate of a video. */
function encodeVideo(block: MediaBlock): JsonObject {
  const video = block.type === 'file' ? block.source.video : undefined;
  if (!video) return {};
  const original = readExtensions(block)['videoMetadata'];
  return {
    videoMetadata: {
      ...(isObject(original) && original),
      ...(video.start !== undefined && { startOffset: video.start }),
      ...(video.end !== undefined && { endOffset: video.end }),
      ...(video.fps !== undefined && { fps: video.fps }),
    },
  };
}

/** Log probabilities as a logprobsResult. */
export function encodeLogprobs(tokens: readonly TokenLogprob[]): JsonObject {
  const encode = ({ token, logprob }: TopLogprob): JsonObject => ({ token, logProbability: logprob });
  return {
    chosenCandidates: tokens.map(encode),
    topCandidates: tokens.map(({ top = [] }) => ({ candidates: top.map(encode) })),
  };
}

/** The signature field of a part, if the block has a signature. */
export const encodeSignatureField = (
  { signature }: { signature?: Parameters<typeof encodeSignature>[0] | undefined },
  context: CodecContext,
): JsonObject => (signature ? { thoughtSignature: encodeSignature(signature, context) } : {});

/** The field holds bytes, so a signature of another provider is sent as the base64 of its carrier. */
export function encodeSignature(blob: SignedBlob, context: CodecContext): string {
  if (blob.origin === 'gemini') return blob.value;
  return btoa(carryBlob(blob, 'self', context));
}

interface Segment {
  partIndex?: number;
  startIndex: number;
  endIndex: number;
  text: string;
}

/** Maximum characters of all quotations of a response; segments beyond it have only offsets. */
const MAX_QUOTED = 1_000_000;

/**
 * Builds groundingMetadata from the citations of other protocols: each source once, with the ranges of text it
 * supports.
 */
export class Grounding {
  readonly #context: CodecContext;
  readonly #chunks = new Map<string, { at: number; web: JsonObject }>();
  readonly #supports: JsonObject[] = [];
  #quoted = 0;
  /** The bytes of the texts before, as far as they were counted, and the texts that were not. */
  #bytes = 0;
  #uncounted = '';

  constructor(context: CodecContext) {
    this.#context = context;
  }

  /**
   * Adds a text and its citations. `part`: its place among the parts of a whole response. Undefined in a stream, whose
   * readers join the texts: then offsets count from the first.
   */
  add(citations: readonly Citation[], text: string, path: string, part: number | undefined): void {
    let offsets: TextOffsets | undefined;
    const place = (citation: Citation): Segment => {
      offsets ??= new TextOffsets(text);
      const segment = offsets.findSegment(citation);
      if (part !== undefined) return part === 0 ? segment : { partIndex: part, ...segment };
      const before = this.#countBefore();
      return { ...segment, startIndex: segment.startIndex + before, endIndex: segment.endIndex + before };
    };
    for (const citation of citations) {
      // Citations of Gemini come from metadata that is kept whole.
      if (citation.origin === 'gemini') continue;
      const source = this.#addSource(citation);
      if (source === undefined) {
        const message = `a ${citation.kind} citation without a URL is not supported by Gemini; dropped`;
        noteDropped(this.#context, { path: `${path}/citations`, feature: 'citations', message });
      } else {
        this.#supports.push({ segment: this.#quote(place(citation)), groundingChunkIndices: [source] });
        const message = 'citations are not supported by Gemini; sent as groundingMetadata';
        noteApproximated(this.#context, { path: `${path}/citations`, feature: 'citations', message });
      }
    }
    this.#uncounted += text;
  }

  #countBefore(): number {
    for (const point of this.#uncounted) this.#bytes += utf8Length(point.codePointAt(0) ?? 0);
    this.#uncounted = '';
    return this.#bytes;
  }

  #addSource({ url, title, kind }: Citation): number | undefined {
    if (url === undefined || kind === 'file') return undefined;
    const known = this.#chunks.get(url);
    if (known) return known.at;
    const at = this.#chunks.size;
    this.#chunks.set(url, { at, web: { uri: url, ...(title !== undefined && { title }) } });
    return at;
  }

  /** Limits quotations: a thousand citations of one long text would repeat it a thousand times. */
  #quote({ text, ...offsets }: Segment): JsonObject {
    this.#quoted += text.length;
    return this.#quoted > MAX_QUOTED ? offsets : { ...offsets, text };
  }

  /** The groundingMetadata; undefined if there are no citations. */
  get metadata(): JsonObject | undefined {
    if (this.#supports.length === 0) return undefined;
    return { groundingChunks: [...this.#chunks.values()].map(({ web }) => ({ web })), groundingSupports: this.#supports };
  }
}

/** For every code point of a text, its byte offset, which Gemini uses, and its offset in the string. */
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

  findSegment({ start, end }: Citation): Segment {
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
