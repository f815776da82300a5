import type { JsonObject } from '../../packages/core/src/accumulate/overlay.ts';
import type { RequestParameters } from '../../packages/core/src/canonical/request.ts';
import { type CodecContext, drop } from '../../packages/core/src/protocols/shared/codec.ts';
import { expectCount, optional } from '../../packages/core/src/protocols/shared/expect.ts';

export function decodeParameters(body: JsonObject): RequestParameters {
  const max_tokens = optional(body['limit'], 'limit', expectCount);
  return max_tokens === undefined ? {} : { max_tokens };
}

/** The only setting is the limit; all others are dropped with a note. */
export function encodeParameters({ max_tokens, ...others }: RequestParameters, context: CodecContext): JsonObject {
  for (const name of Object.keys(others))
    drop(context, { path: `/parameters/${name}`, feature: name, message: `${name} is not supported by the target; dropped` });
  return max_tokens === undefined ? {} : { limit: max_tokens };
}
