import type { RuleId } from '../../doctor/rules.ts';
import type { BlockEmitter } from '../shared/block-writer.ts';
import type { Calls } from './calls.ts';
import type { WireBlock, WireDelta } from './wire.ts';

/** One content block of the wire, while its deltas arrive. */
export interface BlockReader {
  readonly kind: BlockKind;
  readonly isStopped: boolean;
  /** Another start at the same index: whether it only says this one again, before any delta. */
  isRestatedBy(type: string, block: WireBlock): boolean;
  /** `type` is the delta's type; false when it says nothing to a block of this kind. */
  delta(type: string, delta: WireDelta): boolean;
  /** `isCut`: the block did not come to its own end. */
  stop(isCut: boolean): void;
}

export type BlockKind = 'text' | 'thinking' | 'tool_use' | 'whole' | 'opaque';

/** What the blocks of a message share. */
export interface BlockScope {
  readonly emitter: BlockEmitter;
  readonly calls: Calls;
  /** The model that is writing, which signatures belong to. */
  readonly model: string;
  /** The place in the stream that is being read. */
  readonly here: () => number;
  /** Names a departure there, or at another place. */
  report(rule: RuleId, detail?: string, offset?: number): void;
  /** Tells two blocks of one kind apart: wire indexes are reused. */
  newKey(): number;
}
