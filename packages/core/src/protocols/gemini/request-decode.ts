import { deriveId } from '../../accumulate/argument-text.ts';
import type {
  AudioBlock,
  ContentBlock,
  FileBlock,
  ImageBlock,
  ThinkingBlock,
  ToolResultBlock,
  ToolUseBlock,
} from '../../canonical/message.ts';
import type { CanonicalMessage, CanonicalRequest, SystemBlock } from '../../canonical/request.ts';
import { withSource } from '../../canonical/source.ts';
import type { CodecContext, WireRequest } from '../../codec/protocol.ts';
import {
  expectConversation,
  expectName,
  expectObject,
  expectShallow,
  expectShallowJson,
  expectText,
  objectOrEmpty,
  optional,
  textOrEmpty,
  toPointer,
  unknownFields,
} from '../../codec/read.ts';
import { invalid, missing, noteDropped, noteRepaired } from '../../codec/report.ts';
import { keepSource } from '../../codec/requests.ts';
import { isObject, type JsonObject, writeJson } from '../../json/json.ts';
import { CallMatcher, decodeMedia, decodeOpaque, decodeResult, decodeSignature } from './blocks.ts';
import { parsePath, readModel } from './endpoints.ts';
import {
  decodeOptions,
  decodeOutputFormat,
  decodeParameters,
  decodeThinking,
  OPTION_FIELDS,
  readConfigExtensions,
  readOptionExtensions,
} from './settings.ts';
import { decodeToolConfig, decodeTools } from './tools.ts';
import {
  CALL_FIELDS,
  CARRIER_FIELDS,
  CONTENT_FIELDS,
  PART_FIELDS,
  PLACES,
  readExtensions,
  toCamelKeys,
  toCamelObject,
  toExtensions,
  type WirePart,
} from './wire.ts';

/** Decodes a request; the model and the stream flag are in the path. */
export function decodeRequest({ path, body }: WireRequest, context: CodecContext): CanonicalRequest {
  const stream = parsePath(path)?.verb === 'streamGenerateContent';
  return decodeRequestBody(body, context, { model: readModel(path), ...(stream && { stream }) });
}

/** What the path contains instead of the body. */
export interface PathInfo {
  /** The model in the path. */
  model?: string | undefined;
  /** Whether the method streams. */
  stream?: boolean;
}

/** Fields with a canonical counterpart; all others are kept as extensions. */
const MAPPED: ReadonlySet<string> = new Set([
  'model',
  'contents',
  'systemInstruction',
  'tools',
  'toolConfig',
  'generationConfig',
  ...OPTION_FIELDS,
]);

/** Decodes the body of a request, or of a token count. */
export function decodeRequestBody(wire: unknown, context: CodecContext, place: PathInfo = {}): CanonicalRequest {
  const body = toCamelKeys(expectObject(wire, 'body'));
  const contents = expectContents(body['contents']);
  expectShallow(body);
  const config = toCamelKeys(optional(body['generationConfig'], 'generationConfig', expectObject) ?? {});
  const { system, rest } = decodeSystem(body['systemInstruction'], context);
  const tools = decodeTools(body['tools'], context);
  const { choice, rest: toolConfig } = decodeToolConfig(body['toolConfig']);
  const format = decodeOutputFormat(config, context);
  const thinking = decodeThinking(config['thinkingConfig'], context);
  const generationConfig = readConfigExtensions(config);
  const request: CanonicalRequest = {
    model: chooseModel(place, body),
    ...(system.length > 0 && { system }),
    messages: decodeContents(contents, context),
    ...(tools.length > 0 && { tools }),
    ...(choice && { tool_choice: choice }),
    parameters: decodeParameters(config),
    ...(format && { output_format: format }),
    ...(thinking && { thinking }),
    ...(place.stream !== undefined && { stream: place.stream }),
    ...decodeOptions(body, config),
    ...toExtensions({
      ...unknownFields(body, MAPPED),
      ...readOptionExtensions(body),
      ...(generationConfig && { generationConfig }),
      ...(toolConfig && { toolConfig }),
      ...(rest && { systemInstruction: rest }),
    }),
  };
  return withSource('', request, context, PLACES);
}

/** A list of contents; SDKs also accept a single content, or text. */
function expectContents(value: unknown): readonly unknown[] {
  const list = Array.isArray(value) ? value : value === undefined || value === null ? [] : [value];
  if (list.length === 0) throw invalid('contents', 'must not be empty');
  expectConversation(list, 'contents');
  return list;
}

interface System {
  system: SystemBlock[];
  /** Fields of the content beside its parts; its role has no meaning. */
  rest?: JsonObject | undefined;
}

const TEXT_FIELDS: ReadonlySet<string> = new Set(['text', 'thought']);

const SYSTEM_FIELDS: ReadonlySet<string> = new Set(['parts']);

/** A content, or text. Parts that are not text are dropped. */
function decodeSystem(value: unknown, context: CodecContext): System {
  if (value === undefined || value === null) return { system: [] };
  const content = typeof value === 'string' ? { parts: [value] } : toCamelKeys(expectObject(value, 'systemInstruction'));
  const system = listParts(content, 'systemInstruction').flatMap((item, i): SystemBlock[] => {
    const part = typeof item === 'string' ? { text: item } : toCamelObject(item);
    const text = textOrEmpty(part['text']);
    const path = `/systemInstruction/parts/${i}`;
    if (typeof part['text'] !== 'string')
      noteDropped(context, { path, feature: 'system', message: 'a system instruction that is not text' });
    return text === ''
      ? []
      : [withSource(path, { type: 'text', text, ...toExtensions(unknownFields(part, TEXT_FIELDS)) }, context)];
  });
  return { system, rest: unknownFields(content, SYSTEM_FIELDS) };
}

/** The model of the path, or of a body that was not sent to a path. */
function chooseModel({ model }: PathInfo, body: JsonObject): string {
  const name = model || textOrEmpty(body['model']).replace(/^models\//, '');
  if (name === '') throw missing('model');
  return name;
}

/** Where a part is, and what its decoder needs to know. */
interface PartScope {
  /** The path of the content, for errors. */
  param: string;
  /** The index of the content. */
  content: number;
  role: Role;
  book: CallBook;
  context: CodecContext;
}

function decodeContents(list: readonly unknown[], context: CodecContext): CanonicalMessage[] {
  const messages: CanonicalMessage[] = [];
  const book = new CallBook();
  list.forEach((item, i) => {
    const param = `contents[${i}]`;
    const content = typeof item === 'string' ? { parts: [{ text: item }] } : toCamelKeys(expectObject(item, param));
    const role = decodeRole(content, param);
    const last = messages.at(-1);
    if (role === 'model' && last?.role !== 'assistant') book.beginTurn();
    const scope: PartScope = { param, content: i, role, book, context };
    const blocks = listParts(content, param).map((part, k) => decodePart(part, k, scope));
    const fields = unknownFields(content, CONTENT_FIELDS);
    const place = `/contents/${i}`;
    if (role === 'model') addModel(messages, blocks.flat(), fields, place, context);
    else addUser(messages, blocks.flat(), role, fields, place, context);
  });
  return messages;
}

type Role = 'user' | 'model' | 'system';

/** Google documents `user` and `model`; results used to come from `function`. */
const ROLES: Readonly<Record<string, Role>> = {
  user: 'user',
  function: 'user',
  tool: 'user',
  model: 'model',
  assistant: 'model',
  system: 'system',
  developer: 'system',
};

function decodeRole({ role }: JsonObject, param: string): Role {
  const name = optional(role, `${param}.role`, expectText) || 'user';
  const decoded = Object.hasOwn(ROLES, name) ? ROLES[name] : undefined;
  if (!decoded) throw invalid(`${param}.role`, 'must be one of user, model');
  return decoded;
}

/** A list of parts; a single part or text is accepted too. */
function listParts({ parts }: JsonObject, param: string): readonly unknown[] {
  if (Array.isArray(parts)) return parts;
  if (typeof parts === 'string' || isObject(parts)) return [parts];
  if (parts === undefined || parts === null) return [];
  throw invalid(`${param}.parts`, 'must be a list');
}

/**
 * The blocks of a part; none if it is empty. Calls are tested first, because a part can be both a call and a thought.
 */
function decodePart(value: unknown, index: number, scope: PartScope): ContentBlock[] {
  const param = `${scope.param}.parts[${index}]`;
  const raw = typeof value === 'string' ? { text: value } : expectObject(value, param);
  const part: WirePart = toCamelKeys(raw);
  const block =
    decodeData(part, raw, param, index, scope) ??
    (typeof part.text === 'string' ? decodeText(part, part.text, scope) : decodeOther(raw, scope.context));
  if (!block) return [];
  const place = `/contents/${scope.content}/parts/${index}`;
  const placed = withSource(place, block, scope.context, {
    'source/detail': `${place}/mediaResolution/level`,
    'source/video': `${place}/videoMetadata`,
    'source/video/start': `${place}/videoMetadata/startOffset`,
    'source/video/end': `${place}/videoMetadata/endOffset`,
    'source/video/fps': `${place}/videoMetadata/fps`,
    signature: `${place}/thoughtSignature`,
  });
  if (placed.type === 'tool_use') scope.book.add(placed);
  return [placed];
}

function decodeData(part: WirePart, raw: JsonObject, param: string, index: number, scope: PartScope): ContentBlock | undefined {
  const fields = { ...unknownFields(part, PART_FIELDS), ...(part.thought === true && { thought: true }) };
  if (isObject(part.functionCall))
    return decodeCall(toCamelKeys(part.functionCall), part, fields, `${param}.functionCall`, index, scope);
  const signature = textOrEmpty(part.thoughtSignature);
  const all = { ...fields, ...(signature !== '' && { thoughtSignature: signature }) };
  if (isObject(part.functionResponse))
    return decodeFunctionResponse(toCamelKeys(part.functionResponse), all, `${param}.functionResponse`, index, scope);
  if (!isObject(part.inlineData) && !isObject(part.fileData)) return undefined;
  const media = decodeMedia(part, Object.keys(all).length > 0 ? all : undefined);
  return media ? decodeMediaFields(media) : decodeOpaque(raw);
}

function decodeCall(
  call: JsonObject,
  part: WirePart,
  fields: JsonObject,
  param: string,
  index: number,
  { content, role, context }: PartScope,
): ToolUseBlock {
  if (role !== 'model') throw invalid(param, 'function calls are only allowed in model messages');
  const name = expectName(call['name'], `${param}.name`);
  const id = typeof call['id'] === 'number' ? String(call['id']) : textOrEmpty(call['id']);
  const signature = textOrEmpty(part.thoughtSignature) || textOrEmpty(call['thoughtSignature']);
  const unknown = unknownFields(call, CALL_FIELDS);
  return {
    type: 'tool_use',
    id: id || deriveId('call_', content, index, name),
    name,
    ...decodeArgs(call['args'], `${param}.args`, context),
    ...(signature !== '' && { signature: decodeSignature(signature, context) }),
    ...toExtensions({ ...fields, ...nest(unknown, 'functionCall', id) }),
  };
}

/** Arguments should be an object; anything else is kept as text. */
function decodeArgs(args: unknown, param: string, context: CodecContext): Pick<ToolUseBlock, 'input' | 'input_raw'> {
  if (args === undefined || args === null) return { input: {} };
  if (isObject(args)) return { input: args, ...keepSource(args) };
  const text = typeof args === 'string' ? args : (writeJson(args) ?? '');
  const value = expectShallowJson(text, param);
  noteRepaired(context, {
    path: toPointer(param),
    feature: 'messages.tool_use.input',
    message: 'the arguments of a function call are not an object',
  });
  return { input: isObject(value) ? value : {}, input_raw: text };
}

/** In the model's content it is the result of a call that Google ran; elsewhere it is the client's. */
function decodeFunctionResponse(
  response: JsonObject,
  fields: JsonObject,
  param: string,
  index: number,
  { content, role, book, context }: PartScope,
): ToolResultBlock {
  const id = typeof response['id'] === 'number' ? String(response['id']) : textOrEmpty(response['id']);
  const named = textOrEmpty(response['name']);
  if (id === '' && named === '') throw invalid(`${param}.name`, 'must be the name of the called function');
  const call = role === 'model' ? book.findInTurn(id, named) : book.find(id, named);
  const name = named || (call?.name ?? '');
  const result = decodeResult(response, call?.id ?? (id || deriveId('call_', content, index, named)), fields);
  const all = { ...readExtensions(result), ...nest(collectResultFields(result, response, id), 'functionResponse', id) };
  const block: ToolResultBlock = {
    ...result,
    content: locateParts(result.content, param, context),
    ...(name !== '' && { name }),
    ...toExtensions(all),
  };
  if (role !== 'model') return block;
  if (call) call.kind = 'server'; // this decoder created the block, so it may change it
  // The extensions of a server result identify its provider.
  return { ...block, kind: 'server', extensions: { gemini: all } };
}

/**
 * The unknown fields of the object inside a part. A missing id is recorded too: a client that sends no ids may not
 * support them.
 */
function nest(fields: JsonObject | undefined, key: 'functionCall' | 'functionResponse', id: string): JsonObject {
  const all = { ...fields, ...(id === '' && { id: null }) };
  return Object.keys(all).length > 0 ? { [key]: all } : {};
}

/**
 * An empty list of parts, and an id that differs from that of the call (qwen-code sends one for calls without), are
 * kept.
 */
function collectResultFields(result: ToolResultBlock, { parts }: JsonObject, id: string): JsonObject {
  return {
    ...objectOrEmpty(readExtensions(result)['functionResponse']),
    ...(id !== '' && id !== result.tool_use_id && { id }),
    ...(Array.isArray(parts) && parts.length === 0 && { parts }),
  };
}

/** Records where the parts of a result are: its text is in `response`, its media are in `parts`. */
function locateParts(content: ToolResultBlock['content'], param: string, context: CodecContext): ToolResultBlock['content'] {
  if (typeof content === 'string') return content;
  const place = toPointer(param);
  return content.map((part, i) => withSource(i === 0 ? `${place}/response` : `${place}/parts/${i - 1}`, part, context));
}

type MediaBlock = ImageBlock | AudioBlock | FileBlock;

/** Audio formats that Google supports; other audio is decoded as a file. */
export const AUDIO_FORMATS: readonly string[] = ['wav', 'mp3', 'aac', 'ogg', 'flac', 'aiff', 'm4a', 'opus', 'pcm', 'webm', 'l16'];

/** Maps the media fields of a part to their canonical counterparts. */
function decodeMediaFields(block: MediaBlock): MediaBlock {
  if (block.type === 'image') return decodeDetail(block);
  if (block.type === 'file') return decodeVideo(block);
  const { data, media_type: type = '' } = block.source;
  const isSupported = data !== undefined && AUDIO_FORMATS.includes(findFormat(type));
  return isSupported ? block : asFile(block);
}

const LEVELS: Readonly<Record<string, NonNullable<ImageBlock['source']['detail']>>> = {
  MEDIA_RESOLUTION_LOW: 'low',
  MEDIA_RESOLUTION_HIGH: 'high',
  MEDIA_RESOLUTION_ULTRA_HIGH: 'original',
};

/** Maps the part's `mediaResolution` to the detail of an image. */
function decodeDetail(block: ImageBlock): ImageBlock {
  const level = textOrEmpty(toCamelObject(readExtensions(block)['mediaResolution'])['level']);
  const detail = Object.hasOwn(LEVELS, level) ? LEVELS[level] : undefined;
  return detail ? { ...block, source: { ...block.source, detail } } : block;
}

/** Maps the part's `videoMetadata` to the clip range and frame rate of a video. */
function decodeVideo(block: FileBlock): FileBlock {
  const { startOffset, endOffset, fps } = toCamelObject(readExtensions(block)['videoMetadata']);
  const video = {
    ...(typeof startOffset === 'string' && { start: startOffset }),
    ...(typeof endOffset === 'string' && { end: endOffset }),
    ...(typeof fps === 'number' && { fps }),
  };
  return Object.keys(video).length > 0 ? { ...block, source: { ...block.source, video } } : block;
}

const findFormat = (type: string): string =>
  type
    .replace(/^audio\/(x-)?/, '')
    .replace(/;.*/s, '')
    .replace(/^mpeg$/, 'mp3');

/** Audio as a file, because canonical audio has no URL. */
function asFile({ source: { data, url, file_id: id, media_type: type }, extensions }: AudioBlock): FileBlock {
  return {
    type: 'file',
    source: {
      ...(data !== undefined && { file_data: data }),
      ...(url !== undefined && { file_url: url }),
      ...(id !== undefined && { file_id: id }),
      ...(type !== undefined && { media_type: type }),
    },
    ...(extensions && { extensions }),
  };
}

/** Returns undefined for empty text without signature and unknown fields. */
function decodeText(part: WirePart, text: string, { role, context }: PartScope): ContentBlock | undefined {
  const fields = unknownFields(part, PART_FIELDS);
  const value = textOrEmpty(part.thoughtSignature);
  const signature = value !== '' && { signature: decodeSignature(value, context) };
  if (text === '' && !signature && !fields) return undefined;
  if (part.thought === true && role === 'model')
    return { type: 'thinking', thinking: text, variant: 'summary', ...signature, ...toExtensions({ ...fields, thought: true }) };
  return { type: 'text', text, ...signature, ...toExtensions({ ...fields, ...(part.thought === true && { thought: true }) }) };
}

/**
 * The calls of a conversation. Results need not have an id; they are matched by id, otherwise by name within the last
 * turn.
 */
class CallBook {
  readonly #byId = new Map<string, ToolUseBlock>();
  #turn = new CallMatcher();

  /** Starts a turn of the model; calls of earlier turns can then be found only by id. */
  beginTurn(): void {
    this.#turn = new CallMatcher();
  }

  add(block: ToolUseBlock): void {
    this.#byId.set(block.id, block);
    this.#turn.add({ index: this.#turn.size, block, isStopped: true, isAnswered: false });
  }

  find(id: string, name: string): ToolUseBlock | undefined {
    return this.findInTurn(id, name) ?? this.#byId.get(id);
  }

  /** Finds a call of the current turn, the only calls that Google's own results can belong to. */
  findInTurn(id: string, name: string): ToolUseBlock | undefined {
    return this.#turn.take(id, name)?.block;
  }
}

/**
 * Parts with code that Google ran, and unknown ones, are kept opaque. A part without content is dropped, unless it
 * has a signature.
 */
function decodeOther(raw: JsonObject, context: CodecContext): ContentBlock | undefined {
  const carried = toCamelKeys(raw)['thoughtSignature'];
  if (unknownFields(raw, CARRIER_FIELDS)) return decodeOpaque(raw);
  return typeof carried === 'string' && carried !== ''
    ? { type: 'text', text: '', signature: decodeSignature(carried, context) }
    : undefined;
}

/** Consecutive contents of the model form one message: clients keep each fragment of a stream as a content. */
function addModel(
  messages: CanonicalMessage[],
  blocks: readonly ContentBlock[],
  fields: JsonObject | undefined,
  place: string,
  context: CodecContext,
): void {
  const last = messages.at(-1);
  if (last?.role === 'assistant') {
    for (const block of blocks) addBlock(last.content, block);
    return;
  }
  const content: ContentBlock[] = [];
  for (const block of blocks) addBlock(content, block);
  messages.push(withSource(place, { role: 'assistant', content, ...toExtensions(fields) }, context));
}

/**
 * Joins pieces of a thought, and a signature of another provider that came in a part of its own, possibly after later
 * parts. Parts signed by Google are not changed.
 */
function addBlock(content: ContentBlock[], block: ContentBlock): void {
  const place = isLate(block) ? content.findLastIndex(({ type }) => type === 'thinking') : content.length - 1;
  const last = content[place];
  const joined = last && !('signature' in last) ? join(last, block) : undefined;
  if (joined) content[place] = joined;
  else content.push(block);
}

/** A signature without its thought. Redacted thinking never has text, so it is not late. */
const isLate = (block: ContentBlock): boolean =>
  block.type === 'thinking' && block.thinking === '' && block.signature !== undefined && block.signature.form !== 'redacted';

function join(last: ContentBlock, block: ContentBlock): ContentBlock | undefined {
  const signature = 'signature' in block ? block.signature : undefined;
  if (signature?.origin === 'gemini') return undefined;
  if (last.type === 'thinking' && block.type === 'thinking' && isPlain(last) && isPlain(block))
    return { ...last, thinking: last.thinking + block.thinking, ...(signature && { signature }) };
  return last.type === 'text' && block.type === 'text' && block.text === '' && signature ? { ...last, signature } : undefined;
}

/** Whether a thought has no fields beside `thought`. */
const isPlain = ({ extensions }: ThinkingBlock): boolean => Object.keys(extensions?.gemini ?? {}).length <= 1;

/** The results of a turn become a message of their own, before the user's other blocks. */
function addUser(
  messages: CanonicalMessage[],
  blocks: readonly ContentBlock[],
  role: 'user' | 'system',
  fields: JsonObject | undefined,
  place: string,
  context: CodecContext,
): void {
  const results = blocks.filter(isResult);
  const others = blocks.filter((block) => !isResult(block));
  const last = messages.at(-1);
  if (results.length > 0 && last?.role === 'tool') for (const result of results) last.content.push(result);
  else if (results.length > 0)
    messages.push(
      withSource(place, { role: 'tool', content: results, ...(others.length === 0 && toExtensions(fields)) }, context),
    );
  if (others.length > 0 || results.length === 0)
    messages.push(withSource(place, { role, content: others, ...toExtensions(fields) }, context));
}

const isResult = (block: ContentBlock): block is ToolResultBlock => block.type === 'tool_result';

/** The media resolution for an image detail; undefined for `auto` and details without a level. */
export const findMediaLevel = (detail: ImageBlock['source']['detail']): string | undefined =>
  Object.keys(LEVELS).find((level) => LEVELS[level] === detail);
