import type { InterfaceType } from '../canonical/interfaces.ts';
import type { ProtocolCodec, Target } from '../protocols/shared/codec.ts';

/** URLs that were built before. Names of models are the client's, and it may make up any number of them. */
const built = new Map<string, string>();
const MOST_KEPT = 1000;

/** What `buildUrl` says. To parse and to write a URL takes as long as most of the rest of a small request: each is built once. */
export function urlOf(codec: ProtocolCodec, type: InterfaceType, target: Target): string {
  const { provider, model, stream } = target;
  // An operator's own settings may say anything about the path.
  if (provider.adapter_config) return codec.buildUrl(type, target);
  const key = `${codec.id} ${type} ${stream} ${provider.base_url} ${model}`;
  const known = built.get(key);
  if (known !== undefined) return known;
  const url = codec.buildUrl(type, target);
  if (built.size >= MOST_KEPT) built.clear();
  built.set(key, url);
  return url;
}
