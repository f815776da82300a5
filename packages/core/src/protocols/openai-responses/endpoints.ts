import { deriveId } from '../../accumulate/argument-text.ts';
import { CodecError } from '../../canonical/notes.ts';
import type { InterfaceType } from '../../canonical/request.ts';
import { readBodyTarget } from '../../codec/deployment.ts';
import type { Asked, HeaderBag, Provider, Target, WireRequest } from '../../codec/protocol.ts';
import { invalid } from '../../codec/report.ts';
import { copyQuery, escaped, isVersion, parseUrl, segmentsOf, setPath } from '../../codec/requests.ts';
import { isObject } from '../../json/json.ts';

/** What the ids of items begin with; the API refuses others in a history (P23). */
export type ItemPrefix = 'msg' | 'rs' | 'fc' | 'ctc' | 'ig' | 'apc' | 'sh' | 'lsh' | 'tsc' | 'item';

/** Ids that we made for items which came without one. No provider knows them. */
const MARK = 'sl';

const DERIVED = /^[a-z]+_sl_[0-9a-f]{24}$/;

const MAX_ID = 64;

/** The id of an item that can be sent to a provider: of the right kind, and not one of ours. */
export function replayableId(id: unknown, prefix: ItemPrefix): string | undefined {
  if (typeof id !== 'string' || id.length > MAX_ID || DERIVED.test(id)) return undefined;
  return id.startsWith(`${prefix}_`) && /^[A-Za-z0-9_-]+$/.test(id) ? id : undefined;
}

export const isDerivedId = (id: unknown): boolean => typeof id === 'string' && DERIVED.test(id);

/** The ids of the items of one response. Clients refuse two items with one id, and two calls of one kind with one call id. */
export class ItemIds {
  readonly #seed: string;
  readonly #items = new Set<string>();
  readonly #calls = new Set<string>();

  /** Derived ids are made from the id of the response and their number: the same answer has the same ids. */
  constructor(seed: string) {
    this.#seed = seed;
  }

  item(wanted: unknown, prefix: ItemPrefix): string {
    const named = typeof wanted === 'string' && wanted !== '' ? wanted : undefined;
    return this.#unused(named, this.#items, (salt) => deriveId(`${prefix}_${MARK}_`, this.#seed, this.#items.size, salt));
  }

  /** `kind`: items of one type. */
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

const SUPPORTED: Record<InterfaceType, boolean> = {
  CHAT: true,
  MODELS: true,
  MODEL_INFO: true,
  EMBEDDINGS: false,
  RERANK: false,
  AUDIO: false,
  IMAGES: false,
  COUNT_TOKENS: true,
  // Responses that the provider holds: read, cancelled, deleted, compacted there; and conversations.
  PASSTHROUGH: true,
};

export const supports = (type: InterfaceType): boolean => SUPPORTED[type];

/** Clients of Anthropic and Gemini ask for `/models` too, and want their own shape. */
const FOREIGN_HEADERS = ['anthropic-version', 'x-api-key', 'x-goog-api-key'];

/** `/v1beta/models/gemini-pro:generateContent` is no model id, `/v1/models/llama3:8b` is one. */
const GEMINI_VERB = /:(generateContent|streamGenerateContent|countTokens|embedContent|batchEmbedContents)$/;

/** What stands before the endpoint (`/v1`, `/openai/v1`) is the server's business. */
export function detectInterface(path: string, headers: HeaderBag = {}): InterfaceType {
  const segments = segmentsOf(path);
  const last = segments.at(-1) ?? '';
  if (last === 'responses') return 'CHAT';
  if (last === 'input_tokens' && segments.at(-2) === 'responses') return 'COUNT_TOKENS';
  const models = segments.indexOf('models');
  const isForeign = GEMINI_VERB.test(last) || FOREIGN_HEADERS.some((name) => Object.hasOwn(headers, name));
  if (models < 0 || isForeign || segments.includes('responses') || segments.includes('conversations')) return 'PASSTHROUGH';
  return models === segments.length - 1 ? 'MODELS' : 'MODEL_INFO';
}

/** The URL of an interface at a provider. `modelId` is the model of MODEL_INFO; PASSTHROUGH needs the path that the client called. */
export function buildUrl(type: InterfaceType, target: Target, modelId: string = target.model, nativePath = ''): string {
  const { base_url: base, adapter_config: { api_version: version } = {} } = target.provider;
  const url = parseUrl(base);
  const isNative = type === 'PASSTHROUGH';
  setPath(url, `${rootOf(url.pathname, target.provider)}/${endpointOf(type, modelId, nativePath)}`, isNative ? 'path' : 'model');
  if (isNative) copyQuery(nativePath, url);
  if (version !== undefined) url.searchParams.set('api-version', version);
  return url.href;
}

/** What a provider wants to see. Nothing of the client's own headers gets here, its authorization least of all. */
export function buildHeaders({ api_key: key, adapter_config: config = {} }: Provider, stream = false): HeaderBag {
  const { organization, project, headers = {}, auth, api_version: version } = config;
  // Dated Azure versions know keys only as `api-key`; Bearer is for Entra tokens there.
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

/** A base URL with a path is complete; a bare host gets what the protocol has there. Azure has no deployments in this API. */
function rootOf(pathname: string, { adapter_config: { path, api_version: version } = {} }: Provider): string {
  const base = segmentsOf(pathname);
  const root = (segments: readonly string[]): string => segments.map((segment) => `/${segment}`).join('');
  if (path !== undefined) return root([...base, ...segmentsOf(path)]);
  if (base.length === 0) return version === undefined ? '/v1' : '/openai';
  const deployments = base.indexOf('deployments');
  return root(deployments < 0 ? base : base.slice(0, deployments));
}

function endpointOf(type: InterfaceType, modelId: string, nativePath: string): string {
  switch (type) {
    case 'CHAT':
      return 'responses';
    case 'COUNT_TOKENS':
      return 'responses/input_tokens';
    case 'MODELS':
      return 'models';
    case 'MODEL_INFO':
      return `models/${escaped(modelId)}`;
    case 'PASSTHROUGH':
      return nativeEndpoint(nativePath);
    case 'EMBEDDINGS':
    case 'RERANK':
    case 'AUDIO':
    case 'IMAGES':
      throw new CodecError({
        code: 'UNSUPPORTED_INTERFACE',
        message: `OpenAI Responses has no ${type.toLowerCase()}`,
        http_status: 404,
      });
    default:
      return type satisfies never;
  }
}

/** The path below the client's own prefix: `/v1/responses/resp_1/cancel` is `responses/resp_1/cancel`. */
function nativeEndpoint(path: string): string {
  const segments = segmentsOf(path);
  if (segments.length === 0) throw invalid('path', 'is not the path of an endpoint');
  const version = segments.findIndex((segment) => isVersion(segment)) + 1;
  return segments.slice(version).join('/');
}

/** A stored prompt defines its own model, so that the request may leave it out. */
export function readTarget(wire: WireRequest): Asked | undefined {
  const { body } = wire;
  const isTemplate = isObject(body) && isObject(body['prompt']) && typeof body['prompt']['id'] === 'string';
  return readBodyTarget(wire) ?? (isTemplate ? { model: '', isStream: body['stream'] === true } : undefined);
}

/** OpenAI's endpoints of this protocol, known or not. */
export const ownsPath = (path: string): boolean => /^(?:\/v\d+)?\/(responses|conversations)\b/.test(path);
