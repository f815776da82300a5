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
import { at, at as placedAt } from '../../canonical/source.ts';
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
  listOf,
  objectOf,
  optional,
  pointerOf,
  textOf,
  unknownFields,
} from '../../codec/read.ts';
import { drop, invalid, isStrict, missing, repair } from '../../codec/report.ts';
import { isBreakpoint, isDetail, splitDataUrl } from '../../codec/requests.ts';
import { isObject, type JsonObject } from '../../json/json.ts';
import { decodeReasoning, REASONING_FIELDS, signNext } from './blocks.ts';
import { modelOf } from './endpoints.ts';
import {
  decodeOptions,
  decodeOutputFormat,
  decodeParameters,
  decodeThinking,
  keptThinking,
  THINKING_FIELDS,
} from './settings.ts';
import { decodeToolChoice, decodeTools } from './tools.ts';
import { decodeCacheControl, encodeMark, fieldsOf, keep, placesIn, placesOf, unknownWithin } from './wire.ts';

/** The calls of a conversation that no result has answered yet. */
class CallBook {
  readonly #open = new Map<string, { name: string; position: number }>();
  /** Ids in the order of their calls. A list, since a Map that loses its first keys one by one walks over all of them again. */
  readonly #asked: string[] = [];
  #oldest = 0;
  /** Ids by name, latest last; answered ones are skipped when they are met. */
  readonly #byName = new Map<string, string[]>();
  #legacy = 0;

  ask(id: string, name: string): void {
    this.#open.set(id, { name, position: this.#asked.length });
    this.#asked.push(id);
    const ids = this.#byName.get(name);
    if (ids) ids.push(id);
    else this.#byName.set(name, [id]);
  }

  /** The name of the call that this result answers. */
  answer(id: string): string | undefined {
    const call = this.#open.get(id);
    this.#open.delete(id);
    return call?.name;
  }

  /** A result without an id answers the oldest open call. */
  takeOldest(): string | undefined {
    for (; this.#oldest < this.#asked.length; this.#oldest++) {
      const id = this.#asked[this.#oldest] ?? '';
      // An id may be used again: it counts where it was used last.
      if (this.#open.get(id)?.position === this.#oldest) return id;
    }
    return undefined;
  }

  /** A deprecated `function` message answers the last open call of its name. */
  takeNamed(name: string): string | undefined {
    const ids = this.#byName.get(name) ?? [];
    for (let id = ids.pop(); id !== undefined; id = ids.pop()) if (this.#open.has(id)) return id;
    return undefined;
  }

  /** A deprecated `function_call` has no id: its position among its kind is one. */
  nextLegacy(): string {
    return `fc_${this.#legacy++}`;
  }
}

function decodeCalls(value: unknown, at: string, context: CodecContext): ToolUseBlock[] {
  return (optional(value, at, expectList) ?? []).map((item, i) =>
    decodeCall(expectObject(item, `${at}[${i}]`), `${at}[${i}]`, context),
  );
}

const CALL_FIELDS = new Set(['id', 'type', 'function', 'custom']);

const CALLED_FUNCTION_FIELDS = new Set(['name', 'arguments']);

const CUSTOM_FIELDS = new Set(['name', 'input']);

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
    ...keep(unknownWithin(call, CALL_FIELDS, inner, isCustom ? CUSTOM_FIELDS : CALLED_FUNCTION_FIELDS)),
  };
}

/** The same for the same place in the conversation: prompt caches stay warm. */
function callId(id: unknown, name: string, at: string, context: CodecContext): string {
  const given = optional(id, `${at}.id`, expectText);
  if (given) return given;
  const derived = deriveId('call_', at, name);
  repair(context, {
    path: pointerOf(`${at}.id`),
    feature: 'messages.tool_use.id',
    message: `a call without an id is called ${derived}`,
  });
  return derived;
}

/** The text stays what it was. A text that is no object leaves the input empty: encoders that need one look at `input_raw`. */
function decodeArguments(value: unknown, at: string, context: CodecContext): Pick<ToolUseBlock, 'input' | 'input_raw'> {
  if (isObject(value)) return { input: value };
  const text = optional(value, at, expectText) ?? '';
  if (text.trim() === '') return { input: {} };
  const parsed = expectShallowJson(text, at);
  if (isObject(parsed)) return { input: parsed, input_raw: text };
  if (isStrict(context, 'tool_use.arguments'))
    throw new CodecError({
      code: 'TOOL_CALL_PARSE_ERROR',
      message: `${at}: must be the text of a JSON object`,
      http_status: 400,
      param: at,
    });
  return { input: {}, input_raw: text };
}

/** Google's compatible endpoint signs calls in `extra_content`, which also goes back as it came. */
function decodeSignature(call: JsonObject): SignedBlob | undefined {
  const value = objectOf(objectOf(call['extra_content'])['google'])['thought_signature'];
  return typeof value === 'string' ? { origin: 'gemini', form: 'thought_signature', value } : undefined;
}

/** The deprecated single call of a message. */
function decodeLegacyCall(value: unknown, at: string, book: CallBook, context: CodecContext): ToolUseBlock[] {
  const call = optional(value, at, expectObject);
  if (!call) return [];
  const name = expectName(call['name'], `${at}.name`);
  return [{ type: 'tool_use', id: book.nextLegacy(), name, ...decodeArguments(call['arguments'], `${at}.arguments`, context) }];
}

/** A custom call is one where custom tools are known; elsewhere it is a call of the function that stands for it. */
export function encodeCall(call: ToolUseBlock, context: CodecContext): JsonObject {
  const { function: functionRest, custom: customRest, ...kept } = fieldsOf(call);
  const fields = { ...kept, ...encodeMark(call, context) };
  if (call.kind === 'custom' && context.profile.custom_tools && typeof call.input === 'string')
    return { ...fields, id: call.id, type: 'custom', custom: { ...objectOf(customRest), name: call.name, input: call.input } };
  const body = { ...objectOf(functionRest), name: call.name, arguments: encodeArguments(call) };
  return { ...fields, id: call.id, type: 'function', function: body };
}

function encodeArguments({ input, input_raw: raw }: ToolUseBlock): string {
  if (typeof input === 'string') return JSON.stringify({ input });
  return raw || JSON.stringify(input);
}

/** What the content of users, of tools and of the assistant may hold. */
type Part = TextBlock | ImageBlock | AudioBlock | FileBlock | OpaqueBlock;

type AssistantPart = TextBlock | ThinkingBlock | OpaqueBlock;

interface Site {
  /** JSON path. */
  at: string;
  context: CodecContext;
}

/** The node, remembering its JSON path when the caller wants that. */
const placed = <T extends object>(param: string, node: T, context: CodecContext): T =>
  context.trace ? placedAt(pointerOf(param), node, context) : node;

/** The same, of a part that has other words. */
function placedPart<T extends object>(param: string, node: T, part: JsonObject, context: CodecContext): T {
  if (!context.trace) return node;
  const pointer = pointerOf(param);
  return placedAt(pointer, node, context, placesOf(pointer, part));
}

type Decode<Block> = (part: JsonObject, site: Site) => Block;

const PARTS: Readonly<Record<string, Decode<Part>>> = {
  text: decodeText,
  image_url: decodeImage,
  input_audio: decodeAudioPart,
  file: decodeFile,
};

/** Systems speak; other parts come back as they were. */
const SYSTEM_PARTS: Readonly<Record<string, Decode<TextBlock>>> = { text: decodeText };

/** The assistant's own; other parts come back as they were. */
const ASSISTANT_PARTS: Readonly<Record<string, Decode<AssistantPart>>> = {
  text: decodeText,
  refusal: decodeRefusalPart,
  thinking: decodeThinkingPart,
};

const decodeContent = (content: unknown, site: Site): Part[] => decodeParts(content, site, PARTS);

const decodeSystemContent = (content: unknown, site: Site): (TextBlock | OpaqueBlock)[] =>
  decodeParts(content, site, SYSTEM_PARTS);

const decodeAssistantContent = (content: unknown, site: Site): AssistantPart[] => decodeParts(content, site, ASSISTANT_PARTS);

/** A text, or a list of parts. Empty text says nothing. */
function decodeParts<Block extends { type: string }>(
  content: unknown,
  { at, context }: Site,
  table: Readonly<Record<string, Decode<Block>>>,
): (Block | TextBlock | OpaqueBlock)[] {
  if (typeof content === 'string') return content === '' ? [] : [placed(at, { type: 'text', text: content }, context)];
  return (optional(content, at, expectList) ?? []).flatMap((value, i): (Block | TextBlock | OpaqueBlock)[] => {
    const site = { at: `${at}[${i}]`, context };
    if (typeof value === 'string') return value === '' ? [] : [placed(site.at, { type: 'text', text: value }, context)];
    const part = expectObject(value, site.at);
    const type = expectText(part['type'], `${site.at}.type`);
    if (part['text'] === '') return [];
    const decode = Object.hasOwn(table, type) ? table[type] : undefined;
    const block = decode ? decode(part, site) : ({ type: 'opaque', origin: 'openai-chat', raw: part } satisfies OpaqueBlock);
    return [placedPart(site.at, block, part, context)];
  });
}

const TEXT_FIELDS = new Set(['type', 'text']);

function decodeText(part: JsonObject, { at }: Site): TextBlock {
  return {
    type: 'text',
    text: expectText(part['text'], `${at}.text`),
    ...marks(part, unknownFields(part, TEXT_FIELDS) ?? {}),
  };
}

/** The breakpoint is mapped, every other mark is kept. */
function marks(part: JsonObject, { prompt_cache_breakpoint: point, ...rest }: JsonObject) {
  const odd = point !== undefined && !isBreakpoint(part) ? { prompt_cache_breakpoint: point } : {};
  return { ...decodeCacheControl(part), ...keep({ ...rest, ...odd }) };
}

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
      : listOf(thinking)
          .map((piece) => textOf(objectOf(piece)['text']))
          .join('');
  return { type: 'thinking', thinking: text, variant: 'full', ...keep(unknownFields(part, THINKING_PART_FIELDS)) };
}

const IMAGE_FIELDS = new Set(['type', 'image_url']);

const URL_FIELDS = new Set(['url', 'detail']);

/** Mistral also takes the URL itself for `image_url`. */
function decodeImage(part: JsonObject, { at }: Site): ImageBlock {
  const image = part['image_url'];
  const { url: link, detail } = typeof image === 'string' ? { url: image } : expectObject(image, `${at}.image_url`);
  const url = expectName(link, `${at}.image_url.url`);
  const rest = unknownWithin(part, IMAGE_FIELDS, 'image_url', URL_FIELDS);
  return {
    type: 'image',
    source: { ...(splitDataUrl(url) ?? { url }), ...(isDetail(detail) && { detail }) },
    ...marks(part, rest),
  };
}

const AUDIO_FIELDS = new Set(['type', 'input_audio']);

const SOUND_FIELDS = new Set(['data', 'format']);

/** Mistral takes a text for `input_audio`: base64, a data URL, or the address of a file that only it fetches. */
function decodeAudioPart(part: JsonObject, site: Site): AudioBlock | OpaqueBlock {
  const text = part['input_audio'];
  if (typeof text !== 'string') return decodeSound(part, site);
  if (/^https?:/i.test(text)) return { type: 'opaque', origin: 'openai-chat', raw: part };
  const { data, media_type: type } = splitDataUrl(text) ?? { data: text, media_type: audioType(text) };
  const source = { data, ...(type !== undefined && { format: type.replace(/^audio\//, ''), media_type: type }) };
  return { type: 'audio', source, ...marks(part, { ...unknownFields(part, AUDIO_FIELDS), input_audio: text }) };
}

/** How the base64 of each type begins. */
const AUDIO_STARTS: readonly (readonly [RegExp, string])[] = [
  [/^UklGR/, 'audio/wav'],
  [/^(SUQz|\/\/[uvsr][A-Za-z0-9+/])/, 'audio/mp3'],
  [/^T2dnU/, 'audio/ogg'],
  [/^ZkxhQ/, 'audio/flac'],
];

const audioType = (data: string): string | undefined => AUDIO_STARTS.find(([start]) => start.test(data))?.[1];

function decodeSound(part: JsonObject, { at }: Site): AudioBlock {
  const audio = expectObject(part['input_audio'], `${at}.input_audio`);
  const format = expectText(audio['format'], `${at}.input_audio.format`);
  return {
    type: 'audio',
    source: { data: expectText(audio['data'], `${at}.input_audio.data`), format, media_type: `audio/${format}` },
    ...marks(part, unknownWithin(part, AUDIO_FIELDS, 'input_audio', SOUND_FIELDS)),
  };
}

const FILE_PART_FIELDS = new Set(['type', 'file']);

const FILE_FIELDS = new Set(['file_data', 'filename']);

/** Data is a data URL; raw base64 is taken too. An id stays among the kept fields: only who issued it can read it. */
function decodeFile(part: JsonObject, { at }: Site): FileBlock {
  const file = expectObject(part['file'], `${at}.file`);
  const data = optional(file['file_data'], `${at}.file.file_data`, expectText);
  const filename = optional(file['filename'], `${at}.file.filename`, expectText);
  const id = optional(file['file_id'], `${at}.file.file_id`, expectName);
  if (data === undefined && id === undefined) throw missing(`${at}.file.file_data`);
  const split = data === undefined ? undefined : splitDataUrl(data);
  return {
    type: 'file',
    source: {
      ...(data !== undefined && { file_data: split?.data ?? data }),
      ...(split && { media_type: split.media_type }),
      ...(id !== undefined && { file_id: id }),
      ...(filename !== undefined && { filename }),
    },
    ...marks(part, unknownWithin(part, FILE_PART_FIELDS, 'file', FILE_FIELDS)),
  };
}

/** What all messages of one request share. */
interface Scope {
  context: CodecContext;
  book: CallBook;
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

interface Conversation {
  system: SystemBlock[];
  messages: CanonicalMessage[];
}

function expectMessages(value: unknown): readonly unknown[] {
  const list = expectList(value, 'messages');
  if (list.length === 0) throw invalid('messages', 'must not be empty');
  expectConversation(list, 'messages');
  return list;
}

function decodeMessages(list: readonly unknown[], context: CodecContext): Conversation {
  const scope: Scope = { context, book: new CallBook() };
  const conversation: Conversation = { system: [], messages: [] };
  list.forEach((item, i) => {
    const at = `messages[${i}]`;
    const message = expectObject(item, at);
    const role = expectText(message['role'], `${at}.role`);
    const decode = Object.hasOwn(ROLES, role) ? ROLES[role] : undefined;
    if (!decode) throw invalid(`${at}.role`, `must be one of ${Object.keys(ROLES).join(', ')}`);
    add(conversation, placed(at, decode(message, at, scope), context), context);
  });
  return conversation;
}

/** Instructions before anyone has spoken are the system's; results that follow each other are one message. */
function add({ system, messages }: Conversation, message: CanonicalMessage, { policy }: CodecContext): void {
  const isHoisted = message.role === 'system' && (messages.length === 0 || policy.systemHoist === 'all');
  const last = messages.at(-1);
  if (isHoisted && message.content.every((block) => block.type === 'text'))
    for (const block of hoist(message)) system.push(block);
  else if (message.role === 'tool' && last?.role === 'tool') for (const block of message.content) last.content.push(block);
  else messages.push(message);
}

/** The first block of each message names its role, and brings the fields of the message: a block without a role continues one. */
function hoist({ content, name, extensions }: CanonicalMessage): SystemBlock[] {
  const { role = 'system', ...rest } = objectOf(extensions?.['openai-chat']);
  const message = { ...rest, ...(name !== undefined && { name }) };
  return content
    .filter((block) => block.type === 'text')
    .map(({ extensions: own, ...block }, i): SystemBlock => {
      const fields = { ...own?.['openai-chat'], ...(i === 0 && Object.keys(message).length > 0 && { message }) };
      return { ...block, ...(i === 0 && { role: role === 'developer' ? 'developer' : 'system' }), ...keep(fields) };
    });
}

const nameOf = (message: JsonObject, at: string): { name?: string } => {
  const name = optional(message['name'], `${at}.name`, expectText);
  return name === undefined ? {} : { name };
};

const SPOKEN_FIELDS = new Set(['role', 'content', 'name']);

/** The role is kept only when it is not the usual one. */
function decodeSystem(message: JsonObject, at: string, scope: Scope): CanonicalMessage {
  const content = decodeSpoken(message, at, decodeSystemContent, scope);
  const fields = unknownFields(message, SPOKEN_FIELDS);
  const role = message['role'] === 'developer' && { role: 'developer' };
  return { role: 'system', content, ...nameOf(message, at), ...keep({ ...fields, ...role }) };
}

function decodeUser(message: JsonObject, at: string, scope: Scope): CanonicalMessage {
  const content = decodeSpoken(message, at, decodeContent, scope);
  return { role: 'user', content, ...nameOf(message, at), ...keep(unknownFields(message, SPOKEN_FIELDS)) };
}

/** Users and systems must say something; a cache mark on the message is one on its last block. */
function decodeSpoken(message: JsonObject, at: string, decode: typeof decodeContent, { context }: Scope): Part[] {
  const { content } = message;
  if (typeof content !== 'string') expectList(content, `${at}.content`);
  const blocks = decode(content, { at: `${at}.content`, context });
  const last = blocks.at(-1);
  return last?.type === 'text' ? [...blocks.slice(0, -1), { ...last, ...markOf(message, at, context) }] : blocks;
}

function markOf(message: JsonObject, at: string, context: CodecContext): { cache_control?: CacheControl } {
  const { cache_control: mark } = decodeCacheControl(message);
  return mark ? { cache_control: placed(`${at}.cache_control`, mark, context) } : {};
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

/** The wire has no order between these: thinking, text, refusal, calls. */
function decodeAssistant(message: JsonObject, at: string, { context, book }: Scope): CanonicalMessage {
  const { blocks, next } = decodeReasoning(message);
  const spoken: ContentBlock[] = [
    ...decodeAssistantContent(message['content'], { at: `${at}.content`, context }).toSorted(refusalLast),
    ...decodeRefusal(message['refusal'], at).map((block) => placed(`${at}.refusal`, block, context)),
    ...decodeReplayedAudio(message['audio'], `${at}.audio`).map((block) => placed(`${at}.audio`, block, context)),
    ...decodeCalls(message['tool_calls'], `${at}.tool_calls`, context).map((call, i) =>
      placed(`${at}.tool_calls[${i}]`, call, context),
    ),
    ...decodeLegacyCall(message['function_call'], `${at}.function_call`, book, context).map((call) =>
      placed(`${at}.function_call`, call, context),
    ),
  ];
  const thought = blocks.map(({ block, place }) => placed(`${at}.${place}`, block, context));
  const signing = next.map(({ blob, place }) => placed(`${at}.${place}`, blob, context));
  const content = [...thought, ...signNext(spoken, signing)];
  for (const block of content) if (block.type === 'tool_use') book.ask(block.id, block.name);
  const fields = unknownFields(message, ASSISTANT_FIELDS);
  return { role: 'assistant', content, ...nameOf(message, at), ...keep(fields) };
}

const refusalLast = (a: AssistantPart, b: AssistantPart): number => Number(isRefusal(a)) - Number(isRefusal(b));

const isRefusal = (block: AssistantPart): boolean => block.type === 'text' && block.refusal === true;

function decodeRefusal(refusal: unknown, at: string): TextBlock[] {
  const text = optional(refusal, `${at}.refusal`, expectText);
  return text ? [{ type: 'text', text, refusal: true }] : [];
}

/** An earlier answer in audio, by its id. */
function decodeReplayedAudio(value: unknown, at: string): AudioBlock[] {
  const audio = optional(value, at, expectObject);
  if (!audio) return [];
  const { id, ...rest } = audio;
  return [{ type: 'audio', source: {}, audio_id: expectName(id, `${at}.id`), ...keep(rest) }];
}

const TOOL_FIELDS = new Set(['role', 'content', 'tool_call_id']);

function decodeTool(message: JsonObject, at: string, scope: Scope): CanonicalMessage {
  const { book, context } = scope;
  const named = textOf(optional(message['tool_call_id'], `${at}.tool_call_id`, expectText));
  const id = named || (book.takeOldest() ?? deriveId('call_', at));
  if (!named) tellId(`${at}.tool_call_id`, `the result names no call; it is taken for that of ${id}`, context);
  return decodeResult(message, id, at, TOOL_FIELDS, scope);
}

const FUNCTION_MESSAGE_FIELDS = new Set(['role', 'content', 'name']);

/** Deprecated: the result of the last open call of that name. */
function decodeFunction(message: JsonObject, at: string, scope: Scope): CanonicalMessage {
  const name = expectName(message['name'], `${at}.name`);
  return decodeResult(message, scope.book.takeNamed(name) ?? deriveId('fc_', at, name), at, FUNCTION_MESSAGE_FIELDS, scope);
}

function decodeResult(
  message: JsonObject,
  id: string,
  at: string,
  known: ReadonlySet<string>,
  { book, context }: Scope,
): CanonicalMessage {
  const { content } = message;
  const called = book.answer(id);
  const name = optional(message['name'], `${at}.name`, expectText) ?? called;
  const result: ToolResultBlock = {
    type: 'tool_result',
    tool_use_id: id,
    content: typeof content === 'string' ? content : emptyAsText(decodeContent(content, { at: `${at}.content`, context })),
    ...(name !== undefined && { name }),
    ...decodeCacheControl(message),
    ...keep(unknownFields(message, known)),
  };
  return { role: 'tool', content: [placed(at, result, context)] };
}

const emptyAsText = (blocks: Part[]): string | Part[] => (blocks.length === 0 ? '' : blocks);

function tellId(param: string, message: string, context: CodecContext): void {
  repair(context, { path: pointerOf(param), feature: 'messages.tool_use.id', message });
}

/** A request as it came in; on Azure the path names the model. */
export function decodeRequest(wire: WireRequest, context: CodecContext): CanonicalRequest {
  return decodeRequestBody(wire.body, context, modelOf(wire.path));
}

/** `model`: where the body does not name it, or names it in vain. */
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
  tellDeprecated(body, context);
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
    ...keep({ ...keptFields(body), ...keptThinking(body), ...(rest && { response_format: rest }) }),
  };
  return at('', request, context, placesIn(body));
}

/** Fields that have a place of their own. Everything else goes back as it came, the options too (options.ts). */
const MAPPED: ReadonlySet<string> = new Set([
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

const STREAM_FIELDS = new Set(['include_usage', 'include_obfuscation']);

/** Together counts its logprobs: a number is a field of its own. */
function keptFields(body: JsonObject): JsonObject {
  const stream = unknownFields(objectOf(body['stream_options']), STREAM_FIELDS);
  return {
    ...unknownFields(body, MAPPED),
    ...(typeof body['logprobs'] === 'number' && { logprobs: body['logprobs'] }),
    ...(stream && { stream_options: stream }),
  };
}

function decodeStreaming(body: JsonObject): Pick<CanonicalRequest, 'stream' | 'stream_options'> {
  const stream = optional(body['stream'], 'stream', expectBoolean);
  const { include_usage: usage, include_obfuscation: padding } = objectOf(
    optional(body['stream_options'], 'stream_options', expectObject),
  );
  const options = {
    ...(typeof usage === 'boolean' && { include_usage: usage }),
    ...(typeof padding === 'boolean' && { include_obfuscation: padding }),
  };
  return { ...(stream !== undefined && { stream }), ...(Object.keys(options).length > 0 && { stream_options: options }) };
}

/** The old names count only where the new ones are absent. */
function tellDeprecated(body: JsonObject, context: CodecContext): void {
  const pairs = [
    ['functions', 'tools'],
    ['function_call', 'tool_choice'],
    ['max_tokens', 'max_completion_tokens'],
  ] as const;
  for (const [old, name] of pairs)
    if (isGiven(body[old]) && isGiven(body[name]) && body[old] !== body[name])
      drop(context, { path: `/${old}`, feature: old, message: `${name} is there too, and counts` });
}

const isGiven = (value: unknown): boolean => value !== undefined && value !== null;
