import { deriveId } from '../../accumulate/argument-text.ts';
import type {
  AudioBlock,
  ContentBlock,
  FileBlock,
  ImageBlock,
  OpaqueBlock,
  TextBlock,
  ThinkingBlock,
  ToolResultBlock,
  ToolUseBlock,
} from '../../canonical/message.ts';
import { CodecError } from '../../canonical/notes.ts';
import type { CacheControl, SignedBlob } from '../../canonical/protocol.ts';
import type { CanonicalMessage, CanonicalRequest, SystemBlock } from '../../canonical/request.ts';
import { readSource, withFieldSource, withSource } from '../../canonical/source.ts';
import { extensionPath } from '../../codec/extensions.ts';
import type { CodecContext, WireRequest } from '../../codec/protocol.ts';
import {
  expectBoolean,
  expectConversation,
  expectList,
  expectName,
  expectObject,
  expectShallow,
  expectShallowJson,
  expectText,
  listOrEmpty,
  objectOrEmpty,
  optional,
  textOrEmpty,
  toPointer,
  unknownFields,
} from '../../codec/read.ts';
import { invalid, isStrict, missing, noteDropped, noteRepaired } from '../../codec/report.ts';
import { isBreakpoint, isDetail, isEmptyText, keepSource, readDataUrl } from '../../codec/requests.ts';
import { isObject, type JsonObject } from '../../json/json.ts';
import { addSignatures, decodeReasoning, REASONING_FIELDS } from './blocks.ts';
import { readModelFromPath } from './endpoints.ts';
import {
  collectThinkingExtensions,
  decodeOptions,
  decodeOutputFormat,
  decodeParameters,
  decodeThinking,
  THINKING_FIELDS,
} from './settings.ts';
import { decodeToolChoice, decodeTools } from './tools.ts';
import {
  decodeCacheControl,
  encodeCacheControl,
  listFieldPaths,
  listPartPaths,
  nestedUnknownFields,
  readExtensions,
  toExtensions,
} from './wire.ts';

/** Decodes a chat request; on Azure the path names the model. */
export function decodeRequest(wire: WireRequest, context: CodecContext): CanonicalRequest {
  return decodeRequestBody(wire.body, context, readModelFromPath(wire.path));
}

/** Decodes the body of a chat request. `model` overrides the model of the body. */
export function decodeRequestBody(wire: unknown, context: CodecContext, model?: string): CanonicalRequest {
  const body = expectObject(wire, 'body');
  const list = expectMessages(body['messages']);
  expectShallow(body);
  const { system, messages } = decodeMessages(list, context);
  const tools = decodeTools(body, context);
  const choice = decodeToolChoice(body);
  const { format, rest } = decodeOutputFormat(body['response_format']);
  const thinking = decodeThinking(body, context);
  const parallel = optional(body['parallel_tool_calls'], 'parallel_tool_calls', expectBoolean);
  noteDeprecated(body, context);
  const request: CanonicalRequest = {
    model: model ?? expectName(body['model'], 'model'),
    ...(system.length > 0 && { system }),
    messages,
    ...(tools.length > 0 && { tools }),
    ...(choice && { tool_choice: choice }),
    parameters: decodeParameters(body),
    ...(format && { output_format: format }),
    ...(parallel !== undefined && { parallel_tool_use: parallel }),
    ...(thinking && { thinking }),
    ...decodeStreaming(body),
    ...decodeOptions(body, context),
    ...toExtensions({ ...readUnmapped(body), ...collectThinkingExtensions(body), ...(rest && { response_format: rest }) }),
  };
  return withSource('', request, context, listFieldPaths(body));
}

function expectMessages(value: unknown): readonly unknown[] {
  const list = expectList(value, 'messages');
  if (list.length === 0) throw invalid('messages', 'must not be empty');
  expectConversation(list, 'messages');
  return list;
}

/** Notes deprecated fields that are ignored because the new field is set as well. */
function noteDeprecated(body: JsonObject, context: CodecContext): void {
  const pairs = [
    ['functions', 'tools'],
    ['function_call', 'tool_choice'],
    ['max_tokens', 'max_completion_tokens'],
  ] as const;
  for (const [old, name] of pairs)
    if (isGiven(body[old]) && isGiven(body[name]) && body[old] !== body[name])
      noteDropped(context, { path: `/${old}`, feature: old, message: `${name} is set too and takes precedence; dropped` });
}

const isGiven = (value: unknown): boolean => value !== undefined && value !== null;

function decodeStreaming(body: JsonObject): Pick<CanonicalRequest, 'stream' | 'stream_options'> {
  const stream = optional(body['stream'], 'stream', expectBoolean);
  const { include_usage: usage, include_obfuscation: padding } = objectOrEmpty(
    optional(body['stream_options'], 'stream_options', expectObject),
  );
  const options = {
    ...(typeof usage === 'boolean' && { include_usage: usage }),
    ...(typeof padding === 'boolean' && { include_obfuscation: padding }),
  };
  return { ...(stream !== undefined && { stream }), ...(Object.keys(options).length > 0 && { stream_options: options }) };
}

const STREAM_FIELDS = new Set(['include_usage', 'include_obfuscation']);

/** Fields with a canonical place. Everything else is kept as an extension, including the options. */
const MAPPED_FIELDS: ReadonlySet<string> = new Set([
  'model',
  'messages',
  'tools',
  'tool_choice',
  'parallel_tool_calls',
  'functions',
  'function_call',
  'web_search_options',
  'max_completion_tokens',
  'max_tokens',
  'temperature',
  'top_p',
  'frequency_penalty',
  'presence_penalty',
  'stop',
  'seed',
  'n',
  'logprobs',
  'top_logprobs',
  'logit_bias',
  'response_format',
  'stream',
  'stream_options',
  ...THINKING_FIELDS,
]);

/** Together's numeric `logprobs` is not OpenAI's boolean, so it is kept as an extension. */
function readUnmapped(body: JsonObject): JsonObject {
  const stream = unknownFields(objectOrEmpty(body['stream_options']), STREAM_FIELDS);
  return {
    ...unknownFields(body, MAPPED_FIELDS),
    ...(typeof body['logprobs'] === 'number' && { logprobs: body['logprobs'] }),
    ...(stream && { stream_options: stream }),
  };
}

// ---- messages

interface Conversation {
  system: SystemBlock[];
  messages: CanonicalMessage[];
}

/** State shared by all messages of a request. */
interface Scope {
  context: CodecContext;
  openCalls: OpenCalls;
}

type DecodeMessage = (message: JsonObject, at: string, scope: Scope) => CanonicalMessage;

const ROLES: Readonly<Record<string, DecodeMessage>> = {
  system: decodeSystem,
  developer: decodeSystem,
  user: decodeUser,
  assistant: decodeAssistant,
  tool: decodeTool,
  function: decodeFunction,
};

const MESSAGE_FIELDS = new Set(['role', 'content', 'name']);

/** The role is kept as an extension only if it is `developer`. */
function decodeSystem(message: JsonObject, at: string, scope: Scope): CanonicalMessage {
  const content = decodeMarkedContent(message, at, decodeSystemContent, scope);
  const fields = unknownFields(message, MESSAGE_FIELDS);
  const role = message['role'] === 'developer' && { role: 'developer' };
  return { role: 'system', content, ...decodeName(message, at), ...toExtensions({ ...fields, ...role }) };
}

/** The blocks of a user message or a tool result. */
type Part = TextBlock | ImageBlock | AudioBlock | FileBlock | OpaqueBlock;

/**
 * User and system messages need content. A cache mark on the message is one on its last block: other protocols get no
 * opaque blocks, so the last of the others has it.
 */
function decodeMarkedContent(message: JsonObject, at: string, decode: typeof decodeContent, { context }: Scope): Part[] {
  const { content } = message;
  if (typeof content !== 'string') expectList(content, `${at}.content`);
  const blocks = decode(content, { at: `${at}.content`, context });
  const mark = decodeMark(message, at, context);
  const last = mark.cache_control ? blocks.findLastIndex((block) => block.type !== 'opaque') : -1;
  return last < 0 ? blocks : blocks.map((block, i) => (i === last ? { ...block, ...mark } : block));
}

function decodeMark(message: JsonObject, at: string, context: CodecContext): { cache_control?: CacheControl } {
  const { cache_control: mark } = decodeCacheControl(message);
  return mark ? { cache_control: traceNode(`${at}.cache_control`, mark, context) } : {};
}

/** The node; if the caller traces sources, with its location. */
const traceNode = <T extends object>(param: string, node: T, context: CodecContext): T =>
  context.trace ? withSource(toPointer(param), node, context) : node;

const decodeName = (message: JsonObject, at: string): { name?: string } => {
  const name = optional(message['name'], `${at}.name`, expectText);
  return name === undefined ? {} : { name };
};

function decodeUser(message: JsonObject, at: string, scope: Scope): CanonicalMessage {
  const content = decodeMarkedContent(message, at, decodeContent, scope);
  return { role: 'user', content, ...decodeName(message, at), ...toExtensions(unknownFields(message, MESSAGE_FIELDS)) };
}

const ASSISTANT_FIELDS = new Set([
  'role',
  'content',
  'name',
  'refusal',
  'audio',
  'tool_calls',
  'function_call',
  ...REASONING_FIELDS,
]);

/** The wire has no order between thinking, text, refusal and calls: they are decoded in this order. */
function decodeAssistant(message: JsonObject, at: string, { context, openCalls }: Scope): CanonicalMessage {
  const { blocks, next } = decodeReasoning(message, context);
  const others: ContentBlock[] = [
    ...decodeAssistantContent(message['content'], { at: `${at}.content`, context }).toSorted(refusalLast),
    ...decodeRefusal(message['refusal'], at).map((block) => traceNode(`${at}.refusal`, block, context)),
    ...decodeReplayedAudio(message['audio'], `${at}.audio`).map((block) => traceNode(`${at}.audio`, block, context)),
    ...decodeCalls(message['tool_calls'], `${at}.tool_calls`, context).map((call, i) =>
      traceNode(`${at}.tool_calls[${i}]`, call, context),
    ),
    ...decodeLegacyCall(message['function_call'], `${at}.function_call`, openCalls, context).map((call) =>
      traceNode(`${at}.function_call`, call, context),
    ),
  ];
  const thinking = blocks.map(({ block, place }) => traceThinking(`${at}.${place}`, block, at, context));
  const signing = next.map(({ blob, place }) => traceNode(`${at}.${place}`, blob, context));
  const content = [...thinking, ...addSignatures(others, signing)];
  for (const block of content) if (block.type === 'tool_use') openCalls.add(block.id, block.name);
  const fields = unknownFields(message, ASSISTANT_FIELDS);
  return { role: 'assistant', content, ...decodeName(message, at), ...toExtensions(fields) };
}

/** The thinking block with its location and that of its extensions, which are other fields of the message. */
function traceThinking(param: string, block: ThinkingBlock, at: string, context: CodecContext): ThinkingBlock {
  if (!context.trace) return block;
  const message = toPointer(at);
  const names = Object.keys(readExtensions(block));
  const fields = names.map((name) => [extensionPath('openai-chat', name), `${message}/${name}`]);
  return withSource(toPointer(param), block, context, fields.length > 0 ? Object.fromEntries(fields) : undefined);
}

/** The blocks of an assistant message. */
type AssistantPart = TextBlock | ThinkingBlock | OpaqueBlock;

const refusalLast = (a: AssistantPart, b: AssistantPart): number => Number(isRefusal(a)) - Number(isRefusal(b));

const isRefusal = (block: AssistantPart): boolean => block.type === 'text' && block.refusal === true;

function decodeRefusal(refusal: unknown, at: string): TextBlock[] {
  const text = optional(refusal, `${at}.refusal`, expectText);
  return text ? [{ type: 'text', text, refusal: true }] : [];
}

/** The audio of an earlier response, by its id. */
function decodeReplayedAudio(value: unknown, at: string): AudioBlock[] {
  const audio = optional(value, at, expectObject);
  if (!audio) return [];
  const { id, ...rest } = audio;
  return [{ type: 'audio', source: {}, audio_id: expectName(id, `${at}.id`), ...toExtensions(rest) }];
}

const TOOL_FIELDS = new Set(['role', 'content', 'tool_call_id']);

function decodeTool(message: JsonObject, at: string, scope: Scope): CanonicalMessage {
  const { openCalls, context } = scope;
  const named = textOrEmpty(optional(message['tool_call_id'], `${at}.tool_call_id`, expectText));
  const id = named || (openCalls.takeOldest() ?? deriveId('call_', at));
  if (!named) noteRepairedId(`${at}.tool_call_id`, `the tool result has no call id; matched to ${id}`, context);
  return decodeResult(message, id, at, TOOL_FIELDS, scope);
}

function noteRepairedId(param: string, message: string, context: CodecContext): void {
  noteRepaired(context, { path: toPointer(param), feature: 'messages.tool_use.id', message });
}

function decodeResult(
  message: JsonObject,
  id: string,
  at: string,
  known: ReadonlySet<string>,
  { openCalls, context }: Scope,
): CanonicalMessage {
  const { content } = message;
  const called = openCalls.resolve(id);
  const name = optional(message['name'], `${at}.name`, expectText) ?? called;
  const result: ToolResultBlock = {
    type: 'tool_result',
    tool_use_id: id,
    content: typeof content === 'string' ? content : textIfEmpty(decodeContent(content, { at: `${at}.content`, context })),
    ...(name !== undefined && { name }),
    ...decodeCacheControl(message),
    ...toExtensions(unknownFields(message, known)),
  };
  return { role: 'tool', content: [traceNode(at, result, context)] };
}

const textIfEmpty = (blocks: Part[]): string | Part[] => (blocks.length === 0 ? '' : blocks);

const FUNCTION_MESSAGE_FIELDS = new Set(['role', 'content', 'name']);

/** A deprecated `function` message: the result of the latest open call of that name. */
function decodeFunction(message: JsonObject, at: string, scope: Scope): CanonicalMessage {
  const name = expectName(message['name'], `${at}.name`);
  return decodeResult(message, scope.openCalls.takeNamed(name) ?? deriveId('fc_', at, name), at, FUNCTION_MESSAGE_FIELDS, scope);
}

function decodeMessages(list: readonly unknown[], context: CodecContext): Conversation {
  const scope: Scope = { context, openCalls: new OpenCalls() };
  const conversation: Conversation = { system: [], messages: [] };
  list.forEach((item, i) => {
    const at = `messages[${i}]`;
    const message = expectObject(item, at);
    const role = expectText(message['role'], `${at}.role`);
    const decode = Object.hasOwn(ROLES, role) ? ROLES[role] : undefined;
    if (!decode) throw invalid(`${at}.role`, `must be one of ${Object.keys(ROLES).join(', ')}`);
    addMessage(conversation, traceNode(at, decode(message, at, scope), context), context);
  });
  return conversation;
}

/** System messages before the first turn become the system prompt; consecutive results become one message. */
function addMessage({ system, messages }: Conversation, message: CanonicalMessage, context: CodecContext): void {
  const isHoisted = message.role === 'system' && (messages.length === 0 || context.policy.systemHoist === 'all');
  const last = messages.at(-1);
  if (isHoisted && message.content.every((block) => block.type === 'text'))
    for (const block of hoist(message, context)) system.push(block);
  else if (message.role === 'tool' && last?.role === 'tool') for (const block of message.content) last.content.push(block);
  else messages.push(message);
}

/** The first block of each message has its role and fields: a block without a role continues the message. */
function hoist(source: CanonicalMessage, context: CodecContext): SystemBlock[] {
  const { content, name, extensions } = source;
  const { role = 'system', ...rest } = objectOrEmpty(extensions?.['openai-chat']);
  const message = { ...rest, ...(name !== undefined && { name }) };
  const [first, ...others] = content.filter((block) => block.type === 'text');
  if (!first) return [];
  const block: SystemBlock = { ...first, role: role === 'developer' ? 'developer' : 'system' };
  if (Object.keys(message).length > 0) {
    Object.assign(block, toExtensions({ ...first.extensions?.['openai-chat'], message }));
    withFieldSource(extensionPath('openai-chat', 'message'), readSource(source) ?? '', block, context);
  }
  return [block, ...others];
}

/** The calls of a conversation that have no result yet. */
class OpenCalls {
  readonly #open = new Map<string, { name: string; position: number }>();
  /** Ids in call order. A list, because deleting the first keys of a Map one by one is quadratic. */
  readonly #ids: string[] = [];
  #oldest = 0;
  /** Ids by name, latest last; ids that have a result are skipped on lookup. */
  readonly #idsByName = new Map<string, string[]>();
  #legacyCount = 0;

  add(id: string, name: string): void {
    this.#open.set(id, { name, position: this.#ids.length });
    this.#ids.push(id);
    const ids = this.#idsByName.get(name);
    if (ids) ids.push(id);
    else this.#idsByName.set(name, [id]);
  }

  /** Marks a call as answered and returns its name. */
  resolve(id: string): string | undefined {
    const call = this.#open.get(id);
    this.#open.delete(id);
    return call?.name;
  }

  /** The oldest open call, which a result without an id belongs to. */
  takeOldest(): string | undefined {
    for (; this.#oldest < this.#ids.length; this.#oldest++) {
      const id = this.#ids[this.#oldest] ?? '';
      // An id may be reused: only its latest call counts.
      if (this.#open.get(id)?.position === this.#oldest) return id;
    }
    return undefined;
  }

  /** The latest open call of that name, which a deprecated `function` message belongs to. */
  takeNamed(name: string): string | undefined {
    const ids = this.#idsByName.get(name) ?? [];
    for (let id = ids.pop(); id !== undefined; id = ids.pop()) if (this.#open.has(id)) return id;
    return undefined;
  }

  /** A deprecated `function_call` has no id: its number among its kind serves as one. */
  nextLegacy(): string {
    return `fc_${this.#legacyCount++}`;
  }
}

// ---- content parts

/** Where a part is, for error messages and the source trace. */
interface Site {
  /** JSON path. */
  at: string;
  context: CodecContext;
}

type Decode<Block> = (part: JsonObject, site: Site) => Block;

const PARTS: Readonly<Record<string, Decode<Part>>> = {
  text: decodeText,
  image_url: decodeImage,
  input_audio: decodeAudioPart,
  file: decodeFile,
};

const TEXT_FIELDS = new Set(['type', 'text']);

function decodeText(part: JsonObject, { at }: Site): TextBlock {
  return {
    type: 'text',
    text: expectText(part['text'], `${at}.text`),
    ...decodeExtras(part, unknownFields(part, TEXT_FIELDS) ?? {}),
  };
}

/** The cache breakpoint is mapped; an unknown form of it is kept as an extension. */
function decodeExtras(part: JsonObject, { prompt_cache_breakpoint: point, ...rest }: JsonObject) {
  const unknownMark = point !== undefined && !isBreakpoint(part) ? { prompt_cache_breakpoint: point } : {};
  return { ...decodeCacheControl(part), ...toExtensions({ ...rest, ...unknownMark }) };
}

const IMAGE_FIELDS = new Set(['type', 'image_url']);

const URL_FIELDS = new Set(['url', 'detail']);

/** Mistral also accepts the URL itself as `image_url`. */
function decodeImage(part: JsonObject, { at }: Site): ImageBlock {
  const image = part['image_url'];
  const { url: link, detail } = typeof image === 'string' ? { url: image } : expectObject(image, `${at}.image_url`);
  const url = expectName(link, `${at}.image_url.url`);
  const rest = nestedUnknownFields(part, IMAGE_FIELDS, 'image_url', URL_FIELDS);
  return {
    type: 'image',
    source: { ...(readDataUrl(url) ?? { url }), ...(isDetail(detail) && { detail }) },
    ...decodeExtras(part, rest),
  };
}

const AUDIO_FIELDS = new Set(['type', 'input_audio']);

/** Mistral accepts text as `input_audio`: base64, a data URL, or a URL that only Mistral can fetch. */
function decodeAudioPart(part: JsonObject, site: Site): AudioBlock | OpaqueBlock {
  const text = part['input_audio'];
  if (typeof text !== 'string') return decodeAudioObject(part, site);
  if (/^https?:/i.test(text)) return { type: 'opaque', origin: 'openai-chat', raw: part };
  const { data, media_type: type } = readDataUrl(text) ?? { data: text, media_type: detectAudioType(text) };
  const source = { data, ...(type !== undefined && { format: type.replace(/^audio\//, ''), media_type: type }) };
  return { type: 'audio', source, ...decodeExtras(part, { ...unknownFields(part, AUDIO_FIELDS), input_audio: text }) };
}

const SOUND_FIELDS = new Set(['data', 'format']);

function decodeAudioObject(part: JsonObject, { at }: Site): AudioBlock {
  const audio = expectObject(part['input_audio'], `${at}.input_audio`);
  const format = expectText(audio['format'], `${at}.input_audio.format`);
  return {
    type: 'audio',
    source: { data: expectText(audio['data'], `${at}.input_audio.data`), format, media_type: `audio/${format}` },
    ...decodeExtras(part, nestedUnknownFields(part, AUDIO_FIELDS, 'input_audio', SOUND_FIELDS)),
  };
}

/** The first base64 characters of each audio type. */
const AUDIO_STARTS: readonly (readonly [RegExp, string])[] = [
  [/^UklGR/, 'audio/wav'],
  [/^(SUQz|\/\/[uvsr][A-Za-z0-9+/])/, 'audio/mp3'],
  [/^T2dnU/, 'audio/ogg'],
  [/^ZkxhQ/, 'audio/flac'],
];

const detectAudioType = (data: string): string | undefined => AUDIO_STARTS.find(([start]) => start.test(data))?.[1];

const FILE_PART_FIELDS = new Set(['type', 'file']);

const FILE_FIELDS = new Set(['file_data', 'filename']);

/** Accepts a data URL or raw base64. A file id is kept as an extension, because only its issuer can resolve it. */
function decodeFile(part: JsonObject, { at }: Site): FileBlock {
  const file = expectObject(part['file'], `${at}.file`);
  const data = optional(file['file_data'], `${at}.file.file_data`, expectText);
  const filename = optional(file['filename'], `${at}.file.filename`, expectText);
  const id = optional(file['file_id'], `${at}.file.file_id`, expectName);
  if (data === undefined && id === undefined) throw missing(`${at}.file.file_data`);
  const split = data === undefined ? undefined : readDataUrl(data);
  return {
    type: 'file',
    source: {
      ...(data !== undefined && { file_data: split?.data ?? data }),
      ...(split && { media_type: split.media_type }),
      ...(id !== undefined && { file_id: id }),
      ...(filename !== undefined && { filename }),
    },
    ...decodeExtras(part, nestedUnknownFields(part, FILE_PART_FIELDS, 'file', FILE_FIELDS)),
  };
}

const decodeContent = (content: unknown, site: Site): Part[] => decodeParts(content, site, PARTS);

/** Text only; other parts are kept as opaque blocks. */
const SYSTEM_PARTS: Readonly<Record<string, Decode<TextBlock>>> = { text: decodeText };

const decodeSystemContent = (content: unknown, site: Site): (TextBlock | OpaqueBlock)[] =>
  decodeParts(content, site, SYSTEM_PARTS);

/** The assistant's parts; others are kept as opaque blocks. */
const ASSISTANT_PARTS: Readonly<Record<string, Decode<AssistantPart>>> = {
  text: decodeText,
  refusal: decodeRefusalPart,
  thinking: decodeThinkingPart,
};

function decodeRefusalPart(part: JsonObject, { at }: Site): TextBlock {
  return { type: 'text', text: expectText(part['refusal'], `${at}.refusal`), refusal: true };
}

const THINKING_PART_FIELDS = new Set(['type', 'thinking']);

/** Mistral: `{type:"thinking",thinking:[{type:"text",text}]}`. */
function decodeThinkingPart(part: JsonObject): ThinkingBlock {
  const { thinking } = part;
  const text =
    typeof thinking === 'string'
      ? thinking
      : listOrEmpty(thinking)
          .map((piece) => textOrEmpty(objectOrEmpty(piece)['text']))
          .join('');
  return { type: 'thinking', thinking: text, variant: 'full', ...toExtensions(unknownFields(part, THINKING_PART_FIELDS)) };
}

const decodeAssistantContent = (content: unknown, site: Site): AssistantPart[] => decodeParts(content, site, ASSISTANT_PARTS);

/** Decodes text or a list of parts; empty text is left out. */
function decodeParts<Block extends { type: string }>(
  content: unknown,
  { at, context }: Site,
  table: Readonly<Record<string, Decode<Block>>>,
): (Block | TextBlock | OpaqueBlock)[] {
  if (typeof content === 'string') return content === '' ? [] : [traceNode(at, { type: 'text', text: content }, context)];
  return (optional(content, at, expectList) ?? []).flatMap((value, i): (Block | TextBlock | OpaqueBlock)[] => {
    const site = { at: `${at}[${i}]`, context };
    if (typeof value === 'string') return value === '' ? [] : [traceNode(site.at, { type: 'text', text: value }, context)];
    const part = expectObject(value, site.at);
    const type = expectText(part['type'], `${site.at}.type`);
    if (isEmptyText(part)) return [];
    const decode = Object.hasOwn(table, type) ? table[type] : undefined;
    const block = decode ? decode(part, site) : ({ type: 'opaque', origin: 'openai-chat', raw: part } satisfies OpaqueBlock);
    return [tracePart(site.at, block, part, context)];
  });
}

/** A content part with its location, and those of its fields whose canonical path differs. */
function tracePart<T extends object>(param: string, node: T, part: JsonObject, context: CodecContext): T {
  if (!context.trace) return node;
  const pointer = toPointer(param);
  return withSource(pointer, node, context, listPartPaths(pointer, part));
}

// ---- calls

function decodeCalls(value: unknown, at: string, context: CodecContext): ToolUseBlock[] {
  return (optional(value, at, expectList) ?? []).map((item, i) =>
    decodeCall(expectObject(item, `${at}[${i}]`), `${at}[${i}]`, context),
  );
}

const CALL_FIELDS = new Set(['id', 'type', 'function', 'custom']);

const CUSTOM_FIELDS = new Set(['name', 'input']);

const CALLED_FUNCTION_FIELDS = new Set(['name', 'arguments']);

function decodeCall(call: JsonObject, at: string, context: CodecContext): ToolUseBlock {
  const isCustom = call['type'] === 'custom' || (call['function'] === undefined && isObject(call['custom']));
  const inner = isCustom ? 'custom' : 'function';
  const body = expectObject(call[inner], `${at}.${inner}`);
  const name = expectName(body['name'], `${at}.${inner}.name`);
  const signature = decodeSignature(call);
  return {
    type: 'tool_use',
    id: callId(call['id'], name, at, context),
    name,
    ...(isCustom
      ? { input: expectText(body['input'], `${at}.custom.input`), kind: 'custom' }
      : decodeArguments(body['arguments'], `${at}.function.arguments`, context)),
    ...decodeCacheControl(call),
    ...(signature && { signature }),
    ...toExtensions(nestedUnknownFields(call, CALL_FIELDS, inner, isCustom ? CUSTOM_FIELDS : CALLED_FUNCTION_FIELDS)),
  };
}

/** Google's compatible endpoint signs calls in `extra_content`, which is also kept as an extension. */
function decodeSignature(call: JsonObject): SignedBlob | undefined {
  const value = objectOrEmpty(objectOrEmpty(call['extra_content'])['google'])['thought_signature'];
  return typeof value === 'string' ? { origin: 'gemini', form: 'thought_signature', value } : undefined;
}

/** Derived from the position in the conversation, so that the id is stable and prompt caches stay valid. */
function callId(id: unknown, name: string, at: string, context: CodecContext): string {
  const given = optional(id, `${at}.id`, expectText);
  if (given) return given;
  const derived = deriveId('call_', at, name);
  noteRepaired(context, {
    path: toPointer(`${at}.id`),
    feature: 'messages.tool_use.id',
    message: `a tool call has no id; sent as ${derived}`,
  });
  return derived;
}

/** The text is kept in `input_raw`. If it is not a JSON object, `input` is empty, and encoders use `input_raw`. */
function decodeArguments(value: unknown, at: string, context: CodecContext): Pick<ToolUseBlock, 'input' | 'input_raw'> {
  if (isObject(value)) return { input: value, ...keepSource(value) };
  const text = optional(value, at, expectText) ?? '';
  if (text.trim() === '') return { input: {} };
  const parsed = expectShallowJson(text, at);
  if (isObject(parsed)) return { input: parsed, input_raw: text };
  if (isStrict(context, 'tool_use.arguments'))
    throw new CodecError({
      code: 'TOOL_CALL_PARSE_ERROR',
      message: `${at}: must be a string that contains a JSON object`,
      http_status: 400,
      param: at,
    });
  return { input: {}, input_raw: text };
}

/** The deprecated single call of a message. */
function decodeLegacyCall(value: unknown, at: string, openCalls: OpenCalls, context: CodecContext): ToolUseBlock[] {
  const call = optional(value, at, expectObject);
  if (!call) return [];
  const name = expectName(call['name'], `${at}.name`);
  return [
    { type: 'tool_use', id: openCalls.nextLegacy(), name, ...decodeArguments(call['arguments'], `${at}.arguments`, context) },
  ];
}

/** A custom call where the server supports custom tools; elsewhere a call of the function that replaces the tool. */
export function encodeCall(call: ToolUseBlock, context: CodecContext): JsonObject {
  const { function: functionRest, custom: customRest, ...kept } = readExtensions(call);
  const fields = { ...kept, ...encodeCacheControl(call, context) };
  if (call.kind === 'custom' && context.profile.custom_tools && typeof call.input === 'string')
    return {
      ...fields,
      id: call.id,
      type: 'custom',
      custom: { ...objectOrEmpty(customRest), name: call.name, input: call.input },
    };
  const body = { ...objectOrEmpty(functionRest), name: call.name, arguments: encodeArguments(call) };
  return { ...fields, id: call.id, type: 'function', function: body };
}

function encodeArguments({ input, input_raw: raw }: ToolUseBlock): string {
  if (typeof input === 'string') return JSON.stringify({ input });
  return raw || JSON.stringify(input);
}
