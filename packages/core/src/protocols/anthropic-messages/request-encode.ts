import type { JsonObject } from '../../accumulate/overlay.ts';
import type { CanonicalRequest } from '../../canonical/request.ts';
import { prepare } from '../../passes/prepare.ts';
import type { Rules, Vocabulary } from '../../passes/rules.ts';
import { type CodecContext, type HeaderBag, rulesTelling, type WireRequest } from '../shared/codec.ts';
import { withoutHoisted } from '../shared/hoisted-tools.ts';
import { objectOf } from '../shared/read.ts';
import { fieldsOf, PROTOCOL } from './fields.ts';
import { dropUnreadable } from './media-encode.ts';
import { encodeMessages, encodeSystem } from './messages-encode.ts';
import { dropForeign, encodeOptions } from './options.ts';
import { encodeOutputFormat } from './output-format.ts';
import { BOUNDS, encodeParameters, limitOf } from './parameters.ts';
import { modelFamily, toolRules } from './profiles.ts';
import { REQUEST_HEADERS } from './request-decode.ts';
import { encodeThinking } from './thinking.ts';
import { encodeToolFields } from './tool-choice.ts';
import { SERVER_TOOLS } from './tools.ts';

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

/** Only what is asked: what a count of tokens wants to know. */
export function encodeQuestionBody(source: CanonicalRequest, caller: CodecContext): JsonObject {
  const { request, context } = prepare(dropUnreadable(withoutHoisted(source, PROTOCOL), caller), rulesOf(caller), caller);
  return encodeQuestion(request, undefined, context).body;
}

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

const withoutEffort = ({ effort: _, ...rest }: JsonObject): JsonObject => rest;

/** What the client sent under these names is said by the canonical fields, or in headers. */
const MAPPED: ReadonlySet<string> = new Set([...REQUEST_HEADERS, 'thinking', 'output_config', 'metadata', 'tool_choice']);

/** fromEntries defines, it does not assign: a field may be called `__proto__`. */
const withoutMapped = (sent: JsonObject): JsonObject =>
  Object.fromEntries(Object.entries(sent).filter(([name]) => !MAPPED.has(name)));

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

function encodeStreaming({ stream: asked }: CanonicalRequest, { target }: CodecContext): JsonObject {
  const stream = target?.stream ?? asked;
  if (stream) return { stream: true };
  return asked === undefined ? {} : { stream: false };
}
