/** Limits on what clients and upstreams send. A file of constants without imports, so that bundlers inline them. */

/**
 * Levels of JSON in a body, an event or tool arguments. Real values have fewer; JSON.stringify and recursion overflow
 * the stack at a few thousand.
 */
export const MAX_JSON_DEPTH = 256;

/**
 * Characters of JSON whose depth is checked after it was parsed. Longer texts are checked before: 3,000,000 levels take JSON.parse two
 * seconds and a gigabyte, and the check 0.6 ns a character.
 */
export const MAX_UNSCANNED_JSON: number = 64 * 1024;

/** Levels at which `overlay` merges objects; deeper ones are replaced. Usage and unknown fields have three or four. */
export const MAX_OVERLAY_DEPTH = 64;

/** Default levels of a value that `mergeDelta` accepts: twice the wire limit, because callers pass their own values. */
export const MAX_MERGE_DEPTH = 512;

/** Tool calls in one message. Real messages have a few dozen; each call costs an object and two index entries. */
export const MAX_CALLS = 4096;

/** Characters of the arguments of all tool calls in one message: twice the default body limit of the gateway. */
export const MAX_ARGUMENT_CHARACTERS: number = 64 * 1024 * 1024;

/**
 * Levels of a JSON schema that are converted; deeper ones become an object without properties. Real schemas have at
 * most a few dozen.
 */
export const MAX_SCHEMA_DEPTH = 200;

/**
 * Levels of `allOf` and `$ref` that are merged into one schema. Real schemas have two or three; recursive definitions
 * end here.
 */
export const MAX_SCHEMA_MERGE_DEPTH = 64;

/**
 * Characters that inlined references may add to one schema: definitions that refer to definitions grow exponentially.
 */
export const MAX_INLINED_SCHEMA = 200_000;

/** Steps in a JSON path of Gemini's `partialArgs`. Each step can create a level of the arguments. */
export const MAX_PARTIAL_ARGS_DEPTH = 64;

/**
 * Entries that an index in a path of `partialArgs` may skip. Pieces may arrive out of order, but an index must not
 * create a list of millions.
 */
export const MAX_PARTIAL_ARGS_GAP = 64;

/** Levels at which field names of a Gemini body are converted from snake case. No field of the protocol is as deep. */
export const MAX_FIELD_NAME_DEPTH = 32;
