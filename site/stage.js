/** Collects the pages of the site in .cache/pages: docs/, the API reference, and a page for each error text. */
import { execFileSync } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join, posix } from 'node:path';
import { fileURLToPath } from 'node:url';
import { RULES } from '../packages/core/dist/index.js';
import { findBreakage } from '../packages/core/dist/internal.js';
import { listEntries } from '../scripts/build/packages.js';

export const ROOT = fileURLToPath(new URL('..', import.meta.url));
export const PAGES = join(ROOT, 'site/.cache/pages');

const REPOSITORY = 'https://github.com/sluice-dev/sluice';

/** Writes all pages and the sidebar. */
export function stage() {
  rmSync(PAGES, { recursive: true, force: true });
  cpSync(join(ROOT, 'docs'), PAGES, { recursive: true });
  mkdirSync(join(PAGES, 'public'));
  cpSync(join(ROOT, 'site/logo.svg'), join(PAGES, 'public/logo.svg'));
  writeReference();
  const errors = writeErrors();
  for (const file of listPages()) {
    const path = join(PAGES, file);
    writeFileSync(path, adapt(readFileSync(path, 'utf8'), file));
    if (posix.basename(file) === 'README.md') renameSync(path, join(PAGES, renameIndex(file)));
  }
  cpSync(join(ROOT, 'site/home.md'), join(PAGES, 'index.md'));
  writeFileSync(join(ROOT, 'site/.cache/site.json'), JSON.stringify({ sidebar: buildSidebar(errors) }));
}

/** Paths of all pages, below PAGES. */
export const listPages = () =>
  readdirSync(PAGES, { recursive: true, encoding: 'utf8' })
    .filter((file) => file.endsWith('.md'))
    .toSorted();

/** The list of all pages makes room for the front page; other folders begin with theirs. */
const renameIndex = (path) => path.replace(/(^|\/)README\.md$/, (_, folder) => (folder === '' ? 'contents.md' : '/index.md'));

/** The first heading of a page, or the title of the front page. */
export const readTitle = (file) =>
  /^(?:# |title: )(.+)$/m.exec(readFileSync(join(PAGES, file), 'utf8'))?.[1]?.replace(/\\(.)/g, '$1') ?? file;

/** Links out of docs/ go to the repository; comments for tests and flags of code blocks, such as `sh run exit=1`, go away. */
function adapt(text, file) {
  const parts = text.split(/(^```[\s\S]*?^```$|`[^`\n]+`)/m);
  const adapted = parts
    .map((part, i) => (i % 2 === 1 ? part.replace(/^(```\S+)[^\n]*\n/, '$1\n') : adaptText(part, file)))
    .join('');
  return file.startsWith('reference/') ? adapted : adapted.trimStart();
}

const adaptText = (text, file) => {
  if (/\{\{|\\\{\\\{/.test(text)) throw new Error(`${file}: "{{" outside code is a template of Vue`);
  return text
    .replace(/<!--[\s\S]*?-->\n?/g, '')
    .replace(/\]\(([^)\s]+)\)/g, (_, target) => `](${adaptLink(target, file)})`)
    .replace(/^(\[[^\]]+\]: )(\S+)$/gm, (_, label, target) => label + adaptLink(target, file));
};

function adaptLink(target, file) {
  if (/^([a-z]+:|#)/.test(target)) return target;
  const [path, anchor = ''] = target.split(/(?=#)/);
  const inDocs = posix.normalize(posix.join(posix.dirname(file), path));
  if (!inDocs.startsWith('../')) return posix.basename(path) === 'README.md' ? `/${renameIndex(inDocs)}${anchor}` : target;
  const inRepository = inDocs.slice('../'.length);
  if (!existsSync(join(ROOT, inRepository))) throw new Error(`docs/${file}: ${target} does not exist`);
  return `${REPOSITORY}/${statSync(join(ROOT, inRepository)).isDirectory() ? 'tree' : 'blob'}/main/${inRepository}${anchor}`;
}

/** The API reference of the library, from the built types. */
function writeReference() {
  const folder = join(ROOT, 'site/.cache');
  const entries = listEntries('packages/core').filter(({ module }) => module !== 'internal');
  const config = {
    plugin: ['typedoc-plugin-markdown'],
    entryPoints: entries.map(({ module }) => join(ROOT, `packages/core/dist/${module}.d.ts`)),
    basePath: join(ROOT, 'packages/core/dist'),
    tsconfig: join(folder, 'tsconfig.json'),
    out: join(PAGES, 'reference'),
    name: '@sluice/core',
    readme: 'none',
    disableSources: true,
    hideBreadcrumbs: true,
    hidePageHeader: true,
    sanitizeComments: true,
    entryFileName: 'index',
    logLevel: 'Error',
    skipErrorChecking: true,
    githubPages: false,
  };
  const types = {
    compilerOptions: { module: 'nodenext', target: 'es2023', lib: ['es2023', 'dom', 'dom.iterable'], types: [], strict: true },
  };
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, 'tsconfig.json'), JSON.stringify({ ...types, files: config.entryPoints }));
  writeFileSync(join(folder, 'typedoc.json'), JSON.stringify(config));
  execFileSync('npx', ['typedoc', '--options', join(folder, 'typedoc.json')], { cwd: join(ROOT, 'site'), stdio: 'inherit' });
}

/** One page for each error text that an SDK throws on a violation, for people who search for it. */
function writeErrors() {
  const texts = new Map();
  for (const rule of Object.keys(RULES))
    for (const { client, effect } of findBreakage(rule)) {
      const text = /^throws: (.+)$/.exec(effect)?.[1];
      if (text === undefined) continue;
      const found = texts.get(text) ?? [];
      texts.set(text, [...found, { rule, client }]);
    }
  mkdirSync(join(PAGES, 'errors'));
  const pages = [...texts].map(([text, causes]) => ({ text, causes, name: slug(text, texts) }));
  for (const page of pages) writeFileSync(join(PAGES, `errors/${page.name}.md`), formatError(page));
  writeFileSync(join(PAGES, 'errors/index.md'), formatErrorIndex(pages));
  return pages.length;
}

function slug(text, texts) {
  const short = (one) =>
    one
      .toLowerCase()
      .replace(/[^a-z0-9]+/g, '-')
      .replace(/^-|-$/g, '')
      .slice(0, 60);
  const same = [...texts.keys()].filter((one) => short(one) === short(text));
  return same.length > 1 ? `${short(text)}-${same.indexOf(text) + 1}` : short(text);
}

const quote = (text) => (text.includes('`') ? `\`\` ${text} \`\`` : `\`${text}\``);

function formatError({ text, causes }) {
  const rules = [...new Set(causes.map(({ rule }) => rule))];
  const clients = [...new Set(causes.map(({ client }) => client))];
  return [
    `# ${quote(text)}`,
    '',
    `${clients.join(', ')} ${clients.length === 1 ? 'throws' : 'throw'} this error when a server violates its protocol:`,
    '',
    '```txt',
    text,
    '```',
    '',
    '## What the server does',
    ...rules.flatMap((rule) => {
      const { title, explanation, remedy } = RULES[rule];
      const affected = causes.filter((cause) => cause.rule === rule).map(({ client }) => client);
      return [
        '',
        `### [${title}](../rules/${rule.replace('/', '-')}.md)`,
        '',
        explanation,
        '',
        remedy,
        '',
        `Seen with: ${affected.join(', ')}.`,
      ];
    }),
    '',
    '## What to do',
    '',
    'Save the response and let the doctor name the violation:',
    '',
    '```sh',
    'curl -sN https://… > response.sse',
    'sluice doctor response.sse',
    '```',
    '',
    'In your app, give the SDK a `fetch` that repairs responses ([guide](../fetch.md)); for programs that you cannot change, put [the gateway](../gateway.md) in between.',
    '',
    '```ts',
    "import { createRepairFetch } from '@sluice/core/fetch';",
    '',
    'const client = new OpenAI({ fetch: createRepairFetch() });',
    '```',
    '',
  ].join('\n');
}

const formatErrorIndex = (pages) =>
  [
    '# Error texts',
    '',
    'Errors that official SDKs throw on streams of servers that violate their protocol. Each page has the cause and what to do.',
    '',
    ...pages.map(({ text, name }) => `- [${quote(text)}](${name}.md)`),
    '',
  ].join('\n');

/** The sections of docs/README.md, each with the pages that it links. */
function buildSidebar() {
  const index = readFileSync(join(PAGES, 'contents.md'), 'utf8');
  const sections = index.split(/^## /m).slice(1);
  const docs = sections.map((section) => ({
    text: section.split('\n', 1)[0],
    items: [...section.matchAll(/\]\(\/?([\w/-]+)\.md(?:#[\w-]+)?\)/g)].map(([, page]) => ({
      text: readTitle(`${page}.md`).replace(/`/g, ''),
      link: `/${page.replace(/index$/, '')}`,
    })),
  }));
  const list = (folder) =>
    listPages()
      .filter((file) => file.startsWith(`${folder}/`) && !file.endsWith('/index.md'))
      .map((file) => ({ text: readTitle(file).replace(/`/g, ''), link: `/${file.replace(/\.md$/, '')}` }));
  return {
    '/errors/': [{ text: 'Error texts', link: '/errors/', items: list('errors') }],
    '/rules/': [{ text: 'Rules', link: '/rules/', items: list('rules') }],
    '/reference/': [
      {
        text: 'API',
        link: '/reference/',
        items: list('reference')
          .filter(({ link }) => !/\/(functions|classes|interfaces|type-aliases|variables|enumerations)\//.test(link))
          .map(({ text, link }) => ({ text, link })),
      },
    ],
    '/': docs,
  };
}
