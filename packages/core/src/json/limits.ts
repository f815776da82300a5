// Limits on what clients and upstreams send. Constants in a file without imports: bundlers inline them.

/** Levels of JSON in a body, an event or tool arguments. Nothing real is deeper, and JSON.stringify and recursion overflow the stack at some thousands. */
export const MAX_JSON_DEPTH = 256;

/** Levels in which `overlay` merges objects; deeper ones are replaced as a whole. Usage and unknown fields have three or four. */
export const MAX_OVERLAY_DEPTH = 64;

/** Default levels of a value that `mergeDelta` accepts. Callers bring their own values here, so it is twice what the wire may have. */
export const MAX_MERGE_DEPTH = 512;

/** Tool calls in one message. Real messages have a few dozen; each call costs an object and two index entries. */
export const MAX_CALLS = 4096;

/** Characters of the arguments of all tool calls in one message: twice the largest request body that the gateway accepts by default. */
export const MAX_ARGUMENT_CHARACTERS: number = 64 * 1024 * 1024;

/** Levels of a JSON schema that are converted; deeper ones become an object without properties. Real schemas have at most a few dozen. */
export const MAX_SCHEMA_DEPTH = 200;

/** Levels of `allOf` and `$ref` that are merged into one schema. Real schemas have two or three; recursive definitions end here. */
export const MAX_SCHEMA_MERGE_DEPTH = 64;

/** Characters that inlined references may add to one schema: definitions that refer to definitions grow exponentially. */
export const MAX_INLINED_SCHEMA = 200_000;

/** Steps in a JSON path of Gemini's `partialArgs`. Each step can create a level of the arguments. */
export const MAX_PARTIAL_ARGS_DEPTH = 64;

/** Places that an index in a path of `partialArgs` may leave free. Pieces may come out of order, but an index must not create a list of millions. */
export const MAX_PARTIAL_ARGS_GAP = 64;

/** Levels in which field names of a Gemini body are converted from snake case. No field of the protocol is as deep. */
export const MAX_FIELD_NAME_DEPTH = 32;
