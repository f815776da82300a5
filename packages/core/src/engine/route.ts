import type { InterfaceType } from '../canonical/interfaces.ts';
import { CODECS } from '../protocols/index.ts';
import type { Codec, HeaderBag } from '../protocols/shared/codec.ts';

/** What a client wants, and in which language it wants it. */
export interface Route {
  client: Codec;
  type: InterfaceType;
  /** With its query; one form for everybody who looks at it. */
  path: string;
}

const HINTS: readonly (readonly [header: string, Codec])[] = [
  ['x-goog-api-key', CODECS.gemini],
  ['anthropic-version', CODECS['anthropic-messages']],
];

/** In this order: OpenAI's paths are the most general ones. */
const BY_PATH = [CODECS['anthropic-messages'], CODECS.gemini, CODECS['openai-responses'], CODECS['openai-chat']];

/** A first segment that names the vendor, as in `/anthropic/v1`. The headers stand for those by which its clients are told apart. */
interface Mount {
  clients: readonly [Codec, ...Codec[]];
  headers: HeaderBag;
}

const MOUNTS: ReadonlyMap<string | undefined, Mount> = new Map<string | undefined, Mount>([
  ['openai', { clients: [CODECS['openai-chat'], CODECS['openai-responses']], headers: {} }],
  ['anthropic', { clients: [CODECS['anthropic-messages']], headers: { 'anthropic-version': '' } }],
  ['genai', { clients: [CODECS.gemini], headers: { 'x-goog-api-key': '' } }],
]);

/** The paths of nearly all requests. Nobody else has them. */
const EXACT: ReadonlyMap<string, Codec> = new Map([
  ['/v1/chat/completions', CODECS['openai-chat']],
  ['/v1/messages', CODECS['anthropic-messages']],
  ['/v1/responses', CODECS['openai-responses']],
]);

/** The language is told by the path, and where all four share one (`/v1/models`), by the headers. */
export function routeOf(url: string, headers: HeaderBag): Route {
  const exact = EXACT.get(url);
  if (exact) return { client: exact, type: 'CHAT', path: url };
  const { path, mount } = canonicalPath(url);
  return mount ? mountedRoute(path, mount) : openRoute(path, headers);
}

/** Requests below the name of a vendor are for its protocols alone. */
function mountedRoute(path: string, { clients, headers }: Mount): Route {
  for (const client of clients) {
    const type = client.detectInterface(path, headers);
    if (type !== 'PASSTHROUGH') return { client, type, path };
  }
  const language = languageOf(path);
  return { client: clients.includes(language) ? language : clients[0], type: 'PASSTHROUGH', path };
}

function openRoute(path: string, headers: HeaderBag): Route {
  const hinted = HINTS.find(([name]) => Object.hasOwn(headers, name))?.[1] ?? (GEMINI.test(path) ? CODECS.gemini : undefined);
  const candidates = hinted ? [hinted, ...BY_PATH] : BY_PATH;
  for (const client of candidates) {
    const type = client.detectInterface(path, headers);
    // To OpenAI's protocols everything below `/models/` is the name of a model, also `imagen:predict`.
    const isForeign = hinted !== undefined && client !== hinted && type.startsWith('MODEL');
    if (type !== 'PASSTHROUGH' && !isForeign) return { client, type, path };
  }
  return { client: hinted ?? languageOf(path), type: 'PASSTHROUGH', path };
}

/** Versions that only Google has, and models with a key in the query. */
const GEMINI = /^\/(?:upload\/)?v1(?:beta|alpha)|^\/v1\/(?:models|tunedModels)\/.*[?&]key=/;

/** An endpoint that Sluice does not know: whose it is can only be guessed by its prefix. */
function languageOf(path: string): Codec {
  if (GEMINI.test(path)) return CODECS.gemini;
  if (/^(?:\/v\d+)?\/(messages|skills)\b/.test(path)) return CODECS['anthropic-messages'];
  return /^(?:\/v\d+)?\/(responses|conversations)\b/.test(path) ? CODECS['openai-responses'] : CODECS['openai-chat'];
}

/** The AI SDK takes `provider/model` for a whole name and leaves `models/` out; to anybody else that is no path of Gemini's. */
const BARE_MODEL =
  /^(\/v1(?:beta|alpha))\/(?!(?:models|tunedModels|endpoints|projects|publishers)\/)(?=.+:(?:(?:streamG|g)enerateContent|countTokens|(?:e|batchE)mbedContents?)$)/;

/** A vendor's name before something else. */
const MOUNT = /^\/(openai|anthropic|genai)(?=\/.)/;

/** Versions before another version: base URLs often have one, and SDKs add theirs. The last one is the SDK's. */
const DOUBLED_VERSION = /^(?:\/v\d+(?:(?:alpha|beta)\d*)?)+(?=\/v\d+(?:(?:alpha|beta)\d*)?\/)/;

/** Doubled slashes come from base URLs that end in one; absolute forms from proxies. */
function canonicalPath(url: string): { path: string; mount: Mount | undefined } {
  const [path = '', query] = splitQuery(url.replace(/^https?:\/\/[^/?#]*/i, ''));
  const plain = `/${path}`.replace(/\/{2,}/g, '/');
  const vendor = MOUNT.exec(plain)?.[1];
  const below = vendor === undefined ? plain : plain.slice(vendor.length + 1);
  const native = below.replace(DOUBLED_VERSION, '').replace(BARE_MODEL, '$1/models/');
  return { path: query === undefined ? native : `${native}?${query}`, mount: MOUNTS.get(vendor) };
}

function splitQuery(url: string): [string, string?] {
  const at = url.indexOf('?');
  return at < 0 ? [url] : [url.slice(0, at), url.slice(at + 1)];
}
