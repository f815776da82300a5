/** What the request codecs of several protocols share. */
import type { ImageBlock } from '../canonical/message.ts';
import type { CodecError } from '../canonical/notes.ts';
import type { CacheControl, JsonSchema, ProtocolId } from '../canonical/protocol.ts';
import type { CanonicalRequest, CanonicalTool, Effort, OutputFormat, ThinkingConfig, ToolMode } from '../canonical/request.ts';
import { withSource } from '../canonical/source.ts';
import type { JsonObject } from '../json/json.ts';
import { findInexactNumber, findSource } from '../json/literals.ts';
import { sha256 } from '../passes/names.ts';
import type { Rules, TargetRules } from '../passes/rules.ts';
import { fitsStrictMode } from '../passes/schema/convert.ts';
import { findEffort } from '../passes/unsupported.ts';
import { memo, memoWeak, type ProviderProfile } from './profile.ts';
import type { CodecContext } from './protocol.ts';
import { expectObject, expectText, isTextRecord, objectOrEmpty, optional, unknownFields } from './read.ts';
import { invalid, noteApproximated, noteDropped, noteRepaired, refuse } from './report.ts';

// ---- paths and URLs

/**
 * The segments of a path, without query, fragment and the empty segments that a base URL with a trailing slash causes.
 */
export const splitSegments: (path: string) => readonly string[] = /* @__PURE__ */ memo(
  { entries: 200, bytes: 262_144 },
  (path) => {
    const end = path.search(/[?#]/);
    return (end < 0 ? path : path.slice(0, end)).split('/').filter((segment) => segment !== '');
  },
);

/** Whether a segment is an API version: `v1`, `v1beta`, `v1alpha1`. */
export const isVersion = (segment: string): boolean => /^v\d+((alpha|beta)\d*)?$/.test(segment);

/** The path after the prefix of the client: `/v1/files/f` is `files/f`. */
export function stripPrefix(path: string): string {
  const segments = splitSegments(path);
  if (segments.length === 0) throw invalid('path', 'is not the path of a passthrough endpoint');
  return segments.slice(segments.findIndex(isVersion) + 1).join('/');
}

/** A model name as one path segment. */
export function encodeModelSegment(model: string): string {
  if (model === '' || !model.isWellFormed()) throw invalid('model', 'must be a model name');
  return encodeURIComponent(model);
}

/** A path segment without percent escapes; verbatim when the escapes are invalid. */
export function decodeSegment(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

/** Parses a base URL; throws unless it is an http or https URL. */
export function parseUrl(base: string): URL {
  const url = URL.canParse(base) ? new URL(base) : undefined;
  if (!url?.protocol.startsWith('http')) throw invalid('provider.base_url', 'must be an http or https URL');
  return url;
}

/** Sets the path of a URL; throws when it would leave the provider's path. `param`: the field that the error blames. */
export function setPath(url: URL, path: string, param: 'path' | 'model'): void {
  if (ESCAPES_PATH.test(path)) throw pathError(param);
  url.pathname = path;
}

/**
 * URLs resolve `..`, even when it is escaped, read `\` as `/`, and skip tabs and line ends; servers may also decode
 * slashes.
 */
const ESCAPES_PATH = /(\/|%2f|%5c)(\.|%2e){1,2}(\/|%2f|%5c|$)|[\\\t\n\r]/i;

const pathError = (param: string): CodecError => invalid(param, 'must not leave the base path of the provider');

/** Copies the query parameters of a client's path, except `key`: Google clients send their gateway key in it. */
export function copyQuery(path: string, url: URL): void {
  const query = path.indexOf('?');
  if (query < 0) return;
  for (const [name, value] of new URLSearchParams(path.slice(query + 1)))
    if (name !== 'key') url.searchParams.append(name, value);
}

// ---- content and tools

/** Whether a part is text without a character. Clients that send one struct for all parts have an empty text in others. */
export const isEmptyText = ({ type, text }: JsonObject): boolean =>
  text === '' && (type === 'text' || type === 'input_text' || type === 'output_text');

/**
 * The media type and base64 data of a data URL; undefined for any other text. Not a regular expression, because it
 * backtracks: 60 kB took 20 s.
 */
export function splitDataUrl(url: string): { media_type: string; data: string } | undefined {
  const { head, type, data } = cutDataUrl(url);
  return head.slice(-ENCODING.length).toLowerCase() === ENCODING ? { media_type: type, data } : undefined;
}

/** The same for a data URL that may be percent-encoded. */
export function readDataUrl(url: string): ReturnType<typeof splitDataUrl> {
  const { head, type, data } = cutDataUrl(url);
  const isText = head !== NO_HEAD && IS_TEXT.test(type);
  return (
    splitDataUrl(url) ?? (isText ? { media_type: type || 'text/plain', data: encodeBase64(unescapeBytes(data)) } : undefined)
  );
}

/** The parts of a data URL; the head of any other text is NO_HEAD. */
function cutDataUrl(url: string): { head: string; type: string; data: string } {
  const comma = url.slice(0, SCHEME.length).toLowerCase() === SCHEME ? url.indexOf(',') : -1;
  if (comma < 0) return { head: NO_HEAD, type: '', data: '' };
  const head = url.slice(SCHEME.length, comma);
  return { head, type: head.split(';', 1).join(), data: url.slice(comma + 1) };
}

/** No head has a comma. */
const NO_HEAD = ',';

/** Types that are written with percent escapes. Others are more likely base64 without its mark. */
const IS_TEXT = /^$|^text\/|\+xml$|^application\/(xml|json)$/i;

const SCHEME = 'data:';

const ENCODING = ';base64';

/** The bytes of percent-encoded text. */
function unescapeBytes(text: string): Uint8Array {
  const bytes = new TextEncoder().encode(text);
  let length = 0;
  for (let at = 0; at < bytes.length; at++) {
    const byte = bytes[at] ?? 0;
    const escaped = byte === PERCENT ? readHex(bytes[at + 1]) * 16 + readHex(bytes[at + 2]) : Number.NaN;
    if (!Number.isNaN(escaped)) at += 2;
    bytes[length++] = Number.isNaN(escaped) ? byte : escaped;
  }
  return bytes.subarray(0, length);
}

const PERCENT = 0x25;

/** The value of a hexadecimal digit, or NaN. */
const readHex = (code = 0): number => Number.parseInt(String.fromCharCode(code), 16);

/**
 * The tools of `found` that are not declared yet, marked as hoisted. The first declaration of a name wins. Changes the
 * tools in place.
 */
export function hoistTools(
  found: readonly CanonicalTool[],
  declared: readonly CanonicalTool[],
  protocol: ProtocolId,
): CanonicalTool[] {
  const known = new Set(declared.map(toolKey));
  return found.filter((tool) => {
    const identity = toolKey(tool);
    if (known.has(identity)) return false;
    known.add(identity);
    tool.extensions = { ...tool.extensions, [protocol]: { ...tool.extensions?.[protocol], [HOISTED]: true } };
    return true;
  });
}

/** The request without the hoisted tools, for the protocol whose blocks declare them. */
export function withoutHoisted(request: CanonicalRequest, protocol: ProtocolId): CanonicalRequest {
  const isHoisted = ({ extensions }: CanonicalTool): boolean => extensions?.[protocol]?.[HOISTED] === true;
  if (!request.tools?.some(isHoisted)) return request;
  const { tools, ...rest } = request;
  const left = tools.filter((tool) => !isHoisted(tool));
  return left.length > 0 ? { ...rest, tools: left } : rest;
}

const toolKey = ({ kind = 'function', namespace = '', name }: CanonicalTool): string => JSON.stringify([kind, namespace, name]);

/**
 * Marks tools that a conversation declares after it started. Other protocols declare all tools up front, so these are
 * added to the tools of the request. Their own protocol sends the declaring block instead.
 */
const HOISTED = 'hoisted';

/** A tool choice without a canonical form: its own protocol gets it back verbatim, others let the model choose. */
export const buildNativeChoice = (value: unknown, origin: ProtocolId): ToolMode => ({
  type: 'auto',
  ...(value === VALIDATED && { validated: true }),
  native: { value, origin },
});

/** Copilot CLI sends Gemini's mode VALIDATED under this name. */
const VALIDATED = 'validated';

// ---- rules for the passes

/** The part of a context that the rules of a target depend on. */
export type TargetContext = Pick<CodecContext, 'profile' | 'source' | 'sourceTraits'>;

type FindTarget = (context: TargetContext) => TargetRules;

/** `build` with a cache: requests from one protocol with one profile share the rules of their target. */
export function memoizeTarget(build: FindTarget): FindTarget {
  const byProfile = memoWeak((_: ProviderProfile) => memo(SOURCES, (_, context: TargetContext) => build(context)));
  return (context) => byProfile(context.profile)(context.source ?? '', context);
}

const SOURCES = { entries: 32, bytes: 4096 };

/** The rules of one request: those of its target, and the functions that report by the caller's policy. */
export const buildRules = (target: TargetRules, context: CodecContext, remembersCalls = false): Rules => ({
  note: (note) => context.note(note),
  drop: (loss) => noteDropped(context, loss),
  repair: (loss) => noteRepaired(context, loss),
  refuse: (loss) => refuse(context, loss),
  target,
  provider: context.target?.provider.id,
  model: context.target?.model,
  remembersCalls,
  foreignThinking: context.policy.foreignThinking ?? 'drop',
});

// ---- features that a target lacks

/**
 * Reports features that need a server with stored state: refused when the response would differ, dropped otherwise.
 * `target`: the server's name for messages.
 */
export function dropState(request: CanonicalRequest, target: string, fields: readonly StateField[], context: CodecContext): void {
  const { state, truncation, include = [] } = request;
  refuseTemplate(request, target, context);
  for (const name of fields)
    if (state?.[name] !== undefined)
      refuse(context, {
        path: `/state/${name}`,
        feature: `state.${name}`,
        message: `${target} stores no conversations, so ${WIRE_NAMES[name]} cannot be resolved; send the whole conversation instead`,
      });
  const dropFeature = (feature: string, message: string): void =>
    noteDropped(context, { path: `/${feature.replace('.', '/')}`, feature, message: `${target} ${message}` });
  if (state?.background) dropFeature('state.background', 'does not support background mode; dropped');
  if (truncation === 'auto') dropFeature('truncation', 'does not support automatic truncation; dropped');
  const unsupported = include.filter((entry) => !SUPPORTED_INCLUDES.has(entry));
  if (unsupported.length > 0) dropFeature('include', `does not support include ${unsupported.join(', ')}; dropped`);
}

type StateField = 'previous_response_id' | 'conversation_id' | 'cached_content';

/** The state fields under their wire names. */
const WIRE_NAMES: Record<StateField, string> = {
  previous_response_id: 'previous_response_id',
  conversation_id: 'conversation',
  cached_content: 'cachedContent',
};

/**
 * Entries of `include` that work with every target: ciphertext travels in a carrier, log probabilities are a parameter.
 */
const SUPPORTED_INCLUDES: ReadonlySet<string> = new Set(['reasoning.encrypted_content', 'message.output_text.logprobs']);

/** A stored template holds instructions, tools and a model that only its provider can expand. */
function refuseTemplate({ state }: CanonicalRequest, target: string, context: CodecContext): void {
  if (state?.prompt_id === undefined) return;
  const template = JSON.stringify(state.prompt_id);
  refuse(context, {
    path: '/state/prompt_id',
    feature: 'state.prompt_id',
    message: `prompt template ${template} is stored by its provider and cannot be expanded for ${target}; send the messages instead`,
  });
}

/**
 * Drops an effort beside disabled thinking. Anthropic allows both, because its effort applies to the whole response.
 */
export function dropIdleEffort({ type, effort }: ThinkingConfig, context: CodecContext): void {
  if (type === 'disabled' && effort !== undefined)
    noteDropped(context, {
      path: '/thinking/effort',
      feature: 'thinking.effort',
      message: `effort "${effort}" is not supported with disabled thinking; dropped`,
    });
}

/**
 * The effort that a request asks for; undefined when it leaves it to the model. A model that does not reason by default
 * needs one, unless only a summary of its reasoning is requested.
 */
export function findWantedEffort(thinking: ThinkingConfig, context: CodecContext): Effort | undefined {
  const wanted = thinking.effort ?? findEffort(thinking.budget_tokens);
  if (wanted || thinking.summary !== undefined) return wanted;
  const sleeps = context.profile.reasons_by_default === false;
  const effect = sleeps ? `this model does not reason by default; sent as effort "${USUAL_EFFORT}"` : 'left to the model';
  if (sleeps || thinking.type === 'adaptive')
    noteApproximated(context, {
      path: '/thinking/type',
      feature: 'thinking.type',
      message: `${thinking.type} thinking: ${effect}`,
    });
  return sleeps ? USUAL_EFFORT : undefined;
}

/** The default of most models that reason. */
const USUAL_EFFORT = 'medium';

/** Whether a model accepts temperature and top_p with the effort that is sent: OpenAI's do while they do not reason. */
export const acceptsSampling = (effort: unknown, { profile }: CodecContext): boolean =>
  profile.supports_sampling || effort === 'none' || (effort === undefined && profile.reasons_by_default === false);

/** Reports a setting of thinking that is sent in another form. */
export const noteEffort = (name: keyof ThinkingConfig, message: string, context: CodecContext): void =>
  noteApproximated(context, { path: `/thinking/${name}`, feature: 'thinking.effort', message });

/** Reports a setting of thinking that is not sent. */
export const dropThinkingField = (name: keyof ThinkingConfig, message: string, context: CodecContext): void =>
  noteDropped(context, { path: `/thinking/${name}`, feature: `thinking.${name}`, message });

/** Drops the thinking settings for a model that does not think. `disabled` asks for nothing, so it is not reported. */
export function dropThinking({ type }: ThinkingConfig, context: CodecContext): JsonObject {
  if (type !== 'disabled')
    noteDropped(context, { path: '/thinking', feature: 'thinking', message: 'thinking is not supported by this model; dropped' });
  return {};
}

// ---- response schemas

/**
 * A response schema for targets that take only the schema: its description moves into it. The dropped name is a label
 * without effect, so strict mode accepts that loss.
 */
export function describedSchema({ schema, name, description }: Format, context: CodecContext): JsonSchema {
  if (name !== undefined && name !== DEFAULT_SCHEMA_NAME)
    context.note({
      code: 'DROPPED',
      path: '/output_format/json_schema/name',
      feature: 'output_format.name',
      message: `schema name "${name}" is not supported by the target; dropped`,
    });
  if (description === undefined || schema['description'] === description) return schema;
  noteApproximated(context, {
    path: '/output_format/json_schema/description',
    feature: 'output_format.description',
    message: 'the description of the output format is not supported by the target; moved into its schema',
  });
  const inner = schema['description'];
  return { ...schema, description: typeof inner === 'string' && inner !== '' ? `${description}\n\n${inner}` : description };
}

/**
 * A response schema with the name that OpenAI requires, and in strict mode where the source protocol enforces every
 * schema.
 */
export function namedSchema(format: Format, context: CodecContext): Format & { name: string } {
  const { name, strict, ...rest } = format;
  if (name === undefined)
    noteApproximated(context, {
      path: '/output_format',
      feature: 'output_format.name',
      message: `the target requires a schema name; "${DEFAULT_SCHEMA_NAME}" is sent`,
    });
  const flag = strict ?? strictFlag(format, context);
  return { name: name ?? DEFAULT_SCHEMA_NAME, ...rest, ...(flag !== undefined && { strict: flag }) };
}

function strictFlag({ schema }: Format, context: CodecContext): true | undefined {
  if (!context.sourceTraits?.enforcesSchemas) return undefined;
  if (fitsStrictMode(schema)) return true;
  noteApproximated(context, {
    path: '/output_format',
    feature: 'output_format.strict',
    message: 'the schema does not fit strict mode of OpenAI and is sent without it; the response may deviate from the schema',
  });
  return undefined;
}

type Format = Extract<OutputFormat, { type: 'json_schema' }>['json_schema'];

/** The name of a nameless schema where the target requires a name. */
const DEFAULT_SCHEMA_NAME = 'response';

// ---- fields that both protocols of OpenAI share

/** Whether a value is a known image detail. */
export const isDetail = (detail: unknown): detail is Detail => DETAILS.includes(detail);

type Detail = NonNullable<ImageBlock['source']['detail']>;

const DETAILS: readonly unknown[] = ['auto', 'low', 'high', 'original'] satisfies Detail[];

/** Metadata whose values are all text; any other metadata is only kept as an extension. */
export function decodeMetadata(value: unknown): Pick<CanonicalRequest, 'metadata'> {
  const metadata = optional(value, 'metadata', expectObject);
  return metadata && isTextRecord(metadata) ? { metadata } : {};
}

/** The canonical service tier. A tier that only its server has is only kept as an extension. */
export function decodeTier(value: unknown): Pick<CanonicalRequest, 'service_tier'> {
  const word = optional(value, 'service_tier', expectText);
  const tier = word !== undefined && Object.hasOwn(TIERS, word) ? TIERS[word] : undefined;
  return tier === undefined ? {} : { service_tier: tier };
}

/** The service tier in OpenAI's words. `sent`: the word of the client, used if it means the same tier. */
export function encodeTier(tier: string | undefined, sent: unknown): string | undefined {
  if (typeof sent === 'string' && decodeTier(sent).service_tier === tier) return sent;
  return tier === undefined || tier === 'batch' ? undefined : tier === 'standard' ? 'default' : tier;
}

const TIERS: Readonly<Record<string, string>> = {
  auto: 'auto',
  default: 'standard',
  flex: 'flex',
  scale: 'scale',
  priority: 'priority',
  fast: 'priority',
};

/** The user id as OpenAI accepts it, with a note when it is hashed. */
export function encodeUserId(id: string, context: CodecContext): string {
  const short = shortenUserId(id);
  const message = `the user id is longer than ${MAX_USER} characters; its hash is sent`;
  if (short !== id) context.note({ code: 'RENAMED', path: '/user_id', feature: 'user_id', message });
  return short;
}

/** The user id, or its hash when it is too long for OpenAI. */
export const shortenUserId = (id: string): string => (id.length > MAX_USER ? sha256(id) : id);

/** OpenAI rejects longer user ids. */
const MAX_USER = 64;

// ---- prompt cache of OpenAI

/** OpenAI's three prompt cache fields as one canonical object. */
export function decodePromptCache(body: JsonObject, context: CodecContext): { prompt_cache?: PromptCache } {
  const key = optional(body['prompt_cache_key'], 'prompt_cache_key', expectText);
  const { mode, ttl: optionTtl } = objectOrEmpty(optional(body['prompt_cache_options'], 'prompt_cache_options', expectObject));
  const ttl = optionTtl ?? body['prompt_cache_retention'];
  const cache: PromptCache = {
    ...(key !== undefined && { key }),
    ...((mode === 'implicit' || mode === 'explicit') && { mode }),
    ...(typeof ttl === 'string' && { ttl }),
  };
  if (Object.keys(cache).length === 0) return {};
  const places = { key: '/prompt_cache_key', ...(optionTtl === undefined && { ttl: '/prompt_cache_retention' }) };
  return { prompt_cache: withSource('/prompt_cache_options', cache, context, places) };
}

/**
 * The prompt cache settings as OpenAI's fields; absent ones are undefined. `sent`: the client's fields, which may hold
 * more.
 */
export function encodePromptCache({ prompt_cache: cache = {} }: CanonicalRequest, sent: JsonObject): JsonObject {
  const { key, mode, ttl } = cache;
  const isRetention = mode === undefined && RETENTIONS.has(ttl ?? '');
  const options = {
    ...unknownFields(objectOrEmpty(sent['prompt_cache_options']), OPTION_FIELDS),
    ...(mode && { mode }),
    ...(ttl !== undefined && !isRetention && { ttl }),
  };
  const hasOptions = Object.keys(options).length > 0;
  return {
    prompt_cache_key: key,
    prompt_cache_options: hasOptions ? options : undefined,
    prompt_cache_retention: isRetention ? ttl : hasOptions ? (sent['prompt_cache_retention'] ?? undefined) : undefined,
  };
}

type PromptCache = NonNullable<CanonicalRequest['prompt_cache']>;

/** Lifetimes that `prompt_cache_retention` accepts; all others go into `prompt_cache_options`. */
const RETENTIONS: ReadonlySet<string> = new Set(['24h', 'in_memory', 'in-memory']);

const OPTION_FIELDS: ReadonlySet<string> = new Set(['mode', 'ttl']);

/** The cache breakpoint of a part. Without a lifetime of its own it has that of the request. */
export function decodeBreakpoint(part: JsonObject): { cache_control?: CacheControl } {
  if (!isBreakpoint(part)) return {};
  const { ttl } = objectOrEmpty(part['prompt_cache_breakpoint']);
  return { cache_control: { type: 'ephemeral', ...(isTtl(ttl) && { ttl }) } };
}

/** The cache breakpoint of a block as OpenAI's part field. */
export const encodeBreakpoint = ({ cache_control: mark }: { cache_control?: CacheControl }): JsonObject =>
  mark ? { prompt_cache_breakpoint: { mode: 'explicit', ...(mark.ttl && { ttl: mark.ttl }) } } : {};

/** Whether a content part ends a cached prefix. */
export const isBreakpoint = (part: JsonObject): boolean => objectOrEmpty(part['prompt_cache_breakpoint'])['mode'] === 'explicit';

/** Whether a value is a canonical lifetime of a cache breakpoint. */
export const isTtl = (ttl: unknown): ttl is NonNullable<CacheControl['ttl']> => TTLS.includes(ttl);

const TTLS: readonly unknown[] = ['5m', '30m', '1h', '12h', '24h'] satisfies CacheControl['ttl'][];

// ---- numbers that JSON.parse changes

/** The argument text of a call whose arguments came as a JSON value, where JSON.parse has changed a number of it. */
export function keepSource(input: JsonObject): { input_raw?: string } {
  const text = findSource(input);
  return text === undefined ? {} : { input_raw: text };
}

/** Reports a number that loses precision because the target takes arguments as JSON values instead of text. */
export function reportInexactNumbers(text: string, path: string, context: CodecContext): void {
  const literal = findInexactNumber(text);
  if (literal === undefined) return;
  const shown = literal.length > 40 ? `${literal.slice(0, 40)}…` : literal;
  const message = `the number ${shown} in the arguments of a tool call loses precision; sent as ${JSON.stringify(Number(literal))}`;
  noteDropped(context, { path, feature: 'tool_use.input.precision', message });
}

// ---- embeddings as base64

/** Encodes floats as base64 of little-endian 32-bit floats. */
export function packFloats(floats: readonly number[]): string {
  const view = new DataView(new ArrayBuffer(floats.length * BYTES_PER_FLOAT));
  for (const [i, float] of floats.entries()) view.setFloat32(i * BYTES_PER_FLOAT, float, true);
  return encodeBase64(new Uint8Array(view.buffer));
}

/** Decodes what `packFloats` writes; undefined for any other text. */
export function unpackFloats(text: string): number[] | undefined {
  const bytes = decodeBase64(text);
  if (!bytes || bytes.length % BYTES_PER_FLOAT !== 0) return undefined;
  const view = new DataView(bytes.buffer);
  return Array.from({ length: bytes.length / BYTES_PER_FLOAT }, (_, i) => view.getFloat32(i * BYTES_PER_FLOAT, true));
}

const BYTES_PER_FLOAT = 4;

/** Only Node has Buffer, and btoa needs a binary string. */
function encodeBase64(bytes: Uint8Array): string {
  const text = new Uint8Array(Math.ceil(bytes.length / 3) * 4).fill(PAD);
  for (let at = 0, to = 0; at < bytes.length; at += 3, to += 4) {
    const digits = Math.min(bytes.length - at, 3) + 1;
    const group = ((bytes[at] ?? 0) << 16) | ((bytes[at + 1] ?? 0) << 8) | (bytes[at + 2] ?? 0);
    for (let digit = 0; digit < digits; digit++) text[to + digit] = ALPHABET.charCodeAt((group >> (18 - 6 * digit)) & 63);
  }
  return new TextDecoder().decode(text);
}

function decodeBase64(text: string): Uint8Array<ArrayBuffer> | undefined {
  let length = text.length;
  while (length > 0 && text.length - length < 2 && text.charCodeAt(length - 1) === PAD) length--;
  if (length % 4 === 1) return undefined;
  const bytes = new Uint8Array(Math.floor((length * 3) / 4));
  let bits = 0;
  let group = 0;
  let to = 0;
  for (let at = 0; at < length; at++) {
    const digit = DIGITS[text.charCodeAt(at)] ?? NO_DIGIT;
    if (digit === NO_DIGIT) return undefined;
    group = ((group << 6) | digit) & 0xffff;
    bits += 6;
    if (bits < 8) continue;
    bits -= 8;
    bytes[to++] = group >> bits;
  }
  return bytes;
}

const ALPHABET = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/';

const PAD = 0x3d;

const NO_DIGIT = 255;

/** The value of each character, in both alphabets of base64. */
const DIGITS: Uint8Array = /* @__PURE__ */ buildDigitTable();

function buildDigitTable(): Uint8Array {
  const table = new Uint8Array(128).fill(NO_DIGIT);
  for (const alphabet of [ALPHABET, ALPHABET.replace('+/', '-_')])
    for (let digit = 0; digit < alphabet.length; digit++) table[alphabet.charCodeAt(digit)] = digit;
  return table;
}
