/**
 * Reads the Markdown that models write: headings, lists, code, quotes, rules, tables as text, emphasis and links. HTML is text,
 * and images are text, so that reading a response loads nothing. Every pass is linear in the text.
 */

/** A part of a line. */
export type Inline =
  | { readonly type: 'text' | 'code'; readonly text: string }
  | { readonly type: 'strong' | 'em'; readonly content: readonly Inline[] }
  | { readonly type: 'link'; readonly href: string; readonly text: string };

/** A block of lines. */
export type Block =
  | { readonly type: 'paragraph'; readonly content: readonly Inline[] }
  | { readonly type: 'heading'; readonly level: number; readonly content: readonly Inline[] }
  | { readonly type: 'code'; readonly language: string; readonly text: string }
  | { readonly type: 'quote'; readonly content: readonly Block[] }
  | { readonly type: 'list'; readonly isOrdered: boolean; readonly items: readonly (readonly Inline[])[] }
  | { readonly type: 'rule' };

/** Quotes inside of quotes. */
const MAX_DEPTH = 4;

/** Longer text is shown as it is. */
export const MAX_MARKDOWN = 200_000;

/** Reads blocks. */
export function parseMarkdown(text: string, depth = 0): Block[] {
  const lines = text.split(/\r?\n/);
  const blocks: Block[] = [];
  let at = 0;
  while (at < lines.length) {
    const { block, next } = readBlock(lines, at, depth);
    if (block) blocks.push(block);
    at = next;
  }
  return blocks;
}

interface ReadBlock {
  readonly block: Block | undefined;
  readonly next: number;
}

const FENCE = /^ {0,3}(`{3,}|~{3,})\s*([\w+#.-]{0,40})/;
const HEADING = /^ {0,3}(#{1,6})\s+(\S.*)$/;
const RULE = /^ {0,3}(?:-{3,}|\*{3,}|_{3,})\s*$/;
const QUOTE = /^ {0,3}> ?/;
const ITEM = /^\s{0,12}(?:[-*+]|(\d{1,9})[.)])\s+(.*)$/;

function readBlock(lines: readonly string[], at: number, depth: number): ReadBlock {
  const line = lines[at] ?? '';
  if (line.trim() === '') return { block: undefined, next: at + 1 };
  const fence = FENCE.exec(line);
  if (fence) return readCode(lines, at, fence[1] ?? '', fence[2] ?? '');
  const heading = HEADING.exec(line);
  if (heading) {
    const content = parseInline(heading[2] ?? '');
    return { block: { type: 'heading', level: heading[1]?.length ?? 1, content }, next: at + 1 };
  }
  if (RULE.test(line)) return { block: { type: 'rule' }, next: at + 1 };
  if (QUOTE.test(line) && depth < MAX_DEPTH) return readQuote(lines, at, depth);
  const item = ITEM.exec(line);
  if (item) return readList(lines, at, item[1] !== undefined);
  return readParagraph(lines, at);
}

/** To the closing fence, or to the end: a response may be cut. */
function readCode(lines: readonly string[], at: number, fence: string, language: string): ReadBlock {
  const isEnd = (line: string): boolean => line.trimStart().startsWith(fence) && line.trim().length <= fence.length + 2;
  let end = at + 1;
  while (end < lines.length && !isEnd(lines[end] ?? '')) end++;
  return { block: { type: 'code', language, text: lines.slice(at + 1, end).join('\n') }, next: end + 1 };
}

function readQuote(lines: readonly string[], at: number, depth: number): ReadBlock {
  let end = at;
  while (end < lines.length && QUOTE.test(lines[end] ?? '')) end++;
  const inside = lines.slice(at, end).map((line) => line.replace(QUOTE, ''));
  return { block: { type: 'quote', content: parseMarkdown(inside.join('\n'), depth + 1) }, next: end };
}

function readList(lines: readonly string[], at: number, isOrdered: boolean): ReadBlock {
  const items: string[] = [];
  let end = at;
  for (; end < lines.length; end++) {
    const line = lines[end] ?? '';
    const item = ITEM.exec(line);
    if (item) items.push(item[2] ?? '');
    else if (/^\s{2,}\S/.test(line) && items.length > 0) items.push(`${items.pop()} ${line.trim()}`);
    else break;
  }
  return { block: { type: 'list', isOrdered, items: items.map((item) => parseInline(item)) }, next: end };
}

function readParagraph(lines: readonly string[], at: number): ReadBlock {
  const startsOther = (line: string): boolean =>
    line.trim() === '' || [FENCE, HEADING, RULE, QUOTE, ITEM].some((pattern) => pattern.test(line));
  let end = at + 1;
  while (end < lines.length && !startsOther(lines[end] ?? '')) end++;
  return { block: { type: 'paragraph', content: parseInline(lines.slice(at, end).join('\n')) }, next: end };
}

/** Code, emphasis and links. Each alternative excludes its own delimiter, so no text is read twice. */
const INLINE =
  /(?<code>`[^`\n]{1,2000}`)|(?<strong>\*\*[^*\n]{1,2000}\*\*)|(?<em>\*[^*\s][^*\n]{0,2000}\*)|(?<link>!?\[[^[\]\n]{0,500}\]\([^()\s]{1,2000}\))/g;

/** Reads the parts of a line. */
export function parseInline(text: string): Inline[] {
  const parts: Inline[] = [];
  let end = 0;
  const addText = (upTo: number): void => {
    if (upTo > end) parts.push({ type: 'text', text: text.slice(end, upTo) });
  };
  for (const match of text.matchAll(INLINE)) {
    addText(match.index);
    parts.push(readInline(match[0], match.groups ?? {}));
    end = match.index + match[0].length;
  }
  addText(text.length);
  return parts;
}

function readInline(whole: string, { code, strong, em, link }: Record<string, string | undefined>): Inline {
  if (code !== undefined) return { type: 'code', text: code.slice(1, -1) };
  if (strong !== undefined) return { type: 'strong', content: parseInline(strong.slice(2, -2)) };
  if (em !== undefined) return { type: 'em', content: parseInline(em.slice(1, -1)) };
  const [, mark, label = '', target = ''] = /^(!?)\[(.*)\]\((.*)\)$/s.exec(link ?? '') ?? [];
  const href = readHref(target);
  // An image would be loaded from an address that the model chose, which tells its owner that it was read.
  if (mark === '!' || href === undefined) return { type: 'text', text: whole };
  return { type: 'link', href, text: label === '' ? href : label };
}

/** The address of a link, if it is one of the web. */
export function readHref(target: string): string | undefined {
  if (!/^https?:\/\//i.test(target) || !URL.canParse(target)) return undefined;
  const { protocol, href } = new URL(target);
  return protocol === 'https:' || protocol === 'http:' ? href : undefined;
}
