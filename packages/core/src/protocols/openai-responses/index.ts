import type { JsonObject } from '../../accumulate/overlay.ts';
import type { Protocol } from '../shared/protocol.ts';
import { readType } from './event-types.ts';
import { callFields, extras } from './extras.ts';
import { decodeStream } from './stream-decode.ts';

/** The name of the event alone must be a known one: GigaChat has other events that begin with `response.`. */
const isOurs = ({ type }: JsonObject, event = ''): boolean =>
  typeof type === 'string' ? type.startsWith('response.') : event.startsWith('response.') && readType(event).action !== undefined;

/** OpenAI Responses: `POST /v1/responses`. */
export const openaiResponses: Protocol = {
  id: 'openai-responses',
  streamDecoder: decodeStream,
  recognises: (payload, event) => payload['object'] === 'response' || isOurs(payload, event),
  extras,
  callFields,
};
