import type { JsonObject } from '../../accumulate/overlay.ts';
import type { CanonicalRequest } from '../../canonical/request.ts';
import { prepare } from '../../passes/prepare.ts';
import type { CacheMarkRule, Rules, Vocabulary } from '../../passes/rules.ts';
import { type CodecContext, drop, invalid, rulesTelling, type WireRequest } from '../shared/codec.ts';
import { dropState } from '../shared/drop-state.ts';
import { continuesPrefill } from '../shared/openai-target.ts';
import type { ProviderProfile } from '../shared/profile.ts';
import { objectOf } from '../shared/read.ts';
import { encodeMark, fieldsOf } from './fields.ts';
import { encodeMessages } from './messages-encode.ts';
import { encodeOptions, OPTION_FIELDS } from './options.ts';
import { addHint, encodeOutputFormat } from './output-format.ts';
import { BOUNDS, encodeParameters } from './parameters.ts';
import { toolRules } from './profiles.ts';
import { encodeThinking, THINKING_FIELDS } from './thinking.ts';
import { encodeToolFields } from './tool-choice.ts';
import { serverTools } from './tools.ts';

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
