import {
  type ContentBlock,
  type FileBlock,
  type ImageBlock,
  isClientCall,
  type OpaqueBlock,
  type TextBlock,
  type ThinkingBlock,
  type ToolResultBlock,
  type ToolUseBlock,
} from '../../canonical/message.ts';
import { CodecError } from '../../canonical/notes.ts';
import type { SignedBlob } from '../../canonical/protocol.ts';
import type { CanonicalMessage, CanonicalRequest, SystemBlock } from '../../canonical/request.ts';
import { withSource } from '../../canonical/source.ts';
import { decodeCarrier, decodeCarrierInId } from '../../codec/answers.ts';
import type { CodecContext, HeaderBag, WireRequest } from '../../codec/protocol.ts';
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
  unknownFields,
} from '../../codec/read.ts';
import { invalid } from '../../codec/report.ts';
import { keepSource, readDataUrl } from '../../codec/requests.ts';
import { isObject, type JsonObject, writeJson } from '../../json/json.ts';
import { buildSignature, decodeCitation, decodeOpaque, decodeRedacted, decodeResult } from './blocks.ts';
import { readModel } from './endpoints.ts';
import {
  decodeOptions,
  decodeOutputFormat,
  decodeParameters,
  decodeThinking,
  readFormatExtensions,
  readOptionExtensions,
  readThinkingExtensions,
} from './settings.ts';
import { decodeConversationTools, decodeToolChoice, decodeTools, readToolChoiceExtensions } from './tools.ts';
import { decodeCacheControl, PLACES, readUnknownFields, toExtensions, withPointer } from './wire.ts';

/** Decodes a request; Bedrock and Vertex have the model in the path. */
export function decodeRequest(wire: WireRequest, context: CodecContext): CanonicalRequest {
  return decodeRequestBody(wire.body, context, wire.headers, readModel(wire.path));
}

function decodeRequestBody(wire: unknown, context: CodecContext, headers: HeaderBag = {}, model?: string): CanonicalRequest {
  const body = expectObject(wire, 'body');
  expectShallow(body);
  const { system, messages } = decodeConversation(body, context);
  const declared = decodeTools(body['tools'], context);
  const tools = [...declared, ...decodeConversationTools(listOrEmpty(body['messages']), declared, context)];
  const format = decodeOutputFormat(body, context);
  const thinking = decodeThinking(body, context);
  const stream = optional(body['stream'], 'stream', expectBoolean);
  const request: CanonicalRequest = {
    model: model ?? expectName(body['model'], 'model'),
    messages,
    parameters: decodeParameters(body),
  };
  if (system.length > 0) request.system = system;
  if (tools.length > 0) request.tools = tools;
  if (format) request.output_format = format;
  if (thinking) request.thinking = thinking;
  if (stream !== undefined) request.stream = stream;
  const extensions = toExtensions({ ...collectFields(body), ...collectHeaders(headers) });
  Object.assign(request, decodeToolChoice(body['tool_choice']), decodeOptions(body), extensions);
  return withSource('', request, context, PLACES);
}

interface Conversation {
  system: SystemBlock[];
  messages: CanonicalMessage[];
}

/** What all blocks of one request share. */
interface Scope {
  context: CodecContext;
  /** Names of the calls so far by id, because results have only the id. */
  names: Map<string, string>;
  /** A signature of another provider that belongs to the next call or text. */
  next: SignedBlob | undefined;
}

/** The system prompt and the messages. Leading system messages become part of the system prompt. */
function decodeConversation(body: JsonObject, context: CodecContext): Conversation {
  const list = expectList(body['messages'], 'messages');
  if (list.length === 0) throw invalid('messages', 'must not be empty');
  expectConversation(list, 'messages');
  const scope: Scope = { context, names: new Map(), next: undefined };
  const messages = list.flatMap((item, i) => {
    const at = `messages[${i}]`;
    return decodeMessage(expectObject(item, at), at, scope).map((message) => withPointer(at, message, context));
  });
  return hoist(decodeSystem(body['system'], scope), messages, context);
}

const ROLES: Readonly<Record<string, (message: JsonObject, at: string, scope: Scope) => CanonicalMessage[]>> = {
  user: decodeUser,
  assistant: decodeAssistant,
  system: decodeInstruction,
};

function decodeMessage(message: JsonObject, at: string, scope: Scope): CanonicalMessage[] {
  const role = expectText(message['role'], `${at}.role`);
  const decode = Object.hasOwn(ROLES, role) ? ROLES[role] : undefined;
  if (!decode) throw invalid(`${at}.role`, `must be one of ${Object.keys(ROLES).join(', ')}`);
  return decode(message, at, scope);
}

/** Tool results become a canonical `tool` message before the rest of the user message (P03). */
function decodeUser(message: JsonObject, at: string, scope: Scope): CanonicalMessage[] {
  const content = decodeContent(message['content'], `${at}.content`, 'user', scope);
  const results = content.filter((block) => block.type === 'tool_result');
  const others = content.filter((block) => block.type !== 'tool_result');
  const fields = decodeMessageFields(message);
  if (results.length === 0) return [{ role: 'user', content: others, ...fields }];
  if (others.length === 0) return [{ role: 'tool', content: results, ...fields }];
  return [
    { role: 'tool', content: results },
    { role: 'user', content: others, ...fields },
  ];
}

/** A carried signature that no block follows gets a block of its own. */
function decodeAssistant(message: JsonObject, at: string, scope: Scope): CanonicalMessage[] {
  const content = decodeContent(message['content'], `${at}.content`, 'assistant', scope);
  if (scope.next) content.push({ type: 'thinking', thinking: '', signature: scope.next });
  scope.next = undefined;
  return [{ role: 'assistant', content, ...decodeMessageFields(message) }];
}

/** Opus 4.8 and later accept system messages within the conversation; Claude Code sends them (P15). */
function decodeInstruction(message: JsonObject, at: string, scope: Scope): CanonicalMessage[] {
  return [
    {
      role: 'system',
      content: decodeContent(message['content'], `${at}.content`, 'system', scope),
      ...decodeMessageFields(message),
    },
  ];
}

/** Where blocks occur: in a message of that role, or as parts of another block. */
type Place = 'user' | 'assistant' | 'system' | 'part';

type ResultPart = Exclude<ToolResultBlock['content'], string>[number];

const isPart = (block: ContentBlock): block is ResultPart =>
  block.type === 'text' || block.type === 'image' || block.type === 'audio' || block.type === 'file' || block.type === 'opaque';

/** Results of client tools belong to the user, those of provider tools to the assistant. */
const ALLOWED: Record<Place, (block: ContentBlock) => boolean> = {
  user: (block) => isPart(block) || (block.type === 'tool_result' && isClientCall(block.kind)),
  assistant: (block) => block.type !== 'tool_result' || !isClientCall(block.kind),
  system: (block) => block.type === 'text' || block.type === 'opaque',
  part: isPart,
};

/** Text or a list of blocks. Empty text is dropped. */
function decodeContent(content: unknown, at: string, place: Place, scope: Scope): ContentBlock[] {
  if (typeof content === 'string') return content === '' ? [] : [withPointer(at, { type: 'text', text: content }, scope.context)];
  return expectList(content, at).flatMap((item, i) => {
    const param = `${at}[${i}]`;
    const blocks = [decodeBlock(item, param, scope) ?? []].flat();
    if (!blocks.every(ALLOWED[place])) throw invalid(`${param}.type`, `a block of this type is not allowed here`);
    return blocks.map((block) => withPointer(param, block, scope.context));
  });
}

type Decode = (block: JsonObject, at: string, scope: Scope) => ContentBlock | ContentBlock[] | undefined;

const BY_TYPE: Readonly<Record<string, Decode>> = {
  text: decodeText,
  image: decodeImage,
  document: decodeDocument,
  search_result: decodeSearchResult,
  thinking: decodeThinkingBlock,
  redacted_thinking: (block) => decodeRedacted(block, ''),
  tool_use: decodeToolUse,
  mcp_tool_use: (block, at, scope) => decodeCall(block, at, scope, 'mcp'),
  tool_result: decodeToolResult,
};

/** Blocks of unknown type are kept opaque. */
function decodeBlock(item: unknown, at: string, scope: Scope): ReturnType<Decode> {
  const block = expectObject(item, at);
  const type = expectName(block['type'], `${at}.type`);
  const decode = Object.hasOwn(BY_TYPE, type) ? BY_TYPE[type] : undefined;
  if (decode) return decode(block, at, scope);
  if (type.endsWith('_tool_use')) return decodeCall(block, at, scope, 'server');
  return type.endsWith('_tool_result') ? decodeServerResult(block, scope) : decodeOther(block);
}

const IMAGE_FIELDS: ReadonlySet<string> = new Set(['type', 'source', 'cache_control']);

function decodeImage(block: JsonObject, at: string): ImageBlock | OpaqueBlock {
  const source = decodeImageSource(expectObject(block['source'], `${at}.source`), `${at}.source`);
  if (!source) return decodeOpaque(block);
  return { type: 'image', source, ...decodeCacheControl(block), ...toExtensions(collectMediaFields(block, IMAGE_FIELDS)) };
}

function decodeImageSource(source: JsonObject, at: string): ImageBlock['source'] | undefined {
  const media = optional(source['media_type'], `${at}.media_type`, expectText);
  switch (source['type']) {
    case 'base64':
      return { data: expectText(source['data'], `${at}.data`), ...(media !== undefined && { media_type: media }) };
    case 'url':
      return decodeUrl(expectName(source['url'], `${at}.url`));
    case 'file':
      return { file_id: expectName(source['file_id'], `${at}.file_id`) };
    default:
      return undefined;
  }
}

const DOCUMENT_FIELDS: ReadonlySet<string> = new Set(['type', 'source', 'title', 'context', 'citations', 'cache_control']);

function decodeDocument(block: JsonObject, at: string, scope: Scope): FileBlock | OpaqueBlock {
  const source = decodeDocumentSource(expectObject(block['source'], `${at}.source`), `${at}.source`, scope);
  if (!source) return decodeOpaque(block);
  const context = optional(block['context'], `${at}.context`, expectText);
  return {
    type: 'file',
    source,
    ...decodeTitle(block, at),
    ...(context !== undefined && { context }),
    ...decodeCitationsFlag(block),
    ...decodeCacheControl(block),
    ...toExtensions(collectMediaFields(block, DOCUMENT_FIELDS)),
  };
}

function decodeDocumentSource(source: JsonObject, at: string, scope: Scope): FileBlock['source'] | undefined {
  const media = optional(source['media_type'], `${at}.media_type`, expectText);
  const media_type = media !== undefined && { media_type: media };
  switch (source['type']) {
    case 'base64':
      return { file_data: expectText(source['data'], `${at}.data`), ...media_type };
    case 'text':
      return { text: expectText(source['data'], `${at}.data`), ...media_type };
    case 'content':
      return { content: decodeParts(source['content'], `${at}.content`, scope) };
    case 'file':
      return { file_id: expectName(source['file_id'], `${at}.file_id`) };
    case 'url': {
      const found = decodeUrl(expectName(source['url'], `${at}.url`));
      return 'url' in found ? { file_url: found.url } : { file_data: found.data, media_type: found.media_type };
    }
    default:
      return undefined;
  }
}

/** A `data:` URL is converted to inline data. */
const decodeUrl = (url: string): { url: string } | { data: string; media_type: string } => readDataUrl(url) ?? { url };

const SOURCE_FIELDS: ReadonlySet<string> = new Set(['type', 'data', 'media_type', 'url', 'file_id', 'content']);

/**
 * The unknown fields of a block and its source. For uploaded files the type is kept, which marks the id as
 * Anthropic's.
 */
function collectMediaFields(block: JsonObject, known: ReadonlySet<string>): JsonObject {
  const fields = readUnknownFields(block, known, 'source', SOURCE_FIELDS);
  const isFile = objectOrEmpty(block['source'])['type'] === 'file';
  return isFile ? { ...fields, source: { ...objectOrEmpty(fields['source']), type: 'file' } } : fields;
}

const SEARCH_FIELDS: ReadonlySet<string> = new Set(['type', 'source', 'title', 'content', 'citations', 'cache_control']);

function decodeSearchResult(block: JsonObject, at: string, scope: Scope): FileBlock {
  return {
    type: 'file',
    source: { content: decodeParts(block['content'], `${at}.content`, scope) },
    search_result: { source: expectText(block['source'], `${at}.source`) },
    ...decodeTitle(block, at),
    ...decodeCitationsFlag(block),
    ...decodeCacheControl(block),
    ...toExtensions(unknownFields(block, SEARCH_FIELDS)),
  };
}

const decodeTitle = (block: JsonObject, at: string): { title?: string } => {
  const title = optional(block['title'], `${at}.title`, expectText);
  return title === undefined ? {} : { title };
};

const decodeCitationsFlag = (block: JsonObject): { citations_enabled?: boolean } => {
  const { enabled } = objectOrEmpty(block['citations']);
  return typeof enabled === 'boolean' ? { citations_enabled: enabled } : {};
};

const THINKING_FIELDS: ReadonlySet<string> = new Set(['type', 'thinking', 'signature']);

/**
 * Thinking signed by Anthropic, by the issuer that a carrier names, or not at all. A block that only carries the
 * signature of the next block is dropped.
 */
function decodeThinkingBlock(block: JsonObject, at: string, scope: Scope): ThinkingBlock | undefined {
  const value = textOrEmpty(block['signature']);
  const thinking = textOrEmpty(block['thinking']);
  const carrier = decodeCarrier(value, scope.context);
  const isNext = carrier?.attach === 'next';
  if (isNext) scope.next = withPointer(`${at}.signature`, carrier.blob, scope.context);
  if (isNext && thinking === '') return undefined;
  const isUnsigned = value === '' || carrier?.blob.value === '';
  const signature = isUnsigned || isNext ? undefined : (carrier?.blob ?? buildSignature(value, ''));
  return { type: 'thinking', thinking, ...(signature && { signature }), ...toExtensions(unknownFields(block, THINKING_FIELDS)) };
}

/** A call of a client tool. Its id may carry the signature of the call, or of the reasoning before it. */
function decodeToolUse(block: JsonObject, at: string, scope: Scope): ContentBlock[] {
  const { id, carried } = decodeCarrierInId(expectName(block['id'], `${at}.id`), scope.context);
  if (carried?.attach === 'next') scope.next = withPointer(`${at}.id`, carried.blob, scope.context);
  const call = decodeCall({ ...block, id }, at, scope, undefined);
  return carried?.attach === 'self' ? [{ type: 'thinking', thinking: '', signature: carried.blob }, call] : [call];
}

const CALL_FIELDS: ReadonlySet<string> = new Set(['type', 'id', 'name', 'input', 'cache_control']);

/**
 * The type of a call that the provider runs is kept, because it identifies the tool. A direct caller is the default
 * and is not kept.
 */
function decodeCall(block: JsonObject, at: string, scope: Scope, kind: 'server' | 'mcp' | undefined): ToolUseBlock {
  const id = expectName(block['id'], `${at}.id`);
  const name = expectName(block['name'], `${at}.name`);
  const { caller, ...fields } = unknownFields(block, CALL_FIELDS) ?? {};
  const isDirect = isObject(caller) && caller['type'] === 'direct';
  scope.names.set(id, name);
  return {
    type: 'tool_use',
    id,
    name,
    ...decodeInput(block['input'], `${at}.input`),
    ...(kind && { kind }),
    ...takeNext(scope),
    ...decodeCacheControl(block),
    ...toExtensions({ ...(kind && { type: block['type'] }), ...fields, ...(caller !== undefined && !isDirect && { caller }) }),
  };
}

/**
 * Clients that assemble streams themselves may send the input as text; anything that is not an object is kept as
 * text.
 */
function decodeInput(input: unknown, at: string): Pick<ToolUseBlock, 'input' | 'input_raw'> {
  if (isObject(input)) return { input, ...keepSource(input) };
  const raw = typeof input === 'string' ? input : (writeJson(input) ?? '');
  const value = expectShallowJson(raw, at);
  return { input: isObject(value) ? value : {}, ...(raw !== '' && { input_raw: raw }) };
}

const RESULT_FIELDS: ReadonlySet<string> = new Set(['type', 'tool_use_id', 'content', 'is_error', 'cache_control']);

function decodeToolResult(block: JsonObject, at: string, scope: Scope): ToolResultBlock {
  const { id } = decodeCarrierInId(expectName(block['tool_use_id'], `${at}.tool_use_id`), scope.context);
  const name = scope.names.get(id);
  const isError = optional(block['is_error'], `${at}.is_error`, expectBoolean);
  return {
    type: 'tool_result',
    tool_use_id: id,
    ...(name !== undefined && { name }),
    content: decodeResultContent(block['content'], `${at}.content`, scope),
    ...(isError !== undefined && { is_error: isError }),
    ...decodeCacheControl(block),
    ...toExtensions(unknownFields(block, RESULT_FIELDS)),
  };
}

function decodeResultContent(content: unknown, at: string, scope: Scope): ToolResultBlock['content'] {
  if (typeof content === 'string') return content;
  const parts = content === undefined || content === null ? [] : decodeParts(content, at, scope);
  return parts.length === 0 ? '' : parts;
}

const decodeParts = (content: unknown, at: string, scope: Scope): ResultPart[] =>
  decodeContent(content, at, 'part', scope).filter(isPart);

/** The result of a provider tool, in one of many shapes; it is sent back unchanged. */
function decodeServerResult(block: JsonObject, { names }: Scope): ToolResultBlock {
  const { type, content } = block;
  return {
    ...decodeResult(block, names.get(textOrEmpty(block['tool_use_id']))),
    ...decodeCacheControl(block),
    ...toExtensions({ ...unknownFields(block, RESULT_FIELDS), type, ...(content !== undefined && { content }) }),
  };
}

/**
 * A block that only this protocol understands. The summary of a compaction also has a text for other protocols, and a
 * defined tool is added to the tools of the request.
 */
function decodeOther(block: JsonObject): OpaqueBlock {
  const opaque = decodeOpaque(block);
  const { type, content, tool } = block;
  if (type === 'compaction' && typeof content === 'string' && content !== '') return { ...opaque, text: content };
  const isDefined = type === 'tool_addition' && objectOrEmpty(tool)['type'] === 'tool_definition';
  return isDefined ? { ...opaque, hoisted: true } : opaque;
}

const MESSAGE_FIELDS: ReadonlySet<string> = new Set(['role', 'content']);

const decodeMessageFields = (message: JsonObject) => toExtensions(unknownFields(message, MESSAGE_FIELDS));

/** Only leading system messages are hoisted, unless the policy is `all`: later ones depend on their position. */
function hoist(system: SystemBlock[], messages: CanonicalMessage[], { policy }: CodecContext): Conversation {
  const isAll = policy.systemHoist === 'all';
  const conversation: Conversation = { system, messages: [] };
  for (const message of messages) {
    const isLeading = isAll || conversation.messages.length === 0;
    const texts = message.content.filter((block) => block.type === 'text');
    const canMove = message.role === 'system' && isLeading && texts.length === message.content.length;
    if (canMove) for (const text of texts) conversation.system.push(text);
    else conversation.messages.push(message);
  }
  return conversation;
}

/** A string, or a list of text blocks. */
function decodeSystem(system: unknown, scope: Scope): SystemBlock[] {
  if (system === undefined || system === null || system === '') return [];
  if (typeof system === 'string') return [withPointer('system', { type: 'text', text: system }, scope.context)];
  return expectList(system, 'system').flatMap((item, i): SystemBlock[] => {
    const at = `system[${i}]`;
    const block = expectObject(item, at);
    if (block['type'] !== 'text') throw invalid(`${at}.type`, 'must be a string');
    const text = decodeText(block, at, scope);
    return text ? [withPointer(at, text, scope.context)] : [];
  });
}

const TEXT_FIELDS: ReadonlySet<string> = new Set(['type', 'text', 'citations', 'cache_control']);

function decodeText(block: JsonObject, at: string, scope: Scope): TextBlock | undefined {
  const text = expectText(block['text'], `${at}.text`);
  if (text === '') return undefined;
  const citations = listOrEmpty(block['citations']).filter(isObject).map(decodeCitation);
  return {
    type: 'text',
    text,
    ...(citations.length > 0 && { citations }),
    ...takeNext(scope),
    ...decodeCacheControl(block),
    ...toExtensions(unknownFields(block, TEXT_FIELDS)),
  };
}

function takeNext(scope: Scope): { signature?: SignedBlob } {
  const signature = scope.next;
  scope.next = undefined;
  return signature ? { signature } : {};
}

/** Fields with a canonical counterpart. All others are kept as extensions, since beta features add unknown fields. */
const MAPPED: ReadonlySet<string> = new Set([
  'model',
  'messages',
  'system',
  'tools',
  'tool_choice',
  'max_tokens',
  'temperature',
  'top_p',
  'top_k',
  'stop_sequences',
  'thinking',
  'output_config',
  'output_format',
  'metadata',
  'service_tier',
  'cache_control',
  'stream',
]);

function collectFields(body: JsonObject): JsonObject {
  return {
    ...unknownFields(body, MAPPED),
    ...readThinkingExtensions(body),
    ...collectConfig(body),
    ...readOptionExtensions(body),
    ...readToolChoiceExtensions(body['tool_choice']),
  };
}

const CONFIG_FIELDS: ReadonlySet<string> = new Set(['effort', 'format']);

/** An effort without `thinking` is kept, so that it is sent back without it. */
function collectConfig(body: JsonObject): JsonObject {
  const config = objectOrEmpty(body['output_config']);
  const { effort } = config;
  const isAlone = !body['thinking'] && effort !== undefined && effort !== null;
  const { current: format, old } = readFormatExtensions(body);
  const rest = { ...unknownFields(config, CONFIG_FIELDS), ...(isAlone && { effort }), ...(format !== undefined && { format }) };
  return { ...(Object.keys(rest).length > 0 && { output_config: rest }), ...(old && { output_format: old }) };
}

/** Notes the beta features of a request for another protocol, and throws for a turn of a thread. */
export function leaveProtocol({ headers, body }: WireRequest, { note }: Pick<CodecContext, 'note'>): void {
  const betas = headers['anthropic-beta'];
  // Not refused by a strict policy: what a feature adds to the body has notes of its own.
  if (betas) note({ code: 'DROPPED', path: '', feature: 'headers.anthropic-beta', message: describeBetas(betas) });
  if (isObject(body)) expectWholeConversation(objectOrEmpty(body['thread']));
}

const describeBetas = (betas: string): string =>
  `anthropic-beta "${betas.slice(0, MAX_BETAS)}" is specific to anthropic-messages; dropped`;

/** Characters of the header that are shown. */
const MAX_BETAS = 200;

/**
 * Throws for a turn of a thread: Anthropic has the messages before it. Its SDK sends the whole conversation after this
 * error code.
 */
function expectWholeConversation({ type }: JsonObject): void {
  if (type !== 'continue') return;
  throw new CodecError({
    code: 'NOT_FOUND',
    message: 'thread: another server stores the earlier messages; send the whole conversation with {"type": "create"}',
    http_status: 404,
    param: 'thread.previous_message_id',
    details: { error_code: 'thread_not_found' },
  });
}

/** Headers that belong to the request, because they enable features of its body. */
export const REQUEST_HEADERS = ['anthropic-beta', 'anthropic-version'] as const;

function collectHeaders(headers: HeaderBag): JsonObject {
  const found: JsonObject = {};
  for (const name of REQUEST_HEADERS) if (headers[name]) found[name] = headers[name];
  return found;
}
