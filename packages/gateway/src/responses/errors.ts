/** Errors of stored responses and conversations, as OpenAI words and types them. */

import { CodecError } from '@sluice/core';

/** Ids come from clients: a long one is cut in messages. */
const quote = (id: string): string => `'${id.slice(0, 100)}'`;

const reject = (status: number, message: string, param: string | null, code: string | null, verdict: Verdict): CodecError =>
  new CodecError({
    code: verdict,
    message,
    http_status: status,
    ...(param !== null && { param }),
    details: { wire_code: code },
  });

/** Whether another candidate is tried: one that keeps responses itself may know the id. */
type Verdict = 'INVALID_INPUT' | 'INCOMPATIBLE_FEATURE';

/** `previous_response_id` names no response of this key. */
export const createPreviousNotFound = (id: string): CodecError =>
  reject(
    400,
    `Previous response with id ${quote(id)} not found.`,
    'previous_response_id',
    'previous_response_not_found',
    'INCOMPATIBLE_FEATURE',
  );

/** `item_reference` names no item of this key. */
export function createItemNotFound(id: string, isStored: boolean): CodecError {
  const remedy =
    ' Items are not persisted when `store` is set to false. Try again with `store` set to true, or remove this item from your input.';
  return reject(404, `Item with id ${quote(id)} not found.${isStored ? '' : remedy}`, 'input', null, 'INCOMPATIBLE_FEATURE');
}

/** A result in the input belongs to no call of the conversation. */
export const createCallNotFound = (kind: string, id: string): CodecError =>
  createInvalid(`No tool call found for ${kind} with call_id ${id.slice(0, 100)}.`, 'input', null);

/** No response of this key has the id. */
export const createResponseNotFound = (id: string): CodecError =>
  reject(404, `Response with id ${quote(id)} not found.`, null, null, 'INVALID_INPUT');

/** No conversation of this key has the id. */
export const createConversationNotFound = (id: string): CodecError =>
  reject(404, `Conversation with id ${quote(id)} not found.`, null, null, 'INCOMPATIBLE_FEATURE');

/** No object of this key has the id. */
export const createObjectNotFound = (id: string): CodecError =>
  reject(404, `No such object: ${quote(id)}`, 'id', null, 'INVALID_INPUT');

/** A request that names two conversations. */
export const createTwoConversations = (): CodecError =>
  createInvalid(
    "Mutually exclusive parameters: 'previous_response_id' and 'conversation'. Ensure you are only providing one of them.",
    'previous_response_id',
    'mutually_exclusive_parameters',
  );

/** Only background responses can be cancelled. */
export const createNotCancellable = (): CodecError => createInvalid('Cannot cancel a synchronous response.', null, null);

/** Only background responses can be streamed later. */
export const createNotStreamable = (): CodecError =>
  createInvalid(
    'This response cannot be streamed because it was not created with background=true.',
    'stream',
    'invalid_request_error',
  );

/** A background response has to be stored: it is read later. */
export const createBackgroundUnstored = (): CodecError =>
  createInvalid("background: requires store: true; remove 'store: false'", 'background', 'invalid_value');

/** A compaction of a gateway that this one cannot open. */
export const createCompactionLost = (place: number): CodecError =>
  createInvalid(
    `input[${place}]: this compaction cannot be opened: it was changed, or made for another client key, by another gateway or before its key was replaced; send the conversation itself in its place`,
    `input[${place}]`,
    'invalid_value',
  );

/** The model wrote no summary that could replace the conversation. */
export const createNoSummary = (provider: string | undefined, fact: string): CodecError =>
  new CodecError({
    code: 'UPSTREAM_ERROR',
    message: `the conversation was not compacted: ${fact}${provider === undefined ? '' : ` (provider "${provider}")`}; keep it as it is, and try again or use another model`,
    http_status: 502,
  });

/** `after` names no item of the list. */
export const createCursorNotFound = (id: string): CodecError =>
  createInvalid(`after: no item with id ${quote(id)} is in this list; list from the beginning`, 'after', 'invalid_value');

/** What a request refers to does not fit: into a request, or beside what follows into the store. */
export const createTooLong = (maxBytes: number, setting: string): CodecError =>
  createInvalid(
    `the stored conversation and the items that the input refers to have more than ${maxBytes} bytes (${setting}); start a new conversation, compact this one, or refer to fewer items`,
    'input',
    'invalid_value',
  );

/** A request that cannot be served. */
export const createInvalid = (message: string, param: string | null, code: string | null): CodecError =>
  reject(400, message, param, code, 'INVALID_INPUT');
