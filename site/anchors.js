/** The anchors that GitHub gives to the headings of a Markdown page. The site and the test of all links use the same rules. */

/** The anchor of a heading, from its text without markup. */
export const toAnchor = (heading) =>
  heading
    .trim()
    .toLowerCase()
    .replace(/[^\p{L}\p{N}\p{M}_ -]/gu, '')
    .replaceAll(' ', '-');

/** All anchors of a page: headings (a repeated one gets -1, -2, …) and explicit ids. */
export function listAnchors(markdown) {
  const text = dropFences(markdown);
  const anchors = new Set([...text.matchAll(/<\w+\s[^>]*?\b(?:id|name)="([^"]+)"/g)].map(([, id]) => id));
  const counts = new Map();
  for (const [, heading] of text.matchAll(/^#{1,6} +(.+?)(?: +#+)?$/gm)) {
    const base = toAnchor(dropMarkup(heading));
    const count = counts.get(base) ?? 0;
    counts.set(base, count + 1);
    anchors.add(count === 0 ? base : `${base}-${count}`);
  }
  return anchors;
}

/** Targets of links, images and reference definitions; code has none. */
export const listLinks = (markdown) =>
  [
    ...dropFences(markdown)
      .replace(/<!--[\s\S]*?-->/g, '')
      .replace(/(`+)(?!`)[\s\S]*?[^`]\1(?!`)/g, 'code')
      .matchAll(
        /\]\(<?([^)\s>]+)>?(?:\s+"[^"]*")?\)|^\[[^\]]+\]:\s*(\S+)|<(?:a|img|source)\s[^>]*?(?:href|src|srcset)="([^"]+)"/gm,
      ),
  ].map(([, inline, reference, html]) => inline ?? reference ?? html ?? '');

const dropFences = (markdown) => markdown.replace(/^( *)(`{3,}|~{3,})[^\n]*\n[\s\S]*?^ *\2`*~* *$/gm, '');

/** Underscores stay: in these pages they belong to names. */
const dropMarkup = (heading) =>
  heading
    .replace(/!?\[([^\]]*)\]\([^)]*\)/g, '$1')
    .replace(/<[^>`]+>(?=[^`]*(?:`[^`]*`[^`]*)*$)/g, '')
    .replace(/[`*]/g, '')
    .replace(/\\(.)/g, '$1');
