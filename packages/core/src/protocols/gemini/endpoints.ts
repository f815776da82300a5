import { CodecError } from '../../canonical/notes.ts';
import type { InterfaceType } from '../../canonical/request.ts';
import type { HeaderBag, Provider, RequestTarget, Target, WireRequest } from '../../codec/protocol.ts';
import {
  copyQuery,
  decodeSegment,
  encodeModelSegment,
  isVersion,
  parseUrl,
  setPath,
  splitSegments,
  stripPrefix,
} from '../../codec/requests.ts';

/** The method after the last colon of a path. */
type Verb = 'generateContent' | 'streamGenerateContent' | 'countTokens' | 'embedContent' | 'batchEmbedContents';

const BY_VERB: Readonly<Record<Verb, InterfaceType>> = {
  generateContent: 'CHAT',
  streamGenerateContent: 'CHAT',
  countTokens: 'COUNT_TOKENS',
  embedContent: 'EMBEDDINGS',
  batchEmbedContents: 'EMBEDDINGS',
};

/** Finds the interface of a request by its path and, for `/v1/models`, its headers. */
export function detectInterface(path: string, headers: HeaderBag = {}): InterfaceType {
  const place = parsePath(path);
  if (place) return BY_VERB[place.verb];
  const [version = '', collection, ...rest] = splitSegments(path);
  if (!isVersion(version) || (collection !== 'models' && collection !== 'tunedModels')) return 'PASSTHROUGH';
  // Other protocols have `/v1/models` too; only a Google key identifies this one.
  if (version === 'v1' && !hasGoogleKey(path, headers)) return 'PASSTHROUGH';
  if (rest.length === 0) return collection === 'models' ? 'MODELS' : 'PASSTHROUGH';
  return rest.at(-1)?.includes(':') || rest.at(-2) === 'operations' ? 'PASSTHROUGH' : 'MODEL_INFO';
}

const hasGoogleKey = (path: string, headers: HeaderBag): boolean =>
  Object.hasOwn(headers, 'x-goog-api-key') || Object.hasOwn(headers, 'x-goog-api-client') || parseQuery(path).has('key');

/** The interfaces of this protocol. */
const SUPPORTED: Record<InterfaceType, boolean> = {
  CHAT: true,
  MODELS: true,
  MODEL_INFO: true,
  EMBEDDINGS: true,
  COUNT_TOKENS: true,
  RERANK: false,
  AUDIO: false,
  IMAGES: false,
  PASSTHROUGH: false,
};

/** Whether this protocol has the interface. */
export const supports = (type: InterfaceType): boolean => SUPPORTED[type];

/** Whether the client requested SSE. Without `alt=sse` a stream is one JSON array, written piece by piece. */
export const isSse = (path: string): boolean => parseQuery(path).get('alt') === 'sse';

/** Path segments before a model name. `tunedModels/x` and `endpoints/1` are names by themselves. */
const COLLECTIONS: ReadonlySet<string> = new Set(['models', 'tunedModels', 'endpoints']);

/** The model in the path, including that of MODEL_INFO. */
export function readModel(path: string): string | undefined {
  const place = parsePath(path);
  if (place) return place.model;
  const [version = '', collection = '', ...rest] = splitSegments(path).map(decodeSegment);
  if (!isVersion(version) || !COLLECTIONS.has(collection) || rest.length === 0) return undefined;
  return collection === 'models' ? rest.join('/') : [collection, ...rest].join('/');
}

/** The client's key: in a Google header, in the query, or as a bearer token (Vertex). */
export function readKey(path: string, headers: HeaderBag): string | undefined {
  const bearer = /^bearer\s+(.+)$/i.exec(headers['authorization'] ?? '')?.[1];
  return headers['x-goog-api-key'] || parseQuery(path).get('key') || bearer || undefined;
}

const parseQuery = (path: string): URLSearchParams => new URLSearchParams(path.slice(path.indexOf('?') + 1 || path.length));

const MODELS = /\/(?:models|tunedModels)\//;

const VERB = /^\w+$/;

/**
 * The model and the stream flag of `/v1beta/models/MODEL:VERB`; the name may contain colons. One expression for the
 * whole path would backtrack at every slash and colon, so there are two.
 */
export function readTarget({ path }: WireRequest): RequestTarget | undefined {
  const end = path.search(/[?#]/);
  const call = end < 0 ? path : path.slice(0, end);
  const before = MODELS.exec(call);
  const colon = call.lastIndexOf(':');
  const verb = call.slice(colon + 1);
  const from = before ? before.index + before[0].length : colon;
  if (colon <= from || !VERB.test(verb)) return undefined;
  return { model: decodeSegment(call.slice(from, colon)), isStream: verb === 'streamGenerateContent' };
}

/** API versions that only Google has, and models with a key in the query or with a method. */
const OWN_PATH =
  /^\/(?:upload\/)?v1(?:beta|alpha)|^\/v1\/(?:models|tunedModels)\/(?:.*[?&]key=|[^?]*:(?:(?:streamG|g)enerateContent|countTokens|(?:e|batchE)mbedContents?)(?:\?|$))/;

/** Whether an endpoint belongs to Google, even if its interface is unknown. */
export const ownsPath = (path: string): boolean => OWN_PATH.test(path);

const BARE_MODEL =
  /^(\/v1(?:beta|alpha))\/(?!(?:models|tunedModels|endpoints|projects|publishers)\/)(?=.+:(?:(?:streamG|g)enerateContent|countTokens|(?:e|batchE)mbedContents?)$)/;

/** The AI SDK sends `provider/model` without `models/`; this inserts it. */
export const normalise = (path: string): string => path.replace(BARE_MODEL, '$1/models/');

/** The prefix of file uploads, before the version: `/upload/v1beta/files`. */
const UPLOAD = 'upload';

/**
 * The URL of an interface at a provider. `modelId` is the model of MODEL_INFO; `nativePath` is the client's path for
 * PASSTHROUGH, and selects the method for EMBEDDINGS.
 */
export function buildUrl(type: InterfaceType, target: Target, modelId: string = target.model, nativePath = ''): string {
  const { base_url: base, adapter_config: { path: prefix = '' } = {} } = target.provider;
  const url = parseUrl(base);
  const segments = [...splitSegments(url.pathname), ...splitSegments(prefix)];
  const root = segments.length === 0 ? ['v1beta'] : segments;
  const isUpload = type === 'PASSTHROUGH' && splitSegments(nativePath)[0] === UPLOAD;
  const endpoint = buildEndpoint(type, target, modelId, nativePath);
  const path = [...(isUpload ? uploadRoot(root) : root), endpoint].map((segment) => `/${segment}`).join('');
  setPath(url, path, type === 'PASSTHROUGH' ? 'path' : 'model');
  if (type === 'PASSTHROUGH' || type === 'MODELS') copyQuery(nativePath, url);
  if (type === 'CHAT' && target.stream) url.searchParams.set('alt', 'sse');
  return url.href;
}

const VERBS: Partial<Record<InterfaceType, Verb>> = {
  CHAT: 'generateContent',
  COUNT_TOKENS: 'countTokens',
  // A single text uses `embedContent`; the encoder's path selects it.
  EMBEDDINGS: 'batchEmbedContents',
};

function buildEndpoint(type: InterfaceType, { model, stream }: Target, modelId: string, nativePath: string): string {
  switch (type) {
    case 'CHAT':
      return `${escapeName(model)}:${stream ? 'streamGenerateContent' : VERBS.CHAT}`;
    case 'COUNT_TOKENS':
      return `${escapeName(model)}:${VERBS.COUNT_TOKENS}`;
    case 'EMBEDDINGS':
      return `${escapeName(model)}:${parsePath(nativePath)?.verb === 'embedContent' ? 'embedContent' : VERBS.EMBEDDINGS}`;
    case 'MODELS':
      return 'models';
    case 'MODEL_INFO':
      return escapeName(modelId);
    case 'PASSTHROUGH':
      return stripPrefix(nativePath);
    case 'RERANK':
    case 'AUDIO':
    case 'IMAGES':
      throw new CodecError({ code: 'UNSUPPORTED_INTERFACE', message: `Gemini has no endpoint for ${type}`, http_status: 404 });
    default:
      return type satisfies never;
  }
}

interface Place {
  model: string;
  verb: Verb;
}

/**
 * The model and the verb of `/v1beta/models/{model}:{verb}`, or on Vertex of
 * `/v1/projects/…/publishers/google/models/{model}:{verb}`. The name may contain slashes and colons, and may be
 * escaped.
 */
export function parsePath(path: string): Place | undefined {
  const segments = splitSegments(path).map(decodeSegment);
  const begin = segments.findIndex((segment) => COLLECTIONS.has(segment));
  const rest = segments.slice(begin + 1).join('/');
  const colon = rest.lastIndexOf(':');
  const verb = rest.slice(colon + 1);
  if (begin < 0 || colon <= 0 || !isVerb(verb)) return undefined;
  const name = rest.slice(0, colon);
  return { model: segments[begin] === 'models' ? name : `${segments[begin]}/${name}`, verb };
}

const isVerb = (word: string): word is Verb => Object.hasOwn(BY_VERB, word);

function uploadRoot(root: readonly string[]): string[] {
  const version = Math.max(0, root.findLastIndex(isVersion));
  return [...root.slice(0, version), UPLOAD, ...root.slice(version)];
}

/**
 * The headers of a request to Google. They never include the client's headers, and thus not its key. Vertex takes
 * tokens instead of keys.
 */
export function buildHeaders({ api_key: key, adapter_config: config = {} }: Provider, stream = false): HeaderBag {
  const { headers = {}, auth } = config;
  return {
    'content-type': 'application/json',
    accept: stream ? 'text/event-stream' : 'application/json',
    ...(key && (auth === 'bearer' ? { authorization: `Bearer ${key.trim()}` } : { 'x-goog-api-key': key.trim() })),
    ...Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value])),
  };
}

/** The path of a method for a model. */
export const buildPath = (model: string, verb: Verb): string => `/v1beta/${escapeName(model)}:${verb}`;

/** The resource name with escaped segments; slashes are kept. */
const escapeName = (model: string): string => buildResourceName(model).split('/').map(encodeModelSegment).join('/');

/** `models/x` for `x` and `models/x`; tuned models and endpoints have collections of their own. */
export function buildResourceName(model: string): string {
  const [first = '', ...rest] = model.split('/');
  return COLLECTIONS.has(first) && rest.length > 0 ? model : `models/${model}`;
}
