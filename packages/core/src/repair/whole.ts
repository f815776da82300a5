/** Repairs whole responses for readers of their own protocol. */

import { CodecError } from '../canonical/notes.ts';
import type { Codec, WireReply } from '../codec/protocol.ts';
import { isDeparture } from '../doctor/departures.ts';
import { EventReader } from '../engine/reader.ts';
import { convertResponse, encodeError } from '../engine/response.ts';
import { convertResponseToStream, convertStreamToResponse } from '../engine/whole.ts';
import { isObject } from '../json/json.ts';
import type { RuleId } from '../rules/index.ts';
import { isHarmful } from './stream.ts';

/** Options of the repair of a whole response. */
export interface WholeRepairOptions {
  codec: Codec;
  onFinding?: ((rule: RuleId) => void) | undefined;
}

/**
 * Repairs a whole response. An error in a successful response gets an error status. Undefined when there is nothing to
 * repair, and for what cannot be read.
 */
export function repairResponse(
  bytes: Uint8Array,
  body: unknown,
  { codec, onFinding }: WholeRepairOptions,
): WireReply | undefined {
  const rules = findDepartures(bytes, codec);
  for (const rule of rules) onFinding?.(rule);
  const isError = isObject(body) && (isObject(body['error']) || typeof body['error'] === 'string');
  if (!isError && ![...rules].some(isHarmful)) return undefined;
  return attempt(codec, () => convertResponse(body, { from: codec, to: codec, isRenamed: false }).body);
}

/** A stream that was sent where a whole response was requested. */
export const repairStreamToResponse = (bytes: Uint8Array, { codec }: WholeRepairOptions): WireReply | undefined =>
  attempt(codec, () => convertStreamToResponse([bytes], { from: codec, to: codec, isRenamed: false }).body);

/** A whole response that was sent where a stream was requested. An error stays a whole response. */
export function repairResponseToStream(body: unknown, { codec }: WholeRepairOptions): WireReply | undefined {
  const options = { from: codec, to: codec, isRenamed: false };
  return attempt(codec, () => convertResponseToStream(body, options).body);
}

/** The rules that a whole response departs from, without those that only streams have. */
function findDepartures(bytes: Uint8Array, codec: Codec): Set<RuleId> {
  const rules = new Set<RuleId>();
  const reader = new EventReader({ protocol: codec, onDeparture: (rule) => rules.add(rule) });
  reader.push(bytes);
  reader.end();
  const form = { message: { error: null }, isDocument: true, hasWholeMessage: true, isWhole: true };
  for (const rule of rules) if (!isDeparture(rule, form)) rules.delete(rule);
  return rules;
}

/** A repaired body; the error of a response that is one; undefined for a response that cannot be read. */
function attempt(codec: Codec, convert: () => unknown): WireReply | undefined {
  try {
    return { status: 200, headers: {}, body: convert() };
  } catch (error) {
    if (!(error instanceof CodecError)) throw error;
    return error.error.upstream ? encodeError(error.error, { to: codec }) : undefined;
  }
}
