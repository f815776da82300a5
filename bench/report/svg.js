/** SVG as text: elements, escaping, and the frame of a picture. */

const ESCAPES = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;' };

/** Characters that XML does not allow are removed, and halves of a pair replaced. */
export const escapeText = (value) =>
  String(value)
    .toWellFormed()
    // biome-ignore lint/suspicious/noControlCharactersInRegex: these are the characters to remove
    .replace(/[\u0000-\u0008\u000b\u000c\u000e-\u001f\ufffe\uffff]/g, '')
    .replace(/[&<>"]/g, (character) => ESCAPES[character]);

/** A tenth of a pixel is enough, and keeps files small. Anything but a finite number would break a path without an error. */
export function round(value) {
  if (!Number.isFinite(value)) throw new Error(`a coordinate is ${value}`);
  return String(Math.round(value * 10) / 10);
}

const attribute = ([name, value]) => ` ${name}="${typeof value === 'number' ? round(value) : escapeText(value)}"`;

/** Attributes that are undefined are dropped. `children` is SVG already. */
export function element(name, attributes, children = '') {
  const written = Object.entries(attributes)
    .filter(([, value]) => value !== undefined)
    .map(attribute)
    .join('');
  return children === '' ? `<${name}${written}/>` : `<${name}${written}>${children}</${name}>`;
}

export const text = (x, y, content, attributes = {}) => element('text', { x, y, ...attributes }, escapeText(content));

/** Parts of one line in different styles: `[[content, attributes], …]`. */
export const spans = (x, y, parts, attributes = {}) =>
  element('text', { x, y, ...attributes }, parts.map(([content, own]) => element('tspan', own, escapeText(content))).join(''));

export const line = (x1, y1, x2, y2, attributes) =>
  element('path', { d: `M${round(x1)} ${round(y1)}L${round(x2)} ${round(y2)}`, fill: 'none', ...attributes });

/** `points`: `[[x, y], …]` */
export const path = (points, attributes) =>
  element('path', { d: `M${points.map(([x, y]) => `${round(x)} ${round(y)}`).join('L')}`, fill: 'none', ...attributes });

const FONT = 'ui-sans-serif, system-ui, -apple-system, Segoe UI, Helvetica, Arial, sans-serif';

/** The whole file. `title` and `description` are for screen readers. */
export function document({ width, height, title, description, background, body }) {
  const frame = { xmlns: 'http://www.w3.org/2000/svg', width, height, viewBox: `0 0 ${round(width)} ${round(height)}` };
  return `${element(
    'svg',
    { ...frame, role: 'img', 'aria-labelledby': 't d' },
    [
      element('title', { id: 't' }, escapeText(title)),
      element('desc', { id: 'd' }, escapeText(description)),
      element('rect', { width, height, rx: 10, fill: background }),
      element('g', { 'font-family': FONT, 'font-size': 12 }, body.join('\n')),
    ].join('\n'),
  )}\n`;
}
