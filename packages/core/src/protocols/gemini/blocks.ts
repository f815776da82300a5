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
import { CARRIED_AS_BASE64, decodeCarrier, encodeCarrier } from '../../codec/answers.ts';
import type { CodecContext } from '../../codec/protocol.ts';
import { listOf, objectOf, textOf, unknownFields } from '../../codec/read.ts';
import { approximate, drop } from '../../codec/report.ts';
import { isObject, type JsonObject, parseJson, setOwn, writeJson } from '../../json/json.ts';
import {
  BLOB_FIELDS,
  CARRIER_FIELDS,
  camelObject,
  FUNCTION_RESPONSE_FIELDS,
  fieldsOf,
  innerFields,
  partFields,
  type WirePart,
} from './wire.ts';

export interface Call {
  /** Of its block, once that has started. */
  index: number | undefined;
  block: ToolUseBlock;
  signature?: string;
  /** The arguments, once they are whole. */
  text?: string;
  isStopped: boolean;
  isAnswered: boolean;
}

/** Finds the call that a functionResponse answers: by id (with the name, since ids repeat), else the first of that name without an answer. */
export class Answers {
  readonly #calls: Call[] = [];
  readonly #byId = new Map<string, Call>();
  readonly #byName = new Map<string, { calls: Call[]; next: number }>();

  get size(): number {
    return this.#calls.length;
  }

  get open(): Call[] {
    return this.#calls.filter(({ isAnswered }) => !isAnswered);
  }

  add(call: Call): void {
    this.#calls.push(call);
    this.#byId.set(call.block.id, call).set(keyOf(call.block.id, call.block.name), call);
    const queue = this.#byName.get(call.block.name);
    if (queue) queue.calls.push(call);
    else this.#byName.set(call.block.name, { calls: [call], next: 0 });
  }

  take(id: string, name: string): Call | undefined {
    const byId = this.#byId.get(keyOf(id, name)) ?? this.#byId.get(id);
    const call = byId && !byId.isAnswered ? byId : this.#firstNamed(name);
    if (call) call.isAnswered = true;
    return call;
  }

  #firstNamed(name: string): Call | undefined {
    const queue = this.#byName.get(name);
    if (!queue) return undefined;
    while (queue.calls[queue.next]?.isAnswered) queue.next++;
    return queue.calls[queue.next];
  }
}

const keyOf = (id: string, name: string): string => `${id}\0${name}`;

/** A text-like block as it starts. Gemini shows thoughts as summaries only. */
export function emptyBlock(kind: 'text' | 'thinking', fields: JsonObject | undefined): TextBlock | ThinkingBlock {
  if (kind === 'text') return { type: 'text', text: '', ...extended(fields) };
  return { type: 'thinking', thinking: '', variant: 'summary', ...extended(fields) };
}

/** A functionResponse in the model's own content: the answer to a call that Google ran itself (tools[].mcpServers). */
export const decodeServerResult = (result: JsonObject, tool_use_id: string, fields: JsonObject | undefined): ToolResultBlock => ({
  ...decodeResult(result, tool_use_id, fields),
  kind: 'server',
});

const MEDIA_FIELDS: ReadonlySet<string> = new Set(['inlineData', 'fileData']);

export function decodeResult(result: JsonObject, tool_use_id: string, fields: JsonObject | undefined): ToolResultBlock {
  const { response }: { response?: unknown } = result;
  const isError = isFailure(response);
  const text = responseText(response);
  const media = listOf(result['parts'])
    .filter((part) => isObject(part) && unknownFields(part, CARRIER_FIELDS))
    .map((part) => decodeMedia(camelObject(part), unknownFields(camelObject(part), MEDIA_FIELDS)) ?? opaque(objectOf(part)));
  const within = { ...unknownFields(result, FUNCTION_RESPONSE_FIELDS), ...(!isPlainResult(response) && { response }) };
  const kept = { ...fields, ...(Object.keys(within).length > 0 && { functionResponse: within }) };
  return {
    type: 'tool_result',
    tool_use_id,
    ...(textOf(result['name']) !== '' && { name: textOf(result['name']) }),
    content: media.length > 0 ? [{ type: 'text', text }, ...media] : text,
    ...(isError && { is_error: true }),
    ...extended(Object.keys(kept).length > 0 ? kept : undefined),
  };
}

type MediaBlock = ImageBlock | AudioBlock | FileBlock;

/** The block of a part with inlineData or fileData. `fields`: what else the part says (a signature, `thought`). */
export function decodeMedia({ inlineData, fileData }: WirePart, fields?: JsonObject): MediaBlock | undefined {
  const blob = camelObject(isObject(inlineData) ? inlineData : fileData);
  const { mimeType, data, fileUri }: { mimeType?: unknown; data?: unknown; fileUri?: unknown } = blob;
  const media_type = textOf(mimeType);
  const more = unknownFields(blob, BLOB_FIELDS);
  const within = more && { [isObject(inlineData) ? 'inlineData' : 'fileData']: more };
  // Whose a file is, its node says.
  const isOwn = typeof fileUri === 'string' && !isRemote(fileUri);
  const node = extended(fields || within || isOwn ? { ...fields, ...within } : undefined);
  if (isObject(inlineData) && typeof data === 'string') return inlineBlock(media_type, standardBase64(data), node);
  return typeof fileUri === 'string' ? fileBlock(media_type, fileUri, node) : undefined;
}

function inlineBlock(media_type: string, data: string, node: Node): MediaBlock {
  const type = media_type && { media_type };
  if (media_type.startsWith('image/')) return { type: 'image', source: { data, media_type }, ...node };
  if (media_type.startsWith('audio/')) return { type: 'audio', source: { data, media_type }, ...node };
  return { type: 'file', source: { file_data: data, ...(type || {}) }, ...node };
}

/** proto3 readers take both base64 alphabets; everybody else takes the standard one. */
const standardBase64 = (data: string): string => (/[-_]/.test(data) ? data.replaceAll('-', '+').replaceAll('_', '/') : data);

function fileBlock(media_type: string, uri: string, node: Node): MediaBlock {
  const type = media_type === '' ? {} : { media_type };
  const at = isRemote(uri) ? { url: uri } : { file_id: uri };
  if (media_type.startsWith('image/')) return { type: 'image', source: { ...at, ...type }, ...node };
  if (media_type.startsWith('audio/')) return { type: 'audio', source: { ...at, ...type }, ...node };
  return { type: 'file', source: { ...(isRemote(uri) ? { file_url: uri } : { file_id: uri }), ...type }, ...node };
}

/** Files of the API and of Cloud Storage are no addresses that others could fetch. */
const isRemote = (uri: string): boolean => /^https?:/.test(uri) && !uri.startsWith('https://generativelanguage.googleapis.com/');

/** executableCode, toolCall and whatever the future brings: only Gemini understands it, so the part stays as it is. */
export const opaque = (raw: JsonObject): OpaqueBlock => ({ type: 'opaque', origin: 'gemini', raw });

/** The text alone brings it back. */
const isPlainResult = (response: unknown): boolean =>
  isObject(response) &&
  Object.keys(response).length === 1 &&
  (typeof response['output'] === 'string' || typeof response['error'] === 'string');

/** The fields nobody knows, for a node that has some. */
export const extended = (fields: JsonObject | undefined): Node => (fields ? { extensions: { gemini: fields } } : {});

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

/** proto3 leaves out a 0. */
const offsetOf = (value: unknown): number => (value === undefined ? 0 : typeof value === 'number' ? value : Number.NaN);

interface Segment {
  startIndex: number;
  endIndex: number;
  text: string;
}

/** Characters that all segments of a response quote together; those above it have their offsets only. */
const MAX_QUOTED = 1_000_000;

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

/** Each fragment brings the logprobs of its own tokens: lists grow, everything else is what was said last. */
export function addLogprobs(kept: JsonObject = {}, result: JsonObject): JsonObject {
  for (const key of Object.keys(result)) {
    const value = result[key];
    const list = Object.hasOwn(kept, key) ? kept[key] : undefined;
    if (!Array.isArray(value)) setOwn(kept, key, value);
    else if (Array.isArray(list)) for (const token of value) list.push(token);
    else setOwn(kept, key, [...value]);
  }
  return kept;
}

/** The tokens of one fragment; undefined when it has none. Google gives no bytes. */
export function decodeLogprobs(result: JsonObject): TokenLogprob[] | undefined {
  const { chosenCandidates, topCandidates } = camelObject(result);
  const tops = listOf(topCandidates).map((top) => listOf(camelObject(top)['candidates']).flatMap(decodeToken));
  const tokens = listOf(chosenCandidates).flatMap((chosen, i) =>
    decodeToken(chosen).map((token) => ({ ...token, ...(tops[i] && { top: tops[i] }) })),
  );
  return tokens.length > 0 ? tokens : undefined;
}

function decodeToken(value: unknown): TopLogprob[] {
  const { token, logProbability } = camelObject(value);
  return typeof logProbability === 'number' ? [{ token: textOf(token), logprob: logProbability }] : [];
}

/** Whose the signature of a part is: a carrier names its issuer, anything else was issued by Gemini. */
export function decodeSignature(value: string): SignedBlob {
  return (value.startsWith(CARRIED_AS_BASE64) ? carried(value) : undefined) ?? signed(value);
}

function carried(value: string): SignedBlob | undefined {
  try {
    return decodeCarrier(atob(value.replaceAll('-', '+').replaceAll('_', '/')))?.blob;
  } catch {
    return undefined;
  }
}

export const signed = (value: string): SignedBlob => ({ origin: 'gemini', form: 'thought_signature', value });

/** The part of a call around its arguments. `hasId`: the other side knows ids; who sent none gets none. */
export function callParts(block: ToolUseBlock, hasId: boolean): { outer: JsonObject; inner: JsonObject } {
  const { id: kept, ...inner } = innerFields(block, 'functionCall');
  return { outer: partFields(block), inner: { ...inner, ...(hasId && kept !== null && { id: block.id }), name: block.name } };
}

const LINE_ENDS = /[\r\n]+/g;

/**
 * Arguments are an object here: anything else stands under `input`, and so does the free text of a custom tool, whatever it looks like. It is
 * the text of the wire on one line: numbers survive.
 */
export function argsText(text: string, isCustom = false): { json: string; isWrapped: boolean } {
  const value = isCustom ? text : text.trim() === '' ? null : parseJson(text);
  if (value === null) return { json: '{}', isWrapped: false }; // none; Groq says it in this word
  // In JSON a line end is white space: it never stands in a string.
  if (isObject(value)) return { json: text.replace(LINE_ENDS, ' '), isWrapped: false };
  return { json: writeJson({ input: value ?? text }) ?? '{}', isWrapped: true };
}

/** Nothing in the text shows that it is all: the rest may have been lost with the end of the message. */
export const isDoubtful = (text: string, block: ToolUseBlock): boolean =>
  block.kind === 'custom' || text.trim() === '' || isBroken(text, block);

/** The arguments of a function are no JSON: cut, or garbled. Wrapped, they would look like a call to run. */
export const isBroken = (text: string, { kind }: ToolUseBlock): boolean =>
  kind !== 'custom' && text.trim() !== '' && parseJson(text) === undefined;

export function tellWrapped(context: CodecContext, path: string): void {
  const message = 'the arguments of a call are no object; they stand under input';
  approximate(context, { path, feature: 'tool_use.input', message });
}

export const resultMedia = (content: ToolResultBlock['content']): MediaBlock[] =>
  typeof content === 'string' ? [] : content.filter(isMedium);

export const isMedium = (block: ContentBlock): block is MediaBlock =>
  block.type === 'image' || block.type === 'audio' || block.type === 'file';

/** As a part of a part. */
export const signatureField = (
  { signature }: { signature?: Parameters<typeof encodeSignature>[0] | undefined },
  context: CodecContext,
): JsonObject => (signature ? { thoughtSignature: encodeSignature(signature, context) } : {});

/** The field is of bytes: a blob of another provider goes as base64 of its carrier, our own as it came. */
export function encodeSignature(blob: SignedBlob, { target }: CodecContext): string {
  if (blob.origin === 'gemini') return blob.value;
  return btoa(encodeCarrier(blob, blob.provider ?? target?.provider.id ?? '', 'self'));
}

/** In the words of the wire. */
export function encodeLogprobs(tokens: readonly TokenLogprob[]): JsonObject {
  const encode = ({ token, logprob }: TopLogprob): JsonObject => ({ token, logProbability: logprob });
  return {
    chosenCandidates: tokens.map(encode),
    topCandidates: tokens.map(({ top = [] }) => ({ candidates: top.map(encode) })),
  };
}

/** A functionResponse without its media. `{output}` and `{error}` are Google's convention; the object that came goes back while it says the same. */
export function encodeResult(block: ToolResultBlock, name: string, hasId: boolean): JsonObject {
  const { response: kept, id, ...inner } = innerFields(block, 'functionResponse');
  const text = resultText(block.content);
  const isSame = isObject(kept) && responseText(kept) === text && isFailure(kept) === (block.is_error === true);
  return {
    ...inner,
    ...(hasId && id !== null && { id: id ?? block.tool_use_id }),
    name,
    response: isSame ? kept : { [block.is_error ? 'error' : 'output']: text },
  };
}

/** The texts of a result; its media stand elsewhere. */
function resultText(content: ToolResultBlock['content']): string {
  if (typeof content === 'string') return content;
  return content
    .flatMap((block) => (block.type === 'text' ? [block.text] : block.type === 'opaque' && block.text ? [block.text] : []))
    .join('\n');
}

const RESULT_KEYS: ReadonlySet<string> = new Set(['output', 'result', 'error']);

/** `{output}`, `{result}` and `{error}` are Google's convention; any other object, and one that says more, is the result itself. */
function responseText(response: unknown): string {
  const said = isObject(response) ? Object.entries(response).filter(([, value]) => value !== null) : [];
  const [only] = said;
  const value = said.length === 1 && only && RESULT_KEYS.has(only[0]) ? only[1] : response;
  return typeof value === 'string' ? value : (writeJson(value) ?? '');
}

const isFailure = (response: unknown): boolean =>
  isObject(response) && response['error'] !== undefined && response['error'] !== null;

export const encodeAllMedia = (blocks: readonly MediaBlock[]): JsonObject[] =>
  blocks.map(encodeMedia).filter((part) => part !== undefined);

/** A part with inlineData or fileData; undefined for what has neither data nor an address. */
export function encodeMedia(block: MediaBlock): JsonObject | undefined {
  const { data, uri } = placeOf(block);
  const mimeType = mediaTypeOf(block, data);
  if (data !== undefined)
    return { ...partFields(block), inlineData: { ...innerFields(block, 'inlineData'), mimeType, data }, ...encodeVideo(block) };
  if (uri === undefined) return undefined;
  const isTyped = block.source.media_type !== undefined || fieldsOf(block)['fileData'] === undefined;
  const fileData = { ...innerFields(block, 'fileData'), ...(isTyped && { mimeType }), fileUri: uri };
  return { ...partFields(block), fileData, ...encodeVideo(block) };
}

function placeOf(block: MediaBlock): { data?: string | undefined; uri?: string | undefined } {
  if (block.type !== 'file') return { data: block.source.data, uri: block.source.url ?? block.source.file_id };
  return { data: block.source.file_data, uri: block.source.file_url ?? block.source.file_id };
}

/** How the base64 of a file begins. */
const BEGINNINGS: readonly (readonly [string, string])[] = [
  ['iVBOR', 'image/png'],
  ['/9j/', 'image/jpeg'],
  ['R0lGOD', 'image/gif'],
  ['UklGR', 'image/webp'],
  ['JVBERi', 'application/pdf'],
];

const DEFAULTS = { image: 'image/png', audio: 'audio/wav', file: 'application/pdf' } as const;

/** Every blob has a media type here: the one that was said, else what the bytes or the name show. */
function mediaTypeOf(block: ImageBlock | AudioBlock | FileBlock, data: string | undefined): string {
  const { media_type: said } = block.source;
  if (said) return said;
  if (block.type === 'audio' && block.source.format) return `audio/${block.source.format}`;
  const begun = data === undefined ? undefined : BEGINNINGS.find(([start]) => data.startsWith(start))?.[1];
  return begun ?? byEnding(nameOf(block)) ?? DEFAULTS[block.type];
}

const BY_ENDING: Readonly<Record<string, string>> = {
  pdf: 'application/pdf',
  png: 'image/png',
  jpg: 'image/jpeg',
  jpeg: 'image/jpeg',
  gif: 'image/gif',
  webp: 'image/webp',
  txt: 'text/plain',
  md: 'text/markdown',
  csv: 'text/csv',
  json: 'application/json',
  html: 'text/html',
  mp3: 'audio/mp3',
  wav: 'audio/wav',
  mp4: 'video/mp4',
};

function byEnding(name: string): string | undefined {
  const [plain = ''] = name.split(/[?#]/, 1);
  const end = plain.slice(plain.lastIndexOf('.') + 1).toLowerCase();
  return Object.hasOwn(BY_ENDING, end) ? BY_ENDING[end] : undefined;
}

const nameOf = (block: ImageBlock | AudioBlock | FileBlock): string =>
  (block.type === 'file' ? (block.source.filename ?? block.source.file_url) : block.source.url) ?? '';

/** Which stretch of a video is looked at. */
function encodeVideo(block: MediaBlock): JsonObject {
  const video = block.type === 'file' ? block.source.video : undefined;
  if (!video) return {};
  const kept = fieldsOf(block)['videoMetadata'];
  return {
    videoMetadata: {
      ...(isObject(kept) && kept),
      ...(video.start !== undefined && { startOffset: video.start }),
      ...(video.end !== undefined && { endOffset: video.end }),
      ...(video.fps !== undefined && { fps: video.fps }),
    },
  };
}
