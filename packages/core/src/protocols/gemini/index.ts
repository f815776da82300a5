import { isObject, type JsonObject } from '../../accumulate/overlay.ts';
import type { Protocol } from '../shared/protocol.ts';
import { hasUsage, isResponse, isWrapped } from './envelope.ts';
import { callFields, extrasOf } from './extras.ts';
import { decodeStream } from './stream-decode.ts';

/** Gemini's generateContent, as the Gemini API, Vertex AI and Cloud Code speak it. */
export const gemini: Protocol = { id: 'gemini', streamDecoder: decodeStream, recognises, extras: extrasOf, callFields };

function recognises(payload: JsonObject): boolean {
  const { response, error }: { response?: unknown; error?: unknown } = payload;
  if (isObject(response) && isWrapped(payload)) return recognises(response);
  if (isObject(error)) return isGoogleStatus(error);
  return isResponse(payload) || hasUsage(payload);
}

/** google.rpc.Status: the others have no status in capitals. */
function isGoogleStatus({ code, status }: JsonObject): boolean {
  return typeof code === 'number' && typeof status === 'string' && /^[A-Z]+(_[A-Z]+)*$/.test(status);
}
