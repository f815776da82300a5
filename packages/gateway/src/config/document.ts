import { oneLine } from '@sluice/lab/text';
import {
  type Document,
  isAlias,
  isMap,
  isPair,
  isScalar,
  isSeq,
  LineCounter,
  type Node,
  type Pair,
  parseDocument,
  type Scalar,
  visit,
  type YAMLError,
} from 'yaml';
import { type Env, expand, isReference, redactPatterns } from './secrets.ts';

/** Where something stands in the file: `providers.local.api_key`, `models.fast[1]`. */
export type Path = readonly (string | number)[];

/** Something that is wrong with the configuration, or doubtful. */
export interface Problem {
  readonly message: string;
  readonly path: Path;
  readonly place?: Place;
}

export interface Place {
  readonly file: string;
  /** From 1. */
  readonly line: number;
  readonly column: number;
  /** The line with a caret below it; values that may be secret are blacked out. */
  readonly excerpt: string;
}

/** A configuration that cannot be used, with all that is wrong about it. */
export class ConfigError extends Error {
  override readonly name = 'ConfigError';
  readonly problems: readonly Problem[];

  constructor(problems: readonly Problem[]) {
    const sorted = [...problems].sort(byPlace);
    super(redactPatterns(sorted.map(describeProblem).join('\n')));
    this.problems = sorted;
  }
}

const byPlace = ({ place: a }: Problem, { place: b }: Problem): number =>
  (a?.line ?? 0) - (b?.line ?? 0) || (a?.column ?? 0) - (b?.column ?? 0);

/** `sluice.yaml:4:7: providers.grok: …`, and the line it is about. */
function describeProblem({ message, path, place }: Problem): string {
  const subject = path.length === 0 ? message : `${pathText(path)}: ${message}`;
  return place ? `${place.file}:${place.line}:${place.column}: ${subject}\n${place.excerpt}` : subject;
}

const PLAIN_KEY = /^[\w$-]+$/;

function pathText(path: Path): string {
  let text = '';
  for (const step of path) {
    if (typeof step === 'number') text += `[${step}]`;
    else if (PLAIN_KEY.test(step)) text += text === '' ? step : `.${step}`;
    else text += `[${JSON.stringify(step)}]`;
  }
  return text;
}

/**
 * `{ api_key: ${KEY} }` is what everybody writes, and to YAML the brace opens a map. For the parser the braces of a reference become characters
 * that mean nothing; as each is one character, places stay what they are.
 */
const HIDDEN = ['\ue000', '\ue001'] as const;

const hideBraces = (text: string): string => text.replace(/\$\{([^{}\n]*)\}/g, `$$${HIDDEN[0]}$1${HIDDEN[1]}`);

const showBraces = (text: string): string => text.replaceAll(HIDDEN[0], '{').replaceAll(HIDDEN[1], '}');

/** At least as deep as the text is nested: brackets in strings count too, and so do indentation and the dashes of lists. */
function deepest(text: string): number {
  let open = 0;
  let most = 0;
  const indents: number[] = [];
  for (const line of text.split('\n')) {
    const dashes = /^(?:\s*[-?:](?=\s))*/.exec(line)?.[0].replace(/\s/g, '').length ?? 0;
    const indent = line.search(/[^\s-]/);
    if (indent >= 0) {
      while ((indents.at(-1) ?? -1) >= indent) indents.pop();
      indents.push(indent);
    }
    most = Math.max(most, open + indents.length + dashes);
    for (const char of line) {
      if (char === '[' || char === '{') open++;
      else if (char === ']' || char === '}') open = Math.max(0, open - 1);
      most = Math.max(most, open + indents.length);
    }
  }
  return most;
}

type Step = string | number;

/** The path of a node, from what `visit` tells of the way to it. A key has the path of the map it stands in. */
function buildPath(at: number | 'key' | 'value' | null, node: unknown, ancestors: readonly unknown[]): Path {
  const path: Step[] = [];
  const way = [...ancestors, node];
  for (const [i, step] of way.entries()) {
    if (isPair(step)) path.push(keyText(step));
    else if (i + 1 < way.length && isSeq(step)) path.push(step.items.indexOf(way[i + 1]));
  }
  return at === 'key' ? path.slice(0, -1) : path;
}

const keyText = ({ key }: Pair<unknown, unknown>): string => showBraces(String(isScalar(key) ? key.value : key));

interface Child {
  key: Node | null;
  value: Node | null;
}

function findChild(node: unknown, step: Step): Child | undefined {
  if (isMap<Node, Node | null>(node)) return node.items.find((pair) => keyText(pair) === step);
  if (!isSeq<Node>(node) || typeof step !== 'number') return undefined;
  const value = node.items[step];
  return value && { key: null, value };
}

export type Range = readonly [start: number, end: number];

const readRange = (node: Node | null | undefined): Range | undefined =>
  node?.range ? [node.range[0], node.range[1]] : undefined;

/** The most of a line that is shown. */
const WIDTH = 120;

/**
 * The line of an error with a caret below it. A secret may stand anywhere in a file that is wrong, so only what is known to be harmless is
 * shown: keys, punctuation, and values where no secret belongs. Everything else is `***`.
 */
function buildExcerpt(text: string, [start, end]: Range, line: number, scalars: readonly Shown[]): string {
  const lineStart = text.lastIndexOf('\n', start - 1) + 1;
  const newline = text.indexOf('\n', start);
  const lineEnd = newline < 0 ? text.length : newline;
  const shown = scalars.filter(([from, to]) => from < lineEnd && to > lineStart);
  const before = masked(text, lineStart, start, shown);
  const marked = masked(text, start, Math.min(Math.max(end, start + 1), lineEnd), shown);
  const after = masked(text, Math.max(start, Math.min(end, lineEnd)), lineEnd, shown);
  const gutter = String(line);
  const lead = before.length > WIDTH / 2 ? `…${before.slice(1 - WIDTH / 2)}` : before;
  const body = `${lead}${marked}${after}`
    .replace(/(?:\*{3}){2,}/g, MASK)
    .slice(0, WIDTH)
    .trimEnd();
  const carets = '^'.repeat(Math.max(1, Math.min(marked.trimEnd().length, WIDTH - lead.length)));
  return `  ${gutter} | ${body}\n  ${' '.repeat(gutter.length)} | ${' '.repeat(lead.length)}${carets}`;
}

/** A piece of a line, fit to be shown. */
function masked(text: string, start: number, end: number, shown: readonly Shown[]): string {
  let out = '';
  for (let at = start; at < end; at++) {
    const range = shown.find(([from, to]) => from <= at && at < to);
    const char = text.charAt(at);
    if (range ? range[2] : PUNCTUATION.test(char)) out += char;
    else if (!out.endsWith(MASK)) out += MASK;
  }
  return redactPatterns(oneLine(out.replaceAll('\t', ' ').replaceAll('\r', '')));
}

const MASK = '***';

const PUNCTUATION = /[\s:,[\]{}"'#|>?-]/;

export type Shown = readonly [start: number, end: number, isHarmless: boolean];

/** The scalars of a file, and whether they may be shown. */
function shownRanges(text: string, document: Document.Parsed): Shown[] {
  const ranges: Shown[] = [];
  visit(document, {
    Scalar: (at, scalar, ancestors) => {
      if (!scalar.range) return;
      const [start, end] = scalar.range;
      const path = buildPath(at, scalar, ancestors);
      const source = text.slice(start, end);
      ranges.push([start, end, at === 'key' ? isPlainKey(source, path) : isPlainValue(source, path)]);
    },
  });
  return ranges;
}

/** Maps in which a key is a word of ours, or a name. A map anywhere else is a mistake, and its keys may be anything. */
const MAPS = /^(|listen|auth|log|limits|providers|providers\/[^/]+(\/(headers|profile(\/tool_(name|id))?))?)$/;

const WORD = /^["']?[a-z_$-]{1,40}["']?$/i;

function isPlainKey(source: string, path: Path): boolean {
  const map = place(path);
  if (map === 'models') return true;
  if (map === 'providers') return source.length <= 40;
  return MAPS.test(map) && WORD.test(source);
}

/** Where no secret belongs. Not `organization`, `project`, `headers`, `auth.keys`; nor anything unknown. */
const SAFE_TO_SHOW =
  /^(\$schema|listen\/(host|port)|log\/level|models\/.*|providers\/[^/]+\/(extends|protocol|base_url|auth|api_version|path|repair|on_disconnect|passthrough|profile\/.*))$/;

/** Numbers with a unit are short. */
const SHORT = /^(limits\/.*|providers\/[^/]+\/\w+_timeout)$/;

function isPlainValue(source: string, path: Path): boolean {
  const at = place(path);
  if (SAFE_TO_SHOW.test(at) || (SHORT.test(at) && source.length <= 10)) return true;
  return isReference(source) || /^(true|false|null|~|)$/.test(source);
}

const place = (path: Path): string => path.map((step) => String(step).replaceAll('/', '%')).join('/');

const MAX_CONFIG_BYTES = 1024 * 1024;

/** The YAML parser recurses, and a configuration has five levels. */
const MAX_CONFIG_DEPTH = 50;

/** A configuration file, parsed. JSON is read by the same rules, as it is YAML. */
export class ConfigDocument {
  readonly #file: string;
  readonly #text: string;
  readonly #lines = new LineCounter();
  readonly #document: Document.Parsed | undefined;
  readonly #references = new Set<string>();
  #shown: Shown[] | undefined;
  /** What is wrong before anybody asks what it means. */
  readonly syntax: Problem[] = [];
  /** References that lead nowhere. The rest can be read nevertheless. */
  readonly missing: Problem[] = [];

  constructor(file: string, text: string, env: Env) {
    this.#file = file;
    this.#text = text;
    const fault = unreadable(text);
    if (fault !== undefined) {
      this.syntax.push({ message: fault, path: [], place: { file, line: 1, column: 1, excerpt: '' } });
      return;
    }
    const options = { lineCounter: this.#lines, prettyErrors: false, merge: true, stringKeys: true } as const;
    this.#document = parseDocument(hideBraces(text), options);
    this.#readErrors([...this.#document.errors, ...this.#document.warnings]);
    this.#readScalars(this.#document, env);
    this.#checkAliases(this.#document);
  }

  /** The content, with the references resolved. Only for a document without problems. */
  get value(): unknown {
    return this.#document?.toJS() ?? {};
  }

  /** Whether the reference there leads nowhere. */
  isMissing(path: Path): boolean {
    const text = JSON.stringify(path);
    return this.missing.some((problem) => JSON.stringify(problem.path) === text);
  }

  /** Whether the value there came whole from a variable: then it is text where a number may have been meant. */
  isReference(path: Path): boolean {
    return this.#references.has(JSON.stringify(path));
  }

  /** A problem with the value at a path, or with its key. Of a path that is not in the file, its nearest part is shown. */
  problem(path: Path, message: string, at: 'key' | 'value' = 'value'): Problem {
    return this.#at(this.#findRange(path, at), path, message);
  }

  #at(range: Range | undefined, path: Path, message: string): Problem {
    return { message, path, ...(range && { place: this.#place(range) }) };
  }

  /** One slip makes the parser complain several times: of a line, the first complaint is told. */
  #readErrors(errors: readonly YAMLError[]): void {
    const lines = new Map<number, Problem>();
    for (const { code, message, pos } of errors) {
      const start = code === 'MISSING_CHAR' ? this.#scalarStart(pos[0]) : pos[0];
      const problem = this.#at([start, start + 1], [], syntaxMessage(code, message));
      const line = problem.place?.line ?? 0;
      if (!lines.has(line) || code === 'BAD_ALIAS') lines.set(line, problem);
    }
    this.syntax.push(...lines.values());
  }

  /** A quote that is not closed is missed at the end of the file; where it opens is the place to look at. */
  #scalarStart(position: number): number {
    return this.#shownRanges().find(([start, end]) => start < position && position <= end + 1)?.[0] ?? position;
  }

  #readScalars(document: Document.Parsed, env: Env): void {
    visit(document, {
      Scalar: (at, scalar, ancestors) => {
        if (typeof scalar.value !== 'string') return;
        const path = buildPath(at, scalar, ancestors);
        if (at === 'key') this.#readKey(path, scalar);
        else this.#readValue(path, scalar, env);
      },
    });
  }

  #readKey(path: Path, scalar: Scalar): void {
    scalar.value = showBraces(String(scalar.value));
    // Not even a copy of the configuration should have to be careful.
    if (scalar.value === '__proto__') this.syntax.push(this.#at(readRange(scalar), path, 'nothing can be called __proto__'));
  }

  #readValue(path: Path, scalar: Scalar, env: Env): void {
    const text = showBraces(String(scalar.value));
    scalar.value = text;
    const expanded = expand(text, env);
    if ('fault' in expanded) {
      this.missing.push(this.#at(readRange(scalar), path, expanded.fault));
      return;
    }
    if (expanded.isReference) this.#references.add(JSON.stringify(path));
    scalar.value = expanded.text;
  }

  /** The parser tells of aliases without an anchor, and of those that multiply, only when it resolves them. */
  #checkAliases(document: Document.Parsed): void {
    if (this.syntax.length > 0) return;
    visit(document, {
      Alias: (at, alias, ancestors) => {
        if (alias.resolve(document)) return;
        this.syntax.push(this.#at(readRange(alias), buildPath(at, alias, ancestors), `there is no anchor of that name; ${STAR}`));
      },
    });
    if (this.syntax.length > 0) return;
    try {
      document.toJS();
    } catch {
      this.syntax.push(this.#at([0, 1], [], 'the aliases multiply into too much'));
    }
  }

  #findRange(path: Path, at: 'key' | 'value'): Range | undefined {
    let node: unknown = this.#document?.contents;
    let nearest: Node | null | undefined = this.#document?.contents;
    let key: Node | null | undefined;
    for (const step of path) {
      const child = findChild(isAlias(node) && this.#document ? node.resolve(this.#document) : node, step);
      if (child === undefined) return readRange(key ?? nearest);
      [key, node] = [child.key, child.value];
      nearest = child.value ?? child.key;
    }
    return readRange(at === 'key' ? (key ?? nearest) : nearest);
  }

  #place(range: Range): Place {
    const { line, col } = this.#lines.linePos(Math.min(range[0], this.#text.length));
    const excerpt = buildExcerpt(this.#text, range, line, this.#shownRanges());
    return { file: this.#file, line: Math.max(line, 1), column: Math.max(col, 1), excerpt };
  }

  #shownRanges(): readonly Shown[] {
    this.#shown ??= this.#document ? shownRanges(this.#text, this.#document) : [];
    return this.#shown;
  }
}

const STAR = 'a name that begins with * has to stand in quotes';

function unreadable(text: string): string | undefined {
  if (Buffer.byteLength(text) > MAX_CONFIG_BYTES) return `the file is larger than ${MAX_CONFIG_BYTES / 1024 / 1024} MiB`;
  return deepest(text) > MAX_CONFIG_DEPTH ? `the file is nested deeper than ${MAX_CONFIG_DEPTH} levels` : undefined;
}

/** Better words than the parser's for what happens most. */
const SYNTAX: Readonly<Record<string, string>> = {
  BAD_ALIAS: STAR,
  DUPLICATE_KEY: 'this key is there twice',
  MULTIPLE_DOCS: 'the file has more than one document',
  TAB_AS_INDENT: 'lines are indented with spaces, not with tabs',
  NON_STRING_KEY: 'a key must be text',
};

/** The parser repeats pieces of the file after a colon. */
function syntaxMessage(code: string, message: string): string {
  const known = Object.hasOwn(SYNTAX, code) ? SYNTAX[code] : undefined;
  if (known !== undefined) return known;
  if (/^Missing closing .quote/.test(message)) return 'a quote that opens here is not closed';
  const [plain = ''] = message.split(/: "|: tag:/, 1);
  return plain.slice(0, 1).toLowerCase() + plain.slice(1);
}
