/** A JSON document, and what stands around it in its line. */
interface Payload {
  readonly before: string;
  readonly value: unknown;
  readonly after: string;
}

/** A piece of a body: words as they are, or a document that can be taken apart. */
export type Part = string | Payload;

const LINES = /[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+$/g;
/** The name of the field and its blank, the data, the line end. */
const DATA = /^(\uFEFF?(?:data: ?)?)([[{].*?)(\s*)$/s;

export const linesOf = (text: string): string[] => text.match(LINES) ?? [];

/** The events of a body, each with the blank line behind it; of a body without events, the lines. */
export function eventsOf(text: string): string[] {
  const events: string[] = [];
  let open = '';
  for (const line of linesOf(text)) {
    open += line;
    const isBare = open === line && DATA.exec(line)?.[1] === '' && parse(line) !== undefined;
    if (!isBare && !/^[\r\n]+$/.test(line)) continue;
    events.push(open);
    open = '';
  }
  return open === '' ? events : [...events, open];
}

/** A body in parts. Whole JSON bodies are one. */
export function partsOf(text: string): Part[] {
  const whole = parse(text);
  if (whole) return [{ before: '', value: whole.value, after: '' }];
  return linesOf(text).map((line) => {
    const [, before = '', data = '', after = ''] = DATA.exec(line) ?? [];
    // Something may stand behind the document.
    const end = Math.max(data.lastIndexOf('}'), data.lastIndexOf(']')) + 1;
    const found = parse(data.slice(0, end));
    return found ? { before, value: found.value, after: data.slice(end) + after } : line;
  });
}

export const render = (parts: readonly Part[]): string =>
  parts.map((part) => (typeof part === 'string' ? part : part.before + JSON.stringify(part.value) + part.after)).join('');

function parse(text: string): { value: object } | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === 'object' && value !== null ? { value } : undefined;
  } catch {
    return undefined;
  }
}
