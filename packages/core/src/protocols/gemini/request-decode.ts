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
import { at } from '../../canonical/source.ts';
import type { CodecContext, WireRequest } from '../../codec/protocol.ts';
import {
  expectConversation,
  expectName,
  expectObject,
  expectShallow,
  expectShallowJson,
  expectText,
  objectOf,
  optional,
  pointerOf,
  textOf,
  unknownFields,
} from '../../codec/read.ts';
import { drop, invalid, missing, repair } from '../../codec/report.ts';
import { isObject, type JsonObject, writeJson } from '../../json/json.ts';
import { Answers, decodeMedia, decodeResult, decodeSignature, opaque } from './blocks.ts';
import { modelOf, placeOf } from './endpoints.ts';
import {
  decodeOptions,
  decodeOutputFormat,
  decodeParameters,
  decodeThinking,
  keptConfig,
  keptOptions,
  OPTION_FIELDS,
} from './settings.ts';
import { decodeToolConfig, decodeTools } from './tools.ts';
import {
  CALL_FIELDS,
  CARRIER_FIELDS,
  CONTENT_FIELDS,
  camelKeys,
  camelObject,
  fieldsOf,
  keep,
  PART_FIELDS,
  PLACES,
  type WirePart,
} from './wire.ts';

/** A request as it came in: the model and whether to stream stand in the path. */
export function decodeRequest({ path, body }: WireRequest, context: CodecContext): CanonicalRequest {
  const stream = placeOf(path)?.verb === 'streamGenerateContent';
  return decodeRequestBody(body, context, { model: modelOf(path), ...(stream && { stream }) });
}

/** What the path says and the body does not. */
export interface Place {
  model?: string | undefined;
  stream?: boolean;
}

const MAPPED: ReadonlySet<string> = new Set([
  'model',
  'contents',
  'systemInstruction',
  'tools',
  'toolConfig',
  'generationConfig',
  ...OPTION_FIELDS,
]);

export function decodeRequestBody(wire: unknown, context: CodecContext, place: Place = {}): CanonicalRequest {
  const body = camelKeys(expectObject(wire, 'body'));
  const contents = expectContents(body['contents']);
  expectShallow(body);
  const config = camelKeys(optional(body['generationConfig'], 'generationConfig', expectObject) ?? {});
  const { system, rest } = decodeSystem(body['systemInstruction'], context);
  const tools = decodeTools(body['tools'], context);
  const { choice, rest: toolConfig } = decodeToolConfig(body['toolConfig']);
  const format = decodeOutputFormat(config, context);
  const thinking = decodeThinking(config['thinkingConfig'], context);
  const generationConfig = keptConfig(config);
  const request: CanonicalRequest = {
    model: modelName(place, body),
    ...(system.length > 0 && { system }),
    messages: decodeContents(contents, context),
    ...(tools.length > 0 && { tools }),
    ...(choice && { tool_choice: choice }),
    parameters: decodeParameters(config),
    ...(format && { output_format: format }),
    ...(thinking && { thinking }),
    ...(place.stream !== undefined && { stream: place.stream }),
    ...decodeOptions(body, config),
    ...keep({
      ...unknownFields(body, MAPPED),
      ...keptOptions(body),
      ...(generationConfig && { generationConfig }),
      ...(toolConfig && { toolConfig }),
      ...(rest && { systemInstruction: rest }),
    }),
  };
  return at('', request, context, PLACES);
}

/** A list of contents; the SDKs also take one content, or a text. */
function expectContents(value: unknown): readonly unknown[] {
  const list = Array.isArray(value) ? value : value === undefined || value === null ? [] : [value];
  if (list.length === 0) throw invalid('contents', 'must not be empty');
  expectConversation(list, 'contents');
  return list;
}

interface System {
  system: SystemBlock[];
  /** What the content says beside its parts; its role means nothing. */
  rest?: JsonObject | undefined;
}

const TEXT_FIELDS: ReadonlySet<string> = new Set(['text', 'thought']);

const SYSTEM_FIELDS: ReadonlySet<string> = new Set(['parts']);

/** A content, or a text. Only its texts are instructions. */
function decodeSystem(value: unknown, context: CodecContext): System {
  if (value === undefined || value === null) return { system: [] };
  const content = typeof value === 'string' ? { parts: [value] } : camelKeys(expectObject(value, 'systemInstruction'));
  const system = partsOf(content, 'systemInstruction').flatMap((item, i): SystemBlock[] => {
    const part = typeof item === 'string' ? { text: item } : camelObject(item);
    const text = textOf(part['text']);
    const path = `/systemInstruction/parts/${i}`;
    if (typeof part['text'] !== 'string') drop(context, { path, feature: 'system', message: 'an instruction that is no text' });
    return text === '' ? [] : [at(path, { type: 'text', text, ...keep(unknownFields(part, TEXT_FIELDS)) }, context)];
  });
  return { system, rest: unknownFields(content, SYSTEM_FIELDS) };
}

/** The path names the model; a body that says it too may be one that was not sent yet. */
function modelName({ model }: Place, body: JsonObject): string {
  const name = model || textOf(body['model']).replace(/^models\//, '');
  if (name === '') throw missing('model');
  return name;
}

/** Where a part stands, and what is known there. */
interface PartSite {
  /** JSON path of the content. */
  param: string;
  /** Its place among the contents. */
  content: number;
  role: 'user' | 'model' | 'system';
  book: CallBook;
  context: CodecContext;
}

function decodeContents(list: readonly unknown[], context: CodecContext): CanonicalMessage[] {
  const messages: CanonicalMessage[] = [];
  const book = new CallBook();
  list.forEach((item, i) => {
    const param = `contents[${i}]`;
    const content = typeof item === 'string' ? { parts: [{ text: item }] } : camelKeys(expectObject(item, param));
    const role = roleOf(content, param);
    const last = messages.at(-1);
    if (role === 'model' && last?.role !== 'assistant') book.beginTurn();
    const site: PartSite = { param, content: i, role, book, context };
    const blocks = partsOf(content, param).map((part, k) => decodePart(part, k, site));
    const fields = unknownFields(content, CONTENT_FIELDS);
    const place = `/contents/${i}`;
    if (role === 'model') addModel(messages, blocks.flat(), fields, place, context);
    else addUser(messages, blocks.flat(), role, fields, place, context);
  });
  return messages;
}

type Speaker = 'user' | 'model' | 'system';

/** Google knows `user` and `model`; results once came from `function`. */
const ROLES: Readonly<Record<string, Speaker>> = {
  user: 'user',
  function: 'user',
  tool: 'user',
  model: 'model',
  assistant: 'model',
  system: 'system',
  developer: 'system',
};

function roleOf({ role }: JsonObject, param: string): Speaker {
  const word = optional(role, `${param}.role`, expectText) || 'user';
  const speaker = Object.hasOwn(ROLES, word) ? ROLES[word] : undefined;
  if (!speaker) throw invalid(`${param}.role`, 'must be one of user, model');
  return speaker;
}

/** A list of parts; one part alone is taken too, and so is a text. */
function partsOf({ parts }: JsonObject, param: string): readonly unknown[] {
  if (Array.isArray(parts)) return parts;
  if (typeof parts === 'string' || isObject(parts)) return [parts];
  if (parts === undefined || parts === null) return [];
  throw invalid(`${param}.parts`, 'must be a list');
}

/** A part of a request as blocks: none when it says nothing. A call is tested first: a part can be both a call and a thought. */
function decodePart(value: unknown, index: number, site: PartSite): ContentBlock[] {
  const param = `${site.param}.parts[${index}]`;
  const raw = typeof value === 'string' ? { text: value } : expectObject(value, param);
  const part: WirePart = camelKeys(raw);
  const block =
    decodeData(part, raw, param, index, site) ??
    (typeof part.text === 'string' ? decodeText(part, part.text, site) : decodeOther(raw));
  if (!block) return [];
  const place = `/contents/${site.content}/parts/${index}`;
  const placed = at(place, block, site.context, {
    'source/detail': `${place}/mediaResolution/level`,
    'source/video': `${place}/videoMetadata`,
    'source/video/start': `${place}/videoMetadata/startOffset`,
    'source/video/end': `${place}/videoMetadata/endOffset`,
    'source/video/fps': `${place}/videoMetadata/fps`,
    signature: `${place}/thoughtSignature`,
  });
  if (placed.type === 'tool_use') site.book.ask(placed);
  return [placed];
}

function decodeData(part: WirePart, raw: JsonObject, param: string, index: number, site: PartSite): ContentBlock | undefined {
  const fields = { ...unknownFields(part, PART_FIELDS), ...(part.thought === true && { thought: true }) };
  if (isObject(part.functionCall))
    return decodeCall(camelKeys(part.functionCall), part, fields, `${param}.functionCall`, index, site);
  const signature = textOf(part.thoughtSignature);
  const kept = { ...fields, ...(signature !== '' && { thoughtSignature: signature }) };
  if (isObject(part.functionResponse))
    return decodeAnswer(camelKeys(part.functionResponse), kept, `${param}.functionResponse`, index, site);
  if (!isObject(part.inlineData) && !isObject(part.fileData)) return undefined;
  const media = decodeMedia(part, Object.keys(kept).length > 0 ? kept : undefined);
  return media ? decodeMediaFields(media) : opaque(raw);
}

function decodeCall(
  call: JsonObject,
  part: WirePart,
  fields: JsonObject,
  param: string,
  index: number,
  { content, role, context }: PartSite,
): ToolUseBlock {
  if (role !== 'model') throw invalid(param, 'only the model calls');
  const name = expectName(call['name'], `${param}.name`);
  const id = typeof call['id'] === 'number' ? String(call['id']) : textOf(call['id']);
  const signature = textOf(part.thoughtSignature) || textOf(call['thoughtSignature']);
  const unknown = unknownFields(call, CALL_FIELDS);
  return {
    type: 'tool_use',
    id: id || deriveId('call_', content, index, name),
    name,
    ...decodeArgs(call['args'], `${param}.args`, context),
    ...(signature !== '' && { signature: decodeSignature(signature) }),
    ...keep({ ...fields, ...inner(unknown, 'functionCall', id) }),
  };
}

/** Arguments are an object; what else came is kept as text. */
function decodeArgs(args: unknown, param: string, context: CodecContext): Pick<ToolUseBlock, 'input' | 'input_raw'> {
  if (args === undefined || args === null) return { input: {} };
  if (isObject(args)) return { input: args };
  const text = typeof args === 'string' ? args : (writeJson(args) ?? '');
  const value = expectShallowJson(text, param);
  repair(context, {
    path: pointerOf(param),
    feature: 'messages.tool_use.input',
    message: 'the arguments of a call are no object',
  });
  return { input: isObject(value) ? value : {}, input_raw: text };
}

/** In the model's own content it is the answer to a call that Google ran itself; from anybody else, that of the client. */
function decodeAnswer(
  answer: JsonObject,
  fields: JsonObject,
  param: string,
  index: number,
  { content, role, book, context }: PartSite,
): ToolResultBlock {
  const id = typeof answer['id'] === 'number' ? String(answer['id']) : textOf(answer['id']);
  const named = textOf(answer['name']);
  if (id === '' && named === '') throw invalid(`${param}.name`, 'must be the name of the function that was called');
  const call = role === 'model' ? book.serve(id, named) : book.answer(id, named);
  const name = named || (call?.name ?? '');
  const result = decodeResult(answer, call?.id ?? (id || deriveId('call_', content, index, named)), fields);
  const kept = { ...fieldsOf(result), ...inner(keptResult(result, answer, id), 'functionResponse', id) };
  const block: ToolResultBlock = {
    ...result,
    content: placedParts(result.content, param, context),
    ...(name !== '' && { name }),
    ...keep(kept),
  };
  if (role !== 'model') return block;
  if (call) call.kind = 'server'; // its block is ours, and only now known to be this
  // What is kept of a result says whose server gave it.
  return { ...block, kind: 'server', extensions: { gemini: kept } };
}

/** The kept fields of the object in a part. That the wire had no id is kept too: whoever did not send one may not know them. */
function inner(fields: JsonObject | undefined, key: 'functionCall' | 'functionResponse', id: string): JsonObject {
  const kept = { ...fields, ...(id === '' && { id: null }) };
  return Object.keys(kept).length > 0 ? { [key]: kept } : {};
}

/** An empty list of parts, and an id that is not the call's (qwen-code sends one for calls without), go back as they came. */
function keptResult(result: ToolResultBlock, { parts }: JsonObject, id: string): JsonObject {
  return {
    ...objectOf(fieldsOf(result)['functionResponse']),
    ...(id !== '' && id !== result.tool_use_id && { id }),
    ...(Array.isArray(parts) && parts.length === 0 && { parts }),
  };
}

/** The text of a result is its `response`, its media are its parts. */
function placedParts(content: ToolResultBlock['content'], param: string, context: CodecContext): ToolResultBlock['content'] {
  if (typeof content === 'string') return content;
  const place = pointerOf(param);
  return content.map((part, i) => at(i === 0 ? `${place}/response` : `${place}/parts/${i - 1}`, part, context));
}

type MediaBlock = ImageBlock | AudioBlock | FileBlock;

/** Formats that Google hears; what calls itself something else is a file like any other. */
export const AUDIO_FORMATS: readonly string[] = ['wav', 'mp3', 'aac', 'ogg', 'flac', 'aiff', 'm4a', 'opus', 'pcm', 'webm', 'l16'];

/** What a part of a request says about its media, in canonical words. */
function decodeMediaFields(block: MediaBlock): MediaBlock {
  if (block.type === 'image') return decodeDetail(block);
  if (block.type === 'file') return decodeVideo(block);
  const { data, media_type: type = '' } = block.source;
  const isHeard = data !== undefined && AUDIO_FORMATS.includes(wordOf(type));
  return isHeard ? block : asFile(block);
}

const LEVELS: Readonly<Record<string, NonNullable<ImageBlock['source']['detail']>>> = {
  MEDIA_RESOLUTION_LOW: 'low',
  MEDIA_RESOLUTION_HIGH: 'high',
  MEDIA_RESOLUTION_ULTRA_HIGH: 'original',
};

/** `mediaResolution` of the part, as the detail of an image. */
function decodeDetail(block: ImageBlock): ImageBlock {
  const level = textOf(camelObject(fieldsOf(block)['mediaResolution'])['level']);
  const detail = Object.hasOwn(LEVELS, level) ? LEVELS[level] : undefined;
  return detail ? { ...block, source: { ...block.source, detail } } : block;
}

/** `videoMetadata` of the part: which stretch of a video is looked at, and how closely. */
function decodeVideo(block: FileBlock): FileBlock {
  const { startOffset, endOffset, fps } = camelObject(fieldsOf(block)['videoMetadata']);
  const video = {
    ...(typeof startOffset === 'string' && { start: startOffset }),
    ...(typeof endOffset === 'string' && { end: endOffset }),
    ...(typeof fps === 'number' && { fps }),
  };
  return Object.keys(video).length > 0 ? { ...block, source: { ...block.source, video } } : block;
}

const wordOf = (type: string): string =>
  type
    .replace(/^audio\/(x-)?/, '')
    .replace(/;.*/s, '')
    .replace(/^mpeg$/, 'mp3');

/** Audio by its address, which only files have. */
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

/** Nothing for an empty text that nobody signed. */
function decodeText(part: WirePart, text: string, { role }: PartSite): ContentBlock | undefined {
  const fields = unknownFields(part, PART_FIELDS);
  const value = textOf(part.thoughtSignature);
  const signature = value !== '' && { signature: decodeSignature(value) };
  if (text === '' && !signature && !fields) return undefined;
  if (part.thought === true && role === 'model')
    return { type: 'thinking', thinking: text, variant: 'summary', ...signature, ...keep({ ...fields, thought: true }) };
  return { type: 'text', text, ...signature, ...keep({ ...fields, ...(part.thought === true && { thought: true }) }) };
}

/** The calls of a conversation, for results that need not name them: by id, else the first of that name in the last turn without an answer. */
class CallBook {
  readonly #byId = new Map<string, ToolUseBlock>();
  #turn = new Answers();

  /** The model begins to speak: what it did not get an answer to before stays without. */
  beginTurn(): void {
    this.#turn = new Answers();
  }

  ask(block: ToolUseBlock): void {
    this.#byId.set(block.id, block);
    this.#turn.add({ index: this.#turn.size, block, isStopped: true, isAnswered: false });
  }

  answer(id: string, name: string): ToolUseBlock | undefined {
    return this.serve(id, name) ?? this.#byId.get(id);
  }

  /** The call that Google answered itself, in the same turn. */
  serve(id: string, name: string): ToolUseBlock | undefined {
    return this.#turn.take(id, name)?.block;
  }
}

/** Code that Google ran, and whatever the future brings. A part without any content says nothing. */
function decodeOther(raw: JsonObject): ContentBlock | undefined {
  const carried = camelKeys(raw)['thoughtSignature'];
  if (unknownFields(raw, CARRIER_FIELDS)) return opaque(raw);
  return typeof carried === 'string' && carried !== ''
    ? { type: 'text', text: '', signature: decodeSignature(carried) }
    : undefined;
}

/** What a model says in several contents is one turn: streaming clients keep every fragment as one. */
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
  messages.push(at(place, { role: 'assistant', content, ...keep(fields) }, context));
}

/**
 * Thoughts arrive in pieces, and what another provider signed in a piece of its own, perhaps only after what followed the thought: they are
 * one block again. What Google signed is not touched.
 */
function addBlock(content: ContentBlock[], block: ContentBlock): void {
  const place = isLate(block) ? content.findLastIndex(({ type }) => type === 'thinking') : content.length - 1;
  const last = content[place];
  const joined = last && !('signature' in last) ? join(last, block) : undefined;
  if (joined) content[place] = joined;
  else content.push(block);
}

/** A signature without its thought. One of redacted thinking never had any. */
const isLate = (block: ContentBlock): boolean =>
  block.type === 'thinking' && block.thinking === '' && block.signature !== undefined && block.signature.form !== 'redacted';

function join(last: ContentBlock, block: ContentBlock): ContentBlock | undefined {
  const signature = 'signature' in block ? block.signature : undefined;
  if (signature?.origin === 'gemini') return undefined;
  if (last.type === 'thinking' && block.type === 'thinking' && isPlain(last) && isPlain(block))
    return { ...last, thinking: last.thinking + block.thinking, ...(signature && { signature }) };
  return last.type === 'text' && block.type === 'text' && block.text === '' && signature ? { ...last, signature } : undefined;
}

/** Beside being a thought it says nothing about itself. */
const isPlain = ({ extensions }: ThinkingBlock): boolean => Object.keys(extensions?.gemini ?? {}).length <= 1;

/** The results of a turn are a message of their own, before what the user says beside them. */
function addUser(
  messages: CanonicalMessage[],
  blocks: readonly ContentBlock[],
  role: 'user' | 'system',
  fields: JsonObject | undefined,
  place: string,
  context: CodecContext,
): void {
  const results = blocks.filter(isResult);
  const said = blocks.filter((block) => !isResult(block));
  const last = messages.at(-1);
  if (results.length > 0 && last?.role === 'tool') for (const result of results) last.content.push(result);
  else if (results.length > 0)
    messages.push(at(place, { role: 'tool', content: results, ...(said.length === 0 && keep(fields)) }, context));
  if (said.length > 0 || results.length === 0) messages.push(at(place, { role, content: said, ...keep(fields) }, context));
}

const isResult = (block: ContentBlock): block is ToolResultBlock => block.type === 'tool_result';

/** `auto` and whatever has no level of its own is left to the model. */
export const levelOf = (detail: ImageBlock['source']['detail']): string | undefined =>
  Object.keys(LEVELS).find((level) => LEVELS[level] === detail);
