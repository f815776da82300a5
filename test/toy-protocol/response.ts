import type { CanonicalResponse } from '../../packages/core/src/canonical/message.ts';
import { readWholeResponse } from '../../packages/core/src/codec/answers.ts';
import type { CodecContext } from '../../packages/core/src/codec/protocol.ts';
import { encodePart } from './blocks.ts';
import { encodeEnd, encodeUsage } from './outcome.ts';
import { decodeStream } from './stream-decode.ts';
import type { ToyResponse } from './wire.ts';

export const decodeResponse = (body: unknown, context: CodecContext): CanonicalResponse =>
  readWholeResponse([body], decodeStream(context)).message;

export const encodeResponse = ({ id, model, content, stop_reason: reason, usage }: CanonicalResponse): ToyResponse => ({
  toy: 1,
  id,
  model,
  parts: content.flatMap((block) => encodePart(block) ?? []),
  end: encodeEnd(reason),
  ...encodeUsage(usage),
});
