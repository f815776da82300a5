/** Builds the documentation site into site/dist: `npm run site`. */
import { cpSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { build } from 'vitepress';
import { checkLinks } from './links.js';
import { listPages, PAGES, ROOT, readTitle, stage } from './stage.js';

const DIST = join(ROOT, 'site/dist');

stage();
await build(join(ROOT, 'site'));
const pages = listPages();
for (const file of pages) {
  mkdirSync(dirname(join(DIST, file)), { recursive: true });
  cpSync(join(PAGES, file), join(DIST, file));
}
writeFileSync(join(DIST, 'llms.txt'), formatIndex());
const problems = checkLinks(DIST);
for (const problem of problems) console.error(problem);
console.log(`${pages.length} pages in site/dist, ${problems.length} broken links or external resources`);
process.exitCode = problems.length > 0 ? 1 : 0;

/** llms.txt: what the project is, and the text of every page (https://llmstxt.org). */
function formatIndex() {
  const folders = { Docs: /^[^/]+$/, 'Error texts': /^errors\//, Rules: /^rules\//, 'API reference': /^reference\// };
  const [, intro = ''] = /^# .+\n+([^#][^\n]+)/.exec(readFileSync(join(ROOT, 'README.md'), 'utf8')) ?? [];
  return [
    '# Sluice',
    '',
    `> ${intro.trim()}`,
    ...Object.entries(folders).flatMap(([title, folder]) => [
      '',
      `## ${title}`,
      '',
      ...pages.filter((file) => folder.test(file)).map((file) => `- [${readTitle(file).replace(/[`[\]]/g, '')}](/${file})`),
    ]),
    '',
  ].join('\n');
}
