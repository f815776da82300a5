import type { InterfaceType } from '../canonical/interfaces.ts';
import { CODECS } from '../protocols/codecs.ts';
import type { HeaderBag, ProtocolCodec } from '../protocols/shared/codec.ts';

/** What a client wants, and in which language it wants it. */
export interface Route {
  client: ProtocolCodec;
  type: InterfaceType;
  /** With its query; one form for everybody who looks at it. */
  path: string;
}

const HINTS: readonly (readonly [header: string, ProtocolCodec])[] = [
  ['x-goog-api-key', CODECS.gemini],
  ['anthropic-version', CODECS['anthropic-messages']],
];

/** In this order: OpenAI's paths are the most general ones. */
const BY_PATH = [CODECS['anthropic-messages'], CODECS.gemini, CODECS['openai-responses'], CODECS['openai-chat']];

/** The paths of nearly all requests. Nobody else has them. */
const EXACT: ReadonlyMap<string, ProtocolCodec> = new Map([
  ['/v1/chat/completions', CODECS['openai-chat']],
  ['/v1/messages', CODECS['anthropic-messages']],
  ['/v1/responses', CODECS['openai-responses']],
]);

/** The language is told by the path, and where all four share one (`/v1/models`), by the headers. */
export function routeOf(url: string, headers: HeaderBag): Route {
  const exact = EXACT.get(url);
  if (exact) return { client: exact, type: 'CHAT', path: url };
  const path = canonicalPath(url);
  const hinted = HINTS.find(([name]) => Object.hasOwn(headers, name))?.[1];
  const candidates = hinted ? [hinted, ...BY_PATH] : BY_PATH;
  for (const client of candidates) {
    const type = client.detectInterface(path, headers);
    if (type !== 'PASSTHROUGH') return { client, type, path };
  }
  return { client: hinted ?? languageOf(path), type: 'PASSTHROUGH', path };
}

/** An endpoint that Sluice does not know: whose it is can only be guessed by its prefix. */
function languageOf(path: string): ProtocolCodec {
  if (/^\/v1(beta|alpha)/.test(path)) return CODECS.gemini;
  if (/^\/v1\/(messages|skills)\b/.test(path)) return CODECS['anthropic-messages'];
  return CODECS['openai-chat'];
}

/** The AI SDK takes `provider/model` for a whole name and leaves `models/` out; to anybody else that is no path of Gemini's. */
const BARE_MODEL =
  /^(\/v1(?:beta|alpha))\/(?!(?:models|tunedModels|endpoints|projects|publishers)\/)(?=.+:(?:(?:streamG|g)enerateContent|countTokens|(?:e|batchE)mbedContents?)$)/;

/** Doubled slashes come from base URLs that end in one; absolute forms from proxies. */
function canonicalPath(url: string): string {
  const [path = '', query] = splitQuery(url.replace(/^https?:\/\/[^/?#]*/i, ''));
  const plain = `/${path}`.replace(/\/{2,}/g, '/').replace(BARE_MODEL, '$1/models/');
  return query === undefined ? plain : `${plain}?${query}`;
}

function splitQuery(url: string): [string, string?] {
  const at = url.indexOf('?');
  return at < 0 ? [url] : [url.slice(0, at), url.slice(at + 1)];
}
