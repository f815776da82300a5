import {
  type AudioBlock,
  type ContentBlock,
  type FileBlock,
  type ImageBlock,
  isClientCall,
  type TextBlock,
  type ThinkingBlock,
  type ToolResultBlock,
  type ToolUseBlock,
} from '../../canonical/message.ts';
import type { CacheControl } from '../../canonical/protocol.ts';
import type { CanonicalMessage, CanonicalRequest, SystemBlock } from '../../canonical/request.ts';
import { findMediaType, nameFile } from '../../codec/media.ts';
import type { ProviderProfile } from '../../codec/profile.ts';
import type { CodecContext, ForwardTarget, WireRequest } from '../../codec/protocol.ts';
import { listOrEmpty, objectOrEmpty } from '../../codec/read.ts';
import { noContent, noteApproximated, noteDropped } from '../../codec/report.ts';
import {
  acceptsSampling,
  buildRules,
  dropState,
  encodeBreakpoint,
  memoizeTarget,
  type TargetContext,
} from '../../codec/requests.ts';
import { isObject, type JsonObject } from '../../json/json.ts';
import { prepare } from '../../passes/prepare.ts';
import type { CacheMarkRule, Capabilities, TargetRules } from '../../passes/rules.ts';
import { encodeReasoning, encodeThinkingPart, findSentField, REASONING_FIELDS } from './blocks.ts';
import { toolRules } from './profiles.ts';
import { encodeCall } from './request-decode.ts';
import {
  addHint,
  BOUNDS,
  encodeOptions,
  encodeOutputFormat,
  encodeParameters,
  encodeThinking,
  OPTION_FIELDS,
  THINKING_FIELDS,
} from './settings.ts';
import { encodeToolFields, serverTools } from './tools.ts';
import { encodeCacheControl, readExtensions } from './wire.ts';

/** Encodes a canonical request as a chat request. */
export function encodeRequest(request: CanonicalRequest, context: CodecContext): WireRequest {
  const body = encodeRequestBody(request, context);
  return { method: 'POST', path: '/v1/chat/completions', headers: { 'content-type': 'application/json' }, body };
}

/** Encodes the body: extensions first, then the canonical fields over them. */
export function encodeRequestBody(source: CanonicalRequest, caller: CodecContext): JsonObject {
  const { request, context } = prepare(source, buildRules(findTarget(caller), caller), caller);
  dropState(request, 'OpenAI Chat', ['previous_response_id', 'conversation_id', 'cached_content'], context);
  const sent = readExtensions(request);
  const thinking = encodeThinking(request.thinking, sent, context);
  const isSampling = acceptsSampling(thinking['reasoning_effort'] ?? undefined, context);
  const { response_format: format, hint } = encodeOutputFormat(
    request.output_format,
    objectOrEmpty(sent['response_format']),
    context,
  );
  const messages = encodeMessages(request, context);
  if (messages.length === 0) throw noContent('messages');
  if (request.service_tier === 'batch')
    noteDropped(context, {
      path: '/service_tier',
      feature: 'service_tier',
      message: 'service tier "batch" is not supported by OpenAI Chat; dropped',
    });
  const body = withoutMapped(sent);
  body['model'] = context.target?.model ?? request.model;
  body['messages'] = hint ? addHint(messages, hint, context) : messages;
  Object.assign(body, encodeToolFields(request, context), encodeParameters(request, isSampling, sent, context));
  if (format) body['response_format'] = format;
  Object.assign(body, encodeCacheControl(request.prompt_cache ?? {}, context));
  return Object.assign(body, thinking, encodeOptions(request, sent, context), encodeStreaming(request, sent, context));
}

/** Formats of audio sent as text, which has no format field. */
const AUDIO_TEXT_FORMATS = ['wav', 'mp3', 'flac', 'ogg', 'm4a', 'webm', ''];

const OPENAI_PROTOCOLS = ['openai-chat', 'openai-responses'] as const;

const MAX_BREAKPOINTS = 4;

const CLAUDE_TTLS = ['5m', '1h'] as const;

const OPENAI_TTLS = ['30m', '12h'] as const;

const CAPABILITIES: Capabilities = {
  names: true,
  titles: 'filename',
  contexts: false,
  logprobs: false,
  citable: false,
  clips: false,
  detail: 'everywhere',
  validated: false,
  foreignCallers: /./,
  tools: ['strict'],
};

/** What a chat server requires of requests. */
const findTarget = /* @__PURE__ */ memoizeTarget(buildTarget);

function buildTarget({ profile, sourceTraits }: TargetContext): TargetRules {
  return {
    ...toolRules(profile),
    protocol: 'openai-chat',
    toolId: profile.tool_id,
    unsignedThinking: 'keep',
    // Google's compatible endpoint signs calls in `extra_content`.
    carriesSignature: (block) => readExtensions(block)['extra_content'] !== undefined,
    serverTools: serverTools(profile),
    media: {
      audio: profile.audio_text ? AUDIO_TEXT_FORMATS : ['wav', 'mp3'],
      imageUrls: true,
      fileUrls: false,
      imageIds: false,
      fileIds: true,
      // File ids of OpenAI are valid in both of its protocols.
      idProtocols: profile.official ? OPENAI_PROTOCOLS : undefined,
      // Servers other than OpenAI may accept video files.
      video: !profile.official,
      assistantAudio: 'id',
      inToolResults: profile.tool_images,
    },
    alternate: profile.strict_alternation,
    emptyMessages: 'keep',
    dropWhitespace: false,
    firstUser: false,
    trailingAssistant: !profile.prefix && sourceTraits?.continuesPrefill ? 'note' : 'keep',
    midSystem: 'keep',
    schemas: {
      tool: 'openai',
      // Only OpenAI itself is known to reject schemas outside its strict subset.
      strictTool: profile.official ? 'openai-strict' : 'openai',
      output: 'openai',
      strictOutput: profile.official ? 'openai-strict' : 'openai',
    },
    bounds: BOUNDS,
    // Without support all stop sequences are dropped later, so none is cut here.
    maxStop: profile.supports_stop ? profile.max_stop : Number.POSITIVE_INFINITY,
    maxTools: profile.max_tools,
    cacheMarks: {
      places: findMarkPlaces(profile),
      max: MAX_BREAKPOINTS,
      ttls: profile.cache_control ? CLAUDE_TTLS : OPENAI_TTLS,
    },
    supports: CAPABILITIES,
  };
}

/** Only models that support breakpoints get them; other OpenAI models cache automatically. */
function findMarkPlaces({
  cache_breakpoints: hasBreakpoints,
  cache_control: isClaude,
  official,
}: ProviderProfile): CacheMarkRule['places'] {
  if (isClaude) return 'everywhere';
  return hasBreakpoints ? 'parts' : official ? 'automatic' : 'none';
}

/** Extensions that are replaced by canonical fields. */
const MAPPED_FIELDS: ReadonlySet<string> = new Set([
  ...OPTION_FIELDS,
  ...THINKING_FIELDS,
  'response_format',
  'stream_options',
  'top_k',
]);

/** Object.fromEntries defines fields, so that one called `__proto__` is data. */
const withoutMapped = (sent: JsonObject): JsonObject =>
  Object.fromEntries(Object.entries(sent).filter(([name]) => !MAPPED_FIELDS.has(name)));

/** Usage is always requested; the response encoder hides it from clients that did not request it. */
function encodeStreaming(
  { stream: wanted, stream_options: options }: CanonicalRequest,
  sent: JsonObject,
  context: CodecContext,
): JsonObject {
  const stream = context.target?.stream ?? wanted;
  if (!stream) return wanted === undefined ? {} : { stream: false };
  const { stream_usage: hasUsage, official } = context.profile;
  const padding = options?.include_obfuscation;
  if (!hasUsage && options?.include_usage)
    noteDropped(context, {
      path: '/stream_options',
      feature: 'stream_options.include_usage',
      message: 'stream usage is not supported by this provider; dropped',
    });
  const stream_options = {
    ...objectOrEmpty(sent['stream_options']),
    ...(hasUsage && { include_usage: true }),
    ...(official && padding !== undefined && { include_obfuscation: padding }),
  };
  return { stream: true, ...(Object.keys(stream_options).length > 0 && { stream_options }) };
}

// ---- messages

/** The system prompt first, then the conversation in its order. */
function encodeMessages({ system = [], messages }: CanonicalRequest, context: CodecContext): JsonObject[] {
  const encoded = messages.flatMap((message, i) => encodeMessage(message, `/messages/${i}`, context));
  if (context.profile.prefix && messages.at(-1)?.role === 'assistant') Object.assign(encoded.at(-1) ?? {}, { prefix: true });
  return [...encodeSystem(system, context), ...encoded];
}

function encodeMessage(message: CanonicalMessage, at: string, context: CodecContext): JsonObject[] {
  const name = message.name !== undefined && { name: message.name };
  const content = `${at}/content`;
  const blocks = context.profile.cache_control ? withoutMarks(message.content, readExtensions(message)) : message.content;
  switch (message.role) {
    case 'user':
      return [{ ...readExtensions(message), role: 'user', content: encodeContent(blocks, content, context), ...name }];
    case 'system': {
      const { role = 'system', ...fields } = readExtensions(message);
      const parts = encodeParts(blocks, content, context);
      return [{ ...fields, role: systemRole(role, context), content: joinPlain(parts), ...name }];
    }
    case 'assistant': {
      const encoded = encodeAssistant(message, content, context);
      return encoded ? [{ ...encoded, ...name }] : [];
    }
    case 'tool':
      return message.content.flatMap((block, i) =>
        block.type === 'tool_result' ? [encodeResult(block, `${content}/${i}`, context)] : [],
      );
    default:
      return message.role satisfies never;
  }
}

/** A cache mark that the client set on the whole message stays there and is not repeated on the last block. */
function withoutMarks<T extends ContentBlock | SystemBlock>(blocks: readonly T[], message: JsonObject): readonly T[] {
  if (message['cache_control'] === undefined) return blocks;
  return blocks.map((block) => {
    const { cache_control: _, ...rest } = block as T & { cache_control?: CacheControl }; // opaque blocks have no mark
    return rest as T; // the mark is optional
  });
}

/** Servers that support `developer` support both roles; others only `system`. */
const systemRole = (role: unknown, { profile }: CodecContext): string =>
  profile.system_role === 'developer' ? (role === 'system' ? 'system' : 'developer') : 'system';

/** One text if all parts are plain text, otherwise the parts. */
const joinPlain = (parts: JsonObject[]): string | JsonObject[] =>
  parts.every(isPlainText) ? parts.map(({ text }) => text).join('\n\n') : parts;

const isPlainText = (part: JsonObject): boolean => part['type'] === 'text' && Object.keys(part).length === 2;

/**
 * Undefined if all content was dropped. An empty message is kept, and so is one between two user turns of a server that
 * requires alternation.
 */
function encodeAssistant(message: CanonicalMessage, at: string, context: CodecContext): JsonObject | undefined {
  const { content, thinking, refusals, calls, audio } = sortBlocks(message.content, at, context);
  const replayed = encodeReplay(thinking, calls.length > 0, context);
  const hasMore = calls.length + refusals.length > 0 || audio !== undefined;
  const isEmptied = !hasMore && content.length === 0 && message.content.length > 0 && Object.keys(replayed).length === 0;
  if (isEmptied && !context.profile.strict_alternation) return undefined;
  return {
    ...readExtensions(message),
    role: 'assistant',
    ...replayed,
    content: joinContent(content, context) ?? (hasMore ? null : ''),
    ...(refusals.length > 0 && { refusal: refusals.join('') }),
    ...(audio && { audio: { ...readExtensions(audio), id: audio.audio_id } }),
    ...(calls.length > 0 && { tool_calls: calls.map((call) => encodeCall(call, context)) }),
  };
}

/** A thinking block and its path. */
interface Thought {
  block: ThinkingBlock;
  path: string;
}

/** The blocks of an assistant message, sorted by the wire field that holds them. */
interface SortedBlocks {
  /** Text and parts of chat; also thinking, for servers that expect it as a part. */
  content: (JsonObject | TextBlock)[];
  thinking: Thought[];
  refusals: string[];
  calls: ToolUseBlock[];
  audio: AudioBlock | undefined;
}

function sortBlocks(blocks: readonly ContentBlock[], at: string, context: CodecContext): SortedBlocks {
  const sorted: SortedBlocks = { content: [], thinking: [], refusals: [], calls: [], audio: undefined };
  let late: string | undefined;
  blocks.forEach((block, i) => {
    const path = `${at}/${i}`;
    if (block.type === 'tool_use' && isClientCall(block.kind)) sorted.calls.push(block);
    else if (block.type === 'thinking') sortThinking({ block, path }, sorted, context);
    else if (block.type === 'text') {
      if (sorted.calls.length > 0) late ??= path;
      if (block.refusal) sorted.refusals.push(block.text);
      else if (block.text !== '') sorted.content.push(block);
    } else if (block.type === 'audio' && block.audio_id !== undefined && !sorted.audio) sorted.audio = block;
    else if (block.type === 'opaque') sorted.content.push(objectOrEmpty(block.raw));
    else
      noteDropped(context, {
        path,
        feature: `assistant.${block.type}`,
        message: `this ${block.type} in an assistant message is not supported by OpenAI Chat; dropped`,
      });
  });
  if (late !== undefined)
    context.note({
      code: 'APPROXIMATED',
      path: late,
      feature: 'assistant.order',
      message: 'the order of text and tool calls is not supported by OpenAI Chat; text is sent before the calls',
    });
  return sorted;
}

/** Signed thinking of other providers has been removed before: the rest is from chat, or unsigned. */
function sortThinking(thought: Thought, sorted: SortedBlocks, { profile }: CodecContext): void {
  const { block } = thought;
  if (block.thinking === '' && Object.keys(readExtensions(block)).length === 0) return;
  if (profile.reasoning_field === 'parts' && profile.reasoning_replay !== 'never') sorted.content.push(encodeThinkingPart(block));
  else sorted.thinking.push(thought);
}

/**
 * The reasoning fields of an earlier turn. Servers that require reasoning require it on every turn with calls, even if
 * empty.
 */
function encodeReplay(thinking: readonly Thought[], hasCalls: boolean, context: CodecContext): JsonObject {
  const { reasoning_replay: when, reasoning_field: field } = context.profile;
  const isNeeded = when === 'always' ? thinking.length > 0 || hasCalls : when === 'tool_turns' && hasCalls;
  // Reasoning that a chat client sends is passed on, unless the server is known to reject it.
  const isKept = when !== 'never' && context.source === 'openai-chat' && thinking.length > 0;
  if ((isNeeded || isKept) && field !== 'parts') {
    const blocks = thinking.map(({ block }) => block);
    const sent = blocks.every(({ thinking: text }) => text === '') ? 'none' : (findSentField(blocks, field) ?? field);
    const fields = encodeReasoning(blocks, isNeeded ? field : sent);
    if (thinking.length === 0 || Object.keys(fields).length > 0) return fields;
  }
  for (const { path } of thinking)
    noteDropped(context, {
      path,
      feature: 'assistant.thinking',
      message: 'thinking of an earlier turn is not supported by the target; dropped',
    });
  return {};
}

/** One text if all parts are plain text, otherwise the parts; undefined if there is no content. */
function joinContent(content: SortedBlocks['content'], context: CodecContext): string | JsonObject[] | undefined {
  if (content.length === 0) return undefined;
  const parts = content.map((item) => (isText(item) ? encodeText(item, context) : item));
  return parts.every(isPlainText) ? parts.map(({ text }) => text).join('') : parts;
}

const isText = (item: JsonObject | TextBlock): item is TextBlock => item['type'] === 'text' && typeof item['text'] === 'string';

function encodeText(block: TextBlock | SystemBlock, context: CodecContext): JsonObject {
  return { ...readExtensions(block), type: 'text', text: block.text, ...encodeCacheMark(block, context) };
}

/** A cache breakpoint for models that support it, or a mark in Anthropic's form for servers that accept that. */
const encodeCacheMark = (block: { cache_control?: CacheControl }, context: CodecContext): JsonObject =>
  context.profile.cache_breakpoints ? encodeBreakpoint(block) : encodeCacheControl(block, context);

function encodeResult(block: ToolResultBlock, at: string, context: CodecContext): JsonObject {
  const fields = readExtensions(block);
  const encoded = typeof block.content === 'string' ? block.content : encodeResultParts(block.content, at, context);
  const content = markResult(encoded, encodeCacheControl(block, context));
  return {
    ...fields,
    role: 'tool',
    tool_call_id: block.tool_use_id,
    // A name is sent only if the client sent one.
    ...(fields['name'] !== undefined && block.name !== undefined && { name: block.name }),
    content: block.is_error ? markError(content, at, context) : content,
  };
}

function encodeResultParts(blocks: readonly ContentBlock[], at: string, context: CodecContext): string | JsonObject[] {
  const parts = encodeParts(blocks, `${at}/content`, context);
  return parts.every(isPlainText) ? parts.map(({ text }) => text).join('\n') : parts;
}

/** A cache mark goes on the last part, because a result has no field for it. */
function markResult(content: string | JsonObject[], mark: JsonObject): string | JsonObject[] {
  if (Object.keys(mark).length === 0 || content.length === 0) return content;
  const parts = typeof content === 'string' ? [{ type: 'text', text: content }] : content;
  return parts.map((part, i) => (i === parts.length - 1 ? { ...part, ...mark } : part));
}

/** Matches text that already names an error: chat has no field for it. */
const ERROR_PREFIX = /^\s*error\s*[:!-]/i;

function markError(content: string | JsonObject[], at: string, context: CodecContext): string | JsonObject[] {
  const text = typeof content === 'string' ? content : String(content.find(({ type }) => type === 'text')?.['text'] ?? '');
  context.note({
    code: 'APPROXIMATED',
    path: at,
    feature: 'tool_result.is_error',
    message: 'the error flag of a tool result is not supported by OpenAI Chat; sent as the prefix "Error:"',
  });
  if (ERROR_PREFIX.test(text)) return content;
  return typeof content === 'string' ? `Error: ${content}` : [{ type: 'text', text: 'Error:' }, ...content];
}

/** A block with a role starts a message; the others continue it. */
function encodeSystem(system: readonly SystemBlock[], context: CodecContext): JsonObject[] {
  const runs: SystemBlock[][] = [];
  for (const block of system) {
    const run = runs.at(-1);
    if (run && block.role === undefined) run.push(block);
    else runs.push([block]);
  }
  return runs.map((run) => {
    const [first] = run;
    const fields = objectOrEmpty(first && readExtensions(first)['message']);
    const content = joinPlain(
      (context.profile.cache_control ? withoutMarks(run, fields) : run).map((block) =>
        encodeText(withoutMessageFields(block), context),
      ),
    );
    return { ...fields, role: systemRole(first?.role, context), content };
  });
}

function withoutMessageFields(block: SystemBlock): SystemBlock {
  const { message: _, ...fields } = readExtensions(block);
  return { ...block, extensions: { 'openai-chat': fields } };
}

// ---- content parts

/** Plain text as one string; parts if there is more than text, or if the server accepts several text parts. */
function encodeContent(blocks: readonly ContentBlock[], at: string, context: CodecContext): string | JsonObject[] {
  const parts = encodeParts(blocks, at, context);
  const isText = parts.every(isPlainText) && (parts.length <= 1 || !context.profile.content_parts);
  return isText ? parts.map(({ text }) => text).join('\n\n') : parts;
}

/**
 * The blocks of a user message, system message or tool result as parts; `at` is their JSON pointer. Empty text is left
 * out.
 */
function encodeParts(blocks: readonly ContentBlock[], at: string, context: CodecContext): JsonObject[] {
  return blocks.flatMap((block, i) => encodePart(block, `${at}/${i}`, context));
}

function encodePart(block: ContentBlock, at: string, context: CodecContext): JsonObject[] {
  switch (block.type) {
    case 'text':
      return block.text === '' ? [] : [encodeText(block, context)];
    case 'image':
      return [encodeImage(block, at, context)];
    case 'audio':
      return [encodeAudio(block, context)];
    case 'file':
      return [encodeFile(block, context)];
    case 'opaque':
      // A part that a chat client sent, passed on unchanged.
      return [objectOrEmpty(block.raw)];
    case 'thinking':
    case 'tool_use':
    case 'tool_result':
      noteDropped(context, {
        path: at,
        feature: `messages.${block.type}`,
        message: `a ${block.type} block is not supported here by OpenAI Chat; dropped`,
      });
      return [];
    default:
      return block satisfies never;
  }
}

function encodeImage(block: ImageBlock, at: string, context: CodecContext): JsonObject {
  const { url, data, media_type: type, detail } = block.source;
  const { image_url: rest, ...fields } = readExtensions(block);
  if (detail === 'original')
    noteApproximated(context, {
      path: `${at}/source/detail`,
      feature: 'image.detail',
      message: 'image detail "original" is not supported by OpenAI Chat; sent as "high"',
    });
  const image_url = {
    ...objectOrEmpty(rest),
    url: data === undefined ? url : `data:${type ?? 'image/png'};base64,${data}`,
    ...(detail && { detail: detail === 'original' ? 'high' : detail }),
  };
  return { ...fields, type: 'image_url', image_url, ...encodeCacheMark(block, context) };
}

function encodeAudio(block: AudioBlock, context: CodecContext): JsonObject {
  const { data, format } = block.source;
  const { input_audio: rest, ...fields } = readExtensions(block);
  // Text for servers that accept nothing else, and for other servers if the client sent text; OpenAI rejects it.
  const isText = context.profile.audio_text ?? (typeof rest === 'string' && !context.profile.official);
  if (isText) return { ...fields, type: 'input_audio', input_audio: typeof rest === 'string' ? rest : data };
  return {
    ...fields,
    type: 'input_audio',
    input_audio: { ...objectOrEmpty(rest), data, format },
    ...encodeCacheMark(block, context),
  };
}

/** The API requires a name and a media type for each file. */
function encodeFile(block: FileBlock, context: CodecContext): JsonObject {
  const { file_data: data, file_id, filename: name, media_type: named } = block.source;
  const { file: rest, ...fields } = readExtensions(block);
  const type = named || (findMediaType({ name, data }) ?? 'application/pdf');
  const filename = name ?? nameFile(type);
  const file =
    data === undefined
      ? { ...objectOrEmpty(rest), file_id, ...(name !== undefined && { filename: name }) }
      : { ...objectOrEmpty(rest), filename, file_data: `data:${type};base64,${data}` };
  return { ...fields, type: 'file', file, ...encodeCacheMark(block, context) };
}

// ---- requests that are passed through

/**
 * Adjusts a request that is passed through: requests usage for streams (hidden from clients that did not request it)
 * and removes fields that the server is known to reject.
 */
export function adjustForwarded(body: JsonObject, target: ForwardTarget): JsonObject | undefined {
  const changes = {
    ...requestUsage(body, target),
    ...(target.profile.reasoning_replay === 'never' && dropReasoning(body, target)),
  };
  return Object.keys(changes).length > 0 ? changes : undefined;
}

function requestUsage(body: JsonObject, { stream, profile, note }: ForwardTarget): JsonObject {
  const options = body['stream_options'];
  if (stream && profile.stream_usage) {
    if (objectOrEmpty(options)['include_usage'] === true) return {};
    // Let the server reject a value that is not an object.
    return isObject(options) || options === undefined || options === null
      ? { stream_options: { ...objectOrEmpty(options), include_usage: true } }
      : {};
  }
  if (profile.stream_usage || options === undefined) return {};
  note(rejectedField('/stream_options', 'stream_options'));
  return { stream_options: undefined };
}

const rejectedField = (path: string, feature: string) =>
  ({ code: 'DROPPED', path, feature, message: 'the provider rejects this field; dropped' }) as const;

function dropReasoning(body: JsonObject, { note }: ForwardTarget): JsonObject {
  const messages = listOrEmpty(body['messages']);
  if (!messages.some((message) => isObject(message) && REASONING_FIELDS.some((name) => Object.hasOwn(message, name)))) return {};
  return {
    messages: messages.map((message, i) => {
      if (!isObject(message)) return message;
      const sent = REASONING_FIELDS.filter((name) => Object.hasOwn(message, name));
      for (const name of sent) note(rejectedField(`/messages/${i}/${name}`, 'assistant.thinking'));
      return sent.length === 0 ? message : Object.fromEntries(Object.entries(message).filter(([name]) => !sent.includes(name)));
    }),
  };
}
