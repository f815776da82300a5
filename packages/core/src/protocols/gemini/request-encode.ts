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
import { argumentsOf } from '../../codec/answers.ts';
import type { ProviderProfile } from '../../codec/profile.ts';
import type { CodecContext, WireRequest } from '../../codec/protocol.ts';
import { objectOf } from '../../codec/read.ts';
import { approximate, drop, invalid, repair, rulesTelling } from '../../codec/report.ts';
import { tellInexactNumbers } from '../../codec/requests.ts';
import { assignOwn, isObject, type JsonObject, parseJson } from '../../json/json.ts';
import { prepare } from '../../passes/prepare.ts';
import type { Rules, Vocabulary } from '../../passes/rules.ts';
import {
  argsText,
  callParts,
  encodeAllMedia,
  encodeMedia,
  encodeResult,
  isMedium,
  resultMedia,
  signatureField,
  tellWrapped,
} from './blocks.ts';
import { encodeServerResult } from './content-encode.ts';
import { pathOf } from './endpoints.ts';
import { toolRules } from './profiles.ts';
import { AUDIO_FORMATS, levelOf } from './request-decode.ts';
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
import { encodeToolConfig, encodeTools, restrictTools, SERVER_TOOLS, withOwnSchemas } from './tools.ts';
import { fieldsOf, innerFields, partFields } from './wire.ts';

/** The model and whether to stream stand in the path. */
export function encodeRequest(request: CanonicalRequest, context: CodecContext): WireRequest {
  const body = encodeRequestBody(request, context);
  const stream = context.target?.stream ?? request.stream === true;
  const model = context.target?.model ?? request.model;
  const path = stream ? `${pathOf(model, 'streamGenerateContent')}?alt=sse` : pathOf(model, 'generateContent');
  return { method: 'POST', path, headers: { 'content-type': 'application/json' }, body };
}

/** Fields of the client's first, what the request says over them. */
export function encodeRequestBody(source: CanonicalRequest, given: CodecContext): JsonObject {
  const keptConfig = objectOf(fieldsOf(source)['generationConfig']);
  const own = isOwnFormat(source, keptConfig) ? keptConfig : undefined;
  const { request, context } = prepare(withOwnSchemas(withoutOwnFormat(source, own)), rulesOf(given), given);
  const { generationConfig: _, toolConfig, systemInstruction, ...sent } = fieldsOf(request);
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
  if (contents.length === 0) throw invalid('contents', 'must contain at least one message with content');
  const instructions = encodeSystem(request.system ?? [], hint, objectOf(systemInstruction));
  const wireTools = encodeTools(tools, context);
  const wireConfig = encodeToolConfig(request, tools, objectOf(toolConfig), context);
  const thinkingConfig = encodeThinking(request.thinking, keptConfig['thinkingConfig'], context);
  const generationConfig = {
    ...withoutMapped(keptConfig),
    ...encodeParameters(request, context),
    ...encodeOutput(request, keptConfig, context),
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

/** A format in the client's own words is not converted. */
function withoutOwnFormat(request: CanonicalRequest, own: JsonObject | undefined): CanonicalRequest {
  if (!own) return request;
  const { output_format: _, ...rest } = request;
  return rest;
}

// Every field is written out: V8 builds a literal of this size in no time, and one that spreads others five hundred times slower.
function rulesOf(context: CodecContext): Rules {
  const { profile, policy, target } = context;
  const { note, drop, repair, refuse } = rulesTelling(context);
  const { toolName, custom, namespaces, objectRoot } = toolRules(profile);
  const dialect = profile.json_schema_params ? 'gemini-json' : 'gemini-openapi';
  return {
    note,
    drop,
    repair,
    refuse,
    toolName,
    custom,
    namespaces,
    objectRoot,
    protocol: 'gemini',
    provider: target?.provider.id,
    model: target?.model,
    toolId: profile.tool_id,
    foreignThinking: policy.foreignThinking ?? 'drop',
    unsignedThinking: 'keep',
    serverTools: SERVER_TOOLS,
    // Media in results of older models follow the results; the encoder puts them there.
    media: {
      audio: AUDIO_FORMATS,
      imageUrls: true,
      fileUrls: true,
      imageIds: true,
      fileIds: true,
      video: true,
      spoken: 'data',
      inToolResults: true,
    },
    alternate: true,
    emptyMessages: 'drop',
    dropWhitespace: false,
    firstUser: true,
    trailingAssistant: 'keep',
    midSystem: 'reminder',
    schemas: { tool: dialect, strictTool: dialect, output: dialect },
    bounds: BOUNDS,
    maxStop: profile.max_stop,
    maxTools: profile.max_tools,
    cacheMarks: { places: 'none', most: 0, ttls: [] },
    says: saidBy(profile),
  };
}

const saidBy = (profile: ProviderProfile): Vocabulary => ({
  names: false,
  titles: 'text',
  contexts: false,
  logprobs: false,
  citable: false,
  stretches: true,
  // How closely an image is looked at can be said from Gemini 3 on.
  detail: profile.gemini3 ? 'messages' : 'nowhere',
  validated: true,
  foreignCallers: /./,
  tools: profile.json_schema_params ? ['output_schema'] : [],
});

interface Turn {
  role: 'user' | 'model';
  /** What the client's contents said beside role and parts. */
  fields: JsonObject;
  parts: JsonObject[];
}

/** The conversation in turns that change hands; results are the user's, and stand first in the user's turn. */
function encodeContents(request: CanonicalRequest, context: CodecContext): JsonObject[] {
  const calls = new Map(callsOf(request).map((call) => [call.id, call]));
  const turns: Turn[] = [];
  signTurns(request.messages, context).forEach((message, i) => {
    const role = message.role === 'assistant' ? 'model' : 'user';
    const path = `/messages/${i}/content`;
    tellNames(message.content, path, context);
    const parts = encodeMessage(message, path, calls, context);
    const last = turns.at(-1);
    if (last?.role !== role) turns.push({ role, fields: { ...fieldsOf(message) }, parts });
    else {
      assignOwn(last.fields, fieldsOf(message));
      for (const part of parts) last.parts.push(part);
    }
  });
  return turns.filter(({ parts }) => parts.length > 0).map(({ fields, role, parts }) => ({ ...fields, role, parts }));
}

const callsOf = ({ messages }: CanonicalRequest): ToolUseBlock[] =>
  messages.flatMap(({ content }) => content.filter((block) => block.type === 'tool_use'));

/** Google's documented word for "there is no signature": without any, Gemini 3 refuses the calls of a turn. */
const NO_SIGNATURE = 'skip_thought_signature_validator';

/** Gemini 3: the first call of a turn without any signature gets the word for none; its siblings stay without. */
function signTurns(messages: readonly CanonicalMessage[], context: CodecContext): readonly CanonicalMessage[] {
  if (!context.profile.gemini3) return messages;
  return messages.map((message, i) => {
    const first = message.content.find((block) => block.type === 'tool_use' && isClientCall(block.kind));
    if (first?.type !== 'tool_use' || first.signature) return message;
    repair(context, {
      path: `/messages/${i}/content/${message.content.indexOf(first)}`,
      feature: 'messages.signature',
      message: 'the calls have no signature of Gemini; they say so',
    });
    const signed: ToolUseBlock = { ...first, signature: { origin: 'gemini', form: 'thought_signature', value: NO_SIGNATURE } };
    return { ...message, content: message.content.map((block) => (block === first ? signed : block)) };
  });
}

/** What OpenAI wants a name for has one when it has none: it says no more than the media type. */
const NO_NAME = /^document\.\w+$/;

/** Of the name of a file there is at most the media type in the end. */
function tellNames(blocks: readonly ContentBlock[], path: string, context: CodecContext): void {
  for (const [i, block] of blocks.entries()) {
    if (block.type === 'tool_result' && typeof block.content !== 'string')
      tellNames(block.content, `${path}/${i}/content`, context);
    if (block.type === 'file' && block.source.filename && !NO_NAME.test(block.source.filename))
      drop(context, { path: `${path}/${i}/source/filename`, feature: 'file.filename', message: 'files of Gemini have no names' });
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
  // Before Gemini 3 a result holds no media: they follow all results of the turn.
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
      const part = { ...partFields(block), text: block.text, ...signatureField(block, context) };
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
      return block.origin === 'gemini' ? [objectOf(block.raw)] : block.text ? [{ text: block.text }] : [];
    default:
      return block satisfies never;
  }
}

/** Google needs no thoughts back; those that a client of its own sent go as they came, and so does what Google signed. */
function encodeThought(block: ThinkingBlock, path: string, context: CodecContext): JsonObject[] {
  const fields = partFields(block);
  if (block.signature || fields['thought'] === true) {
    const thought = block.thinking !== '' || fields['thought'] === true ? { thought: true } : {};
    return [{ ...fields, text: block.thinking, ...thought, ...signatureField(block, context) }];
  }
  if (block.thinking !== '' || block.extensions)
    drop(context, { path, feature: 'assistant.thinking', message: 'the thinking of an earlier turn is not sent' });
  return [];
}

function encodeToolUse(block: ToolUseBlock, path: string, context: CodecContext): JsonObject {
  const { json, isWrapped } = argsText(argumentsOf(block, false));
  if (isWrapped) tellWrapped(context, path);
  else tellInexactNumbers(json, path, context);
  const { outer, inner } = callParts(block, context.profile.function_call_ids);
  return { ...outer, functionCall: { ...inner, args: parseJson(json) }, ...signatureField(block, context) };
}

function encodeMediaPart(block: ImageBlock | AudioBlock | FileBlock, path: string, context: CodecContext): JsonObject[] {
  const part = encodeMedia(block);
  if (!part || !isMedium(block)) return [];
  if (block.type === 'image' && block.source.url !== undefined && !block.extensions?.gemini)
    approximate(context, { path, feature: 'image.url', message: 'Gemini fetches the image itself, which older models do not' });
  return [{ ...part, ...(block.type === 'image' && encodeDetail(block)) }];
}

function encodeDetail(block: ImageBlock): JsonObject {
  const level = levelOf(block.source.detail);
  return level === undefined || fieldsOf(block)['mediaResolution'] !== undefined ? {} : { mediaResolution: { level } };
}

function encodeToolResult(block: ToolResultBlock, call: ToolUseBlock | undefined, context: CodecContext): JsonObject {
  const { gemini3 } = context.profile;
  const name = call?.name ?? block.name ?? block.tool_use_id;
  const media = gemini3 ? encodeAllMedia(resultMedia(block.content)) : [];
  const parts = [...media, ...ownParts(block)];
  return {
    ...partFields(block),
    functionResponse: { ...encodeResult(block, name, hasId(block, call, context)), ...(parts.length > 0 && { parts }) },
  };
}

/** Parts of a result that only Google understands. */
const ownParts = ({ content }: ToolResultBlock): unknown[] =>
  typeof content === 'string'
    ? []
    : content.flatMap((part) => (part.type === 'opaque' && part.origin === 'gemini' ? [part.raw] : []));

/** A result has an id where ids are known, and where the call or the client's own result has one. */
const hasId = (result: ToolResultBlock, call: ToolUseBlock | undefined, { profile }: CodecContext): boolean =>
  profile.function_call_ids &&
  (typeof innerFields(result, 'functionResponse')['id'] === 'string' ||
    !(call && innerFields(call, 'functionCall')['id'] === null));

/** The media of a result, outside of it. Beside other results (`isOneOfMany`), a text says which one they belong to. */
function encodeResultMedia(
  block: ToolResultBlock,
  call: ToolUseBlock | undefined,
  path: string,
  isOneOfMany: boolean,
  context: CodecContext,
): JsonObject[] {
  const media = encodeAllMedia(resultMedia(block.content));
  if (media.length === 0 || !isOneOfMany) return media;
  const label = `Media of the result of ${call?.name ?? block.name ?? 'a call'} (${block.tool_use_id}):`;
  const message =
    'results hold no media before Gemini 3; they follow all results of the turn, each behind a text that names its call';
  approximate(context, { path, feature: 'tool_result.media', message });
  return [{ text: label }, ...media];
}

/** One part for each block. What has to be said in words comes last. */
function encodeSystem(system: readonly SystemBlock[], hint: string | undefined, kept: JsonObject): JsonObject | undefined {
  const parts: JsonObject[] = system.map((block) => ({ ...fieldsOf(block), text: block.text }));
  const all = hint === undefined || parts.some(({ text }) => text === hint) ? parts : [...parts, { text: hint }];
  return all.length > 0 && isObject(kept) ? { ...kept, parts: all } : undefined;
}

/** What of the kept configuration the request does not say itself. */
function withoutMapped(config: JsonObject): JsonObject {
  const isMapped = (name: string): boolean =>
    name === 'thinkingConfig' || (FORMAT_FIELDS.includes(name) && config['responseMimeType'] === 'application/json');
  return Object.fromEntries(Object.entries(config).filter(([name]) => !isMapped(name)));
}
