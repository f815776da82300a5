/** Reads what a request lets a provider do at most: the one place that knows which fields of which endpoint multiply a cost. */

import type { Codec, InterfaceType } from '@sluice/core';
import { normalizeField } from '@sluice/core/internal';
import { describeText, UNLIMITED, type Work } from '../admission/work.ts';
import { MultipartForm, readBoundary } from '../http/multipart.ts';
import { findOtherModels, listModelTools } from '../keys/scope.ts';
import { isRecord, listSections } from '../routing/prompt-blocks.ts';

type Json = Readonly<Record<string, unknown>>;

type LimitReader = Pick<Codec, 'readOutputLimit'>;

/** A request for a model, as it was read. */
export interface MeasuredRequest {
  readonly body: unknown;
  /** The body as it arrived; absent when the gateway wrote it. */
  readonly text?: string | undefined;
  /** Size of the body. */
  readonly bytes: number;
  /** Bytes of what the body refers to and the gateway keeps. */
  readonly history: number;
}

/** What a request for a model does; `free`: nothing is charged. */
export function measureModelRequest(type: InterfaceType, request: MeasuredRequest, codec: LimitReader): Work | 'free' {
  switch (type) {
    case 'COUNT_TOKENS':
    case 'MODELS':
    case 'MODEL_INFO':
      return 'free';
    case 'EMBEDDINGS':
      return measureReading(request.body, request.bytes);
    case 'RERANK':
      return measurePairs(request.body, request.bytes);
    default:
      return measureChat(request, codec);
  }
}

// ---- chat

function measureChat({ body, text, bytes, history }: MeasuredRequest, codec: LimitReader): Work {
  if (!isRecord(body)) return describeText(bytes + history);
  const content = new Content(body, history > 0);
  const tools = readTools(body);
  return {
    ...describeText(bytes + history - content.imageBytes + (tools.count > 0 ? TOOL_PROMPT_TOKENS : 0)),
    images: content.images,
    isOpen: content.isOpen,
    uses: tools.uses,
    hasOpenTools: tools.areOpen,
    resultTokens: tools.resultTokens,
    isKeptLong: text === undefined || history > 0 || LONG_CACHE.test(text),
    output: codec.readOutputLimit?.(body) ?? UNLIMITED,
    unpriced: tools.unpriced ?? findUnpriced(body),
  };
}

/** Providers tell a model how to use tools; the longest known text has fewer tokens. */
const TOOL_PROMPT_TOKENS = 1000;

/**
 * Names of cache durations above five minutes, also with an escaped character. A request that has none of them as text
 * has none as a value.
 */
const LONG_CACHE = /"(?:30m|1h|12h|24h)"|\\u00(?:3[0-4]|6[8d])/i;

/** What the messages of a request contain beside text. */
class Content {
  images = 0;
  /** Bytes of images in the body. */
  imageBytes = 0;
  isOpen: boolean;

  constructor(body: Json, isHistoryKnown: boolean) {
    this.isOpen = OPEN_FIELDS.some((name) => isPresent(body[name])) || (!isHistoryKnown && hasReference(body));
    for (const { kind, blocks } of listSections(body)) if (kind !== 'tools') this.#visitAll(blocks, 0);
  }

  #visitAll(blocks: unknown, depth: number): void {
    if (!Array.isArray(blocks) || depth > MAX_NESTING) return;
    for (const block of blocks) if (isRecord(block)) this.#visit(block, depth);
  }

  #visit(block: Json, depth: number): void {
    const { type, source, content, parts, output } = block;
    if (typeof type === 'string' && IMAGE_TYPES.has(type)) this.#addImage(readImage(block));
    else if (typeof type === 'string' && OPEN_TYPES.has(type)) this.isOpen ||= !(isRecord(source) && source['type'] === 'text');
    else if (type === undefined) this.#visitPart(block, depth);
    this.#visitAll(content, depth + 1);
    this.#visitAll(parts, depth + 1);
    this.#visitAll(isRecord(output) ? [output] : output, depth + 1);
  }

  /** A message, or a part of Gemini, which has no type. */
  #visitPart(part: Json, depth: number): void {
    if (isRecord(part['audio'])) this.isOpen = true;
    for (const name in part) {
      const value = part[name];
      if (!isRecord(value)) continue;
      const field = normalizeField(name);
      if (field === 'functionresponse') this.#visitAll([value], depth + 1);
      if (field !== 'inlinedata' && field !== 'filedata') continue;
      const media = value['mimeType'] ?? value['mime_type'];
      if (typeof media === 'string' && media.startsWith('image/')) this.#addImage(field === 'inlinedata' ? value['data'] : '');
      else this.isOpen = true;
    }
  }

  #addImage(data: unknown): void {
    this.images++;
    if (typeof data === 'string') this.imageBytes += data.length;
  }
}

/** Lists in messages, contents and tool results are nested less. */
const MAX_NESTING = 5;

/** What the provider reads in addition, and keeps itself: stored prompts and cached contents. */
const OPEN_FIELDS = ['prompt', 'cachedContent', 'cached_content'];

const hasReference = (body: Json): boolean =>
  isPresent(body['previous_response_id']) ||
  isPresent(body['conversation']) ||
  (Array.isArray(body['input']) && body['input'].some((item) => isRecord(item) && item['type'] === 'item_reference'));

const isPresent = (value: unknown): boolean => value !== undefined && value !== null && value !== '';

const IMAGE_TYPES: ReadonlySet<string> = new Set(['image', 'image_url', 'input_image', 'computer_screenshot']);

/** Their tokens are pages and seconds. */
const OPEN_TYPES: ReadonlySet<string> = new Set([
  'document',
  'file',
  'input_file',
  'input_audio',
  'audio',
  'audio_url',
  'input_video',
  'video',
  'video_url',
  'container_upload',
]);

/** The data of an image in base64, which is not read as text; undefined for one that is only named. */
function readImage({ image_url: image, source }: Json): unknown {
  const url = isRecord(image) ? image['url'] : image;
  if (typeof url === 'string') return url.startsWith('data:image/') ? url : undefined;
  const media = isRecord(source) ? source['media_type'] : undefined;
  return isRecord(source) && typeof media === 'string' && media.startsWith('image/') ? source['data'] : undefined;
}

// ---- tools that the provider runs

interface Tools {
  readonly count: number;
  readonly uses: number;
  readonly areOpen: boolean;
  readonly resultTokens: number;
  readonly unpriced: string | undefined;
}

function readTools(body: Json): Tools {
  const tools = (Array.isArray(body['tools']) ? body['tools'] : []).filter(isRecord);
  const hosted = tools.filter(isHosted);
  const stated = hosted.map(({ max_uses: uses }) => readCount(uses));
  const hasServers = Array.isArray(body['mcp_servers']) && body['mcp_servers'].length > 0;
  const contents = hosted.map(({ max_content_tokens: tokens }) => readCount(tokens) ?? 0);
  const [foreign] = listModelTools(body);
  return {
    count: tools.length,
    // A model that searches without a tool does so once.
    uses: sum(stated.map((uses) => uses ?? 0)) + (isRecord(body['web_search_options']) ? 1 : 0) + (isCompacted(body) ? 1 : 0),
    areOpen: stated.includes(undefined) || hasServers || isRecord(body['search_parameters']),
    resultTokens: Math.max(RESULT_TOKENS, ...contents.slice(0, MAX_TOOLS)),
    unpriced: foreign && `tool ${quote(foreign.type)}, which another model runs`,
  };
}

/** A list for `Math.max` must fit on the stack. */
const MAX_TOOLS = 10_000;

/** Results of searches are shorter as a rule. */
const RESULT_TOKENS = 10_000;

/** Whether the provider may summarize the conversation first, which reads it once more. */
function isCompacted({ context_management: management }: Json): boolean {
  const edits = isRecord(management) ? management['edits'] : management;
  return Array.isArray(edits) && edits.some((edit) => isRecord(edit) && String(edit['type']).startsWith('compact'));
}

function isHosted(tool: Json): boolean {
  const { type } = tool;
  if (typeof type === 'string') return !CLIENT_TOOLS.has(type) && !DATED_CLIENT_TOOL.test(type);
  // Anthropic's tools may have no type; Gemini's are named by their field.
  return tool['name'] === undefined && Object.keys(tool).some((name) => normalizeField(name) !== 'functiondeclarations');
}

const CLIENT_TOOLS: ReadonlySet<string> = new Set([
  'function',
  'custom',
  'namespace',
  'tool_search',
  'local_shell',
  'shell',
  'apply_patch',
  'computer',
  'computer_use_preview',
]);

const DATED_CLIENT_TOOL = /^(?:bash|text_editor|computer|memory|custom|tool_search_tool\w*)_\d+$/;

// ---- what is charged at another price

/** Says what makes the price of a request unknown; undefined when nothing does. */
function findUnpriced(body: Json): string | undefined {
  const other = findOtherModels(body);
  if (other !== undefined) return `${quote(other)}, which lets other models respond`;
  for (const name in body) {
    const value = body[name];
    const usual = USUAL_PRICES.get(normalizeField(name));
    if (usual && isPresent(value) && !(typeof value === 'string' && usual.has(value.toLowerCase())))
      return `${name.slice(0, MAX_QUOTED)} ${quote(value)}`;
  }
  return isPresent(body['plugins']) ? '"plugins"' : undefined;
}

/** Fields that choose a price, and the values for which a price list holds or is too high. */
const USUAL_PRICES: ReadonlyMap<string, ReadonlySet<string>> = new Map([
  [
    'servicetier',
    new Set([
      ...['auto', 'default', 'standard', 'standard_only', 'on_demand', 'flex', 'batch'],
      ...['unspecified', 'service_tier_unspecified', 'service_tier_standard', 'service_tier_flex'],
    ]),
  ],
  ['speed', new Set(['standard'])],
  ['inferencegeo', new Set(['global', 'not_available'])],
]);

const MAX_QUOTED = 40;

const quote = (value: unknown): string => (JSON.stringify(value) ?? '').slice(0, MAX_QUOTED);

// ---- embeddings and rankings

const measureReading = (body: unknown, bytes: number): Work => ({
  ...describeText(bytes, 'none'),
  inputs: isRecord(body) ? countInputs(body) : 1,
  unpriced: isRecord(body) ? findUnpriced(body) : undefined,
});

/** Every document is read together with the query. */
function measurePairs(body: unknown, bytes: number): Work {
  if (!isRecord(body)) return describeText(bytes, 'none');
  const [queries, documents] = [body['query'] ?? body['text_1'], body['documents'] ?? body['text_2']].map(
    (value): { count: number; bytes: number } => ({
      count: Array.isArray(value) ? value.length : 1,
      bytes: value === undefined ? 0 : Buffer.byteLength(JSON.stringify(value)),
    }),
  );
  if (!queries || !documents) return describeText(bytes, 'none');
  const pairs = queries.count * documents.bytes + documents.count * queries.bytes;
  return {
    ...describeText(bytes + pairs, 'none'),
    inputs: queries.count * documents.count,
    unpriced: findUnpriced(body),
  };
}

/** Lists of texts; a list of numbers is one text. */
function countInputs(body: Json): number {
  let count = 1;
  for (const name of INPUT_FIELDS) {
    const value = body[name];
    if (Array.isArray(value) && typeof value[0] !== 'number') count = Math.max(count, value.length);
  }
  return count;
}

const INPUT_FIELDS = ['input', 'prompt', 'requests', 'instances', 'texts', 'inputs'];

// ---- endpoints that are only passed on

/** The body of a request that is passed on. */
export interface PassedWork {
  /** The path after the version, with `{model}` for a model. */
  readonly path: string;
  readonly body: Buffer;
  readonly type: string;
  /** The parsed body, or the fields of a form. */
  readonly fields: unknown;
}

/** What a request that is passed on does; undefined for an endpoint whose work cannot be counted. */
export function measurePassed({ path, body, type, fields }: PassedWork, codec: LimitReader): Work | undefined {
  const kind = PASSED_KINDS.get(path);
  if (kind === undefined) return undefined;
  if (!isRecord(fields))
    return { ...describeText(body.length), unreported: 'reserved', unpriced: 'a body that is not a JSON object' };
  const files = readBoundary(type) === undefined ? NO_FILES : new MultipartForm(body, type).files;
  const work = measureKind(kind, fields, { bytes: body.length, files, codec });
  return { ...work, unpriced: work.unpriced ?? findUnpriced(kind === 'speech' ? omitSpeed(fields) : fields) };
}

interface PassedSize {
  readonly bytes: number;
  readonly files: { readonly count: number; readonly bytes: number };
  readonly codec: LimitReader;
}

function measureKind(kind: PassedKind, json: Json, { bytes, files, codec }: PassedSize): Work {
  switch (kind) {
    case 'read':
      return measureReading(json, bytes);
    case 'pairs':
      return measurePairs(json, bytes);
    case 'audio':
      // Recordings have fewer tokens than bytes.
      return describeText(bytes);
    case 'speech':
      return describeText(bytes, { tokens: bytes * SPEECH_TOKENS_PER_BYTE + MIN_SPEECH_TOKENS, choices: 1 });
    case 'images':
      return {
        ...describeText(bytes - files.bytes, { tokens: IMAGE_OUTPUT_TOKENS, choices: countImages(json, codec) }),
        images: files.count + (Array.isArray(json['images']) ? json['images'].length : 0),
        unreported: 'reserved',
      };
    case 'text':
      return measureCompletion(json, bytes, codec);
    default:
      return kind satisfies never;
  }
}

/** Every prompt has its own responses. */
function measureCompletion(json: Json, bytes: number, codec: LimitReader): Work {
  const { prompt, ...rest } = json;
  const work = measureChat({ body: rest, bytes, history: 0 }, codec);
  const { tokens, choices } = codec.readOutputLimit?.(json) ?? UNLIMITED;
  const inputs = countInputs({ prompt });
  return { ...work, isKeptLong: false, inputs, output: { tokens, choices: choices * inputs }, unreported: 'reserved' };
}

/** `n`, or Imagen's `sampleCount`, for each of its instances. */
function countImages(json: Json, codec: LimitReader): number {
  const parameters = isRecord(json['parameters']) ? json['parameters'] : {};
  const { choices } = codec.readOutputLimit?.(json) ?? UNLIMITED;
  const samples = Array.isArray(json['instances']) ? (readCount(parameters['sampleCount']) ?? IMAGEN_SAMPLES) : 1;
  return choices * samples * countInputs({ instances: json['instances'] });
}

/** `speed` of speech is a number, and not a price. */
const omitSpeed = ({ speed: _, ...json }: Json): Json => json;

const NO_FILES = { count: 0, bytes: 0 };

const IMAGEN_SAMPLES = 4;

/** More than twice what the largest known image has. */
const IMAGE_OUTPUT_TOKENS = 16_384;

/** Slow speech has 6 tokens per character, and digits are spoken as words. */
const SPEECH_TOKENS_PER_BYTE = 16;

const MIN_SPEECH_TOKENS = 1024;

type PassedKind = 'text' | 'images' | 'speech' | 'audio' | 'read' | 'pairs';

/** Endpoints that do all of their work before they respond. A test compares them with the known ones. */
const PASSED_KINDS: ReadonlyMap<string, PassedKind> = new Map([
  ...listPaths('text', ['completions', 'fim/completions', 'infill', 'complete', 'responses/compact', 'ocr', 'decisions']),
  ...listPaths('text', ['content_provenance_checks', 'fine_tuning/alpha/graders/run', 'fine_tuning/alpha/graders/validate']),
  ...listPaths('images', ['images/edits', 'images/generations', 'images/variations', 'models/{model}:predict']),
  ...listPaths('speech', ['audio/speech']),
  ...listPaths('audio', ['audio/transcriptions', 'audio/translations']),
  ...listPaths('read', ['moderations', 'chat/moderations', 'classifications', 'chat/classifications', 'classify', 'pooling']),
  ...listPaths('read', ['tokenize', 'tokenize-text', 'detokenize', 'models/{model}:computeTokens']),
  ...listPaths('pairs', ['score']),
]);

function listPaths(kind: PassedKind, paths: readonly string[]): [string, PassedKind][] {
  return paths.map((path) => [path, kind]);
}

/** A number of at least 1, also as text. */
function readCount(value: unknown): number | undefined {
  const count = typeof value === 'string' ? Number(value) : value;
  return typeof count === 'number' && count >= 1 ? Math.min(count, MAX_COUNT) : undefined;
}

const MAX_COUNT = 1e6;

const sum = (numbers: readonly number[]): number => numbers.reduce((total, number) => total + number, 0);
