import { CodecError } from '../../canonical/notes.ts';
import type { InterfaceType } from '../../canonical/request.ts';
import { DEPLOYED, parseDeployment } from '../../codec/deployment.ts';
import type { HeaderBag, Provider, Target } from '../../codec/protocol.ts';
import { invalid } from '../../codec/report.ts';
import {
  copyQuery,
  decodeSegment,
  encodeModelSegment,
  isVersion,
  parseUrl,
  setPath,
  splitSegments,
} from '../../codec/requests.ts';

/**
 * Endpoints by their last two segments; the prefix (`/v1`, `/api/paas/v4`, `/openai/deployments/d`) depends on the
 * server.
 */
const ENDPOINT_PAIRS: ReadonlyMap<string, InterfaceType> = new Map([
  ['chat/completions', 'CHAT'],
  ['audio/speech', 'AUDIO'],
  ['audio/transcriptions', 'AUDIO'],
  ['audio/translations', 'AUDIO'],
  ['images/generations', 'IMAGES'],
  ['images/edits', 'IMAGES'],
  ['images/variations', 'IMAGES'],
]);

/** Endpoints by their last segment. */
const SINGLE_ENDPOINTS: ReadonlyMap<string, InterfaceType> = new Map([
  ['embeddings', 'EMBEDDINGS'],
  ['rerank', 'RERANK'],
]);

/** `/v1beta/models/gemini-pro:generateContent` does not name a model to look up; `/v1/models/llama3:8b` does. */
const GEMINI_VERB = /:(generateContent|streamGenerateContent|countTokens|embedContent|batchEmbedContents)$/;

/** Headers of Anthropic and Gemini clients, which request `/models` too and expect their own format. */
const FOREIGN_HEADERS = ['anthropic-version', 'x-api-key', 'x-goog-api-key'];

/** The interface that a request is for, by its path and headers. */
export function detectInterface(path: string, headers: HeaderBag = {}): InterfaceType {
  const segments = splitSegments(path);
  const last = segments.at(-1) ?? '';
  const pair = ENDPOINT_PAIRS.get(`${segments.at(-2)}/${last}`);
  if (pair) return pair;
  const models = segments.indexOf('models');
  const afterModels = models < 0 ? [] : segments.slice(models + 1);
  const single = SINGLE_ENDPOINTS.get(last);
  // A model may be named org/rerank; Azure Foundry has /models/embeddings and Hugging Face /models/{id}/v1/embeddings.
  if (single && (afterModels.length < 2 || afterModels.some((segment) => isVersion(segment)))) return single;
  if (models < 0 || GEMINI_VERB.test(last) || FOREIGN_HEADERS.some((name) => Object.hasOwn(headers, name))) return 'PASSTHROUGH';
  return afterModels.length === 0 ? 'MODELS' : 'MODEL_INFO';
}

const SUPPORTED: Record<InterfaceType, boolean> = {
  CHAT: true,
  MODELS: true,
  MODEL_INFO: true,
  EMBEDDINGS: true,
  // Not an endpoint of OpenAI, but a convention of Jina and Cohere that compatible servers follow.
  RERANK: true,
  AUDIO: true,
  IMAGES: true,
  COUNT_TOKENS: false,
  PASSTHROUGH: false,
};

/** Whether the protocol has this interface. */
export const supports = (type: InterfaceType): boolean => SUPPORTED[type];

/** The model in a path: the id of MODEL_INFO, or an Azure deployment. */
export function readModelFromPath(path: string): string | undefined {
  const deployment = parseDeployment(path);
  if (deployment) return deployment.model;
  const segments = splitSegments(path);
  if (detectInterface(path) !== 'MODEL_INFO') return undefined;
  return decodeSegment(segments.slice(segments.indexOf('models') + 1).join('/'));
}

/**
 * The URL of an interface at a provider. `modelId` is the model of MODEL_INFO. AUDIO, IMAGES and PASSTHROUGH have many
 * endpoints, so they need the path of the client's request.
 */
export function buildUrl(type: InterfaceType, target: Target, modelId: string = target.model, nativePath = ''): string {
  const { base_url: base, adapter_config: { api_version: version } = {} } = target.provider;
  const url = parseUrl(base);
  const endpoint = buildEndpoint(type, modelId, nativePath);
  setPath(url, `${findRoot(url.pathname, endpoint, target)}/${endpoint}`, needsNativePath(type) ? 'path' : 'model');
  if (needsNativePath(type)) copyQuery(nativePath, url);
  // The api-version of an Azure client is meant for the client's own endpoint.
  if (parseDeployment(nativePath)) url.searchParams.delete('api-version');
  if (version !== undefined) url.searchParams.set('api-version', version);
  return url.href;
}

function buildEndpoint(type: InterfaceType, modelId: string, nativePath: string): string {
  switch (type) {
    case 'CHAT':
      return 'chat/completions';
    case 'MODELS':
      return 'models';
    case 'MODEL_INFO':
      return `models/${encodeModelSegment(modelId)}`;
    case 'EMBEDDINGS':
      return 'embeddings';
    case 'RERANK':
      return 'rerank';
    case 'AUDIO':
    case 'IMAGES':
    case 'PASSTHROUGH':
      return readNativeEndpoint(type, nativePath);
    case 'COUNT_TOKENS':
      throw new CodecError({
        code: 'UNSUPPORTED_INTERFACE',
        message: 'token counting is not supported by OpenAI Chat',
        http_status: 404,
      });
    default:
      return type satisfies never;
  }
}

/** The path below the client's prefix: `/v1/files/f` and `/openai/deployments/d/files/f` are `files/f`. */
function readNativeEndpoint(type: InterfaceType, path: string): string {
  const segments = splitSegments(path);
  if (segments.length === 0 || (type !== 'PASSTHROUGH' && detectInterface(path) !== type))
    throw invalid('path', `is not the path of ${type}`);
  if (type !== 'PASSTHROUGH') return segments.slice(-2).join('/');
  const version = segments.findIndex((segment) => isVersion(segment)) + 1;
  return (version === 0 ? parseDeployment(path)?.endpoint : undefined) ?? segments.slice(version).join('/');
}

/** The path before the endpoint: a base URL with a path is complete, a bare host gets the default of the protocol. */
function findRoot(pathname: string, endpoint: string, { provider, model }: Target): string {
  const base = splitSegments(pathname);
  const { path, api_version: version } = provider.adapter_config ?? {};
  const root = (segments: readonly string[]) => segments.map((segment) => `/${segment}`).join('');
  if (path !== undefined) return root([...base, ...splitSegments(path)]);
  if (version === undefined) return base.length === 0 ? '/v1' : root(base);
  const deployments = base.indexOf('deployments');
  if (deployments >= 0) return root(DEPLOYED.has(endpoint) ? base : base.slice(0, deployments));
  // Azure's v1 API and Foundry's /models name the deployment in the body.
  if (base.length > 0 && base.at(-1) !== 'openai') return root(base);
  const openai = base.length > 0 ? root(base) : '/openai';
  return DEPLOYED.has(endpoint) ? `${openai}/deployments/${encodeModelSegment(model)}` : openai;
}

const needsNativePath = (type: InterfaceType): boolean => type === 'AUDIO' || type === 'IMAGES' || type === 'PASSTHROUGH';

/** The headers of a provider request. No client header is passed on, least of all its authorization. */
export function buildHeaders({ api_key: key, adapter_config: config = {} }: Provider, stream = false): HeaderBag {
  const { organization, project, headers = {} } = config;
  return {
    'content-type': 'application/json',
    accept: stream ? 'text/event-stream' : 'application/json',
    ...(key && buildAuthorization(key.trim(), config)),
    ...(organization && { 'openai-organization': organization }),
    ...(project && { 'openai-project': project }),
    ...Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value])),
  };
}

/** Dated Azure versions accept keys only as `api-key`; there, Bearer is for Entra tokens. */
function buildAuthorization(key: string, { auth, api_version }: NonNullable<Provider['adapter_config']>): HeaderBag {
  const isPlain = auth === undefined ? api_version !== undefined : auth === 'api-key';
  return isPlain ? { 'api-key': key } : { authorization: `Bearer ${key}` };
}
