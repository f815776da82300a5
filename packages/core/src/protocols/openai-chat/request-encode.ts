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
import type { ProviderProfile } from '../../codec/profile.ts';
import type { CodecContext, PassedTarget, WireRequest } from '../../codec/protocol.ts';
import { listOf, objectOf } from '../../codec/read.ts';
import { approximate, drop, invalid, rulesTelling } from '../../codec/report.ts';
import { continuesPrefill, dropState, encodeBreakpoint } from '../../codec/requests.ts';
import { isObject, type JsonObject } from '../../json/json.ts';
import { prepare } from '../../passes/prepare.ts';
import type { CacheMarkRule, Rules, Vocabulary } from '../../passes/rules.ts';
import { encodeReasoning, encodeThinkingPart, REASONING_FIELDS, sentField } from './blocks.ts';
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
import { encodeMark, fieldsOf } from './wire.ts';

/** The blocks of a user, of a system message or of a tool result as parts; `at` is their JSON pointer. Empty text is left out. */
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
      // A part of our own, which goes back as it came.
      return [objectOf(block.raw)];
    case 'thinking':
    case 'tool_use':
    case 'tool_result':
      drop(context, {
        path: at,
        feature: `messages.${block.type}`,
        message: `a ${block.type} block cannot stand here in OpenAI Chat`,
      });
      return [];
    default:
      return block satisfies never;
  }
}

/** A mark in the words of OpenRouter goes back as it came, wherever it stood; only models that know breakpoints get one. */
const breakpoint = (block: { cache_control?: CacheControl }, context: CodecContext): JsonObject =>
  context.profile.cache_breakpoints ? encodeBreakpoint(block) : encodeMark(block, context);

function encodeText(block: TextBlock | SystemBlock, context: CodecContext): JsonObject {
  return { ...fieldsOf(block), type: 'text', text: block.text, ...breakpoint(block, context) };
}

function encodeImage(block: ImageBlock, at: string, context: CodecContext): JsonObject {
  const { url, data, media_type: type, detail } = block.source;
  const { image_url: rest, ...fields } = fieldsOf(block);
  if (detail === 'original')
    approximate(context, {
      path: `${at}/source/detail`,
      feature: 'image.detail',
      message: 'the detail "original" is sent as "high"',
    });
  const image_url = {
    ...objectOf(rest),
    url: data === undefined ? url : `data:${type ?? 'image/png'};base64,${data}`,
    ...(detail && { detail: detail === 'original' ? 'high' : detail }),
  };
  return { ...fields, type: 'image_url', image_url, ...breakpoint(block, context) };
}

function encodeAudio(block: AudioBlock, context: CodecContext): JsonObject {
  const { data, format } = block.source;
  const { input_audio: rest, ...fields } = fieldsOf(block);
  // A text goes back as it came, and to those who take nothing else; OpenAI takes no text.
  const isText = context.profile.audio_text ?? (typeof rest === 'string' && !context.profile.official);
  if (isText) return { ...fields, type: 'input_audio', input_audio: typeof rest === 'string' ? rest : data };
  return { ...fields, type: 'input_audio', input_audio: { ...objectOf(rest), data, format }, ...breakpoint(block, context) };
}

/** What a file is, by the end of its name; the API wants a name and a media type for each. */
const TYPES: Readonly<Record<string, string>> = {
  pdf: 'application/pdf',
  txt: 'text/plain',
  md: 'text/markdown',
  csv: 'text/csv',
  json: 'application/json',
  html: 'text/html',
  docx: 'application/vnd.openxmlformats-officedocument.wordprocessingml.document',
};

function encodeFile(block: FileBlock, context: CodecContext): JsonObject {
  const { file_data: data, file_id, filename: name, media_type: named } = block.source;
  const { file: rest, ...fields } = fieldsOf(block);
  const type = named || typeOf(name);
  const filename = name ?? `document.${Object.keys(TYPES).find((end) => TYPES[end] === type) ?? 'bin'}`;
  const file =
    data === undefined
      ? { ...objectOf(rest), file_id, ...(name !== undefined && { filename: name }) }
      : { ...objectOf(rest), filename, file_data: `data:${type};base64,${data}` };
  return { ...fields, type: 'file', file, ...breakpoint(block, context) };
}

function typeOf(name = ''): string {
  const end = name.slice(name.lastIndexOf('.') + 1).toLowerCase();
  return (Object.hasOwn(TYPES, end) && TYPES[end]) || 'application/pdf';
}

const isPlainText = (part: JsonObject): boolean => part['type'] === 'text' && Object.keys(part).length === 2;

/** Plain texts in one; parts where there is more than text, or where several texts may stand side by side. */
function encodeContent(blocks: readonly ContentBlock[], at: string, context: CodecContext): string | JsonObject[] {
  const parts = encodeParts(blocks, at, context);
  const isText = parts.every(isPlainText) && (parts.length <= 1 || !context.profile.content_parts);
  return isText ? parts.map(({ text }) => text).join('\n\n') : parts;
}

/** Instructions first, then the conversation in its order. */
function encodeMessages({ system = [], messages }: CanonicalRequest, context: CodecContext): JsonObject[] {
  const encoded = messages.flatMap((message, i) => encodeMessage(message, `/messages/${i}`, context));
  if (context.profile.prefix && messages.at(-1)?.role === 'assistant') Object.assign(encoded.at(-1) ?? {}, { prefix: true });
  return [...encodeSystem(system, context), ...encoded];
}

/** A block that names a role begins a message; the others continue it. */
function encodeSystem(system: readonly SystemBlock[], context: CodecContext): JsonObject[] {
  const runs: SystemBlock[][] = [];
  for (const block of system) {
    const run = runs.at(-1);
    if (run && block.role === undefined) run.push(block);
    else runs.push([block]);
  }
  return runs.map((run) => {
    const [first] = run;
    const fields = objectOf(first && fieldsOf(first)['message']);
    const content = joinPlain(
      (context.profile.cache_control ? unmarked(run, fields) : run).map((block) => encodeText(withoutMessage(block), context)),
    );
    return { ...fields, role: systemRole(first?.role, context), content };
  });
}

/** A mark that the client itself set on the whole message stands there, and not on its last block too. */
function unmarked<T extends ContentBlock | SystemBlock>(blocks: readonly T[], message: JsonObject): readonly T[] {
  if (message['cache_control'] === undefined) return blocks;
  return blocks.map((block) => {
    const { cache_control: _, ...rest } = block as T & { cache_control?: CacheControl }; // opaque blocks have none
    return rest as T; // the mark is optional
  });
}

/** Instructions are one text, unless a part of them has more to say. */
const joinPlain = (parts: JsonObject[]): string | JsonObject[] =>
  parts.every(isPlainText) ? parts.map(({ text }) => text).join('\n\n') : parts;

function withoutMessage(block: SystemBlock): SystemBlock {
  const { message: _, ...fields } = fieldsOf(block);
  return { ...block, extensions: { 'openai-chat': fields } };
}

/** Who knows `developer` knows both roles; the others know only `system`. */
const systemRole = (role: unknown, { profile }: CodecContext): string =>
  profile.system_role === 'developer' ? (role === 'system' ? 'system' : 'developer') : 'system';

function encodeMessage(message: CanonicalMessage, at: string, context: CodecContext): JsonObject[] {
  const name = message.name !== undefined && { name: message.name };
  const content = `${at}/content`;
  const said = context.profile.cache_control ? unmarked(message.content, fieldsOf(message)) : message.content;
  switch (message.role) {
    case 'user':
      return [{ ...fieldsOf(message), role: 'user', content: encodeContent(said, content, context), ...name }];
    case 'system': {
      const { role = 'system', ...fields } = fieldsOf(message);
      const parts = encodeParts(said, content, context);
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

/** A block of thinking and where it stands. */
interface Thought {
  block: ThinkingBlock;
  path: string;
}

/** The blocks of an assistant message by what the wire makes of them. */
interface Sorted {
  /** Text and parts of our own; thinking too where that is a part. */
  content: (JsonObject | TextBlock)[];
  thinking: Thought[];
  refusals: string[];
  calls: ToolUseBlock[];
  audio: AudioBlock | undefined;
}

/** Undefined when all that it held was dropped. A message that was empty before stays, and so does one that keeps two user turns apart. */
function encodeAssistant(message: CanonicalMessage, at: string, context: CodecContext): JsonObject | undefined {
  const { content, thinking, refusals, calls, audio } = sort(message.content, at, context);
  const replayed = replay(thinking, calls.length > 0, context);
  const hasMore = calls.length + refusals.length > 0 || audio !== undefined;
  const isEmptied = !hasMore && content.length === 0 && message.content.length > 0 && Object.keys(replayed).length === 0;
  if (isEmptied && !context.profile.strict_alternation) return undefined;
  return {
    ...fieldsOf(message),
    role: 'assistant',
    ...replayed,
    content: joinContent(content, context) ?? (hasMore ? null : ''),
    ...(refusals.length > 0 && { refusal: refusals.join('') }),
    ...(audio && { audio: { ...fieldsOf(audio), id: audio.audio_id } }),
    ...(calls.length > 0 && { tool_calls: calls.map((call) => encodeCall(call, context)) }),
  };
}

function sort(blocks: readonly ContentBlock[], at: string, context: CodecContext): Sorted {
  const sorted: Sorted = { content: [], thinking: [], refusals: [], calls: [], audio: undefined };
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
    else if (block.type === 'opaque') sorted.content.push(objectOf(block.raw));
    else
      drop(context, {
        path,
        feature: `assistant.${block.type}`,
        message: `an assistant of OpenAI Chat cannot hold this ${block.type}`,
      });
  });
  if (late !== undefined)
    context.note({
      code: 'APPROXIMATED',
      path: late,
      feature: 'assistant.order',
      message: 'text behind calls is put before them',
    });
  return sorted;
}

/** The thinking of others is gone by now: what is left was thought here, or nobody signed it. */
function sortThinking(thought: Thought, sorted: Sorted, { profile }: CodecContext): void {
  const { block } = thought;
  if (block.thinking === '' && Object.keys(fieldsOf(block)).length === 0) return;
  if (profile.reasoning_field === 'parts' && profile.reasoning_replay !== 'never') sorted.content.push(encodeThinkingPart(block));
  else sorted.thinking.push(thought);
}

/** Texts in one, parts where one has more to say than its text; undefined when there is nothing. */
function joinContent(content: Sorted['content'], context: CodecContext): string | JsonObject[] | undefined {
  if (content.length === 0) return undefined;
  const parts = content.map((item) => (isText(item) ? encodeText(item, context) : item));
  return parts.every(isPlainText) ? parts.map(({ text }) => text).join('') : parts;
}

const isText = (item: JsonObject | TextBlock): item is TextBlock => item['type'] === 'text' && typeof item['text'] === 'string';

/** Servers that want their reasoning back want it with every call, even when there is none to give. */
function replay(thinking: readonly Thought[], hasCalls: boolean, context: CodecContext): JsonObject {
  const { reasoning_replay: when, reasoning_field: field } = context.profile;
  const isNeeded = when === 'always' ? thinking.length > 0 || hasCalls : when === 'tool_turns' && hasCalls;
  // What a chat client replays is kept on every turn, unless the server is known to refuse it.
  const isKept = when !== 'never' && context.source === 'openai-chat' && thinking.length > 0;
  if ((isNeeded || isKept) && field !== 'parts') {
    const blocks = thinking.map(({ block }) => block);
    const sent = blocks.every(({ thinking: text }) => text === '') ? 'none' : (sentField(blocks, field) ?? field);
    const fields = encodeReasoning(blocks, isNeeded ? field : sent);
    if (thinking.length === 0 || Object.keys(fields).length > 0) return fields;
  }
  for (const { path } of thinking)
    drop(context, { path, feature: 'assistant.thinking', message: 'the thinking of an earlier turn is not sent' });
  return {};
}

/** The text says that it is an error: there is no other place for it. */
const SAYS_ERROR = /^\s*error/i;

function encodeResult(block: ToolResultBlock, at: string, context: CodecContext): JsonObject {
  const fields = fieldsOf(block);
  const said = typeof block.content === 'string' ? block.content : encodeResultParts(block.content, at, context);
  const content = markResult(said, encodeMark(block, context));
  return {
    ...fields,
    role: 'tool',
    tool_call_id: block.tool_use_id,
    // Only servers that were sent a name before know one.
    ...(fields['name'] !== undefined && block.name !== undefined && { name: block.name }),
    content: block.is_error ? markError(content, at, context) : content,
  };
}

/** A result as a whole has no place for a mark: its last part has. */
function markResult(content: string | JsonObject[], mark: JsonObject): string | JsonObject[] {
  if (Object.keys(mark).length === 0 || content.length === 0) return content;
  const parts = typeof content === 'string' ? [{ type: 'text', text: content }] : content;
  return parts.map((part, i) => (i === parts.length - 1 ? { ...part, ...mark } : part));
}

function encodeResultParts(blocks: readonly ContentBlock[], at: string, context: CodecContext): string | JsonObject[] {
  const parts = encodeParts(blocks, `${at}/content`, context);
  return parts.every(isPlainText) ? parts.map(({ text }) => text).join('\n') : parts;
}

function markError(content: string | JsonObject[], at: string, context: CodecContext): string | JsonObject[] {
  const text = typeof content === 'string' ? content : String(content.find(({ type }) => type === 'text')?.['text'] ?? '');
  if (SAYS_ERROR.test(text)) return content;
  context.note({
    code: 'APPROXIMATED',
    path: at,
    feature: 'tool_result.is_error',
    message: 'the error is told in the text of the result',
  });
  return typeof content === 'string' ? `Error: ${content}` : [{ type: 'text', text: 'Error:' }, ...content];
}

/**
 * Streams are asked for their usage, which the encoder of the response hides from clients that did not ask. What the server is known to refuse is
 * removed.
 */
export function adjustPassed(body: JsonObject, target: PassedTarget): JsonObject | undefined {
  const changes = {
    ...askForUsage(body, target),
    ...(target.profile.reasoning_replay === 'never' && dropReasoning(body, target)),
  };
  return Object.keys(changes).length > 0 ? changes : undefined;
}

function askForUsage(body: JsonObject, { stream, profile, note }: PassedTarget): JsonObject {
  const options = body['stream_options'];
  if (stream && profile.stream_usage) {
    if (objectOf(options)['include_usage'] === true) return {};
    // What is no object is the server's to judge.
    return isObject(options) || options === undefined || options === null
      ? { stream_options: { ...objectOf(options), include_usage: true } }
      : {};
  }
  if (profile.stream_usage || options === undefined) return {};
  note(refused('/stream_options', 'stream_options'));
  return { stream_options: undefined };
}

function dropReasoning(body: JsonObject, { note }: PassedTarget): JsonObject {
  const messages = listOf(body['messages']);
  if (!messages.some((message) => isObject(message) && REASONING_FIELDS.some((name) => Object.hasOwn(message, name)))) return {};
  return {
    messages: messages.map((message, i) => {
      if (!isObject(message)) return message;
      const sent = REASONING_FIELDS.filter((name) => Object.hasOwn(message, name));
      for (const name of sent) note(refused(`/messages/${i}/${name}`, 'assistant.thinking'));
      return sent.length === 0 ? message : Object.fromEntries(Object.entries(message).filter(([name]) => !sent.includes(name)));
    }),
  };
}

const refused = (path: string, feature: string) =>
  ({ code: 'DROPPED', path, feature, message: 'the provider refuses this field' }) as const;

export function encodeRequest(request: CanonicalRequest, context: CodecContext): WireRequest {
  const body = encodeRequestBody(request, context);
  return { method: 'POST', path: '/v1/chat/completions', headers: { 'content-type': 'application/json' }, body };
}

/** Fields of the client's first, what the request says over them. */
export function encodeRequestBody(source: CanonicalRequest, caller: CodecContext): JsonObject {
  const { request, context } = prepare(source, rulesOf(source, caller), caller);
  dropState(request, 'OpenAI Chat', ['previous_response_id', 'conversation_id', 'cached_content'], context);
  const sent = fieldsOf(request);
  const thinking = encodeThinking(request.thinking, sent, context);
  // Models that reason take sampling only when they are told not to (gpt-5.1 and later).
  const isSampling = context.profile.supports_sampling || thinking['reasoning_effort'] === 'none';
  const { response_format: format, hint } = encodeOutputFormat(request.output_format, objectOf(sent['response_format']), context);
  const messages = encodeMessages(request, context);
  if (messages.length === 0) throw invalid('messages', 'must contain at least one message with content');
  if (request.service_tier === 'batch')
    drop(context, { path: '/service_tier', feature: 'service_tier', message: 'OpenAI Chat has no service tier batch' });
  const body = withoutMapped(sent);
  body['model'] = context.target?.model ?? request.model;
  body['messages'] = hint ? addHint(messages, hint, context) : messages;
  Object.assign(body, encodeToolFields(request, context), encodeParameters(request, isSampling, sent, context));
  if (format) body['response_format'] = format;
  Object.assign(body, encodeMark(request.prompt_cache ?? {}, context));
  return Object.assign(body, thinking, encodeOptions(request, sent, context), encodeStreaming(request, sent, context));
}

const MAX_BREAKPOINTS = 4;

/** Formats of audio that is sent as a text, which names none. */
const AUDIO_TEXTS = ['wav', 'mp3', 'flac', 'ogg', 'm4a', 'webm', ''];

const OPENAI = ['openai-chat', 'openai-responses'] as const;

const SAYS: Vocabulary = {
  names: true,
  titles: 'filename',
  contexts: false,
  logprobs: false,
  citable: false,
  stretches: false,
  detail: 'everywhere',
  validated: false,
  foreignCallers: /./,
  tools: ['strict'],
};

// Every field is written out: V8 builds a literal of this size in no time, and one that spreads others five hundred times slower.
function rulesOf({ output_format: format }: CanonicalRequest, context: CodecContext): Rules {
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
    protocol: 'openai-chat',
    provider: target?.provider.id,
    model: target?.model,
    toolId: profile.tool_id,
    foreignThinking: policy.foreignThinking ?? 'drop',
    unsignedThinking: 'keep',
    // Google's own endpoint signs calls in `extra_content`.
    carriesSignature: (block) => fieldsOf(block)['extra_content'] !== undefined,
    serverTools: serverTools(profile),
    media: {
      audio: profile.audio_text ? AUDIO_TEXTS : ['wav', 'mp3'],
      imageUrls: true,
      fileUrls: false,
      imageIds: false,
      fileIds: true,
      // OpenAI's files are the same in both of its protocols.
      idsOf: profile.official ? OPENAI : undefined,
      // Others than OpenAI may take films as files.
      video: !profile.official,
      spoken: 'id',
      inToolResults: profile.tool_images,
    },
    alternate: profile.strict_alternation,
    emptyMessages: 'keep',
    dropWhitespace: false,
    firstUser: false,
    trailingAssistant: !profile.prefix && continuesPrefill(context) ? 'tell' : 'keep',
    midSystem: 'keep',
    schemas: {
      tool: 'openai',
      // Only OpenAI itself is known to refuse what its strict mode does not know.
      strictTool: profile.official ? 'openai-strict' : 'openai',
      output: profile.official && format?.type === 'json_schema' && format.json_schema.strict ? 'openai-strict' : 'openai',
    },
    bounds: BOUNDS,
    // Where there are none they are lost, whatever their number.
    maxStop: profile.supports_stop ? profile.max_stop : Number.POSITIVE_INFINITY,
    maxTools: profile.max_tools,
    cacheMarks: { places: placesOf(profile), most: MAX_BREAKPOINTS, ttls: profile.cache_control ? CLAUDE_TTLS : OPENAI_TTLS },
    says: SAYS,
  };
}

const OPENAI_TTLS = ['30m', '12h'] as const;

const CLAUDE_TTLS = ['5m', '1h'] as const;

/** Only models that know breakpoints get them; OpenAI's others cache by themselves. */
function placesOf({ cache_breakpoints: knows, cache_control: isClaude, official }: ProviderProfile): CacheMarkRule['places'] {
  if (isClaude) return 'everywhere';
  return knows ? 'parts' : official ? 'automatic' : 'none';
}

/** What the client sent under these names is said by the canonical fields. */
const MAPPED: ReadonlySet<string> = new Set([...OPTION_FIELDS, ...THINKING_FIELDS, 'response_format', 'stream_options', 'top_k']);

/** fromEntries defines, it does not assign: a field may be called `__proto__`. */
const withoutMapped = (sent: JsonObject): JsonObject =>
  Object.fromEntries(Object.entries(sent).filter(([name]) => !MAPPED.has(name)));

/** Usage is always asked for: the answer's encoder hides it from clients that did not. */
function encodeStreaming(
  { stream: asked, stream_options: options }: CanonicalRequest,
  sent: JsonObject,
  context: CodecContext,
): JsonObject {
  const stream = context.target?.stream ?? asked;
  if (!stream) return asked === undefined ? {} : { stream: false };
  const { stream_usage: isCounting, official } = context.profile;
  const padding = options?.include_obfuscation;
  if (!isCounting && options?.include_usage)
    drop(context, {
      path: '/stream_options',
      feature: 'stream_options.include_usage',
      message: 'this server is not asked for usage',
    });
  const stream_options = {
    ...objectOf(sent['stream_options']),
    ...(isCounting && { include_usage: true }),
    ...(official && padding !== undefined && { include_obfuscation: padding }),
  };
  return { stream: true, ...(Object.keys(stream_options).length > 0 && { stream_options }) };
}
