import { CodecError } from '../../canonical/notes.ts';
import type { InterfaceType } from '../../canonical/request.ts';
import type { HeaderBag, Provider, Target } from '../../codec/protocol.ts';
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

/** The interfaces of this protocol. */
const SUPPORTED: Record<InterfaceType, boolean> = {
  CHAT: true,
  COUNT_TOKENS: true,
  MODELS: true,
  MODEL_INFO: true,
  EMBEDDINGS: false,
  RERANK: false,
  AUDIO: false,
  IMAGES: false,
  PASSTHROUGH: false,
};

/** Whether this protocol has the interface. */
export const supports = (type: InterfaceType): boolean => SUPPORTED[type];

/** OpenAI clients also request `/v1/models` and expect OpenAI's shape; only these headers tell the two apart (P123). */
const OWN_HEADERS = ['anthropic-version', 'x-api-key'];

/** Finds the interface of a request by its path and, for models, its headers. */
export function detectInterface(path: string, headers: HeaderBag = {}): InterfaceType {
  const segments = splitSegments(path);
  const last = segments.at(-1) ?? '';
  const before = segments.at(-2) ?? '';
  if (before === 'messages' && last === 'count_tokens') return 'COUNT_TOKENS';
  // OpenAI has /v1/threads/{id}/messages.
  if (last === 'messages' && (before === '' || isVersion(before))) return 'CHAT';
  const models = segments.indexOf('models');
  if (models < 0 || !OWN_HEADERS.some((name) => Object.hasOwn(headers, name))) return 'PASSTHROUGH';
  return models === segments.length - 1 ? 'MODELS' : 'MODEL_INFO';
}

/** The last path segment on Vertex: `/models/{id}:rawPredict`. */
const VERTEX = /:(streamR|r)awPredict$/;

/** The last path segment on Bedrock: `/model/{id}/invoke`. */
const BEDROCK = /^invoke(-with-response-stream)?$/;

/** The model in the path, where Bedrock and Vertex have it instead of the body. */
export function readModel(path: string): string | undefined {
  const segments = splitSegments(path);
  const last = segments.at(-1) ?? '';
  if (VERTEX.test(last) && segments.at(-2) === 'models') return decodeSegment(last.replace(VERTEX, ''));
  return BEDROCK.test(last) && segments.at(-3) === 'model' ? decodeSegment(segments.at(-2) ?? '') : undefined;
}

/** Whether an endpoint belongs to Anthropic, even if its interface is unknown. */
export const ownsPath = (path: string): boolean => /^(?:\/v\d+)?\/(messages|skills)\b/.test(path);

/**
 * The URL of an interface at a provider. `modelId` is the model of MODEL_INFO; `nativePath` is the client's path for
 * PASSTHROUGH.
 */
export function buildUrl(type: InterfaceType, target: Target, modelId: string = target.model, nativePath = ''): string {
  const { base_url: base, adapter_config: { path } = {} } = target.provider;
  const url = parseUrl(base);
  const root = findRoot(splitSegments(url.pathname), path);
  setPath(url, `/${[...root, buildEndpoint(type, modelId, nativePath)].join('/')}`, type === 'PASSTHROUGH' ? 'path' : 'model');
  if (type === 'PASSTHROUGH') copyQuery(nativePath, url);
  return url.href;
}

/**
 * Base URLs in the style of Anthropic's SDK have no version (`https://api.deepseek.com/anthropic`); other clients
 * write one.
 */
function findRoot(base: readonly string[], path: string | undefined): string[] {
  if (path !== undefined) return [...base, ...splitSegments(path)];
  return isVersion(base.at(-1) ?? '') ? [...base] : [...base, 'v1'];
}

function buildEndpoint(type: InterfaceType, modelId: string, nativePath: string): string {
  switch (type) {
    case 'CHAT':
      return 'messages';
    case 'COUNT_TOKENS':
      return 'messages/count_tokens';
    case 'MODELS':
      return 'models';
    case 'MODEL_INFO':
      return `models/${encodeModelSegment(modelId)}`;
    case 'PASSTHROUGH':
      return stripPrefix(nativePath);
    case 'EMBEDDINGS':
    case 'RERANK':
    case 'AUDIO':
    case 'IMAGES':
      throw new CodecError({
        code: 'UNSUPPORTED_INTERFACE',
        message: `${type.toLowerCase()} is not supported by Anthropic Messages`,
        http_status: 404,
      });
    default:
      return type satisfies never;
  }
}

/** Any version is accepted from clients; providers get the one that all of them support. */
const VERSION = '2023-06-01';

/** The headers of a request to a provider. They never include the client's headers, and thus not its credentials. */
export function buildHeaders({ api_key: key, adapter_config: config = {} }: Provider, stream = false): HeaderBag {
  const { auth, api_version: version, headers = {} } = config;
  const secret = key?.trim();
  return {
    'content-type': 'application/json',
    accept: stream ? 'text/event-stream' : 'application/json',
    'anthropic-version': version ?? VERSION,
    ...(secret && (auth === 'bearer' ? { authorization: `Bearer ${secret}` } : { 'x-api-key': secret })),
    ...Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value])),
  };
}
