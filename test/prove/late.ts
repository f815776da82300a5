/**
 * Reported streams that settle something after it was passed on: a client that has read it cannot be told otherwise, whatever a converter
 * does. They are read right, and converted without an error; only what they said first is what other clients know.
 */
export const SETTLED_LATE: Readonly<Record<string, string>> = {
  'own-name-grows-after-arguments': 'the name of a call grows when its arguments have begun',
  'own-name-never-sent': 'a call without a name is flagged, which chat cannot express',
  'own-name-never-sent-flagged': 'a call without a name is flagged, which chat cannot express',
  'own-growing-name-repeated-object': 'the name of a call grows when its arguments are whole',
  'own-id-after-arguments': 'the id of a call comes behind its arguments',
  'own-ids-after-all-calls': 'the ids come behind all calls',
  'own-responses-created-missing-id': 'id and model come with the last event',
  'own-input-after-stop': 'the arguments of a call come when its block has stopped',
  'own-second-document-after-another-call': 'the arguments of a call go on when another call has begun',
};
