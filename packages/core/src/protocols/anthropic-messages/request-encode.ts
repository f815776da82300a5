import {
  type ContentBlock,
  type FileBlock,
  type ImageBlock,
  isClientCall,
  type TextBlock,
  type ThinkingBlock,
  type ToolResultBlock,
  type ToolUseBlock,
} from '../../canonical/message.ts';
import type { ProtocolId } from '../../canonical/protocol.ts';
import type { CanonicalMessage, CanonicalRequest, SystemBlock } from '../../canonical/request.ts';
import { buildArgumentText } from '../../codec/answers.ts';
import { findMediaType } from '../../codec/media.ts';
import type { ProviderProfile } from '../../codec/profile.ts';
import type { CodecContext, HeaderBag, WireRequest } from '../../codec/protocol.ts';
import { objectOrEmpty } from '../../codec/read.ts';
import { noContent, noteDropped, noteRepaired } from '../../codec/report.ts';
import { buildRules, memoizeTarget, reportInexactNumbers, type TargetContext, withoutHoisted } from '../../codec/requests.ts';
import { assignOwn, isObject, type JsonObject, parseJson } from '../../json/json.ts';
import { changeAll, changeBlocks } from '../../passes/content.ts';
import { locateContext, prepare } from '../../passes/prepare.ts';
import type { Capabilities, TargetRules } from '../../passes/rules.ts';
import { modelFamily, toolRules } from './profiles.ts';
import { REQUEST_HEADERS } from './request-decode.ts';
import {
  BOUNDS,
  chooseMaxTokens,
  dropUnsupportedOptions,
  encodeOptions,
  encodeOutputFormat,
  encodeParameters,
  encodeThinking,
} from './settings.ts';
import { encodeToolFields, SERVER_TOOLS } from './tools.ts';
import { encodeCacheControl, PROTOCOL, readExtensions } from './wire.ts';

/**
 * The field that Anthropic's documentation uses for input that is not valid JSON. No tool declares it, so that no
 * tool runs with partial arguments.
 */
export const INVALID_JSON_FIELD = 'INVALID_JSON';

/** A canonical request as a Messages request. */
export function encodeRequest(request: CanonicalRequest, context: CodecContext): WireRequest {
  return {
    method: 'POST',
    path: '/v1/messages',
    headers: encodeHeaders(request, context),
    body: encodeRequestBody(request, context),
  };
}

/** The client's headers that belong to the request, with the API version that the server supports. */
export function encodeHeaders(request: CanonicalRequest, { profile: { anthropic_version: version } }: CodecContext): HeaderBag {
  const sent = readExtensions(request);
  const own = REQUEST_HEADERS.flatMap((name): [string, string][] => {
    const value = sent[name];
    return typeof value === 'string' ? [[name, value]] : [];
  });
  const known = version !== undefined && { 'anthropic-version': version };
  return { 'content-type': 'application/json', ...Object.fromEntries(own), ...known };
}

/** Extension fields come first, so that canonical fields override them. */
function encodeRequestBody(source: CanonicalRequest, caller: CodecContext): JsonObject {
  const { request, context } = prepare(
    dropUnreadable(withoutHoisted(source, PROTOCOL), caller),
    buildRules(findTarget(caller), caller),
    caller,
  );
  dropUnsupportedOptions(request, context);
  const limit = chooseMaxTokens(request, context);
  const { body, isThinking, max_tokens = limit } = encodePrompt(request, limit, context);
  return {
    ...body,
    max_tokens,
    ...encodeParameters(request, isThinking, context),
    ...encodeOptions(request, readExtensions(request), context),
    ...encodeStreaming(request, context),
  };
}

function encodeStreaming({ stream: requested }: CanonicalRequest, { target }: CodecContext): JsonObject {
  const stream = target?.stream ?? requested;
  if (stream) return { stream: true };
  return requested === undefined ? {} : { stream: false };
}

/** The body without parameters and options of the response, for token counts. */
export function encodeCountBody(source: CanonicalRequest, caller: CodecContext): JsonObject {
  const { request, context } = prepare(
    dropUnreadable(withoutHoisted(source, PROTOCOL), caller),
    buildRules(findTarget(caller), caller),
    caller,
  );
  return encodePrompt(request, undefined, context).body;
}

/**
 * Drops images and files that Anthropic cannot read. This runs before the passes, because it can empty a message and
 * thereby change the turns.
 */
function dropUnreadable(request: CanonicalRequest, caller: CodecContext): CanonicalRequest {
  const context = locateContext(caller, request);
  return changeBlocks(request, (block, path) =>
    block.type === 'tool_result' ? filterResult(block, path, context) : filterPart(block, path, context),
  );
}

function filterResult(block: ToolResultBlock, path: string, context: CodecContext): ToolResultBlock {
  if (typeof block.content === 'string') return block;
  const content = changeAll(block.content, (part, i) => filterPart(part, `${path}/content/${i}`, context));
  return content === block.content ? block : { ...block, content };
}

function filterPart<T extends ContentBlock>(block: T, path: string, context: CodecContext): T | undefined {
  const why = block.type === 'image' ? explainImage(block.source) : block.type === 'file' ? explainFile(block.source) : undefined;
  if (why === undefined) return block;
  noteDropped(context, {
    path,
    feature: block.type,
    message: `${block.type === 'image' ? 'an image' : 'a file'} is not supported by Anthropic Messages (${why}); dropped`,
  });
  return undefined;
}

/** Why Anthropic cannot read the image, if so. */
function explainImage(source: ImageBlock['source']): string | undefined {
  const { data, url } = source;
  if ((data === undefined && url === undefined) || encodeImageSource(source)) return undefined;
  return data === undefined ? 'only https URLs are supported' : `unsupported image type ${findImageType(source)}`;
}

/** Why Anthropic cannot read the file, if so. */
function explainFile(source: FileBlock['source']): string | undefined {
  if (source.file_data === undefined || encodeDocumentSource(source)) return undefined;
  return `only PDF and text are supported, not ${source.media_type}`;
}

/** What Anthropic requires of requests. */
const findTarget = /* @__PURE__ */ memoizeTarget(buildTarget);

function buildTarget({ profile, source }: TargetContext): TargetRules {
  return {
    ...toolRules(profile),
    protocol: PROTOCOL,
    toolId: profile.tool_id,
    // Only Claude is known to reject unsigned thinking.
    unsignedThinking: profile.thinking_mode === 'as_sent' && source === PROTOCOL ? 'keep' : 'drop',
    modelFamily,
    serverTools: SERVER_TOOLS,
    media: {
      audio: [],
      imageUrls: true,
      fileUrls: true,
      imageIds: true,
      fileIds: true,
      textFiles: true,
      video: false,
      assistantAudio: 'transcript',
      inToolResults: true,
    },
    alternate: true,
    emptyMessages: 'drop',
    dropWhitespace: true,
    firstUser: true,
    trailingAssistant: profile.prefill ? 'trim' : 'continue',
    midSystem: profile.mid_system ? 'after_user' : 'reminder',
    schemas: { tool: 'anthropic', strictTool: 'anthropic-strict', output: 'anthropic-strict', strictOutput: 'anthropic-strict' },
    bounds: BOUNDS,
    maxStop: Number.POSITIVE_INFINITY,
    maxTools: profile.max_tools,
    // A mark without a lifetime means five minutes.
    cacheMarks: { places: 'everywhere', max: 4, ttls: ['5m', '1h'] },
    supports: buildCapabilities(profile, source),
  };
}

const buildCapabilities = (profile: ProviderProfile, source: ProtocolId | undefined): Capabilities => ({
  names: false,
  titles: 'field',
  contexts: true,
  logprobs: false,
  citable: true,
  clips: false,
  detail: 'nowhere',
  validated: false,
  foreignCallers: /^programmatic$/,
  tools: [
    'defer_loading',
    'allowed_callers',
    'input_examples',
    'eager_input_streaming',
    // Strict tools need structured outputs.
    ...((profile.structured_outputs ?? source === PROTOCOL) ? (['strict'] as const) : []),
  ],
});

/** The part of the body that the model reads, and what thinking implies for the rest. */
interface EncodedPrompt {
  body: JsonObject;
  isThinking: boolean;
  /** Set if thinking needs a higher limit. */
  max_tokens?: number;
}

function encodePrompt(request: CanonicalRequest, limit: number | undefined, context: CodecContext): EncodedPrompt {
  const sent = readExtensions(request);
  const thinking = encodeThinking(request, limit, context);
  const { format, hint } = encodeOutputFormat(request.output_format, context);
  const system = encodeSystem([...(request.system ?? []), ...(hint ? [{ type: 'text' as const, text: hint }] : [])]);
  const config = {
    ...withoutEffort(objectOrEmpty(sent['output_config'])),
    ...(thinking.effort !== undefined && { effort: thinking.effort }),
    ...(format && { format }),
  };
  const body = {
    ...withoutMapped(sent),
    model: context.target?.model ?? request.model,
    ...(system && { system }),
    messages: encodeMessages(request, context),
    ...encodeToolFields(request, thinking.isOn, context),
    ...(thinking.thinking && { thinking: thinking.thinking }),
    ...(Object.keys(config).length > 0 && { output_config: config }),
  };
  return { body, isThinking: thinking.isOn, ...(thinking.max_tokens !== undefined && { max_tokens: thinking.max_tokens }) };
}

/** The system prompt: a single plain text as a string, otherwise blocks. */
function encodeSystem(system: readonly SystemBlock[]): string | JsonObject[] | undefined {
  const blocks = system.map(encodeText).filter((block) => block !== undefined);
  const [first] = blocks;
  const isPlain = blocks.length === 1 && first && Object.keys(first).length === 2 && typeof first['text'] === 'string';
  if (isPlain) return String(first['text']);
  return blocks.length > 0 ? blocks : undefined;
}

const withoutEffort = ({ effort: _, ...rest }: JsonObject): JsonObject => rest;

/** Extensions that are written by the canonical fields or sent as headers. */
const MAPPED: ReadonlySet<string> = new Set([...REQUEST_HEADERS, 'thinking', 'output_config', 'metadata', 'tool_choice']);

/** `fromEntries` defines instead of assigning, so that a field named `__proto__` is safe. */
const withoutMapped = (sent: JsonObject): JsonObject =>
  Object.fromEntries(Object.entries(sent).filter(([name]) => !MAPPED.has(name)));

interface Turn extends JsonObject {
  role: 'user' | 'assistant' | 'system';
  content: JsonObject[];
}

const ROLES = { user: 'user', tool: 'user', assistant: 'assistant', system: 'system' } satisfies Record<
  CanonicalMessage['role'],
  Turn['role']
>;

/**
 * Tool results are merged into the user's turn, before its other blocks, because they must directly follow their
 * calls (P01, P02).
 */
function encodeMessages({ messages }: CanonicalRequest, context: CodecContext): Turn[] {
  const turns: Turn[] = [];
  messages.forEach((message, i) => {
    const role = ROLES[message.role];
    const content = encodeBlocks(message.content, `/messages/${i}/content`, context);
    if (content.length === 0) return;
    const last = turns.at(-1);
    if (last?.role !== role || role === 'system') turns.push({ ...readExtensions(message), role, content });
    else {
      assignOwn(last, readExtensions(message));
      for (const block of content) last.content.push(block);
    }
  });
  if (turns.length === 0) throw noContent('messages');
  return turns;
}

/** The blocks of a message in wire form; `at` is their JSON pointer. */
function encodeBlocks(blocks: readonly ContentBlock[], at: string, context: CodecContext): JsonObject[] {
  return blocks.map((block, i) => encodeBlock(block, `${at}/${i}`, context)).filter((block) => block !== undefined);
}

function encodeBlock(block: ContentBlock, at: string, context: CodecContext): JsonObject | undefined {
  switch (block.type) {
    case 'text':
      return encodeText(block);
    case 'image':
      return encodeImage(block);
    case 'file':
      return block.search_result ? encodeSearchResult(block, at, context) : encodeDocument(block, at, context);
    case 'thinking':
      return encodeThinkingBlock(block);
    case 'tool_use':
      return {
        type: isClientCall(block.kind) ? 'tool_use' : 'server_tool_use',
        ...readExtensions(block),
        id: block.id,
        name: block.name,
        input: encodeInput(block, at, context),
        ...encodeCacheControl(block),
      };
    case 'tool_result':
      return encodeResult(block, at, context);
    case 'opaque':
      if (block.origin === 'anthropic-messages' && isObject(block.raw)) return { ...block.raw };
      return block.text ? { type: 'text', text: block.text } : dropBlock(block.type, at, context);
    case 'audio':
      return dropBlock(block.type, at, context);
    default:
      return block satisfies never;
  }
}

/** Text that is only white space is rejected (P29). */
function encodeText(block: Omit<TextBlock, 'type'>): JsonObject | undefined {
  const { text, citations = [] } = block;
  if (text.trim() === '') return undefined;
  const own = citations.flatMap(({ raw }) => (raw === undefined ? [] : [raw]));
  return {
    ...readExtensions(block),
    type: 'text',
    text,
    ...(own.length > 0 && { citations: own }),
    ...encodeCacheControl(block),
  };
}

function encodeImage(block: ImageBlock): JsonObject | undefined {
  const { source: rest, ...fields } = readExtensions(block);
  const source = encodeImageSource(block.source);
  return source && { ...fields, type: 'image', source: { ...objectOrEmpty(rest), ...source }, ...encodeCacheControl(block) };
}

const IMAGE_TYPES: ReadonlySet<string> = new Set(['image/jpeg', 'image/png', 'image/gif', 'image/webp']);

function encodeImageSource(source: ImageBlock['source']): JsonObject | undefined {
  const { data, url, file_id: id } = source;
  const type = findImageType(source);
  if (data !== undefined) return IMAGE_TYPES.has(type) ? { type: 'base64', media_type: type, data } : undefined;
  if (id !== undefined) return { type: 'file', file_id: id };
  return url?.startsWith('https://') ? { type: 'url', url } : undefined;
}

/** How the base64 of each type begins, for images without a media type. */
const IMAGE_STARTS: readonly (readonly [string, string])[] = [
  ['/9j/', 'image/jpeg'],
  ['R0lG', 'image/gif'],
  ['UklG', 'image/webp'],
];

function findImageType({ data = '', media_type: named }: ImageBlock['source']): string {
  const type = named?.toLowerCase().replace(/;.*/s, '').trim();
  if (type) return type === 'image/jpg' ? 'image/jpeg' : type;
  return IMAGE_STARTS.find(([start]) => data.startsWith(start))?.[1] ?? 'image/png';
}

function encodeSearchResult(block: FileBlock, at: string, context: CodecContext): JsonObject {
  return {
    ...readExtensions(block),
    type: 'search_result',
    source: block.search_result?.source ?? '',
    title: block.title ?? '',
    content: encodeBlocks(block.source.content ?? [], `${at}/source/content`, context),
    ...encodeCitationsFlag(block),
    ...encodeCacheControl(block),
  };
}

function encodeDocument(block: FileBlock, at: string, context: CodecContext): JsonObject | undefined {
  const { content } = block.source;
  const { source: rest, ...fields } = readExtensions(block);
  const source = content
    ? { type: 'content', content: encodeBlocks(content, `${at}/source/content`, context) }
    : encodeDocumentSource(block.source);
  const title = block.title ?? block.source.filename;
  return (
    source && {
      ...fields,
      type: 'document',
      source: { ...objectOrEmpty(rest), ...source },
      ...(title !== undefined && { title }),
      ...(block.context !== undefined && { context: block.context }),
      ...encodeCitationsFlag(block),
      ...encodeCacheControl(block),
    }
  );
}

const PDF = 'application/pdf';

/** The source of a document, except one that consists of blocks. */
function encodeDocumentSource(source: FileBlock['source']): JsonObject | undefined {
  const { text, file_data: data, file_url: url, file_id: id, media_type: named, filename: name } = source;
  if (text !== undefined) return { type: 'text', media_type: 'text/plain', data: text };
  if (id !== undefined) return { type: 'file', file_id: id };
  if (url !== undefined) return { type: 'url', url };
  if (data === undefined) return undefined;
  const type = findMediaType({ type: named, name, data });
  if (type === PDF) return { type: 'base64', media_type: type, data };
  const plain = type === undefined || isText(type) ? decodeBase64Text(data) : undefined;
  return plain === undefined || (type === undefined && plain.includes('\0'))
    ? undefined
    : { type: 'text', media_type: 'text/plain', data: plain };
}

/** Other documents than PDF must be text. */
const isText = (type: string): boolean => /^text\/|^application\/(json|xml|yaml|x-yaml)\b/.test(type);

function decodeBase64Text(data: string): string | undefined {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(Uint8Array.from(atob(data), (char) => char.charCodeAt(0)));
  } catch {
    return undefined;
  }
}

const encodeCitationsFlag = ({ citations_enabled: enabled }: FileBlock): JsonObject =>
  enabled === undefined ? {} : { citations: { enabled } };

/** The passes have dropped all thinking that Anthropic did not sign. */
function encodeThinkingBlock(block: ThinkingBlock): JsonObject {
  const { thinking, signature } = block;
  return signature?.form === 'redacted'
    ? { ...readExtensions(block), type: 'redacted_thinking', data: signature.value }
    : { ...readExtensions(block), type: 'thinking', thinking, signature: signature?.value ?? '' };
}

/**
 * The input of a complete call. It must be an object; anything else is wrapped in one (P43, P44). `broken` is the
 * field for incomplete arguments.
 */
export function encodeInput(block: ToolUseBlock, path: string, context: CodecContext, broken = 'input'): JsonObject {
  const { kind, status, input, input_raw: raw = '' } = block;
  if (kind === 'custom' && (status !== 'incomplete' || broken === 'input')) return { input: buildArgumentText(block, true) };
  const isBroken = status === 'incomplete' && broken !== 'input';
  if (kind !== 'custom' && raw.trim() === '' && !isBroken) return isObject(input) ? input : { input };
  const value = kind === 'custom' || isBroken ? undefined : parseJson(raw);
  if (isObject(value)) {
    reportInexactNumbers(raw, path, context);
    return value;
  }
  if (value === null) return {}; // Groq sends null for no arguments
  const key = value === undefined ? broken : 'input';
  noteWrappedInput(block, key, path, context);
  return { [key]: value ?? buildArgumentText(block, true) };
}

/** Notes that arguments were wrapped in an object; `key` is its field. */
export function noteWrappedInput({ id, name }: ToolUseBlock, key: string, path: string, context: CodecContext): void {
  const message = `the arguments of tool call ${id} of ${name} must be an object; sent as {"${key}": …}`;
  noteRepaired(context, { path, feature: 'tool_use.input', message });
}

/** The result of a client tool. Results of provider tools are sent back unchanged. */
function encodeResult(block: ToolResultBlock, at: string, context: CodecContext): JsonObject {
  const fields = readExtensions(block);
  if (!isClientCall(block.kind))
    return { ...fields, tool_use_id: block.tool_use_id, ...encodeErrorFlag(block, fields), ...encodeCacheControl(block) };
  const content = typeof block.content === 'string' ? block.content : encodeBlocks(block.content, `${at}/content`, context);
  return {
    ...fields,
    type: 'tool_result',
    tool_use_id: block.tool_use_id,
    ...(content.length > 0 && { content }),
    ...(block.is_error !== undefined && { is_error: block.is_error }),
    ...encodeCacheControl(block),
  };
}

/** Only MCP results have the flag; others express errors by the type of their content. */
const encodeErrorFlag = ({ kind, is_error: isError }: ToolResultBlock, { type }: JsonObject): JsonObject =>
  kind === 'mcp' || type === 'mcp_tool_result' ? { is_error: isError ?? false } : {};

function dropBlock(type: string, path: string, context: CodecContext): undefined {
  noteDropped(context, {
    path,
    feature: `messages.${type}`,
    message: `this ${type} block is not supported by Anthropic Messages; dropped`,
  });
}
