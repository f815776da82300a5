/** Checks a built site: every internal link and anchor exists, and nothing is loaded from another host. */
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join, posix } from 'node:path';

/** Lists what is wrong. */
export function checkLinks(folder) {
  const files = readdirSync(folder, { recursive: true, encoding: 'utf8' });
  const pages = new Map(files.filter((file) => file.endsWith('.html')).map((file) => [file, readPage(join(folder, file))]));
  const problems = [];
  for (const [file, { links, resources }] of pages) {
    for (const url of resources) if (/^(https?:)?\/\//.test(url)) problems.push(`${file}: loads ${url}`);
    for (const url of new Set(links)) {
      const reason = findFault(url, file, pages, folder);
      if (reason !== undefined) problems.push(`${file}: ${url}: ${reason}`);
    }
  }
  const styles = files.filter((file) => file.endsWith('.css'));
  for (const file of styles)
    for (const [url] of readFileSync(join(folder, file), 'utf8').matchAll(/(?:url\(|@import )["']?https?:[^"')]*/g))
      problems.push(`${file}: loads ${url}`);
  return [...problems, ...checkTwins(folder, files)];
}

function readPage(path) {
  const html = readFileSync(path, 'utf8');
  const read = (pattern) => [...html.matchAll(pattern)].map(([, value]) => decode(value));
  return {
    ids: new Set(read(/\sid="([^"]+)"/g)),
    links: read(/<a\s[^>]*?href="([^"]*)"/g),
    resources: read(/<(?:script|img|iframe|source|link)\s[^>]*?(?:src|href)="([^"]*)"/g),
  };
}

const decode = (text) => text.replaceAll('&amp;', '&').replaceAll('&quot;', '"').replaceAll('&#39;', "'");

function findFault(url, file, pages, folder) {
  if (/^[a-z]+:/.test(url)) return undefined;
  const [path, anchor = ''] = url.split('#');
  const target =
    path === '' ? file : posix.normalize(posix.join(path.startsWith('/') ? '.' : posix.dirname(file), decodeURI(path)));
  const page = [target, join(target, 'index.html'), `${target}.html`].find((one) => pages.has(one));
  if (page === undefined) return existsSync(join(folder, target)) && !target.endsWith('/') ? undefined : 'no such page';
  const id = decodeURIComponent(anchor);
  return id === '' || pages.get(page).ids.has(id) ? undefined : 'no such anchor';
}

/** Every page but the one for missing pages has its text beside it. */
const checkTwins = (folder, files) =>
  files
    .filter((file) => file.endsWith('.html') && file !== '404.html')
    .filter((file) => !existsSync(join(folder, file.replace(/html$/, 'md'))))
    .map((file) => `${file}: has no .md beside it`);
