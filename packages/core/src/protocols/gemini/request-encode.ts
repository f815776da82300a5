import { isObject, type JsonObject } from '../../accumulate/overlay.ts';
import type { CanonicalRequest, SystemBlock } from '../../canonical/request.ts';
import { prepare } from '../../passes/prepare.ts';
import type { Rules, Vocabulary } from '../../passes/rules.ts';
import { type CodecContext, invalid, rulesTelling, type WireRequest } from '../shared/codec.ts';
import type { ProviderProfile } from '../shared/profile.ts';
import { objectOf } from '../shared/read.ts';
import { encodeContents } from './contents-encode.ts';
import { BOUNDS, encodeParameters } from './generation-config.ts';
import { pathOf } from './interface.ts';
import { fieldsOf } from './kept.ts';
import { AUDIO_FORMATS } from './media-decode.ts';
import { encodeOptions, encodeOutput } from './options.ts';
import { encodeOutputFormat, FORMAT_FIELDS, isOwnFormat } from './output-format.ts';
import { toolRules } from './profiles.ts';
import { encodeThinking } from './thinking.ts';
import { encodeToolConfig, restrictTools } from './tool-config.ts';
import { encodeTools, SERVER_TOOLS, withOwnSchemas } from './tools-encode.ts';

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

/** What of the kept configuration the request does not say itself. */
function withoutMapped(config: JsonObject): JsonObject {
  const isMapped = (name: string): boolean =>
    name === 'thinkingConfig' || (FORMAT_FIELDS.includes(name) && config['responseMimeType'] === 'application/json');
  return Object.fromEntries(Object.entries(config).filter(([name]) => !isMapped(name)));
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

/** One part for each block. What has to be said in words comes last. */
function encodeSystem(system: readonly SystemBlock[], hint: string | undefined, kept: JsonObject): JsonObject | undefined {
  const parts: JsonObject[] = system.map((block) => ({ ...fieldsOf(block), text: block.text }));
  const all = hint === undefined || parts.some(({ text }) => text === hint) ? parts : [...parts, { text: hint }];
  return all.length > 0 && isObject(kept) ? { ...kept, parts: all } : undefined;
}
