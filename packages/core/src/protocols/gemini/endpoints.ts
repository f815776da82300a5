import { CodecError } from '../../canonical/notes.ts';
import type { InterfaceType } from '../../canonical/request.ts';
import type { Asked, HeaderBag, Provider, Target, WireRequest } from '../../codec/protocol.ts';
import { invalid } from '../../codec/report.ts';
import { copyQuery, escaped, isVersion, parseUrl, segmentsOf, setPath, unescaped } from '../../codec/requests.ts';

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

export const supports = (type: InterfaceType): boolean => SUPPORTED[type];

/** Without `alt=sse` a stream is one JSON list, written piece by piece. */
export const isSse = (path: string): boolean => queryOf(path).get('alt') === 'sse';

/** What stands behind the last colon of a path. */
type Verb = 'generateContent' | 'streamGenerateContent' | 'countTokens' | 'embedContent' | 'batchEmbedContents';

const BY_VERB: Readonly<Record<Verb, InterfaceType>> = {
  generateContent: 'CHAT',
  streamGenerateContent: 'CHAT',
  countTokens: 'COUNT_TOKENS',
  embedContent: 'EMBEDDINGS',
  batchEmbedContents: 'EMBEDDINGS',
};

export function detectInterface(path: string, headers: HeaderBag = {}): InterfaceType {
  const place = placeOf(path);
  if (place) return BY_VERB[place.verb];
  const [version = '', collection, ...rest] = segmentsOf(path);
  if (!isVersion(version) || (collection !== 'models' && collection !== 'tunedModels')) return 'PASSTHROUGH';
  // `/v1/models` is everybody's: only who shows a key of Google means this one.
  if (version === 'v1' && !hasGoogleKey(path, headers)) return 'PASSTHROUGH';
  if (rest.length === 0) return collection === 'models' ? 'MODELS' : 'PASSTHROUGH';
  return rest.at(-1)?.includes(':') || rest.at(-2) === 'operations' ? 'PASSTHROUGH' : 'MODEL_INFO';
}

const hasGoogleKey = (path: string, headers: HeaderBag): boolean =>
  Object.hasOwn(headers, 'x-goog-api-key') || Object.hasOwn(headers, 'x-goog-api-client') || queryOf(path).has('key');

/** Segments in which the name of a model begins: `tunedModels/x` and `endpoints/1` are names of their own. */
const COLLECTIONS: ReadonlySet<string> = new Set(['models', 'tunedModels', 'endpoints']);

/** The model that a path names, also the one of MODEL_INFO. */
export function modelOf(path: string): string | undefined {
  const place = placeOf(path);
  if (place) return place.model;
  const [version = '', collection = '', ...rest] = segmentsOf(path).map(unescaped);
  if (!isVersion(version) || !COLLECTIONS.has(collection) || rest.length === 0) return undefined;
  return collection === 'models' ? rest.join('/') : [collection, ...rest].join('/');
}

/** The key that a client shows: in a header of Google's, in the query, or as a bearer's token (Vertex). */
export function keyOf(path: string, headers: HeaderBag): string | undefined {
  const bearer = /^bearer\s+(.+)$/i.exec(headers['authorization'] ?? '')?.[1];
  return headers['x-goog-api-key'] || queryOf(path).get('key') || bearer || undefined;
}

const queryOf = (path: string): URLSearchParams => new URLSearchParams(path.slice(path.indexOf('?') + 1 || path.length));

/** Where a request for that model goes. */
export const pathOf = (model: string, verb: Verb): string => `/v1beta/${nameOf(model)}:${verb}`;

const MODELS = /\/(?:models|tunedModels)\//;

const VERB = /^\w+$/;

/**
 * The model and the stream flag of `/v1beta/models/MODEL:VERB`; the name may contain colons. Two short expressions: one for the whole path
 * backtracks at every slash and colon.
 */
export function readTarget({ path }: WireRequest): Asked | undefined {
  const end = path.search(/[?#]/);
  const call = end < 0 ? path : path.slice(0, end);
  const before = MODELS.exec(call);
  const colon = call.lastIndexOf(':');
  const verb = call.slice(colon + 1);
  const from = before ? before.index + before[0].length : colon;
  if (colon <= from || !VERB.test(verb)) return undefined;
  return { model: unescaped(call.slice(from, colon)), isStream: verb === 'streamGenerateContent' };
}

/** API versions that only Google has, and models with a key in the query. */
const OWN_PATH = /^\/(?:upload\/)?v1(?:beta|alpha)|^\/v1\/(?:models|tunedModels)\/.*[?&]key=/;

export const ownsPath = (path: string): boolean => OWN_PATH.test(path);

const BARE_MODEL =
  /^(\/v1(?:beta|alpha))\/(?!(?:models|tunedModels|endpoints|projects|publishers)\/)(?=.+:(?:(?:streamG|g)enerateContent|countTokens|(?:e|batchE)mbedContents?)$)/;

/** The AI SDK sends `provider/model` as a complete name, without `models/`. */
export const normalise = (path: string): string => path.replace(BARE_MODEL, '$1/models/');

/** Files are uploaded to `/upload/v1beta/files`: the word stands before the version. */
const UPLOAD = 'upload';

/** `modelId` is the model of MODEL_INFO; PASSTHROUGH needs the path that the client called. For CHAT and EMBEDDINGS it may name the verb. */
export function buildUrl(type: InterfaceType, target: Target, modelId: string = target.model, nativePath = ''): string {
  const { base_url: base, adapter_config: { path: prefix = '' } = {} } = target.provider;
  const url = parseUrl(base);
  const segments = [...segmentsOf(url.pathname), ...segmentsOf(prefix)];
  const root = segments.length === 0 ? ['v1beta'] : segments;
  const isUpload = type === 'PASSTHROUGH' && segmentsOf(nativePath)[0] === UPLOAD;
  const endpoint = endpointOf(type, target, modelId, nativePath);
  const path = [...(isUpload ? uploadRoot(root) : root), endpoint].map((segment) => `/${segment}`).join('');
  setPath(url, path, type === 'PASSTHROUGH' ? 'path' : 'model');
  if (type === 'PASSTHROUGH' || type === 'MODELS') copyQuery(nativePath, url);
  if (type === 'CHAT' && target.stream) url.searchParams.set('alt', 'sse');
  return url.href;
}

const VERBS: Partial<Record<InterfaceType, Verb>> = {
  CHAT: 'generateContent',
  COUNT_TOKENS: 'countTokens',
  // One text goes to `embedContent`: the path that the encoder chose says so.
  EMBEDDINGS: 'batchEmbedContents',
};

function endpointOf(type: InterfaceType, { model, stream }: Target, modelId: string, nativePath: string): string {
  switch (type) {
    case 'CHAT':
      return `${nameOf(model)}:${stream ? 'streamGenerateContent' : VERBS.CHAT}`;
    case 'COUNT_TOKENS':
      return `${nameOf(model)}:${VERBS.COUNT_TOKENS}`;
    case 'EMBEDDINGS':
      return `${nameOf(model)}:${placeOf(nativePath)?.verb === 'embedContent' ? 'embedContent' : VERBS.EMBEDDINGS}`;
    case 'MODELS':
      return 'models';
    case 'MODEL_INFO':
      return nameOf(modelId);
    case 'PASSTHROUGH':
      return nativeEndpoint(nativePath);
    case 'RERANK':
    case 'AUDIO':
    case 'IMAGES':
      throw new CodecError({ code: 'UNSUPPORTED_INTERFACE', message: `Gemini has no endpoint for ${type}`, http_status: 404 });
    default:
      return type satisfies never;
  }
}

/** Slashes are part of the path. */
const nameOf = (model: string): string => resourceOf(model).split('/').map(escaped).join('/');

/** `models/x` for `x` and for `models/x`; tuned models and endpoints stand in collections of their own. */
export function resourceOf(model: string): string {
  const [first = '', ...rest] = model.split('/');
  return COLLECTIONS.has(first) && rest.length > 0 ? model : `models/${model}`;
}

interface Place {
  model: string;
  verb: Verb;
}

/**
 * The model and the verb of `/v1beta/models/{model}:{verb}`; `/v1/projects/…/publishers/google/models/{model}:{verb}` is Vertex. The name may
 * hold slashes and colons, and may be escaped.
 */
export function placeOf(path: string): Place | undefined {
  const segments = segmentsOf(path).map(unescaped);
  const begin = segments.findIndex((segment) => COLLECTIONS.has(segment));
  const rest = segments.slice(begin + 1).join('/');
  const colon = rest.lastIndexOf(':');
  const verb = rest.slice(colon + 1);
  if (begin < 0 || colon <= 0 || !isVerb(verb)) return undefined;
  const name = rest.slice(0, colon);
  return { model: segments[begin] === 'models' ? name : `${segments[begin]}/${name}`, verb };
}

const isVerb = (word: string): word is Verb => Object.hasOwn(BY_VERB, word);

/** The path below the client's own version. */
function nativeEndpoint(path: string): string {
  const segments = segmentsOf(path);
  if (segments.length === 0) throw invalid('path', 'is not the path of PASSTHROUGH');
  return segments.slice(segments.findIndex(isVersion) + 1).join('/');
}

function uploadRoot(root: readonly string[]): string[] {
  const version = Math.max(0, root.findLastIndex(isVersion));
  return [...root.slice(0, version), UPLOAD, ...root.slice(version)];
}

/** What Google wants to see. Nothing of the client's own headers gets here, its key least of all. Vertex takes tokens, not keys. */
export function buildHeaders({ api_key: key, adapter_config: config = {} }: Provider, stream = false): HeaderBag {
  const { headers = {}, auth } = config;
  return {
    'content-type': 'application/json',
    accept: stream ? 'text/event-stream' : 'application/json',
    ...(key && (auth === 'bearer' ? { authorization: `Bearer ${key.trim()}` } : { 'x-goog-api-key': key.trim() })),
    ...Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value])),
  };
}
