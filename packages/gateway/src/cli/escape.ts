/**
 * What can take over a terminal or deceive its reader: C0 (but not tab and line feed), DEL, C1, and the marks that reorder text, with which
 * a command can be made to look like another one.
 */
// biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what is looked for
const UNSAFE = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u202a-\u202e\u2066-\u2069]/g;
const LINE_MARKS = /[\t\n\u2028\u2029]/g;
// JSON.stringify has dealt with C0. The separators of lines and paragraphs end a line for some readers, and a value has to stay on one.
const UNSAFE_IN_JSON = /[\u007f-\u009f\u2028\u2029\u202a-\u202e\u2066-\u2069]/g;

const SHORT: Readonly<Record<string, string>> = { '\t': '\\t', '\n': '\\n', '\r': '\\r' };

const escaped = (char: string): string => SHORT[char] ?? `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`;

/** The words of strangers, fit for a terminal; lines and tabs stay. */
export const printable = (text: string): string => text.replaceAll('\r\n', '\n').replace(UNSAFE, escaped);

/** The same for what has to stay on one line: names, ids, messages. */
export const oneLine = (text: string): string => text.replace(UNSAFE, escaped).replace(LINE_MARKS, escaped);

/** The same value in JSON, without any character that a terminal obeys. */
export const safeJson = (json: string): string => json.replace(UNSAFE_IN_JSON, escaped);
