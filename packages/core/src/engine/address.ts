import type { InterfaceType } from '../canonical/interfaces.ts';
import type { Codec, Target } from '../protocols/shared/codec.ts';
import { BoundedCache } from '../protocols/shared/remember.ts';

/** URLs that were built before. They contain model names, of which clients can invent any number. */
const built = new BoundedCache<string>({ entries: 1000, bytes: 512 * 1024 });

/**
 * What `buildUrl` says. To parse and to write a URL takes as long as most of the rest of a small request: each is built once. `nativePath`: the
 * path that the encoder of the request chose, where an interface has several.
 */
export function urlOf(codec: Codec, type: InterfaceType, target: Target, nativePath = ''): string {
  const { provider, model, stream } = target;
  // An operator's own settings may say anything about the path.
  if (provider.adapter_config) return codec.buildUrl(type, target, model, nativePath);
  const key = `${codec.id} ${type} ${stream} ${provider.base_url} ${model} ${nativePath}`;
  const known = built.get(key);
  if (known !== undefined) return known;
  const url = codec.buildUrl(type, target, model, nativePath);
  built.set(key, url);
  return url;
}
