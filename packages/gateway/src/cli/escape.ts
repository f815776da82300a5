/**
 * What can control a terminal or deceive its reader: C0 (except tab and line feed), DEL, C1, the separators U+2028 and U+2029, which end a line
 * for some readers, and Unicode's Bidi_Control, which can make a command look like another one.
 */
// biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what is looked for
const UNSAFE = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/g;
const LINE_MARKS = /[\t\n]/g;
// JSON.stringify has escaped C0 already.
const UNSAFE_IN_JSON = /[\u007f-\u009f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/g;

const SHORT: Readonly<Record<string, string>> = { '\t': '\\t', '\n': '\\n', '\r': '\\r' };

const escaped = (char: string): string => SHORT[char] ?? `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`;

/** The words of strangers, fit for a terminal; lines and tabs stay. */
export const printable = (text: string): string => text.replaceAll('\r\n', '\n').replace(UNSAFE, escaped);

/** The same for what has to stay on one line: names, ids, messages. */
export const oneLine = (text: string): string => text.replace(UNSAFE, escaped).replace(LINE_MARKS, escaped);

/** The same value in JSON, without any character that a terminal obeys. */
export const safeJson = (json: string): string => json.replace(UNSAFE_IN_JSON, escaped);
