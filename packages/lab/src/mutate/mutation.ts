import type { ProtocolId, RuleId, SseFrame } from '@sluice/core';
import type { Framing } from './framing.ts';
import type { Random } from './random.ts';

/** A response body before it becomes bytes: its frames, and how they are written and handed over. */
export interface WireStream {
  readonly protocol: ProtocolId;
  readonly frames: readonly SseFrame[];
  readonly framing: Framing;
}

/** A part of the assembled message, as far as a dialect can damage it. */
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
 * What a careful reader makes of the changed stream. `same`: the same message. `loses`: the wire no longer says these parts, everything else
 * is the same. `cut`: what came before the damage is kept, and the message is said to be incomplete or to have failed.
 */
export type Effect = 'same' | 'cut' | { readonly loses: readonly Part[] };

export type Kind = 'framing' | 'delivery' | 'envelope' | 'content' | 'calls' | 'finish' | 'usage' | 'failure';

/** One departure from the standard, as real servers show it, done to a clean stream. */
export interface Mutation {
  readonly id: string;
  readonly title: string;
  readonly kind: Kind;
  readonly protocols: readonly ProtocolId[];
  readonly effect: Effect;
  /** The departure that a reader has to name wherever the mutation changed something. */
  readonly rule?: RuleId;
  /** Pure. A stream that gives no occasion comes back as it is: the same object. */
  apply(stream: WireStream, random: Random): WireStream;
}

/** A row of a table of mutations: what its neighbours do not share with it. */
export interface Row {
  readonly title: string;
  readonly rule?: RuleId;
  readonly loses?: readonly Part[];
  readonly cuts?: true;
  apply(stream: WireStream, random: Random): WireStream;
}

/** The rows of one kind, under their ids. */
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
