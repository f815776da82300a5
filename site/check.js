/**
 * Opens the built site in Chromium: `npm run site:check`. No error, no violation of accessibility, no other host; searches find
 * the guide first; code blocks are not cut, at 1440 and at 390 pixels. `--pictures DIR` writes screenshots.
 */
import { existsSync, mkdirSync, readdirSync, readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { createRequire } from 'node:module';
import { delimiter, extname, join, normalize } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import MiniSearch from 'minisearch';
import { chromium } from 'playwright-core';
import { EXPECTED, SEARCH_OPTIONS } from './search.js';

const DIST = fileURLToPath(new URL('dist', import.meta.url));

const TYPES = {
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript',
  '.css': 'text/css',
  '.json': 'application/json',
  '.md': 'text/markdown; charset=utf-8',
  '.txt': 'text/plain; charset=utf-8',
  '.svg': 'image/svg+xml',
  '.png': 'image/png',
  '.woff2': 'font/woff2',
};

/** Widths of a desktop and of a phone. */
const WIDTHS = [1440, 390];

/** Pages of each kind. */
const PAGES = [
  '/',
  '/contents.html',
  '/doctor.html',
  '/config.html',
  '/errors/',
  '/errors/unexpected-end-of-json-input.html',
  '/rules/',
  '/reference/',
];

/** Pages whose screenshots are written. */
const PICTURED = new Set(['index.html', 'start-broken-stream.html', 'clients.html', 'architecture.html']);

const findings = [];
const server = createServer(serve);
await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
const origin = `http://127.0.0.1:${server.address().port}`;
const browser = await chromium.launch({ executablePath: findChromium(), args: ['--no-sandbox', '--disable-dev-shm-usage'] });
try {
  for (const colorScheme of ['light', 'dark']) await checkPages(colorScheme);
  await checkSearch();
  await checkRanking();
  await checkTexts();
  for (const width of WIDTHS) await checkLayout(width);
} finally {
  await browser.close();
  server.close();
}
for (const finding of findings) console.error(finding);
console.log(
  `${PAGES.length} pages in two colour schemes, ${Object.keys(EXPECTED).length} searches, layout and texts: ${findings.length} findings`,
);
process.exitCode = findings.length > 0 ? 1 : 0;

function serve({ url }, response) {
  const path = normalize(decodeURIComponent(new URL(url, 'http://x').pathname));
  const file = join(DIST, path.endsWith('/') ? `${path}index.html` : path);
  if (!file.startsWith(DIST) || !existsSync(file)) return response.writeHead(404).end();
  return response.writeHead(200, { 'content-type': TYPES[extname(file)] ?? 'application/octet-stream' }).end(readFileSync(file));
}

function findChromium() {
  const names = ['chromium-headless-shell', 'chromium', 'chromium-browser', 'google-chrome'];
  const folders = (process.env.PATH ?? '').split(delimiter);
  const paths = [process.env.CHROMIUM ?? '', ...folders.flatMap((folder) => names.map((name) => join(folder, name)))];
  const found = paths.find((path) => path !== '' && existsSync(path));
  if (found === undefined) throw new Error('Chromium is required: apt-get install chromium, or set CHROMIUM');
  return found;
}

async function openPage(path, options = {}) {
  const page = await browser.newPage(options);
  const note = (text) => findings.push(`${path}: ${text}`);
  page.on('console', (message) => message.type() === 'error' && note(`console: ${message.text()}`));
  page.on('pageerror', (error) => note(`error: ${error.message}`));
  page.on(
    'request',
    (request) => /^(data:|blob:)/.test(request.url()) || request.url().startsWith(origin) || note(`loads ${request.url()}`),
  );
  page.on('response', (response) => response.status() >= 400 && note(`${response.status()} for ${response.url()}`));
  await page.goto(origin + path, { waitUntil: 'networkidle' });
  return page;
}

async function checkPages(colorScheme) {
  const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');
  for (const path of PAGES) {
    const page = await openPage(path, { colorScheme });
    await page.evaluate(axe);
    const { violations } = await page.evaluate(() =>
      globalThis.axe.run(document, { runOnly: ['wcag2a', 'wcag2aa', 'wcag22aa'] }),
    );
    for (const { id, impact, nodes } of violations)
      if (impact === 'serious' || impact === 'critical')
        findings.push(`${path} (${colorScheme}): axe ${id}, ${nodes.length} times, such as ${nodes[0].html.slice(0, 120)}`);
    await page.close();
  }
}

/** People search for the text of an error. */
async function checkSearch() {
  const page = await openPage('/');
  await page.locator('.DocSearch-Button, #local-search button').first().click();
  await page.locator('#localsearch-input').fill('Unexpected end of JSON input');
  const first = page.locator('#localsearch-list li a').first();
  await first.waitFor({ timeout: 10_000 });
  const links = await page.locator('#localsearch-list li a').evaluateAll((all) => all.map((one) => one.getAttribute('href')));
  if (!links.some((link) => link?.includes('/errors/unexpected-end-of-json-input')))
    findings.push(`search: finds ${links.slice(0, 5).join(', ')}`);
  await first.click();
  await page.waitForLoadState('networkidle');
  if ((await page.locator('h1').count()) !== 1) findings.push(`search: ${page.url()} has no heading`);
  await page.close();
}

/** The guide comes first: the same index and options as in the page. */
async function checkRanking() {
  const chunks = join(DIST, 'assets/chunks');
  const file = readdirSync(chunks).find((name) => name.startsWith('@localSearchIndexroot'));
  const { default: json } = await import(join(chunks, file));
  const index = MiniSearch.loadJSON(json, { fields: ['title', 'titles', 'text'], storeFields: ['title', 'titles'] });
  for (const [query, expected] of Object.entries(EXPECTED)) {
    const pages = index.search(query, SEARCH_OPTIONS).map(({ id }) => id.replace(/^\/|\.html.*$|#.*$/g, ''));
    if (pages[0] !== expected)
      findings.push(`search "${query}": ${[...new Set(pages)].slice(0, 4).join(', ')} instead of ${expected}`);
  }
}

/** Nothing is cut at the right, and no line is highlighted: on every guide. */
async function checkLayout(width) {
  const { pictures } = parseArgs({ options: { pictures: { type: 'string' } } }).values;
  if (pictures !== undefined) mkdirSync(pictures, { recursive: true });
  const page = await openPage('/', { viewport: { width, height: 900 } });
  for (const path of readdirSync(DIST).filter((file) => file.endsWith('.html') && file !== 'fields.html')) {
    await page.goto(`${origin}/${path}`, { waitUntil: 'load' });
    for (const finding of await page.evaluate(findCutBlocks)) findings.push(`/${path} at ${width} px: ${finding}`);
    if (pictures !== undefined && PICTURED.has(path)) await page.screenshot({ path: join(pictures, `${path}-${width}.png`) });
  }
  await page.close();
}

/** Runs in the page. */
function findCutBlocks() {
  const isCut = (element) => element.scrollWidth > element.clientWidth + 1;
  const blocks = [...document.querySelectorAll('.vp-doc div[class*="language-"]')].flatMap((block) => {
    const pre = block.querySelector('pre');
    const language = /language-(\w*)/.exec(block.className)?.[1];
    const mayScroll =
      !/^(sh|ts|js|json|yaml|toml|python)$/.test(language) && getComputedStyle(pre).backgroundImage.includes('gradient');
    return isCut(pre) && !mayScroll ? [`a block of ${language} is cut: ${pre.textContent.slice(0, 60)}`] : [];
  });
  const highlighted = document.querySelectorAll('.line.highlighted').length;
  return [
    ...blocks,
    ...(highlighted > 0 ? [`${highlighted} lines are highlighted`] : []),
    ...(isCut(document.documentElement) ? ['the page is wider than the window'] : []),
  ];
}

async function checkTexts() {
  const index = await (await fetch(`${origin}/llms.txt`)).text();
  const paths = [...index.matchAll(/\]\((\/[^)]+)\)/g)].map(([, path]) => path);
  if (paths.length < 100) findings.push(`llms.txt: has ${paths.length} links`);
  for (const path of paths) {
    const response = await fetch(origin + path);
    if (!response.ok) findings.push(`llms.txt: ${path} is ${response.status}`);
    await response.body?.cancel();
  }
}
