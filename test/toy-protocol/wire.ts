import type { Node, ProtocolId } from '../../packages/core/src/canonical/protocol.ts';
import { keepFields, readFields } from '../../packages/core/src/codec/extensions.ts';

/** The type lists the registered protocols only; a codec that is passed as a value has an id of its own. */
export const PROTOCOL = 'toy' as ProtocolId;

export interface ToyCall {
  id: string;
  name: string;
  input: Record<string, unknown>;
}

export type ToyPart = { text: string } | { call: ToyCall } | { result: { id: string; output: string } };

export interface ToyResponse {
  toy: 1;
  id: string;
  model: string;
  parts: ToyPart[];
  end: ToyEnd;
  used?: { in: number; out: number };
}

export type ToyEnd = 'done' | 'limit' | 'call';

export const fieldsOf = (node: Node): Record<string, unknown> => readFields(node, PROTOCOL);

export const keep = (fields: Record<string, unknown> | undefined): Node => keepFields(fields, PROTOCOL);

/** Fields of a request that have a canonical form. */
export const REQUEST_FIELDS: ReadonlySet<string> = new Set(['toy', 'model', 'stream', 'system', 'turns', 'tools', 'limit']);
