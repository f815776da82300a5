/** Escapes that are whole: pairs of surrogates, and everything that is no surrogate. An escaped backslash is taken with what it escapes. */
const WHOLE_ESCAPES = /\\(?:u[dD][89abAB][\da-fA-F]{2}\\u[dD][c-fC-F][\da-fA-F]{2}|[^u]|u(?![dD][89a-fA-F])[\da-fA-F]{4})/g;
const SURROGATE = /\\u[dD][89a-fA-F]/;

/** Whether a JSON text has half of a character in one of its strings. As bytes it cannot: half a character is no UTF-8. */
export const hasHalfCharacter = (json: string): boolean =>
  SURROGATE.test(json) && SURROGATE.test(json.replace(WHOLE_ESCAPES, ''));
