/** Repairs whole responses for readers of their own protocol. */

import { CodecError } from '../canonical/notes.ts';
import type { RepairCodec, WireReply } from '../codec/protocol.ts';
import { isViolation } from '../doctor/violations.ts';
import { EventReader } from '../engine/reader.ts';
import { encodeError, rewriteResponse } from '../engine/response.ts';
import { rewriteResponseToStream, rewriteStreamToResponse } from '../engine/whole.ts';
import { isObject, type JsonObject } from '../json/json.ts';
import type { RuleId } from '../rules/index.ts';
import { decodeUtf8 } from '../sse/bytes.ts';
import { isHarmful } from './stream.ts';

/** Options of the repair of a whole response. */
export interface WholeRepairOptions {
  codec: RepairCodec;
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
  const rules = findViolations(bytes, body, codec);
  for (const rule of rules) onFinding?.(rule);
  const isError = isObject(body) && (isObject(body['error']) || typeof body['error'] === 'string');
  if (!isError && ![...rules].some(isHarmfulWhole)) return undefined;
  return attempt(codec, () => rewriteResponse(body, { from: codec, to: codec, text: decodeUtf8(bytes) }).body);
}

/** Whether a whole response has nothing that would be repaired. */
export const isConforming = (text: string, body: JsonObject, codec: RepairCodec): boolean =>
  ![...findViolations(encoder.encode(text), body, codec)].some(isHarmfulWhole);

/** A whole response that is written again keeps its `function_call`, which is in the place where clients of that time read it. */
const isHarmfulWhole = (rule: RuleId): boolean => rule !== 'chat/legacy-function-call' && isHarmful(rule);

const encoder = /* @__PURE__ */ new TextEncoder();

/** A stream that was sent where a whole response was requested. */
export const repairStreamToResponse = (bytes: Uint8Array, { codec }: WholeRepairOptions): WireReply | undefined =>
  attempt(codec, () => rewriteStreamToResponse([bytes], { from: codec, to: codec }).body);

/** A whole response that was sent where a stream was requested. An error stays a whole response. `text`: its JSON. */
export const repairResponseToStream = (body: unknown, { codec }: WholeRepairOptions, text?: string): WireReply | undefined =>
  attempt(codec, () => rewriteResponseToStream(body, { from: codec, to: codec, text }).body);

/** The rules that a whole response violates, without those that only streams have. */
function findViolations(bytes: Uint8Array, body: unknown, codec: RepairCodec): Set<RuleId> {
  const rules = new Set<RuleId>();
  const reader = new EventReader({ protocol: codec, onViolation: (rule) => rules.add(rule) });
  reader.push(bytes);
  reader.end();
  if (isObject(body)) codec.check((rule) => rules.add(rule)).whole?.(body);
  const form = { message: { error: null }, isDocument: true, hasWholeMessage: true, isWhole: true };
  for (const rule of rules) if (!isViolation(rule, form)) rules.delete(rule);
  return rules;
}

/** A repaired body; the error of a response that is one; undefined for a response that cannot be read. */
function attempt(codec: RepairCodec, convert: () => unknown): WireReply | undefined {
  try {
    return { status: 200, headers: {}, body: convert() };
  } catch (error) {
    if (!(error instanceof CodecError)) throw error;
    return error.error.upstream ? encodeError(error.error, { to: codec }) : undefined;
  }
}
