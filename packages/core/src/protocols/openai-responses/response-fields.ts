import { deriveId } from '../../accumulate/derive-id.ts';
import { isObject, type JsonObject } from '../../accumulate/overlay.ts';
import type { MessageDelta, MessageStart } from '../../canonical/events.ts';
import { objectOf, unknownFields } from '../shared/read.ts';
import { type Item, type ItemKind, kindOf } from './items.ts';
import { type Naming, pairUp } from './pair-up.ts';
import { filled, type WireEvent, type WireItem, type WireResponse } from './wire.ts';

/** Fields of a response that have a canonical place. What echoes the request has none, and is kept. */
const RESPONSE_FIELDS: ReadonlySet<string> = new Set(
  Object.keys({
    id: 0,
    object: 0,
    created_at: 0,
    status: 0,
    model: 0,
    output: 0,
    output_text: 0,
    usage: 0,
    error: 0,
    service_tier: 0,
    system_fingerprint: 0,
  } satisfies { [K in keyof WireResponse]?: 0 }),
);
const ENVELOPE_FIELDS: ReadonlySet<string> = new Set(
  Object.keys({ type: 0, sequence_number: 0, response: 0 } satisfies { [K in keyof WireEvent]?: 0 }),
);

/** A whole body in place of a stream: the object that the terminal event would have carried. */
export const isWholeResponse = (payload: JsonObject): boolean =>
  typeof payload['type'] !== 'string' &&
  (payload['object'] === 'response' || (Array.isArray(payload['output']) && 'status' in payload));

/** The response inside an event; some servers send it without the envelope. */
export function responseOf(event: JsonObject): WireResponse {
  if (isObject(event['response'])) return event['response'];
  return event['object'] === 'response' ? event : {};
}

export function decodeStart(response: WireResponse): MessageStart['message'] {
  const { created_at: created } = response;
  return {
    id: filled(response.id) ?? deriveId('resp_', filled(response.model) ?? '', typeof created === 'number' ? created : ''),
    model: filled(response.model) ?? '',
    ...(typeof created === 'number' && { created }),
    ...envelopeFields(response),
  };
}

/** What the response did not say yet when it started: servers leave out `response.created`, or all of its fields. */
export function lateFields(first: WireResponse | undefined, last: WireResponse): MessageDelta['message'] {
  const [id, model, created] = [filled(last.id), filled(last.model), last.created_at];
  return {
    ...(id !== undefined && !filled(first?.id) && { id }),
    ...(model !== undefined && !filled(first?.model) && { model }),
    ...(first?.created_at === undefined && typeof created === 'number' && { created }),
  };
}

export function envelopeFields(response: WireResponse): { service_tier?: string; system_fingerprint?: string } {
  const service_tier = filled(response.service_tier);
  const system_fingerprint = filled(response.system_fingerprint);
  return { ...(service_tier !== undefined && { service_tier }), ...(system_fingerprint !== undefined && { system_fingerprint }) };
}

/** What nobody here knows about the response, and about the event that brought it (GitHub Copilot puts `copilot_usage` there). */
export function responseExtras(response: WireResponse, envelope: JsonObject | undefined): JsonObject {
  const around =
    envelope && envelope !== response && !isWholeResponse(envelope) ? unknownFields(envelope, ENVELOPE_FIELDS) : undefined;
  return { ...unknownFields(response, RESPONSE_FIELDS), ...around };
}

/** The ends of a response, the worst last. */
const ENDS: readonly string[] = ['completed', 'incomplete', 'cancelled', 'failed'];

/** How the terminal event ends the response: its name and the status agree in a conforming stream; else the worse is believed. */
export function statusOf(response: WireResponse, named = 'completed'): string {
  const status = filled(response.status) ?? named;
  return ENDS.indexOf(status) > ENDS.indexOf(named) ? status : named;
}

export const reasonOf = (response: WireResponse): string | undefined => filled(objectOf(response.incomplete_details)['reason']);

/** Items of one name can stand for each other. */
const nameOf = (kind: ItemKind, { type }: WireItem): string =>
  kind === 'opaque' || kind === 'built-in' ? `${kind} ${filled(type)}` : kind;
const listed = (wire: WireItem): string => nameOf(kindOf(wire), wire);
const shown = ({ kind, wire }: Item): string => nameOf(kind, wire);

function callIdOf(wire: WireItem): string | undefined {
  const kind = kindOf(wire);
  return kind === 'function' || kind === 'custom' ? filled(wire.call_id) : undefined;
}

/** Ids rotate, indexes shift and lists leave items out, but two calls with different call ids are never the same. */
const ITEM_NAMINGS: readonly Naming<WireItem, Item>[] = [
  { wire: (wire) => callIdOf(wire) ?? filled(wire.id), seen: (item) => item.callId ?? item.id },
  {
    wire: (wire, at) => `${at} ${listed(wire)}`,
    seen: (item) => (item.callId === undefined ? `${item.index} ${shown(item)}` : undefined),
  },
  {
    wire: (wire, at) => (callIdOf(wire) === undefined ? `${at} ${listed(wire)}` : undefined),
    seen: (item) => `${item.index} ${shown(item)}`,
  },
  { wire: listed, seen: (item) => (item.callId === undefined ? shown(item) : undefined) },
  { wire: (wire) => (callIdOf(wire) === undefined ? listed(wire) : undefined), seen: shown },
];

/** The items a response lists, each with the item of the stream that it is; undefined for one that the stream never showed. */
export function pairItems(output: unknown, seen: readonly Item[]): { wire: WireItem; item: Item | undefined }[] {
  const wires: WireItem[] = Array.isArray(output) ? output.filter(isObject) : [];
  const items = pairUp(wires, seen, ITEM_NAMINGS);
  return wires.map((wire, at) => ({ wire, item: items[at] }));
}
