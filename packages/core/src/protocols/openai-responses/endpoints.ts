/** Paths, URLs and headers of OpenAI Responses, and the ids of its items. */

import { deriveId } from '../../accumulate/argument-text.ts';
import { CodecError } from '../../canonical/notes.ts';
import type { InterfaceType } from '../../canonical/request.ts';
import { readBodyTarget } from '../../codec/deployment.ts';
import type { HeaderBag, Provider, RequestTarget, Target, WireRequest } from '../../codec/protocol.ts';
import { invalid } from '../../codec/report.ts';
import { copyQuery, encodeModelSegment, isVersion, parseUrl, setPath, splitSegments } from '../../codec/requests.ts';
import { isObject } from '../../json/json.ts';

/** `/v1beta/models/gemini-pro:generateContent` does not name a model to look up; `/v1/models/llama3:8b` does. */
const GEMINI_VERB = /:(generateContent|streamGenerateContent|countTokens|embedContent|batchEmbedContents)$/;

/** Headers of Anthropic and Gemini clients, which request `/models` too and expect their own format. */
const FOREIGN_HEADERS = ['anthropic-version', 'x-api-key', 'x-goog-api-key'];

/**
 * The interface that a request is for, by its path and headers; the prefix (`/v1`, `/openai/v1`) depends on the server.
 */
export function detectInterface(path: string, headers: HeaderBag = {}): InterfaceType {
  const segments = splitSegments(path);
  const last = segments.at(-1) ?? '';
  if (last === 'responses') return 'CHAT';
  if (last === 'input_tokens' && segments.at(-2) === 'responses') return 'COUNT_TOKENS';
  const models = segments.indexOf('models');
  const isForeign = GEMINI_VERB.test(last) || FOREIGN_HEADERS.some((name) => Object.hasOwn(headers, name));
  if (models < 0 || isForeign || segments.includes('responses') || segments.includes('conversations')) return 'PASSTHROUGH';
  return models === segments.length - 1 ? 'MODELS' : 'MODEL_INFO';
}

const SUPPORTED: Record<InterfaceType, boolean> = {
  CHAT: true,
  MODELS: true,
  MODEL_INFO: true,
  EMBEDDINGS: false,
  RERANK: false,
  AUDIO: false,
  IMAGES: false,
  COUNT_TOKENS: true,
  // Stored responses (read, cancel, delete, compact) and conversations.
  PASSTHROUGH: true,
};

/** Whether the protocol has this interface. */
export const supports = (type: InterfaceType): boolean => SUPPORTED[type];

/** Whether OpenAI's endpoints of this protocol include the path, known or not. */
export const ownsPath = (path: string): boolean => /^(?:\/v\d+)?\/(responses|conversations)\b/.test(path);

/**
 * The model and streaming mode of a request; a stored prompt defines its own model, so the request may leave it out.
 */
export function readTarget(wire: WireRequest): RequestTarget | undefined {
  const { body } = wire;
  const isTemplate = isObject(body) && isObject(body['prompt']) && typeof body['prompt']['id'] === 'string';
  return readBodyTarget(wire) ?? (isTemplate ? { model: '', isStream: body['stream'] === true } : undefined);
}

/**
 * The URL of an interface at a provider. `modelId` is the model of MODEL_INFO; PASSTHROUGH needs the path of the
 * client's request.
 */
export function buildUrl(type: InterfaceType, target: Target, modelId: string = target.model, nativePath = ''): string {
  const { base_url: base, adapter_config: { api_version: version } = {} } = target.provider;
  const url = parseUrl(base);
  const isNative = type === 'PASSTHROUGH';
  setPath(
    url,
    `${findRoot(url.pathname, target.provider)}/${buildEndpoint(type, modelId, nativePath)}`,
    isNative ? 'path' : 'model',
  );
  if (isNative) copyQuery(nativePath, url);
  if (version !== undefined) url.searchParams.set('api-version', version);
  return url.href;
}

/**
 * The path before the endpoint: a base URL with a path is complete, a bare host gets the default. Azure has no
 * deployments in this API.
 */
function findRoot(pathname: string, { adapter_config: { path, api_version: version } = {} }: Provider): string {
  const base = splitSegments(pathname);
  const root = (segments: readonly string[]): string => segments.map((segment) => `/${segment}`).join('');
  if (path !== undefined) return root([...base, ...splitSegments(path)]);
  if (base.length === 0) return version === undefined ? '/v1' : '/openai';
  const deployments = base.indexOf('deployments');
  return root(deployments < 0 ? base : base.slice(0, deployments));
}

function buildEndpoint(type: InterfaceType, modelId: string, nativePath: string): string {
  switch (type) {
    case 'CHAT':
      return 'responses';
    case 'COUNT_TOKENS':
      return 'responses/input_tokens';
    case 'MODELS':
      return 'models';
    case 'MODEL_INFO':
      return `models/${encodeModelSegment(modelId)}`;
    case 'PASSTHROUGH':
      return readNativeEndpoint(nativePath);
    case 'EMBEDDINGS':
    case 'RERANK':
    case 'AUDIO':
    case 'IMAGES':
      throw new CodecError({
        code: 'UNSUPPORTED_INTERFACE',
        message: `${type.toLowerCase()} is not supported by OpenAI Responses`,
        http_status: 404,
      });
    default:
      return type satisfies never;
  }
}

/** The path below the client's prefix: `/v1/responses/resp_1/cancel` is `responses/resp_1/cancel`. */
function readNativeEndpoint(path: string): string {
  const segments = splitSegments(path);
  if (segments.length === 0) throw invalid('path', 'is not the path of an endpoint');
  const version = segments.findIndex((segment) => isVersion(segment)) + 1;
  return segments.slice(version).join('/');
}

/** The headers of a provider request. No client header is passed on, least of all its authorization. */
export function buildHeaders({ api_key: key, adapter_config: config = {} }: Provider, stream = false): HeaderBag {
  const { organization, project, headers = {}, auth, api_version: version } = config;
  // Dated Azure versions accept keys only as `api-key`; there, Bearer is for Entra tokens.
  const isPlain = auth === undefined ? version !== undefined : auth === 'api-key';
  const token = key?.trim();
  return {
    'content-type': 'application/json',
    accept: stream ? 'text/event-stream' : 'application/json',
    ...(token && (isPlain ? { 'api-key': token } : { authorization: `Bearer ${token}` })),
    ...(organization && { 'openai-organization': organization }),
    ...(project && { 'openai-project': project }),
    ...Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value])),
  };
}

// ---- item ids

/** Prefixes of item ids; the API rejects others in a history. */
export type ItemPrefix = 'msg' | 'rs' | 'fc' | 'ctc' | 'ig' | 'apc' | 'sh' | 'lsh' | 'tsc' | 'item';

/** Marks ids that we derived for items without one, which no provider knows. */
const DERIVED_MARK = 'sl';

/**
 * The ids of the items of a response. Clients reject two items with one id, and two calls of one kind with one call id.
 */
export class ItemIds {
  readonly #seed: string;
  readonly #items = new Set<string>();
  readonly #calls = new Set<string>();

  /** Ids are derived from the id of the response and their number, so that the same response gets the same ids. */
  constructor(seed: string) {
    this.#seed = seed;
  }

  /** The id of an item: the wanted one if it is free, otherwise a derived one. */
  item(wanted: unknown, prefix: ItemPrefix): string {
    const named = typeof wanted === 'string' && wanted !== '' ? wanted : undefined;
    return this.#unused(named, this.#items, (salt) => deriveId(`${prefix}_${DERIVED_MARK}_`, this.#seed, this.#items.size, salt));
  }

  /** The call id; unique among the items of this `kind`. */
  call(wanted: string, kind: string): string {
    const derive = (salt: number): string => deriveId('call_', this.#seed, this.#calls.size, salt);
    const taken = this.#unused(wanted === '' ? undefined : `${kind} ${wanted}`, this.#calls, (salt) => `${kind} ${derive(salt)}`);
    return taken.slice(kind.length + 1);
  }

  #unused(wanted: string | undefined, used: Set<string>, derive: (salt: number) => string): string {
    let id = wanted;
    for (let salt = 0; id === undefined || used.has(id); salt++) id = derive(salt);
    used.add(id);
    return id;
  }
}

const MAX_ID_LENGTH = 64;

const DERIVED_ID = /^[a-z]+_sl_[0-9a-f]{24}$/;

/** The id of an item if it can be sent to a provider: with the right prefix, and not derived by us. */
export function replayableId(id: unknown, prefix: ItemPrefix): string | undefined {
  if (typeof id !== 'string' || id.length > MAX_ID_LENGTH || DERIVED_ID.test(id)) return undefined;
  return id.startsWith(`${prefix}_`) && /^[A-Za-z0-9_-]+$/.test(id) ? id : undefined;
}

/** Whether we derived the id. */
export const isDerivedId = (id: unknown): boolean => typeof id === 'string' && DERIVED_ID.test(id);
