import type { CanonicalModelList } from '../../packages/core/src/canonical/request.ts';
import type { WireCodec } from '../../packages/core/src/codec/protocol.ts';
import { listOrEmpty, objectOrEmpty, textOrEmpty } from '../../packages/core/src/codec/read.ts';

export const models: WireCodec<unknown, CanonicalModelList> = {
  decode: (body) => ({ models: listOrEmpty(objectOrEmpty(body)['models']).map((id) => ({ id: textOrEmpty(id) })) }),
  encode: (list) => ({ toy: 1, models: list.models.map(({ id }) => id) }),
};
