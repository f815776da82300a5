import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { parseSync } from 'oxc-parser';
import { describe, expect, test } from 'vitest';

// Keeps words that make messages hard to understand out of strings, test titles and documentation.

const ROOT = fileURLToPath(new URL('..', import.meta.url));

/** Words to avoid, and what to write instead. */
const WORDS: readonly (readonly [word: string, instead: string])[] = [
  ['nobody|whoever', 'name the client, provider or operator'],
  ['who (?:asks|answers|has|is|reads|speaks|still|wants|waits)', 'name the client, provider or operator'],
  ['anew', 'again'],
  ['says?|said', 'has, is, reports'],
  ['tells?|told', 'reports, sends, shows'],
  ['asks?|asked', 'requests, requires'],
  ['answers?|answered', 'response, responds'],
  ['questions?', 'request'],
  ['speaks?|spoken', 'uses the protocol'],
  ['stands?|stood', 'is, comes, belongs'],
  ['(?:own|same|other) words|words of|no word for', 'message, protocol, value'],
  ['left out|leaves? out', 'dropped, omitted, skipped'],
  ['calls? off|called off|hung up', 'cancelled'],
  ['breaks? off|broke off', 'truncated, closed early'],
  ['blacked out', 'redacted'],
  ['mended', 'repaired'],
  ['films?', 'video'],
  ['departures?|departs?|departing', 'violation, violates'],
  ['(?<!there )(?:is|are) no (?:JSON|UTF-8|answer|integer|list|number|object|response|stream|text)', 'is not'],
];

const PATTERN = new RegExp(WORDS.map(([word]) => `\\b(?:${word})\\b`).join('|'), 'gi');

/** Phrases in which such a word is right. */
const ALLOWED: readonly string[] = [
  'Answer with one JSON', // an instruction to a model
  'did not answer', // DNS and TCP
];

/** Texts that are not rewritten yet, with the number of words that remain. The numbers may only fall. */
const REMAINING: Readonly<Record<string, number>> = {
  'packages/core/test/': 132,
  'packages/gateway/src/doctor/live.ts': 2, // prompts
};

interface Text {
  /** Path and line. */
  place: string;
  text: string;
}

/** The avoided words of a text, with their surroundings. */
function findWords({ place, text }: Text): string[] {
  const checked = ALLOWED.reduce((rest, phrase) => rest.replaceAll(phrase, ''), text);
  return [...checked.matchAll(PATTERN)].map(({ 0: word, index }) => {
    const [, instead] = WORDS.find(([one]) => new RegExp(`^(?:${one})$`, 'i').test(word)) ?? [];
    return `${place}: "${word}" in "${checked.slice(Math.max(0, index - 40), index + 40).replace(/\s+/g, ' ')}" (write: ${instead})`;
  });
}

const isNode = (value: unknown): value is Node => typeof value === 'object' && value !== null && 'type' in value;

interface Node {
  type: string;
  start: number;
  [key: string]: unknown;
}

/** Calls `visit` for a node and, while that returns true, for the nodes inside. */
function walk(value: unknown, visit: (node: Node) => boolean): void {
  if (Array.isArray(value)) for (const item of value) walk(item, visit);
  else if (isNode(value) && visit(value)) for (const child of Object.values(value)) walk(child, visit);
}

/** The text of a string or template literal; expressions are replaced by a placeholder. */
function readLiteral({ type, value, quasis }: Node): string | undefined {
  if (type === 'Literal') return typeof value === 'string' ? value : undefined;
  if (type !== 'TemplateLiteral' || !Array.isArray(quasis)) return undefined;
  return quasis.map(({ value: { cooked } }: { value: { cooked?: string } }) => cooked ?? '').join('…');
}

function parse(path: string, source: string): { program: Node; lineAt: (offset: number) => number } {
  const { program } = parseSync(path, source);
  return { program: program as unknown as Node, lineAt: (offset) => source.slice(0, offset).split('\n').length }; // its types are a closed union
}

/** String literals with at least two words: single words are values of a wire format or a configuration. */
function listStrings(path: string, source: string): Text[] {
  const { program, lineAt } = parse(path, source);
  const found: Text[] = [];
  walk(program, (node) => {
    if (node.type === 'ImportDeclaration' || node.type.startsWith('TSLiteral')) return false;
    const text = readLiteral(node);
    if (text !== undefined && /[a-z]\s|\s[a-z]/i.test(text)) found.push({ place: `${path}:${lineAt(node.start)}`, text });
    return true;
  });
  return found;
}

/** Titles of tests and suites, also of tables (`test.each(…)(title, …)`). */
function listTitles(path: string, source: string): Text[] {
  const { program, lineAt } = parse(path, source);
  const found: Text[] = [];
  walk(program, (node) => {
    const title = node.type === 'CallExpression' && isTest(node['callee']) && readTitle(node['arguments']);
    if (typeof title === 'string') found.push({ place: `${path}:${lineAt(node.start)}`, text: title });
    return true;
  });
  return found;
}

const readTitle = (list: unknown): string | undefined =>
  Array.isArray(list) && isNode(list[0]) ? readLiteral(list[0]) : undefined;

function isTest(callee: unknown): boolean {
  if (!isNode(callee)) return false;
  if (callee.type === 'Identifier') return ['test', 'it', 'describe'].includes(String(callee['name']));
  return isTest(callee['object'] ?? callee['callee']);
}

/** The prose of a page: without code, comments and addresses. */
const readProse = (source: string): string =>
  source.replace(/```.*?```|<!--.*?-->/gs, (code) => code.replace(/[^\n]/g, '')).replace(/`[^`\n]*`|\]\([^)\n]*\)/g, '');

const listProse = (path: string, source: string): Text[] =>
  readProse(source)
    .split('\n')
    .map((text, i) => ({ place: `${path}:${i + 1}`, text }));

const listFiles = (...globs: string[]): string[] =>
  execFileSync('git', ['ls-files', ...globs], { cwd: ROOT, encoding: 'utf8' })
    .split('\n')
    .filter(Boolean);

const read = (path: string): string => readFileSync(`${ROOT}/${path}`, 'utf8');

/** Pages that quote the founding documents keep their words. */
const isQuoting = (path: string): boolean => path.startsWith('docs/seed-004');

const AREAS: Readonly<Record<string, () => Text[]>> = {
  strings: () => listFiles('packages/*/src/*.ts').flatMap((path) => listStrings(path, read(path))),
  'test titles': () => listFiles('test/*.test.ts', 'packages/*/test/*.test.ts').flatMap((path) => listTitles(path, read(path))),
  pages: () =>
    listFiles('docs/*.md', 'examples/*.md', 'packages/*/README.md', 'README.md', 'CHANGELOG.md', 'SECURITY.md')
      .filter((path) => !isQuoting(path))
      .flatMap((path) => listProse(path, read(path))),
};

const isRemaining = ({ place }: Text): boolean => Object.keys(REMAINING).some((prefix) => place.startsWith(prefix));

/** Reading and parsing all files takes a second. */
const TEXTS = Object.entries(AREAS).map(([area, list]) => [area, list()] as const);

describe.each(TEXTS)('%s', (_, texts) => {
  test('are found', () => expect(texts.length).toBeGreaterThan(500));

  test('use plain words', () => expect(texts.filter((text) => !isRemaining(text)).flatMap(findWords)).toEqual([]));
});

test.each(Object.entries(REMAINING))('%s has at most %i words to replace', (prefix, most) => {
  const found = TEXTS.flatMap(([, texts]) => texts)
    .filter(({ place }) => place.startsWith(prefix))
    .flatMap(findWords);
  expect(found.length, found.join('\n')).toBeLessThanOrEqual(most);
});

describe('the check', () => {
  test.each([
    ["throw new Error('nobody could be asked');", 2],
    [`const text = \`the \${name} says "\${word}"\`;`, 1],
    ["note({ message: 'a film cannot be seen' });", 1],
    ["const kind = 'answered';", 0], // a value
    ["import { said } from 'what is told';", 0],
    ['// nobody reads this comment', 0],
    ["note({ message: 'image detail is not supported by Gemini; dropped' });", 0],
  ])('finds in %s: %i', (source, count) => expect(listStrings('a.ts', source).flatMap(findWords)).toHaveLength(count));

  test.each([
    ["test('who has left is told', () => {});", 2],
    ["describe.each(ROWS)('an answer', () => test('passes', () => {}));", 1],
    ["expect('nobody is asked').toBe(text);", 0],
  ])('finds in the titles of %s: %i', (source, count) =>
    expect(listTitles('a.test.ts', source).flatMap(findWords)).toHaveLength(count),
  );

  test('reads prose without code and addresses', () =>
    expect(
      listProse('a.md', 'It says so.\n```sh\nsay nobody\n```\n`told` [page](answers.md) <!-- asked -->').flatMap(findWords),
    ).toEqual(['a.md:1: "says" in "It says so." (write: has, is, reports)']));

  test('every word has a replacement', () =>
    expect(WORDS.filter(([word, instead]) => word === '' || instead === '')).toEqual([]));
});
