import { CodecError } from '../../canonical/notes.ts';
import type { InterfaceType } from '../../canonical/request.ts';
import type { HeaderBag, Provider, Target } from '../../codec/protocol.ts';
import { invalid } from '../../codec/report.ts';
import { copyQuery, escaped, isVersion, parseUrl, segmentsOf, setPath, unescaped } from '../../codec/requests.ts';

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

export const supports = (type: InterfaceType): boolean => SUPPORTED[type];

/** Clients of OpenAI ask for `/v1/models` too, and want their own shape: only these headers tell (P123). */
const OWN_HEADERS = ['anthropic-version', 'x-api-key'];

export function detectInterface(path: string, headers: HeaderBag = {}): InterfaceType {
  const segments = segmentsOf(path);
  const last = segments.at(-1) ?? '';
  const before = segments.at(-2) ?? '';
  if (before === 'messages' && last === 'count_tokens') return 'COUNT_TOKENS';
  // OpenAI has /v1/threads/{id}/messages.
  if (last === 'messages' && (before === '' || isVersion(before))) return 'CHAT';
  const models = segments.indexOf('models');
  if (models < 0 || !OWN_HEADERS.some((name) => Object.hasOwn(headers, name))) return 'PASSTHROUGH';
  return models === segments.length - 1 ? 'MODELS' : 'MODEL_INFO';
}

const VERTEX = /:(streamR|r)awPredict$/;

/** Where Bedrock and Vertex name the model: `/model/{id}/invoke`, `/models/{id}:rawPredict`. */
const BEDROCK = /^invoke(-with-response-stream)?$/;

/** The model that a path names, where the body does not. */
export function modelOf(path: string): string | undefined {
  const segments = segmentsOf(path);
  const last = segments.at(-1) ?? '';
  if (VERTEX.test(last) && segments.at(-2) === 'models') return unescaped(last.replace(VERTEX, ''));
  return BEDROCK.test(last) && segments.at(-3) === 'model' ? unescaped(segments.at(-2) ?? '') : undefined;
}

/** Anthropic's endpoints, known or not. */
export const ownsPath = (path: string): boolean => /^(?:\/v\d+)?\/(messages|skills)\b/.test(path);

/** The URL of an interface at a provider. `modelId` is the model of MODEL_INFO; PASSTHROUGH needs the path that the client called. */
export function buildUrl(type: InterfaceType, target: Target, modelId: string = target.model, nativePath = ''): string {
  const { base_url: base, adapter_config: { path } = {} } = target.provider;
  const url = parseUrl(base);
  const root = rootOf(segmentsOf(url.pathname), path);
  setPath(url, `/${[...root, endpointOf(type, modelId, nativePath)].join('/')}`, type === 'PASSTHROUGH' ? 'path' : 'model');
  if (type === 'PASSTHROUGH') copyQuery(nativePath, url);
  return url.href;
}

/** The base URL of this protocol's SDK has no version (`https://api.deepseek.com/anthropic`); other clients write one. */
function rootOf(base: readonly string[], path: string | undefined): string[] {
  if (path !== undefined) return [...base, ...segmentsOf(path)];
  return isVersion(base.at(-1) ?? '') ? [...base] : [...base, 'v1'];
}

function endpointOf(type: InterfaceType, modelId: string, nativePath: string): string {
  switch (type) {
    case 'CHAT':
      return 'messages';
    case 'COUNT_TOKENS':
      return 'messages/count_tokens';
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
        message: `Anthropic Messages has no ${type.toLowerCase()}`,
        http_status: 404,
      });
    default:
      return type satisfies never;
  }
}

/** The path below the client's own prefix: `/v1/files/f` is `files/f`. */
function nativeEndpoint(path: string): string {
  const segments = segmentsOf(path);
  if (segments.length === 0) throw invalid('path', 'is not the path of PASSTHROUGH');
  return segments.slice(segments.findIndex(isVersion) + 1).join('/');
}

/** Any version is accepted from clients; to providers we say the one that all of them know. */
const VERSION = '2023-06-01';

/** What a provider wants to see. Nothing of the client's own headers gets here, its authorization least of all. */
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
