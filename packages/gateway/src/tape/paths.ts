import { CODECS, type ProtocolId } from '@sluice/core';

const NOWHERE = 'http://localhost';

/** Where a client of a protocol sends its question. */
export function pathFor(protocol: ProtocolId, model: string, stream: boolean): string {
  const provider = { id: '', protocol, base_url: NOWHERE };
  return CODECS[protocol].buildUrl('CHAT', { provider, model, stream }).slice(NOWHERE.length);
}

/**
 * A path of a client at the upstream. Base URLs end where clients' ones do, or before, or behind: what both have (`/v1`) is there once.
 */
export function joinPaths(base: string, path: string): string {
  const [bare = '', query] = path.split(/\?(.*)/s, 2);
  const above = base.split('/').filter((part) => part !== '');
  const below = bare.split('/').filter((part) => part !== '');
  const shared = above.findIndex((_, at) => above.slice(at).every((part, i) => part === below[i]));
  const parts = [...(shared < 0 ? above : above.slice(0, shared)), ...below];
  const isFolder = bare.endsWith('/') && below.length > 0;
  return `/${parts.join('/')}${isFolder ? '/' : ''}${query === undefined ? '' : `?${query}`}`;
}
