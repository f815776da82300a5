import type { CanonicalModelList } from '../../packages/core/src/canonical/interfaces.ts';
import type { WireCodec } from '../../packages/core/src/protocols/shared/codec.ts';
import { listOf, objectOf, textOf } from '../../packages/core/src/protocols/shared/read.ts';

export const models: WireCodec<unknown, CanonicalModelList> = {
  decode: (body) => ({ models: listOf(objectOf(body)['models']).map((id) => ({ id: textOf(id) })) }),
  encode: (list) => ({ toy: 1, models: list.models.map(({ id }) => id) }),
};
