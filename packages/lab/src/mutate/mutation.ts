import type { ProtocolId, RuleId, SseFrame } from '@sluice/core';
import type { Framing } from './framing.ts';
import type { Random } from './random.ts';

/** A response body before it becomes bytes: its frames, and how they are written and sent. */
export interface WireStream {
  readonly protocol: ProtocolId;
  readonly frames: readonly SseFrame[];
  readonly framing: Framing;
}

/** A part of the assembled message that a dialect can damage. */
export type Part =
  | 'id'
  | 'model'
  | 'text'
  | 'blocks'
  | 'signatures'
  | 'call_ids'
  | 'call_names'
  | 'call_order'
  | 'finish'
  | 'stop_details'
  | 'usage'
  | 'logprobs';

/**
 * What a careful reader makes of the changed stream. `same`: the same message. `loses`: these parts are no longer in
 * the stream, everything else is the same. `cut`: everything before the damage is read, and the message is reported as
 * incomplete or failed.
 */
export type Effect = 'same' | 'cut' | { readonly loses: readonly Part[] };

/** What a mutation changes. */
type Kind = 'framing' | 'delivery' | 'envelope' | 'content' | 'calls' | 'finish' | 'usage' | 'failure';

/** One violation of the standard that real servers show, applied to a clean stream. */
export interface Mutation {
  readonly id: string;
  readonly title: string;
  readonly kind: Kind;
  readonly protocols: readonly ProtocolId[];
  readonly effect: Effect;
  /** The rule that a reader has to report wherever the mutation changed something. */
  readonly rule?: RuleId;
  /** Pure. Returns the same object when there is nothing to change in the stream. */
  apply(stream: WireStream, random: Random): WireStream;
}

/** A row of a table of mutations. */
export interface Row {
  readonly title: string;
  readonly rule?: RuleId;
  readonly loses?: readonly Part[];
  readonly cuts?: true;
  apply(stream: WireStream, random: Random): WireStream;
}

/** Builds the mutations of a table whose rows have the same kind and protocols. */
export function mutations(kind: Kind, protocols: readonly ProtocolId[], rows: Readonly<Record<string, Row>>): Mutation[] {
  return Object.entries(rows).map(([id, { title, rule, loses, cuts, apply }]) => ({
    id,
    title,
    kind,
    protocols,
    effect: cuts ? 'cut' : loses ? { loses } : 'same',
    ...(rule && { rule }),
    apply,
  }));
}
