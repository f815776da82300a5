import {
  type AudioBlock,
  type ContentBlock,
  type FileBlock,
  type ImageBlock,
  isClientCall,
  type ThinkingBlock,
  type ToolResultBlock,
  type ToolUseBlock,
} from '../../canonical/message.ts';
import type { CanonicalMessage, CanonicalRequest, SystemBlock } from '../../canonical/request.ts';
import { buildArgumentText } from '../../codec/answers.ts';
import type { ProviderProfile } from '../../codec/profile.ts';
import type { CodecContext, ForwardTarget, WireRequest } from '../../codec/protocol.ts';
import { objectOrEmpty } from '../../codec/read.ts';
import { noContent, noteApproximated, noteDropped, noteRepaired } from '../../codec/report.ts';
import { buildRules, memoizeTarget, reportInexactNumbers, type TargetContext } from '../../codec/requests.ts';
import { assignOwn, isObject, type JsonObject, parseJson } from '../../json/json.ts';
import { prepare } from '../../passes/prepare.ts';
import type { Capabilities, TargetRules } from '../../passes/rules.ts';
import {
  encodeAllMedia,
  encodeArgs,
  encodeCallFields,
  encodeMedia,
  encodeResult,
  encodeSignatureField,
  isMedia,
  listResultMedia,
  noteWrappedInput,
} from './blocks.ts';
import { encodeServerResult } from './content-encode.ts';
import { buildPath } from './endpoints.ts';
import { toolRules } from './profiles.ts';
import { AUDIO_FORMATS, findMediaLevel } from './request-decode.ts';
import {
  BOUNDS,
  encodeOptions,
  encodeOutput,
  encodeOutputFormat,
  encodeParameters,
  encodeThinking,
  FORMAT_FIELDS,
  isOwnFormat,
} from './settings.ts';
import { encodeToolConfig, encodeTools, preferOwnSchemas, restrictTools, SERVER_TOOLS } from './tools.ts';
import { readExtensions, readNestedExtensions, readPartExtensions } from './wire.ts';

/** A canonical request as a Gemini request; the model and the stream flag are in the path. */
export function encodeRequest(request: CanonicalRequest, context: CodecContext): WireRequest {
  const body = encodeRequestBody(request, context);
  const stream = context.target?.stream ?? request.stream === true;
  const model = context.target?.model ?? request.model;
  const path = stream ? `${buildPath(model, 'streamGenerateContent')}?alt=sse` : buildPath(model, 'generateContent');
  return { method: 'POST', path, headers: { 'content-type': 'application/json' }, body };
}

/** The body of a request. Extension fields come first, so that canonical fields override them. */
export function encodeRequestBody(source: CanonicalRequest, caller: CodecContext): JsonObject {
  const sentConfig = objectOrEmpty(readExtensions(source)['generationConfig']);
  const own = isOwnFormat(source, sentConfig) ? sentConfig : undefined;
  const { request, context } = prepare(
    preferOwnSchemas(withoutOwnFormat(source, own)),
    buildRules(findTarget(caller), caller),
    caller,
  );
  const { generationConfig: _, toolConfig, systemInstruction, ...sent } = readExtensions(request);
  const tools = restrictTools(request, context);
  const hasFunctions = tools.some(({ server }) => !server);
  const { config: format, hint } = encodeOutputFormat(
    own ? source.output_format : request.output_format,
    own,
    hasFunctions,
    context,
  );
  const options = encodeOptions(request, sent, context);
  const contents = encodeContents(request, context);
  if (contents.length === 0) throw noContent('contents');
  const instructions = encodeSystem(request.system ?? [], hint, objectOrEmpty(systemInstruction));
  const wireTools = encodeTools(tools, context);
  const wireConfig = encodeToolConfig(request, tools, objectOrEmpty(toolConfig), context);
  const thinkingConfig = encodeThinking(request.thinking, sentConfig['thinkingConfig'], context);
  const generationConfig = {
    ...withoutMapped(sentConfig),
    ...encodeParameters(request, context),
    ...encodeOutput(request, sentConfig, context),
    ...format,
    ...(thinkingConfig && { thinkingConfig }),
  };
  return {
    ...sent,
    contents,
    ...(instructions && { systemInstruction: instructions }),
    ...(wireTools.length > 0 && { tools: wireTools }),
    ...(wireConfig && { toolConfig: wireConfig }),
    ...(Object.keys(generationConfig).length > 0 && { generationConfig }),
    ...options,
  };
}

/** A format that the client sent in Gemini's own form is not converted. */
function withoutOwnFormat(request: CanonicalRequest, own: JsonObject | undefined): CanonicalRequest {
  if (!own) return request;
  const { output_format: _, ...rest } = request;
  return rest;
}

/** What Gemini requires of requests. */
const findTarget = /* @__PURE__ */ memoizeTarget(buildTarget);

function buildTarget({ profile }: TargetContext): TargetRules {
  const dialect = profile.json_schema_params ? 'gemini-json' : 'gemini-openapi';
  return {
    ...toolRules(profile),
    protocol: 'gemini',
    toolId: profile.tool_id,
    unsignedThinking: 'keep',
    serverTools: SERVER_TOOLS,
    // For older models, the encoder moves media out of results.
    media: {
      audio: AUDIO_FORMATS,
      imageUrls: true,
      fileUrls: true,
      imageIds: true,
      fileIds: true,
      video: true,
      assistantAudio: 'data',
      inToolResults: true,
    },
    alternate: true,
    emptyMessages: 'drop',
    dropWhitespace: false,
    firstUser: true,
    trailingAssistant: 'keep',
    midSystem: 'reminder',
    schemas: { tool: dialect, strictTool: dialect, output: dialect, strictOutput: dialect },
    bounds: BOUNDS,
    maxStop: profile.max_stop,
    maxTools: profile.max_tools,
    cacheMarks: { places: 'none', max: 0, ttls: [] },
    supports: buildCapabilities(profile),
  };
}

const buildCapabilities = (profile: ProviderProfile): Capabilities => ({
  names: false,
  titles: 'text',
  contexts: false,
  logprobs: false,
  citable: false,
  clips: true,
  // Image detail is supported from Gemini 3 on.
  detail: profile.gemini3 ? 'messages' : 'nowhere',
  validated: true,
  foreignCallers: /./,
  tools: profile.json_schema_params ? ['output_schema'] : [],
});

interface Turn {
  role: 'user' | 'model';
  /** Extension fields of the contents. */
  fields: JsonObject;
  parts: JsonObject[];
}

/** The conversation in alternating turns; results belong to the user's turn and come first in it. */
function encodeContents(request: CanonicalRequest, context: CodecContext): JsonObject[] {
  const calls = new Map(listCalls(request).map((call) => [call.id, call]));
  const turns: Turn[] = [];
  signTurns(request.messages, context).forEach((message, i) => {
    const role = message.role === 'assistant' ? 'model' : 'user';
    const path = `/messages/${i}/content`;
    noteNames(message.content, path, context);
    const parts = encodeMessage(message, path, calls, context);
    const last = turns.at(-1);
    if (last?.role !== role) turns.push({ role, fields: { ...readExtensions(message) }, parts });
    else {
      assignOwn(last.fields, readExtensions(message));
      for (const part of parts) last.parts.push(part);
    }
  });
  return turns.filter(({ parts }) => parts.length > 0).map(({ fields, role, parts }) => ({ ...fields, role, parts }));
}

const listCalls = ({ messages }: CanonicalRequest): ToolUseBlock[] =>
  messages.flatMap(({ content }) => content.filter((block) => block.type === 'tool_use'));

/** Google's documented value for a missing signature; without any, Gemini 3 rejects the calls of a turn. */
const NO_SIGNATURE = 'skip_thought_signature_validator';

/** For Gemini 3, the first call of a turn without a signature gets the value for none; the others stay without. */
function signTurns(messages: readonly CanonicalMessage[], context: CodecContext): readonly CanonicalMessage[] {
  if (!context.profile.gemini3) return messages;
  return messages.map((message, i) => {
    const first = message.content.find((block) => block.type === 'tool_use' && isClientCall(block.kind));
    if (first?.type !== 'tool_use' || first.signature) return message;
    noteRepaired(context, {
      path: `/messages/${i}/content/${message.content.indexOf(first)}`,
      feature: 'messages.signature',
      message: 'Gemini requires a thought signature on tool calls; inserted the placeholder for none',
    });
    const signed: ToolUseBlock = { ...first, signature: { origin: 'gemini', form: 'thought_signature', value: NO_SIGNATURE } };
    return { ...message, content: message.content.map((block) => (block === first ? signed : block)) };
  });
}

/** A placeholder for files without a name, because OpenAI requires one; it contains no more than the media type. */
const NO_NAME = /^document\.\w+$/;

/** Gemini has no file names; at most the media type is derived from them. */
function noteNames(blocks: readonly ContentBlock[], path: string, context: CodecContext): void {
  for (const [i, block] of blocks.entries()) {
    if (block.type === 'tool_result' && typeof block.content !== 'string')
      noteNames(block.content, `${path}/${i}/content`, context);
    if (block.type === 'file' && block.source.filename && !NO_NAME.test(block.source.filename))
      noteDropped(context, {
        path: `${path}/${i}/source/filename`,
        feature: 'file.filename',
        message: 'file names are not supported by Gemini; dropped',
      });
  }
}

function encodeMessage(
  { role, content }: CanonicalMessage,
  path: string,
  calls: ReadonlyMap<string, ToolUseBlock>,
  context: CodecContext,
): JsonObject[] {
  if (role !== 'tool') return content.flatMap((block, i) => encodeBlock(block, `${path}/${i}`, calls, context));
  const results = content.filter((block) => block.type === 'tool_result');
  const parts = results.map((block) => encodeToolResult(block, calls.get(block.tool_use_id), context));
  // Before Gemini 3, results cannot hold media: these follow all results of the turn.
  const media = context.profile.gemini3
    ? []
    : results.flatMap((block) =>
        encodeResultMedia(block, calls.get(block.tool_use_id), `${path}/${content.indexOf(block)}`, results.length > 1, context),
      );
  return [...parts, ...media];
}

function encodeBlock(
  block: ContentBlock,
  path: string,
  calls: ReadonlyMap<string, ToolUseBlock>,
  context: CodecContext,
): JsonObject[] {
  switch (block.type) {
    case 'text': {
      const part = { ...readPartExtensions(block), text: block.text, ...encodeSignatureField(block, context) };
      return block.text === '' && Object.keys(part).length === 1 ? [] : [part];
    }
    case 'thinking':
      return encodeThought(block, path, context);
    case 'tool_use':
      return [encodeToolUse(block, path, context)];
    case 'tool_result':
      return isClientCall(block.kind) ? [] : [encodeServerResult(block, hasId(block, calls.get(block.tool_use_id), context))];
    case 'image':
    case 'audio':
    case 'file':
      return encodeMediaPart(block, path, context);
    case 'opaque':
      return block.origin === 'gemini' ? [objectOrEmpty(block.raw)] : block.text ? [{ text: block.text }] : [];
    default:
      return block satisfies never;
  }
}

/** Google does not need thoughts back. Only signed ones, and those that a Gemini client sent, are sent. */
function encodeThought(block: ThinkingBlock, path: string, context: CodecContext): JsonObject[] {
  const fields = readPartExtensions(block);
  if (block.signature || fields['thought'] === true) {
    const thought = block.thinking !== '' || fields['thought'] === true ? { thought: true } : {};
    return [{ ...fields, text: block.thinking, ...thought, ...encodeSignatureField(block, context) }];
  }
  if (block.thinking !== '' || block.extensions)
    noteDropped(context, {
      path,
      feature: 'assistant.thinking',
      message: 'thinking of an earlier turn is not supported by the target; dropped',
    });
  return [];
}

function encodeToolUse(block: ToolUseBlock, path: string, context: CodecContext): JsonObject {
  const { json, isWrapped } = encodeArgs(buildArgumentText(block, false));
  if (isWrapped) noteWrappedInput(context, path);
  else reportInexactNumbers(json, path, context);
  const { outer, inner } = encodeCallFields(block, context.profile.function_call_ids);
  return { ...outer, functionCall: { ...inner, args: parseJson(json) }, ...encodeSignatureField(block, context) };
}

function encodeMediaPart(block: ImageBlock | AudioBlock | FileBlock, path: string, context: CodecContext): JsonObject[] {
  const part = encodeMedia(block);
  if (!part || !isMedia(block)) return [];
  if (block.type === 'image' && block.source.url !== undefined && !block.extensions?.gemini)
    noteApproximated(context, {
      path,
      feature: 'image.url',
      message: 'the image is sent by URL, which older Gemini models do not support',
    });
  return [{ ...part, ...(block.type === 'image' && encodeDetail(block)) }];
}

function encodeDetail(block: ImageBlock): JsonObject {
  const level = findMediaLevel(block.source.detail);
  return level === undefined || readExtensions(block)['mediaResolution'] !== undefined ? {} : { mediaResolution: { level } };
}

function encodeToolResult(block: ToolResultBlock, call: ToolUseBlock | undefined, context: CodecContext): JsonObject {
  const { gemini3 } = context.profile;
  const name = call?.name ?? block.name ?? block.tool_use_id;
  const media = gemini3 ? encodeAllMedia(listResultMedia(block.content)) : [];
  const parts = [...media, ...listOpaqueParts(block)];
  return {
    ...readPartExtensions(block),
    functionResponse: { ...encodeResult(block, name, hasId(block, call, context)), ...(parts.length > 0 && { parts }) },
  };
}

/** Parts of a result that only Google understands. */
const listOpaqueParts = ({ content }: ToolResultBlock): unknown[] =>
  typeof content === 'string'
    ? []
    : content.flatMap((part) => (part.type === 'opaque' && part.origin === 'gemini' ? [part.raw] : []));

/** A result has an id if the model supports ids, unless the client sent both the call and the result without one. */
const hasId = (result: ToolResultBlock, call: ToolUseBlock | undefined, { profile }: CodecContext): boolean =>
  profile.function_call_ids &&
  (typeof readNestedExtensions(result, 'functionResponse')['id'] === 'string' ||
    !(call && readNestedExtensions(call, 'functionCall')['id'] === null));

/**
 * The media of a result, for models whose results cannot hold them. If there are several results (`isOneOfMany`), a
 * text names the call.
 */
function encodeResultMedia(
  block: ToolResultBlock,
  call: ToolUseBlock | undefined,
  path: string,
  isOneOfMany: boolean,
  context: CodecContext,
): JsonObject[] {
  const media = encodeAllMedia(listResultMedia(block.content));
  if (media.length === 0 || !isOneOfMany) return media;
  const label = `Media of the result of ${call?.name ?? block.name ?? 'a call'} (${block.tool_use_id}):`;
  const message =
    'media in tool results are not supported before Gemini 3; sent after all results, each with a text that names its call';
  noteApproximated(context, { path, feature: 'tool_result.media', message });
  return [{ text: label }, ...media];
}

/** One part for each block; the hint about the output format comes last. */
function encodeSystem(system: readonly SystemBlock[], hint: string | undefined, fields: JsonObject): JsonObject | undefined {
  const parts: JsonObject[] = system.map((block) => ({ ...readExtensions(block), text: block.text }));
  const all = hint === undefined || parts.some(({ text }) => text === hint) ? parts : [...parts, { text: hint }];
  return all.length > 0 && isObject(fields) ? { ...fields, parts: all } : undefined;
}

/** The extension fields of the configuration that the canonical request does not write. */
function withoutMapped(config: JsonObject): JsonObject {
  const isMapped = (name: string): boolean =>
    name === 'thinkingConfig' || (FORMAT_FIELDS.includes(name) && config['responseMimeType'] === 'application/json');
  return Object.fromEntries(Object.entries(config).filter(([name]) => !isMapped(name)));
}

// ---- requests that are passed through

/**
 * Joins results of parallel calls that a client sends in contents of their own. Google rejects them: the content after
 * the calls must have all results.
 */
export function adjustForwarded({ contents }: JsonObject, { note }: ForwardTarget): JsonObject | undefined {
  if (!Array.isArray(contents)) return undefined;
  const joined: unknown[] = [];
  let results: ResultContent | undefined;
  for (const [i, content] of contents.entries()) {
    if (!isResultContent(content)) {
      results = undefined;
      joined.push(content);
    } else if (!results || results['role'] !== content['role']) {
      results = { ...content, parts: [...content.parts] };
      joined.push(results);
    } else {
      for (const part of content.parts) results.parts.push(part);
      const message = 'results of parallel calls must be in one content; joined with those before';
      note({ code: 'REPAIRED', path: `/contents/${i}`, feature: 'messages.tool_result', message });
    }
  }
  return joined.length < contents.length ? { contents: joined } : undefined;
}

interface ResultContent extends JsonObject {
  parts: unknown[];
}

/** Whether a content has results of calls and nothing else. */
const isResultContent = (content: unknown): content is ResultContent =>
  isObject(content) && Array.isArray(content['parts']) && content['parts'].length > 0 && content['parts'].every(isResultPart);

const isResultPart = (part: unknown): boolean =>
  isObject(part) && isObject(part['functionResponse'] ?? part['function_response']);
