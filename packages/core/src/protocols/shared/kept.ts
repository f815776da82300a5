import type { JsonObject } from '../../accumulate/overlay.ts';
import type { Node, ProtocolId } from '../../canonical/protocol.ts';
import { objectOf } from './read.ts';

export interface Keeper {
  /** What the decoder kept of a node under wire names. */
  fieldsOf(node: Node): JsonObject;
  /** As a part of a node: nothing when there is nothing to keep. */
  keep(fields: JsonObject | undefined): Node;
}

/** Fields that only one protocol knows: kept beside the canonical ones on the way in, written back on the way out. */
export const keeper = (protocol: ProtocolId): Keeper => ({
  fieldsOf: (node) => objectOf(node.extensions?.[protocol]),
  keep: (fields) => (fields && Object.keys(fields).length > 0 ? { extensions: { [protocol]: fields } } : {}),
});
