import { type CodecError, invalid } from './codec.ts';
import { memo } from './remember.ts';

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
