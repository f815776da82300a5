import type { ImageBlock } from '../canonical/message.ts';
import type { CodecError } from '../canonical/notes.ts';
import type { CacheControl, JsonSchema, ProtocolId } from '../canonical/protocol.ts';
import type { CanonicalRequest, CanonicalTool, OutputFormat, ThinkingConfig, ToolMode } from '../canonical/request.ts';
import { at } from '../canonical/source.ts';
import type { JsonObject } from '../json/json.ts';
import { endOfString, QUOTE } from '../json/scanner.ts';
import { sha256 } from '../passes/names.ts';
import { fitsStrictMode } from '../passes/schema/convert.ts';
import { memo } from './profile.ts';
import type { CodecContext } from './protocol.ts';
import { expectObject, expectText, isTexts, objectOf, optional, unknownFields } from './read.ts';
import { approximate, drop, invalid, refuse } from './report.ts';

const SCHEME = 'data:';

const ENCODING = ';base64';

/** The media type and the base64 data of a data URL; undefined for any other text. A regular expression backtracks here: 60 kB took 20 s. */
export function splitDataUrl(url: string): { media_type: string; data: string } | undefined {
  if (url.slice(0, SCHEME.length).toLowerCase() !== SCHEME) return undefined;
  const comma = url.indexOf(',');
  const head = url.slice(SCHEME.length, Math.max(comma, SCHEME.length));
  if (head.slice(-ENCODING.length).toLowerCase() !== ENCODING) return undefined;
  return { media_type: head.slice(0, head.indexOf(';')), data: url.slice(comma + 1) };
}

type DescribedFormat = Extract<OutputFormat, { type: 'json_schema' }>['json_schema'];

/** What a schema is called that has no name where one is required. */
const DEFAULT_SCHEMA_NAME = 'response';

/** The schema of a response where only the schema itself can describe it. A name is a label without effect: strict mode does not refuse it. */
export function describedSchema({ schema, name, description }: DescribedFormat, context: CodecContext): JsonSchema {
  if (name !== undefined && name !== DEFAULT_SCHEMA_NAME)
    context.note({
      code: 'DROPPED',
      path: '/output_format/json_schema/name',
      feature: 'output_format.name',
      message: `schema name "${name}" is not supported by the target; dropped`,
    });
  if (description === undefined || schema['description'] === description) return schema;
  approximate(context, {
    path: '/output_format/json_schema/description',
    feature: 'output_format.description',
    message: 'the description of the answer stands in its schema',
  });
  const own = schema['description'];
  return { ...schema, description: typeof own === 'string' && own !== '' ? `${description}\n\n${own}` : description };
}

type Held = 'previous_response_id' | 'conversation_id' | 'cached_content';

/** How the protocols call them. */
const WIRE: Record<Held, string> = {
  previous_response_id: 'previous_response_id',
  conversation_id: 'conversation',
  cached_content: 'cachedContent',
};

/** A template holds instructions, tools and a model that nobody else knows. */
function refuseTemplate({ state }: CanonicalRequest, who: string, context: CodecContext): void {
  if (state?.prompt_id === undefined) return;
  const template = JSON.stringify(state.prompt_id);
  refuse(context, {
    path: '/state/prompt_id',
    feature: 'state.prompt_id',
    message: `prompt template ${template} is stored by its provider and cannot be expanded for ${who}; send the messages instead`,
  });
}

/** Entries of `include` that are heard everywhere: ciphertext travels in a carrier, and log probabilities are a parameter. */
const HEARD: ReadonlySet<string> = new Set(['reasoning.encrypted_content', 'message.output_text.logprobs']);

/** What only a server with a memory could do: refused where the answer would be another, told where it would not. `who`: the server. */
export function dropState(request: CanonicalRequest, who: string, held: readonly Held[], context: CodecContext): void {
  const { state, truncation, include = [] } = request;
  refuseTemplate(request, who, context);
  for (const name of held)
    if (state?.[name] !== undefined)
      refuse(context, {
        path: `/state/${name}`,
        feature: `state.${name}`,
        message: `${who} stores no conversations, so ${WIRE[name]} cannot be resolved; send the whole conversation instead`,
      });
  const lose = (feature: string, message: string): void =>
    drop(context, { path: `/${feature.replace('.', '/')}`, feature, message: `${who} ${message}` });
  if (state?.background) lose('state.background', 'answers at once');
  if (truncation === 'auto') lose('truncation', 'does not shorten a conversation');
  const unheard = include.filter((entry) => !HEARD.has(entry));
  if (unheard.length > 0) lose('include', `cannot be asked to include ${unheard.join(', ')}`);
}

/** Anthropic takes an effort beside disabled thinking: it is about the whole response there. */
export function dropIdleEffort({ type, effort }: ThinkingConfig, context: CodecContext): void {
  if (type === 'disabled' && effort !== undefined)
    drop(context, {
      path: '/thinking/effort',
      feature: 'thinking.effort',
      message: `effort "${effort}" is not supported with disabled thinking; dropped`,
    });
}

/** For a model that does not think: not to think is what it does anyway. */
export function dropThinking({ type }: ThinkingConfig, context: CodecContext): JsonObject {
  if (type !== 'disabled') drop(context, { path: '/thinking', feature: 'thinking', message: 'this model does not think' });
  return {};
}

/** Cheap to ask of every call: only long numbers and those with an exponent can be inexact. */
const SUSPICIOUS = /[\d.]{16}|\d[eE]/;

const NUMBER = /-?\d[\d.eE+-]*/y;

const ZERO = 0x30;

/** The digits that count, and where the point stands among them: equal for equal decimal values. */
function decimalOf(literal: string): string {
  const [mantissa = '', exponent = '0'] = literal.toLowerCase().split('e');
  const [whole = '', fraction = ''] = mantissa.replace('-', '').split('.');
  const digits = whole + fraction;
  // Loops: /0+$/ looks at every run of zeros from each of its places, which is quadratic.
  let start = 0;
  while (digits.charCodeAt(start) === ZERO) start++;
  let end = digits.length;
  while (end > start && digits.charCodeAt(end - 1) === ZERO) end--;
  return `${digits.slice(start, end)}e${start === end ? 0 : Number(exponent) - fraction.length + digits.length - end}`;
}

const isExact = (literal: string): boolean => {
  const value = Number(literal);
  return Number.isFinite(value) && decimalOf(literal) === decimalOf(String(value));
};

/** The first number of a JSON text that JSON.parse does not keep: a long integer, too many decimals, an exponent out of range. */
export function findInexactNumber(text: string): string | undefined {
  if (!SUSPICIOUS.test(text)) return undefined;
  for (let at = 0; at < text.length; at++) {
    if (text.charCodeAt(at) === QUOTE) at = endOfString(text, at) - 1;
    else {
      NUMBER.lastIndex = at;
      const literal = NUMBER.exec(text)?.[0];
      if (literal === undefined) continue;
      if (!isExact(literal)) return literal;
      at += literal.length - 1;
    }
  }
  return undefined;
}

/** The target takes arguments as JSON values in a body that is built as an object: numbers that do not survive this are told. */
export function tellInexactNumbers(text: string, path: string, context: CodecContext): void {
  const literal = findInexactNumber(text);
  if (literal === undefined) return;
  const shown = literal.length > 40 ? `${literal.slice(0, 40)}…` : literal;
  const message = `the number ${shown} in the arguments of a call is not exact in the target; sent as ${JSON.stringify(Number(literal))}`;
  drop(context, { path, feature: 'tool_use.input.precision', message });
}

const ALPHABET = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/';

const BYTES_PER_FLOAT = 4;

const PAD = 0x3d;

const NO_DIGIT = 255;

/** base64 of little-endian 32-bit floats. */
export function packFloats(floats: readonly number[]): string {
  const view = new DataView(new ArrayBuffer(floats.length * BYTES_PER_FLOAT));
  for (const [i, float] of floats.entries()) view.setFloat32(i * BYTES_PER_FLOAT, float, true);
  return encodeBase64(new Uint8Array(view.buffer));
}

/** The floats of such a text; undefined when it is none. */
export function unpackFloats(text: string): number[] | undefined {
  const bytes = decodeBase64(text);
  if (!bytes || bytes.length % BYTES_PER_FLOAT !== 0) return undefined;
  const view = new DataView(bytes.buffer);
  return Array.from({ length: bytes.length / BYTES_PER_FLOAT }, (_, i) => view.getFloat32(i * BYTES_PER_FLOAT, true));
}

/** No runtime but node has Buffer, and btoa wants a string of bytes. */
function encodeBase64(bytes: Uint8Array): string {
  const text = new Uint8Array(Math.ceil(bytes.length / 3) * 4).fill(PAD);
  for (let at = 0, to = 0; at < bytes.length; at += 3, to += 4) {
    const digits = Math.min(bytes.length - at, 3) + 1;
    const group = ((bytes[at] ?? 0) << 16) | ((bytes[at + 1] ?? 0) << 8) | (bytes[at + 2] ?? 0);
    for (let digit = 0; digit < digits; digit++) text[to + digit] = ALPHABET.charCodeAt((group >> (18 - 6 * digit)) & 63);
  }
  return new TextDecoder().decode(text);
}

/** What each character stands for, in both alphabets of base64. */
const DIGITS: Uint8Array = digitTable();

function digitTable(): Uint8Array {
  const table = new Uint8Array(128).fill(NO_DIGIT);
  for (const alphabet of [ALPHABET, ALPHABET.replace('+/', '-_')])
    for (let digit = 0; digit < alphabet.length; digit++) table[alphabet.charCodeAt(digit)] = digit;
  return table;
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

// Tools that a conversation declares on its way. Other protocols declare all tools at once, so these join the tools of the request; in
// their own protocol the block that declares them is sent, and they are left out.
const HOISTED = 'hoisted';

const identityOf = ({ kind = 'function', namespace = '', name }: CanonicalTool): string =>
  JSON.stringify([kind, namespace, name]);

/** Those of `found` that are new, marked: the first declaration of a name counts. The tools are the caller's own, and are changed. */
export function hoistTools(
  found: readonly CanonicalTool[],
  declared: readonly CanonicalTool[],
  protocol: ProtocolId,
): CanonicalTool[] {
  const known = new Set(declared.map(identityOf));
  return found.filter((tool) => {
    const identity = identityOf(tool);
    if (known.has(identity)) return false;
    known.add(identity);
    tool.extensions = { ...tool.extensions, [protocol]: { ...tool.extensions?.[protocol], [HOISTED]: true } };
    return true;
  });
}

/** The request without the tools that blocks of this protocol declare themselves. */
export function withoutHoisted(request: CanonicalRequest, protocol: ProtocolId): CanonicalRequest {
  const isHoisted = ({ extensions }: CanonicalTool): boolean => extensions?.[protocol]?.[HOISTED] === true;
  if (!request.tools?.some(isHoisted)) return request;
  const { tools, ...rest } = request;
  const left = tools.filter((tool) => !isHoisted(tool));
  return left.length > 0 ? { ...rest, tools: left } : rest;
}

// What both protocols of OpenAI say in the same words.
type Detail = NonNullable<ImageBlock['source']['detail']>;

const DETAILS: readonly unknown[] = ['auto', 'low', 'high', 'original'] satisfies Detail[];

/** How closely an image is looked at. */
export const isDetail = (detail: unknown): detail is Detail => DETAILS.includes(detail);

/** Texts only; what holds something else goes back as it came. */
export function decodeMetadata(value: unknown): Pick<CanonicalRequest, 'metadata'> {
  const metadata = optional(value, 'metadata', expectObject);
  return metadata && isTexts(metadata) ? { metadata } : {};
}

const TIERS: Readonly<Record<string, string>> = {
  auto: 'auto',
  default: 'standard',
  flex: 'flex',
  scale: 'scale',
  priority: 'priority',
  fast: 'priority',
};

/** A tier that only its server knows has no canonical word, and goes back as it came. */
export function decodeTier(value: unknown): Pick<CanonicalRequest, 'service_tier'> {
  const word = optional(value, 'service_tier', expectText);
  const tier = word !== undefined && Object.hasOwn(TIERS, word) ? TIERS[word] : undefined;
  return tier === undefined ? {} : { service_tier: tier };
}

/** `sent`: the client's own word, which stands as long as it means the same. */
export function encodeTier(tier: string | undefined, sent: unknown): string | undefined {
  if (typeof sent === 'string' && decodeTier(sent).service_tier === tier) return sent;
  return tier === undefined || tier === 'batch' ? undefined : tier === 'standard' ? 'default' : tier;
}

/** Longer ids are refused. */
const MAX_USER = 64;

export const shortUser = (id: string): string => (id.length > MAX_USER ? sha256(id) : id);

/** The id of the user as OpenAI takes it. */
export function encodeUserId(id: string, context: CodecContext): string {
  const short = shortUser(id);
  const message = `the id of the user is longer than ${MAX_USER}; its hash is sent`;
  if (short !== id) context.note({ code: 'RENAMED', path: '/user_id', feature: 'user_id', message });
  return short;
}

// What other protocols do by themselves and OpenAI does not.

/** These continue a trailing assistant message, and keep to every schema. */
const OTHERS: ReadonlySet<ProtocolId | undefined> = new Set(['anthropic-messages', 'gemini']);

/** Whether the protocol of the source continues a trailing assistant message. */
export const continuesPrefill = ({ source }: CodecContext): boolean => OTHERS.has(source);

type Format = Extract<OutputFormat, { type: 'json_schema' }>['json_schema'];

/** The schema of a response with the name that OpenAI requires, and in strict mode where the source keeps to every schema. */
export function namedSchema(format: Format, context: CodecContext): Format & { name: string } {
  const { name, strict, ...rest } = format;
  if (name === undefined)
    approximate(context, {
      path: '/output_format',
      feature: 'output_format.name',
      message: `the target requires a schema name; "${DEFAULT_SCHEMA_NAME}" is sent`,
    });
  const kept = strict ?? strictOf(format, context);
  return { name: name ?? DEFAULT_SCHEMA_NAME, ...rest, ...(kept !== undefined && { strict: kept }) };
}

function strictOf({ schema }: Format, context: CodecContext): true | undefined {
  if (!OTHERS.has(context.source)) return undefined;
  if (fitsStrictMode(schema)) return true;
  approximate(context, {
    path: '/output_format',
    feature: 'output_format.strict',
    message: 'the schema does not fit strict mode of OpenAI and is sent without it; the response may deviate from the schema',
  });
  return undefined;
}

// OpenAI's prompt cache, which both of its protocols know.
const TTLS: readonly unknown[] = ['5m', '30m', '1h', '12h', '24h'] satisfies CacheControl['ttl'][];

/** How long a mark may live in canonical words. */
export const isTtl = (ttl: unknown): ttl is NonNullable<CacheControl['ttl']> => TTLS.includes(ttl);

export const isBreakpoint = (part: JsonObject): boolean => objectOf(part['prompt_cache_breakpoint'])['mode'] === 'explicit';

/** One that says nothing of its life lives as long as the request says. */
export function decodeBreakpoint(part: JsonObject): { cache_control?: CacheControl } {
  if (!isBreakpoint(part)) return {};
  const { ttl } = objectOf(part['prompt_cache_breakpoint']);
  return { cache_control: { type: 'ephemeral', ...(isTtl(ttl) && { ttl }) } };
}

export const encodeBreakpoint = ({ cache_control: mark }: { cache_control?: CacheControl }): JsonObject =>
  mark ? { prompt_cache_breakpoint: { mode: 'explicit', ...(mark.ttl && { ttl: mark.ttl }) } } : {};

type PromptCache = NonNullable<CanonicalRequest['prompt_cache']>;

export function decodePromptCache(body: JsonObject, context: CodecContext): { prompt_cache?: PromptCache } {
  const key = optional(body['prompt_cache_key'], 'prompt_cache_key', expectText);
  const { mode, ttl: named } = objectOf(optional(body['prompt_cache_options'], 'prompt_cache_options', expectObject));
  const ttl = named ?? body['prompt_cache_retention'];
  const cache: PromptCache = {
    ...(key !== undefined && { key }),
    ...((mode === 'implicit' || mode === 'explicit') && { mode }),
    ...(typeof ttl === 'string' && { ttl }),
  };
  if (Object.keys(cache).length === 0) return {};
  const places = { key: '/prompt_cache_key', ...(named === undefined && { ttl: '/prompt_cache_retention' }) };
  return { prompt_cache: at('/prompt_cache_options', cache, context, places) };
}

/** Lives that `prompt_cache_retention` has words for; the others stand in `prompt_cache_options`. */
const RETENTIONS: ReadonlySet<string> = new Set(['24h', 'in_memory', 'in-memory']);

const OPTION_FIELDS: ReadonlySet<string> = new Set(['mode', 'ttl']);

/** `sent`: the client's own words, which may say more. Fields that say nothing are undefined. */
export function encodePromptCache({ prompt_cache: cache = {} }: CanonicalRequest, sent: JsonObject): JsonObject {
  const { key, mode, ttl } = cache;
  const isRetention = mode === undefined && RETENTIONS.has(ttl ?? '');
  const options = {
    ...unknownFields(objectOf(sent['prompt_cache_options']), OPTION_FIELDS),
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

/** Copilot CLI sends Gemini's mode VALIDATED under this name. */
const VALIDATED = 'validated';

/** A choice without a canonical form. It goes back to its own protocol as it came; others leave the choice to the model. */
export const unknownChoice = (value: unknown, origin: ProtocolId): ToolMode => ({
  type: 'auto',
  ...(value === VALIDATED && { validated: true }),
  native: { value, origin },
});

// Paths and URLs: what clients call, and what providers are called with.
const PATHS = { entries: 200, bytes: 256 * 1024 };

/** Without query, fragment, and the slashes that a base URL with a slash at its end doubles. */
export const segmentsOf: (path: string) => readonly string[] = memo(PATHS, (path) => {
  const end = path.search(/[?#]/);
  return (end < 0 ? path : path.slice(0, end)).split('/').filter((segment) => segment !== '');
});

/** `/v1`, `/v1beta`, `/v1alpha1`. */
export const isVersion = (segment: string): boolean => /^v\d+((alpha|beta)\d*)?$/.test(segment);

export function unescaped(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

/** A model's name as one segment of a path. */
export function escaped(model: string): string {
  if (model === '' || !model.isWellFormed()) throw invalid('model', 'must be the name of a model');
  return encodeURIComponent(model);
}

export function parseUrl(base: string): URL {
  const url = URL.canParse(base) ? new URL(base) : undefined;
  if (!url?.protocol.startsWith('http')) throw invalid('provider.base_url', 'must be an http URL');
  return url;
}

/** URLs resolve `..`, also when escaped, read `\` as `/`, and skip tabs and line ends; servers may do the same with escaped slashes. */
const LEADS_OUT = /(\/|%2f|%5c)(\.|%2e){1,2}(\/|%2f|%5c|$)|[\\\t\n\r]/i;

/** Sets the path, unless it would leave the provider's own. `param`: who is to blame. */
export function setPath(url: URL, path: string, param: 'path' | 'model'): void {
  if (LEADS_OUT.test(path)) throw leadsOut(param);
  url.pathname = path;
}

const leadsOut = (param: string): CodecError => invalid(param, 'leads out of the path of the provider');

/** `key` is how clients of Google show who they are, to us. */
export function copyQuery(path: string, url: URL): void {
  const query = path.indexOf('?');
  if (query < 0) return;
  for (const [name, value] of new URLSearchParams(path.slice(query + 1)))
    if (name !== 'key') url.searchParams.append(name, value);
}
