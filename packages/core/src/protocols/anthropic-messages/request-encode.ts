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
import type { CanonicalMessage, CanonicalRequest, SystemBlock } from '../../canonical/request.ts';
import { argumentsOf } from '../../codec/answers.ts';
import type { CodecContext, HeaderBag, WireRequest } from '../../codec/protocol.ts';
import { objectOf } from '../../codec/read.ts';
import { drop, invalid, repair, rulesTelling } from '../../codec/report.ts';
import { tellInexactNumbers, withoutHoisted } from '../../codec/requests.ts';
import { assignOwn, isObject, type JsonObject, parseJson } from '../../json/json.ts';
import { changeAll, changeBlocks } from '../../passes/content.ts';
import { locatedContext, prepare } from '../../passes/prepare.ts';
import type { Rules, Vocabulary } from '../../passes/rules.ts';
import { modelFamily, toolRules } from './profiles.ts';
import { REQUEST_HEADERS } from './request-decode.ts';
import { BOUNDS, dropForeign, encodeOptions, encodeOutputFormat, encodeParameters, encodeThinking, limitOf } from './settings.ts';
import { encodeToolFields, SERVER_TOOLS } from './tools.ts';
import { encodeCacheControl, fieldsOf, PROTOCOL } from './wire.ts';

/** Where the pages of Anthropic put input that is no JSON. No tool has such a field, so that none is run with half its arguments. */
export const INVALID = 'INVALID_JSON';

export function encodeRequest(request: CanonicalRequest, context: CodecContext): WireRequest {
  return {
    method: 'POST',
    path: '/v1/messages',
    headers: encodeHeaders(request, context),
    body: encodeRequestBody(request, context),
  };
}

/** What the client of this protocol said beside the body, in the version of the protocol that the server knows. */
export function encodeHeaders(request: CanonicalRequest, { profile: { anthropic_version: version } }: CodecContext): HeaderBag {
  const sent = fieldsOf(request);
  const own = REQUEST_HEADERS.flatMap((name): [string, string][] => {
    const value = sent[name];
    return typeof value === 'string' ? [[name, value]] : [];
  });
  const known = version !== undefined && { 'anthropic-version': version };
  return { 'content-type': 'application/json', ...Object.fromEntries(own), ...known };
}

/** Fields of the client's first, what the request says over them. */
function encodeRequestBody(source: CanonicalRequest, caller: CodecContext): JsonObject {
  const { request, context } = prepare(dropUnreadable(withoutHoisted(source, PROTOCOL), caller), rulesOf(caller), caller);
  dropForeign(request, context);
  const limit = limitOf(request, context);
  const { body, isThinking, max_tokens = limit } = encodeQuestion(request, limit, context);
  return {
    ...body,
    max_tokens,
    ...encodeParameters(request, isThinking, context),
    ...encodeOptions(request, fieldsOf(request), context),
    ...encodeStreaming(request, context),
  };
}

function encodeStreaming({ stream: asked }: CanonicalRequest, { target }: CodecContext): JsonObject {
  const stream = target?.stream ?? asked;
  if (stream) return { stream: true };
  return asked === undefined ? {} : { stream: false };
}

/** Only what is asked: what a count of tokens wants to know. */
export function encodeQuestionBody(source: CanonicalRequest, caller: CodecContext): JsonObject {
  const { request, context } = prepare(dropUnreadable(withoutHoisted(source, PROTOCOL), caller), rulesOf(caller), caller);
  return encodeQuestion(request, undefined, context).body;
}

/**
 * The request without the images and files that Anthropic cannot see or read. Before everything else: a message may have held nothing more,
 * and then the turns are others.
 */
function dropUnreadable(request: CanonicalRequest, caller: CodecContext): CanonicalRequest {
  const context = locatedContext(caller, request);
  return changeBlocks(request, (block, path) =>
    block.type === 'tool_result' ? readResult(block, path, context) : readable(block, path, context),
  );
}

function readResult(block: ToolResultBlock, path: string, context: CodecContext): ToolResultBlock {
  if (typeof block.content === 'string') return block;
  const content = changeAll(block.content, (part, i) => readable(part, `${path}/content/${i}`, context));
  return content === block.content ? block : { ...block, content };
}

function readable<T extends ContentBlock>(block: T, path: string, context: CodecContext): T | undefined {
  const why = block.type === 'image' ? whyUnseen(block.source) : block.type === 'file' ? whyUnread(block.source) : undefined;
  if (why === undefined) return block;
  drop(context, { path, feature: block.type, message: `${block.type === 'image' ? 'an image' : 'a file'} is left out: ${why}` });
  return undefined;
}

function whyUnseen(source: ImageBlock['source']): string | undefined {
  const { data, url } = source;
  if ((data === undefined && url === undefined) || imageSource(source)) return undefined;
  return data === undefined ? 'only https URLs are fetched' : `${imageType(source)} is no image that Anthropic can see`;
}

function whyUnread(source: FileBlock['source']): string | undefined {
  if (source.file_data === undefined || documentSource(source)) return undefined;
  return `Anthropic reads PDF and text, not ${source.media_type}`;
}

// Every field is written out: V8 builds a literal of this size in no time, and one that spreads others five hundred times slower.
function rulesOf(context: CodecContext): Rules {
  const { profile, policy, target } = context;
  const { note, drop, repair, refuse } = rulesTelling(context);
  const { toolName, custom, namespaces, objectRoot } = toolRules(profile);
  return {
    note,
    drop,
    repair,
    refuse,
    toolName,
    custom,
    namespaces,
    objectRoot,
    protocol: PROTOCOL,
    provider: target?.provider.id,
    model: target?.model,
    toolId: profile.tool_id,
    foreignThinking: policy.foreignThinking ?? 'drop',
    // Only Claude is known to refuse it.
    unsignedThinking: profile.thinking_mode === 'as_sent' && context.source === 'anthropic-messages' ? 'keep' : 'drop',
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
      spoken: 'transcript',
      inToolResults: true,
    },
    alternate: true,
    emptyMessages: 'drop',
    dropWhitespace: true,
    firstUser: true,
    trailingAssistant: profile.prefill ? 'trim' : 'continue',
    midSystem: profile.mid_system ? 'after_user' : 'reminder',
    schemas: { tool: 'anthropic', strictTool: 'anthropic-strict', output: 'anthropic-strict' },
    bounds: BOUNDS,
    maxStop: Number.POSITIVE_INFINITY,
    maxTools: profile.max_tools,
    // Five minutes is what it means when it says nothing.
    cacheMarks: { places: 'everywhere', most: 4, ttls: ['5m', '1h'] },
    says: saidBy(context),
  };
}

const saidBy = ({ profile, source }: CodecContext): Vocabulary => ({
  names: false,
  titles: 'field',
  contexts: true,
  logprobs: false,
  citable: true,
  stretches: false,
  detail: 'nowhere',
  validated: false,
  foreignCallers: /^programmatic$/,
  tools: [
    'defer_loading',
    'allowed_callers',
    'input_examples',
    'eager_input_streaming',
    // Only models with structured outputs can be held to a schema.
    ...((profile.structured_outputs ?? source === 'anthropic-messages') ? (['strict'] as const) : []),
  ],
});

interface Question {
  body: JsonObject;
  isThinking: boolean;
  /** When thinking needs more. */
  max_tokens?: number;
}

function encodeQuestion(request: CanonicalRequest, limit: number | undefined, context: CodecContext): Question {
  const sent = fieldsOf(request);
  const thought = encodeThinking(request, limit, context);
  const { format, hint } = encodeOutputFormat(request.output_format, context);
  const system = encodeSystem([...(request.system ?? []), ...(hint ? [{ type: 'text' as const, text: hint }] : [])]);
  const config = {
    ...withoutEffort(objectOf(sent['output_config'])),
    ...(thought.effort !== undefined && { effort: thought.effort }),
    ...(format && { format }),
  };
  const body = {
    ...withoutMapped(sent),
    model: context.target?.model ?? request.model,
    ...(system && { system }),
    messages: encodeMessages(request, context),
    ...encodeToolFields(request, thought.isOn, context),
    ...(thought.thinking && { thinking: thought.thinking }),
    ...(Object.keys(config).length > 0 && { output_config: config }),
  };
  return { body, isThinking: thought.isOn, ...(thought.max_tokens !== undefined && { max_tokens: thought.max_tokens }) };
}

/** The instructions: one plain text as it is, else blocks. */
function encodeSystem(system: readonly SystemBlock[]): string | JsonObject[] | undefined {
  const blocks = system.map(encodeText).filter((block) => block !== undefined);
  const [first] = blocks;
  const isPlain = blocks.length === 1 && first && Object.keys(first).length === 2 && typeof first['text'] === 'string';
  if (isPlain) return String(first['text']);
  return blocks.length > 0 ? blocks : undefined;
}

const withoutEffort = ({ effort: _, ...rest }: JsonObject): JsonObject => rest;

/** What the client sent under these names is said by the canonical fields, or in headers. */
const MAPPED: ReadonlySet<string> = new Set([...REQUEST_HEADERS, 'thinking', 'output_config', 'metadata', 'tool_choice']);

/** fromEntries defines, it does not assign: a field may be called `__proto__`. */
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
 * The conversation: results of tools are folded into the user's turn. They stand before what the user says, since they stand behind their
 * calls (P01, P02).
 */
function encodeMessages({ messages }: CanonicalRequest, context: CodecContext): Turn[] {
  const turns: Turn[] = [];
  messages.forEach((message, i) => {
    const role = ROLES[message.role];
    const content = encodeBlocks(message.content, `/messages/${i}/content`, context);
    if (content.length === 0) return;
    const last = turns.at(-1);
    if (last?.role !== role || role === 'system') turns.push({ ...fieldsOf(message), role, content });
    else {
      assignOwn(last, fieldsOf(message));
      for (const block of content) last.content.push(block);
    }
  });
  if (turns.length === 0) throw invalid('messages', 'must contain at least one message with content');
  return turns;
}

/** The blocks of a message as the wire has them; `at` is their JSON pointer. */
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
        ...fieldsOf(block),
        id: block.id,
        name: block.name,
        input: encodeInput(block, at, context),
        ...encodeCacheControl(block),
      };
    case 'tool_result':
      return encodeResult(block, at, context);
    case 'opaque':
      if (block.origin === 'anthropic-messages' && isObject(block.raw)) return { ...block.raw };
      return block.text ? { type: 'text', text: block.text } : lose(block.type, at, context);
    case 'audio':
      return lose(block.type, at, context);
    default:
      return block satisfies never;
  }
}

/** White space alone is refused (P29). */
function encodeText(block: Omit<TextBlock, 'type'>): JsonObject | undefined {
  const { text, citations = [] } = block;
  if (text.trim() === '') return undefined;
  const own = citations.flatMap(({ raw }) => (raw === undefined ? [] : [raw]));
  return { ...fieldsOf(block), type: 'text', text, ...(own.length > 0 && { citations: own }), ...encodeCacheControl(block) };
}

function encodeImage(block: ImageBlock): JsonObject | undefined {
  const { source: rest, ...fields } = fieldsOf(block);
  const source = imageSource(block.source);
  return source && { ...fields, type: 'image', source: { ...objectOf(rest), ...source }, ...encodeCacheControl(block) };
}

const IMAGE_TYPES: ReadonlySet<string> = new Set(['image/jpeg', 'image/png', 'image/gif', 'image/webp']);

function imageSource(source: ImageBlock['source']): JsonObject | undefined {
  const { data, url, file_id: id } = source;
  const type = imageType(source);
  if (data !== undefined) return IMAGE_TYPES.has(type) ? { type: 'base64', media_type: type, data } : undefined;
  if (id !== undefined) return { type: 'file', file_id: id };
  return url?.startsWith('https://') ? { type: 'url', url } : undefined;
}

/** How the base64 of each type begins, for images that do not say what they are. */
const IMAGE_STARTS: readonly (readonly [string, string])[] = [
  ['/9j/', 'image/jpeg'],
  ['R0lG', 'image/gif'],
  ['UklG', 'image/webp'],
];

function imageType({ data = '', media_type: named }: ImageBlock['source']): string {
  const type = named?.toLowerCase().replace(/;.*/s, '').trim();
  if (type) return type === 'image/jpg' ? 'image/jpeg' : type;
  return IMAGE_STARTS.find(([start]) => data.startsWith(start))?.[1] ?? 'image/png';
}

function encodeSearchResult(block: FileBlock, at: string, context: CodecContext): JsonObject {
  return {
    ...fieldsOf(block),
    type: 'search_result',
    source: block.search_result?.source ?? '',
    title: block.title ?? '',
    content: encodeBlocks(block.source.content ?? [], `${at}/source/content`, context),
    ...citationsOf(block),
    ...encodeCacheControl(block),
  };
}

function encodeDocument(block: FileBlock, at: string, context: CodecContext): JsonObject | undefined {
  const { content } = block.source;
  const { source: rest, ...fields } = fieldsOf(block);
  const source = content
    ? { type: 'content', content: encodeBlocks(content, `${at}/source/content`, context) }
    : documentSource(block.source);
  const title = block.title ?? block.source.filename;
  return (
    source && {
      ...fields,
      type: 'document',
      source: { ...objectOf(rest), ...source },
      ...(title !== undefined && { title }),
      ...(block.context !== undefined && { context: block.context }),
      ...citationsOf(block),
      ...encodeCacheControl(block),
    }
  );
}

const PDF = 'application/pdf';

/** Of everything but a document of blocks. */
function documentSource(source: FileBlock['source']): JsonObject | undefined {
  const { text, file_data: data, file_url: url, file_id: id, media_type: type = PDF } = source;
  if (text !== undefined) return { type: 'text', media_type: 'text/plain', data: text };
  if (id !== undefined) return { type: 'file', file_id: id };
  if (url !== undefined) return { type: 'url', url };
  if (data === undefined) return undefined;
  if (type === PDF) return { type: 'base64', media_type: type, data };
  const plain = isText(type) ? textOfBase64(data) : undefined;
  return plain === undefined ? undefined : { type: 'text', media_type: 'text/plain', data: plain };
}

const isText = (type: string): boolean => /^text\/|^application\/(json|xml|yaml|x-yaml)\b/.test(type);

function textOfBase64(data: string): string | undefined {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(Uint8Array.from(atob(data), (char) => char.charCodeAt(0)));
  } catch {
    return undefined;
  }
}

const citationsOf = ({ citations_enabled: enabled }: FileBlock): JsonObject =>
  enabled === undefined ? {} : { citations: { enabled } };

/** Only signed thinking is left here, and all of it is this provider's. */
function encodeThinkingBlock(block: ThinkingBlock): JsonObject {
  const { thinking, signature } = block;
  return signature?.form === 'redacted'
    ? { ...fieldsOf(block), type: 'redacted_thinking', data: signature.value }
    : { ...fieldsOf(block), type: 'thinking', thinking, signature: signature?.value ?? '' };
}

/** The input of a whole call, which has to be an object: what is none is put into one (P43, P44). `broken`: as what, when it is not whole. */
export function encodeInput(block: ToolUseBlock, path: string, context: CodecContext, broken = 'input'): JsonObject {
  const { kind, status, input, input_raw: raw = '' } = block;
  if (kind === 'custom' && (status !== 'incomplete' || broken === 'input')) return { input: argumentsOf(block, true) };
  const isBroken = status === 'incomplete' && broken !== 'input';
  if (kind !== 'custom' && raw.trim() === '' && !isBroken) return isObject(input) ? input : { input };
  const value = kind === 'custom' || isBroken ? undefined : parseJson(raw);
  if (isObject(value)) {
    tellInexactNumbers(raw, path, context);
    return value;
  }
  if (value === null) return {}; // none, as Groq says it
  const key = value === undefined ? broken : 'input';
  tellWrapped(block, key, path, context);
  return { [key]: value ?? argumentsOf(block, true) };
}

/** `key`: of the object that they are put into. */
export function tellWrapped({ id, name }: ToolUseBlock, key: string, path: string, context: CodecContext): void {
  const message = `the arguments of the call ${id} of ${name} are no object; they are sent as {"${key}": …}`;
  repair(context, { path, feature: 'tool_use.input', message });
}

/** A result of the client's tool. One of the provider's own goes back as it came. */
function encodeResult(block: ToolResultBlock, at: string, context: CodecContext): JsonObject {
  const fields = fieldsOf(block);
  if (!isClientCall(block.kind))
    return { ...fields, tool_use_id: block.tool_use_id, ...isErrorOf(block, fields), ...encodeCacheControl(block) };
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

/** Only MCP says it beside the content; elsewhere the type of the content does. */
const isErrorOf = ({ kind, is_error: isError }: ToolResultBlock, { type }: JsonObject): JsonObject =>
  kind === 'mcp' || type === 'mcp_tool_result' ? { is_error: isError ?? false } : {};

function lose(type: string, path: string, context: CodecContext): undefined {
  drop(context, { path, feature: `messages.${type}`, message: `Anthropic Messages has no form for this ${type}` });
}
