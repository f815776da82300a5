import type { JsonObject } from '../../accumulate/overlay.ts';
import type { CanonicalRequest } from '../../canonical/request.ts';
import { prepare } from '../../passes/prepare.ts';
import type { Rules, Vocabulary } from '../../passes/rules.ts';
import { type CodecContext, drop, invalid, rulesTelling, type WireRequest } from '../shared/codec.ts';
import { withoutHoisted } from '../shared/hoisted-tools.ts';
import { continuesPrefill } from '../shared/openai-target.ts';
import { objectOf } from '../shared/read.ts';
import { encodeMessages } from './input-encode.ts';
import { PROTOCOL } from './kept.ts';
import { encodeOptions, OPTION_FIELDS } from './options.ts';
import { foldParallel } from './parallel.ts';
import { BOUNDS, encodeParameters } from './parameters.ts';
import { toolRules } from './profiles.ts';
import { encodeSystem } from './system-encode.ts';
import { encodeText, withJsonWord } from './text-options.ts';
import { encodeThinking } from './thinking.ts';
import { encodeToolChoice } from './tool-choice.ts';
import { encodeTools, SERVER_TOOLS } from './tools-encode.ts';

export function encodeRequest(request: CanonicalRequest, context: CodecContext): WireRequest {
  const body = encodeRequestBody(request, context);
  return { method: 'POST', path: '/v1/responses', headers: { 'content-type': 'application/json' }, body };
}

/** Fields of the client's first, what the request says over them. */
export function encodeRequestBody(source: CanonicalRequest, caller: CodecContext): JsonObject {
  const { request, context } = prepare(withoutHoisted(source, PROTOCOL), rulesOf(source, caller), caller);
  const sent = sentIn(request);
  const kept = sent ?? {};
  const thinking = encodeThinking(request.thinking, kept['reasoning'], context);
  // Models that reason take sampling only when they are told not to (gpt-5.1 and later).
  const isSampling = context.profile.supports_sampling || objectOf(thinking['reasoning'])['effort'] === 'none';
  const said = encodeMessages(foldParallel(request.messages), sent !== undefined, context);
  // The API refuses an empty input: instructions of another protocol that stand alone are a message.
  const { instructions, items } = encodeSystem(request.system ?? [], sent === undefined && said.length === 0);
  const input = [...items, ...said];
  const hasTemplate = kept['prompt'] !== undefined;
  const remembers = hasMemory(request) || hasTemplate;
  if (input.length === 0 && instructions === undefined && !remembers)
    throw invalid('input', 'must contain at least one message with content');
  return {
    ...withoutMapped(kept),
    ...modelOf(request, context),
    ...(instructions !== undefined && { instructions }),
    ...((input.length > 0 || !hasTemplate) && {
      input: remembers ? input : withJsonWord(input, request.output_format, context),
    }),
    ...encodeToolFields(request, kept, sent !== undefined, context),
    ...encodeParameters(request, isSampling, context),
    ...encodeText(request, kept['text'], context),
    ...thinking,
    ...encodeOptions(request, sent, context),
    ...encodeStreaming(request, kept, context),
  };
}

/** What the client sent, when it spoke this protocol; undefined when it spoke another. */
const sentIn = ({ extensions }: CanonicalRequest): JsonObject | undefined => extensions?.[PROTOCOL];

function modelOf({ model }: CanonicalRequest, { target }: CodecContext): JsonObject {
  const name = target?.model || model;
  return name === '' ? {} : { model: name };
}

const MAX_BREAKPOINTS = 4;

const SAYS: Vocabulary = {
  names: false,
  titles: 'filename',
  contexts: false,
  logprobs: true,
  citable: false,
  stretches: false,
  detail: 'everywhere',
  validated: false,
  foreignCallers: /^code_execution/,
  tools: ['strict', 'defer_loading', 'allowed_callers', 'output_schema'],
};

// Every field is written out: V8 builds a literal of this size in no time, and one that spreads others five hundred times slower.
function rulesOf(request: CanonicalRequest, context: CodecContext): Rules {
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
    remembersCalls: hasMemory(request),
    foreignThinking: policy.foreignThinking ?? 'drop',
    unsignedThinking: 'keep',
    serverTools: SERVER_TOOLS,
    media: {
      // Messages of the API hold no audio: only a client of this protocol knows that its server takes some.
      audio: sentIn(request) ? ['wav', 'mp3'] : [],
      imageUrls: true,
      fileUrls: true,
      imageIds: true,
      fileIds: true,
      idsOf: [PROTOCOL, 'openai-chat'],
      video: !profile.official,
      spoken: 'transcript',
      inToolResults: true,
    },
    alternate: profile.strict_alternation,
    emptyMessages: 'drop',
    dropWhitespace: false,
    firstUser: false,
    trailingAssistant: continuesPrefill(context) ? 'tell' : 'keep',
    midSystem: 'keep',
    schemas: { tool: 'openai', strictTool: 'openai-strict', output: 'openai' },
    bounds: BOUNDS,
    maxStop: Number.POSITIVE_INFINITY,
    maxTools: profile.max_tools,
    // Models that know no breakpoints cache by themselves.
    cacheMarks: { places: profile.cache_breakpoints ? 'inputs' : 'automatic', most: MAX_BREAKPOINTS, ttls: ['30m', '12h'] },
    says: SAYS,
  };
}

/** Whether the upstream holds a part of the conversation: results may answer calls that are not here. */
function hasMemory({ state, messages }: CanonicalRequest): boolean {
  if (state?.previous_response_id !== undefined || state?.conversation_id !== undefined) return true;
  return messages.some(({ content }) => content.some((block) => block.type === 'opaque' && block.held !== undefined));
}

/** What the client sent under these names is said by the canonical fields. */
const MAPPED: ReadonlySet<string> = new Set([...OPTION_FIELDS, 'reasoning', 'text', 'tool_choice', 'stream_options']);

/** fromEntries defines, it does not assign: a field may be called `__proto__`. */
const withoutMapped = (kept: JsonObject): JsonObject =>
  Object.fromEntries(Object.entries(kept).filter(([name]) => !MAPPED.has(name)));

/** All that a request says about tools. Without tools there is nothing to choose from, unless the server has a prompt with some. */
function encodeToolFields(request: CanonicalRequest, kept: JsonObject, isOwn: boolean, context: CodecContext): JsonObject {
  const { tools = [], tool_choice: choice, parallel_tool_use: parallel } = request;
  const hasTools = tools.length > 0 || isOwn;
  if (choice && !hasTools && (choice.type === 'any' || choice.type === 'tool'))
    drop(context, { path: '/tool_choice', feature: 'tool_choice', message: 'there are no tools to choose from' });
  return {
    ...(tools.length > 0 && { tools: encodeTools(tools, isOwn) }),
    ...(choice && hasTools && { tool_choice: encodeToolChoice(choice, tools, kept['tool_choice']) }),
    ...(parallel !== undefined && hasTools && { parallel_tool_calls: parallel }),
  };
}

function encodeStreaming(
  { stream: asked, stream_options: options }: CanonicalRequest,
  kept: JsonObject,
  context: CodecContext,
): JsonObject {
  const stream = context.target?.stream ?? asked;
  if (!stream) return asked === undefined ? {} : { stream: false };
  const padding = options?.include_obfuscation;
  const stream_options = {
    ...objectOf(kept['stream_options']),
    ...(padding !== undefined && context.profile.official && { include_obfuscation: padding }),
  };
  return { stream: true, ...(Object.keys(stream_options).length > 0 && { stream_options }) };
}
