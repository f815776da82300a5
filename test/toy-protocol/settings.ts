import type { RequestParameters } from '../../packages/core/src/canonical/request.ts';
import type { CodecContext } from '../../packages/core/src/codec/protocol.ts';
import { expectCount, optional } from '../../packages/core/src/codec/read.ts';
import { noteDropped } from '../../packages/core/src/codec/report.ts';
import type { JsonObject } from '../../packages/core/src/json/json.ts';

export function decodeParameters(body: JsonObject): RequestParameters {
  const max_tokens = optional(body['limit'], 'limit', expectCount);
  return max_tokens === undefined ? {} : { max_tokens };
}

/** The only setting is the limit; all others are dropped with a note. */
export function encodeParameters({ max_tokens, ...others }: RequestParameters, context: CodecContext): JsonObject {
  for (const name of Object.keys(others))
    noteDropped(context, {
      path: `/parameters/${name}`,
      feature: name,
      message: `${name} is not supported by the target; dropped`,
    });
  return max_tokens === undefined ? {} : { limit: max_tokens };
}
