import type { Protocol } from '../shared/protocol.ts';
import { callFields, extras } from './extras.ts';
import { decodeStream } from './stream-decode.ts';

const isOurs = (name: unknown): boolean => typeof name === 'string' && name.startsWith('response.');

/** OpenAI Responses: `POST /v1/responses`. */
export const openaiResponses: Protocol = {
  id: 'openai-responses',
  streamDecoder: decodeStream,
  recognises: (payload, event) => payload['object'] === 'response' || isOurs(payload['type'] ?? event),
  extras,
  callFields,
};
