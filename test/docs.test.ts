import { execFileSync } from 'node:child_process';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join, relative, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';
import { MUTATIONS } from '../packages/lab/src/mutate/index.ts';
import { ATTACKS } from '../scripts/attacks/table.js';
import { listAnchors, listLinks } from '../site/anchors.js';

const root = fileURLToPath(new URL('..', import.meta.url));
const pages = [
  'README.md',
  'CHANGELOG.md',
  'SECURITY.md',
  'bench/README.md',
  ...readdirSync(join(root, 'docs')).map((name) => `docs/${name}`),
].filter((name) => name.endsWith('.md'));

/** Every page of the repository, without packages that are installed and files that are built. */
const allPages = [
  '.',
  'docs',
  'packages',
  'examples',
  'bench',
  'fixtures',
  'deploy',
  'site',
  '.github',
  'test',
  'scripts',
].flatMap((folder) =>
  readdirSync(join(root, folder), { recursive: folder !== '.', encoding: 'utf8' })
    .filter((name) => name.endsWith('.md') && !/(^|\/)(node_modules|dist|out|\.cache)\//.test(name))
    .map((name) => (folder === '.' ? name : `${folder}/${name}`)),
);

const readAnchors = memoize((file) => listAnchors(readFileSync(file, 'utf8')));

function memoize<T>(read: (file: string) => T): (file: string) => T {
  const known = new Map<string, T>();
  return (file) => {
    const value = known.get(file) ?? read(file);
    known.set(file, value);
    return value;
  };
}

/** Why a link leads nowhere; undefined for one that has a target, or leads out of the repository. */
function findLinkFault(link: string, file: string): string | undefined {
  if (/^[a-z]+:/.test(link)) return undefined;
  const [path = '', anchor = ''] = link.split('#');
  const target = path === '' ? file : resolve(dirname(file), decodeURI(path));
  if (!existsSync(target)) return `${link}: no such file`;
  if (anchor === '' || !target.endsWith('.md')) return undefined;
  return readAnchors(target).has(decodeURIComponent(anchor)) ? undefined : `${link}: no such anchor`;
}

test('every link and anchor of every page has a target', () => {
  expect(allPages.length).toBeGreaterThan(200);
  const broken = allPages.flatMap((page) => {
    const file = join(root, page);
    return listLinks(readFileSync(file, 'utf8')).flatMap((link) => {
      const fault = findLinkFault(link, file);
      return fault === undefined ? [] : [`${page}: ${fault}`];
    });
  });
  expect(broken).toEqual([]);
});

test.each([
  ['README.md', undefined],
  ['config.md#recovery', undefined],
  ['images/console-stream.png', undefined],
  ['https://example.com/#x', undefined],
  ['nothing.md', 'nothing.md: no such file'],
  ['config.md#nothing', 'config.md#nothing: no such anchor'],
  ['#nothing', '#nothing: no such anchor'],
])('a link from docs/config.md to %s: %s', (link, fault) => {
  expect(findLinkFault(link, join(root, 'docs/config.md'))).toBe(fault);
});

test.each([
  ['# Plain words', ['plain-words']],
  ['## data, `store`, node_lease', ['data-store-node_lease']],
  ['## What? (a/b) – c', ['what-ab--c']],
  ['### [A link](x.md) and **bold**', ['a-link-and-bold']],
  ['## Same\n## Same\n## Same', ['same', 'same-1', 'same-2']],
  ['```sh\n# a comment\n```\n## After', ['after']],
  ['<a id="own"></a>', ['own']],
])('anchors of %j as on GitHub', (markdown, anchors) => expect([...listAnchors(markdown)]).toEqual(anchors));

test.each([
  ['[a](b.md) ![c](d.png "t")', ['b.md', 'd.png']],
  ['[a]: b.md', ['b.md']],
  ['`[a](b.md)` and\n```\n[c](d.md)\n```', []],
  ['<img src="a.png"> <a href="b.md">', ['a.png', 'b.md']],
])('links of %j', (markdown, links) => expect(listLinks(markdown)).toEqual(links));

test.each(pages)('every reference of %s is defined', (page) => {
  const text = readFileSync(join(root, page), 'utf8').replace(/```[\s\S]*?```|`[^`\n]*`/g, '');
  const defined = new Set([...text.matchAll(/^\[([^\]]+)\]:/gm)].map((match) => match[1]));
  const used = [...text.matchAll(/\]\[([^\]]+)\]/g)].map((match) => match[1]);
  expect(used.filter((name) => !defined.has(name))).toEqual([]);
});

test('the commands of the README exist', () => {
  const text = readFileSync(join(root, 'README.md'), 'utf8');
  expect(text).toContain('npm ci && npm start');
  expect(text).toContain('npm ci && npm test');
});

/** Files of the repository that people read or copy from, and programs, whose texts are printed. */
const written = execFileSync(
  'git',
  ['ls-files', '*.md', 'examples', 'deploy', 'scripts', 'site', 'packages/*/src/*', 'packages/*/bin/*'],
  {
    cwd: root,
    encoding: 'utf8',
  },
)
  .split('\n')
  .filter((name) => /\.(md|js|ts|tsx|sh|ya?ml|html)$/.test(name) && name !== 'CHANGELOG.md');

test('the command is "sluice" everywhere: npx would fetch a package that is not published', () => {
  expect(written.length).toBeGreaterThan(500);
  const found = written.filter((name) => NPX_OF_OURS.test(readFileSync(join(root, name), 'utf8')));
  expect(found).toEqual([]);
});

const NPX_OF_OURS = /\b(?:npx|npm exec)(?: +-{1,2}[\w-]*)* +(?:sluice|@sluice\/)/;

test.each([
  ['npx sluice', true],
  ['npx -y sluice@latest doctor', true],
  ['npx --yes @sluice/core', true],
  ['npm exec -- sluice', true],
  ['npx vitest run', false],
  ['sluice env claude', false],
])('%s runs a package of ours: %s', (text, isOurs) => expect(NPX_OF_OURS.test(text)).toBe(isOurs));

test('no file contains a machine path or a registry host', () => {
  const files = [...pages, 'package.json', 'package-lock.json', 'test/sdk-next/package-lock.json', 'biome.json'];
  for (const name of files)
    expect(readFileSync(join(root, name), 'utf8'), relative(root, name)).not.toMatch(/\/work\/|\/root\/|registry\.npmjs/);
});

const securityPage = readFileSync(join(root, 'docs/security.md'), 'utf8');

/** `folder/file › title`, as docs/security.md and the table of attacks cite tests. A title stands in its file as a whole text. */
const citedTests = [
  ...[...securityPage.matchAll(/`([\w/-]+ › [^`]+)`/g)].map(([, name = '']) => name),
  ...ATTACKS.flatMap(({ tests }) => tests),
].map((name) => {
  const [file = '', title = ''] = name.split(' › ');
  return { file, title };
});

test.each(citedTests)('docs/security.md cites an existing test: $file › $title', ({ file, title }) => {
  const folders = ['packages/gateway/test', 'packages/lab/test', 'packages/console/test', 'test'].map((folder) =>
    join(root, folder, `${file}.test.ts`),
  );
  const source = readFileSync(folders.find((path) => existsSync(path)) ?? '', 'utf8');
  expect(source.includes(`'${title}'`)).toBe(true);
});

test('docs/security.md cites a test or a command for every defence', () => {
  const rows = securityPage
    .replace(/<!-- attacks -->[\s\S]*<!-- \/attacks -->/, '')
    .split('\n')
    .filter((line) => line.startsWith('| ') && !line.startsWith('| threat'));
  expect(rows.length).toBeGreaterThan(20);
  expect(rows.filter((row) => !/ › |`npm run /.test(row))).toEqual([]);
});

test('docs/security.md has the attacks of the table, none of which did harm; "npm run attacks" writes them', () => {
  const [, table = ''] = /<!-- attacks -->([\s\S]*)<!-- \/attacks -->/.exec(securityPage) ?? [];
  const rows = [...table.matchAll(/^\|[^|]*\| ([^|]+) \| ([\d,]+) \| (\d+) \| ([^|]+) \|$/gm)];
  expect(rows.map(([, attack, , , outcome]) => [attack, outcome])).toEqual(
    ATTACKS.map(({ attack, outcome }) => [attack, outcome]),
  );
  for (const [line, , tries = '', harm] of rows) expect([Number(tries.replaceAll(',', '')) > 0, harm], line).toEqual([true, '0']);
});

/** Every file with comments that a reader of the repository may open. */
const sources = ['packages/core', 'packages/gateway', 'packages/console', 'test', 'bench', 'scripts', 'examples'].flatMap(
  (folder) =>
    readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' })
      .map((name) => `${folder}/${name}`)
      .filter((name) => /\.(ts|js|mjs)$/.test(name) && !/\/(node_modules|dist|out)\//.test(name)),
);

/** Section signs, pages in capitals with a number or an ending, and folders beside the checkout. README, CHANGELOG and SECURITY are our own. */
const OUTSIDE = [
  /§/,
  /\b(?:CANONICAL|PITFALLS|RELIABILITY|ANTHROPIC|GEMINI|OPENAI_\w+|LOSS|SEED_ISSUES|\w+_FACTS) \[?\d/,
  /\b(?!README|CHANGELOG|SECURITY)[A-Z][A-Z_]{3,}\.md\b/,
  /\bshared\/(?:design|recordings|cases|seeds|house)\b/,
];

test('no comment and no test name cites a document outside the repository', () => {
  expect(sources.length).toBeGreaterThan(500);
  const cited = sources
    .filter((name) => name !== 'test/docs.test.ts')
    .flatMap((name) =>
      readFileSync(join(root, name), 'utf8')
        .split('\n')
        .flatMap((line, i) => (OUTSIDE.some((pattern) => pattern.test(line)) ? [`${name}:${i + 1}: ${line.trim()}`] : [])),
    );
  expect(cited).toEqual([]);
});

test('every page that a comment cites exists', () => {
  const missing = sources.flatMap((name) =>
    [...readFileSync(join(root, name), 'utf8').matchAll(/(?<![\w/.])docs\/[\w/-]+\.md\b/g)]
      .map(([page]) => page)
      .filter((page) => !existsSync(join(root, page)))
      .map((page) => `${name}: ${page}`),
  );
  expect(missing).toEqual([]);
});

describe('docs/canonical.md', () => {
  const text = readFileSync(join(root, 'docs/canonical.md'), 'utf8');
  const canonical = (file: string): string => readFileSync(join(root, 'packages/core/src/canonical', file), 'utf8');
  const words = new Set(text.match(/\w+/g));

  test.each(['events.ts', 'message.ts', 'notes.ts', 'protocol.ts', 'request.ts'])('documents every field of %s', (file) => {
    const fields = [...canonical(file).matchAll(/(?:^ +|[{;] )(\w+)\??: /gm)].map(([, field = '']) => field);
    expect(fields.length).toBeGreaterThan(3);
    expect(fields.filter((field) => !words.has(field))).toEqual([]);
  });

  test('has a row for every rule that the validator enforces, and marks it', () => {
    const enforced = new Set([...canonical('validator.ts').matchAll(/'(S\d+)'/g)].map(([, rule]) => rule));
    const marked = [...text.matchAll(/^\| (S\d+) \| ✓ \|/gm)].map(([, rule]) => rule);
    expect(new Set(marked)).toEqual(enforced);
  });

  test('has a row for every error code', () => {
    const codes = [...canonical('notes.ts').matchAll(/^ {2}\| '([A-Z_]+)'/gm)].map(([, code]) => code);
    const rows = [...text.matchAll(/^\| `([A-Z_]+)` \| \d/gm)].map(([, code]) => code);
    expect(rows.toSorted()).toEqual(codes.toSorted());
  });
});

/** The error texts of the table: names, numbers and system codes differ from case to case. */
const errorTexts = (
  /## By error text\n([\s\S]*?)\n## /.exec(readFileSync(join(root, 'docs/troubleshooting.md'), 'utf8'))?.[1] ?? ''
)
  .split('\n')
  .filter((line) => line.startsWith('| `'))
  .flatMap((line) => [...(line.split('|')[1] ?? '').matchAll(/`([^`]+)`/g)].map(([, text = '']) => text))
  .filter((text) => !/^E[A-Z]+$/.test(text));

const programs = ['core', 'gateway'].flatMap((name) =>
  readdirSync(join(root, 'packages', name, 'src'), { recursive: true, encoding: 'utf8' })
    .filter((file) => file.endsWith('.ts'))
    .map((file) => readFileSync(join(root, 'packages', name, 'src', file), 'utf8')),
);

test.each(errorTexts)('docs/troubleshooting.md quotes a message that exists: %s', (text) => {
  const fixed = text
    .split(/"x"|: it | without |provider |Host |\d+ s|\(?[A-Z]{4,}\)?|\(\d+\)|\d{3}/)
    .flatMap((part) => part.trim() || []);
  const missing = fixed.filter((part) => !programs.some((source) => source.includes(part)));
  expect(missing).toEqual([]);
});

test('docs/tapes.md has the number of dialects that "sluice replay --faults" lists', () => {
  expect(readFileSync(join(root, 'docs/tapes.md'), 'utf8')).toContain(`one of ${MUTATIONS.length} dialects`);
});
