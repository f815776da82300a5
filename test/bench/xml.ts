/** Reads XML as strictly as a browser reads an SVG: one that is not well-formed is not shown at all. */

export interface Element {
  name: string;
  attributes: Record<string, string>;
  children: (Element | string)[];
}

const NAME = /[A-Za-z_][\w:.-]*/y;
const ENTITIES: Record<string, string> = { amp: '&', lt: '<', gt: '>', quot: '"', apos: "'" };
/** Characters that XML 1.0 does not allow: control characters but for white space, and two others. */
const FORBIDDEN = /(?![\t\n\r\u007f-\u009f])\p{Cc}|[\ufffe\uffff]/gu;

/** A text without the characters that XML does not allow. */
export const removeForbidden = (text: string): string => text.toWellFormed().replace(FORBIDDEN, '');

/** The root of a document. Throws when the document is not well-formed. */
export function parseXml(source: string): Element {
  if (removeForbidden(source) !== source) throw new Error('a character that XML does not allow');
  let at = 0;
  const fail = (what: string): never => {
    throw new Error(`${what} at ${at}: ${source.slice(at, at + 60)}`);
  };
  const read = (pattern: RegExp): string => {
    pattern.lastIndex = at;
    const [found] = pattern.exec(source) ?? fail(`no ${pattern}`);
    at += found.length;
    return found;
  };
  const readElement = (): Element => {
    read(/</y);
    const element: Element = { name: read(NAME), attributes: {}, children: [] };
    while (/\s/.test(source[at] ?? '')) {
      read(/\s+/y);
      if (source[at] === '>' || source[at] === '/') break;
      const name = read(NAME);
      if (name in element.attributes) fail(`a second ${name}`);
      element.attributes[name] = decode(read(/="[^"<]*"/y).slice(2, -1));
    }
    if (read(/\/?>/y) === '/>') return element;
    while (!source.startsWith('</', at)) {
      if (at >= source.length) fail(`no end of ${element.name}`);
      element.children.push(source[at] === '<' ? readElement() : decode(read(/[^<]+/y)));
    }
    if (read(/<\/[^>]+>/y) !== `</${element.name}>`) fail(`not the end of ${element.name}`);
    return element;
  };
  const root = readElement();
  if (source.slice(at).trim() !== '') fail('more than one root');
  return root;
}

const decode = (text: string): string =>
  text.replace(/&(?:(\w+);)?/g, (_, name?: string) => {
    const character = name === undefined ? undefined : ENTITIES[name];
    if (character === undefined) throw new Error(`an unknown entity in ${text}`);
    return character;
  });

export const readText = ({ children }: Element): string =>
  children.map((child) => (typeof child === 'string' ? child : readText(child))).join('');

export const listElements = (root: Element, name: string): Element[] =>
  root.children.flatMap((child) =>
    typeof child === 'string' ? [] : [...(child.name === name ? [child] : []), ...listElements(child, name)],
  );
