/** A configuration file as a document: parsing, places of problems, and excerpts without secrets. */

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
import type { SettingFiles } from './files.ts';
import { redactPatterns } from './secret-patterns.ts';
import { type Env, type Expanded, expandReferences, isReference, readFileReference } from './secrets.ts';

/** A parsed configuration file. JSON is parsed as YAML, of which it is a subset. */
export class ConfigDocument {
  readonly #file: string;
  readonly #text: string;
  readonly #lines = new LineCounter();
  readonly #document: Document.Parsed | undefined;
  readonly #references = new Set<string>();
  readonly #missing = new Set<string>();
  readonly #files: SettingFiles | undefined;
  #shown: Shown[] | undefined;
  /** Syntax errors. */
  readonly syntax: Problem[] = [];
  /** References to variables that are not set and to files that cannot be read. The rest of the file is still checked. */
  readonly missing: Problem[] = [];
  /** Secrets that are in the file itself. */
  readonly literalSecrets: Path[] = [];

  /** Without `files`, references to files are left as they are. */
  constructor(file: string, text: string, env: Env, files?: SettingFiles) {
    this.#file = file;
    this.#files = files;
    this.#text = text;
    const fault = findFault(text);
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

  /** The content with references resolved. Only for a document without syntax errors. */
  get value(): unknown {
    return this.#document?.toJS() ?? {};
  }

  /** Whether the value is a reference that cannot be resolved. */
  isMissing(path: Path): boolean {
    return this.#missing.has(JSON.stringify(path));
  }

  /** Whether the whole value came from a variable, which makes it text even if a number is meant. */
  isReference(path: Path): boolean {
    return this.#references.has(JSON.stringify(path));
  }

  /**
   * A problem with the value or the key at a path. For a path that is not in the file, its nearest ancestor is shown.
   */
  problem(path: Path, message: string, at: 'key' | 'value' = 'value'): Problem {
    return this.#createProblem(this.#findRange(path, at), path, message);
  }

  #createProblem(range: Range | undefined, path: Path, message: string): Problem {
    return { message, path, ...(range && { place: this.#findPlace(range) }) };
  }

  /** One mistake causes several parser errors; only the first of a line is kept. */
  #readErrors(errors: readonly YAMLError[]): void {
    const lines = new Map<number, Problem>();
    for (const { code, message, pos } of errors) {
      const start = code === 'MISSING_CHAR' ? this.#findScalarStart(pos[0]) : pos[0];
      const problem = this.#createProblem([start, start + 1], [], describeSyntaxError(code, message));
      const line = problem.place?.line ?? 0;
      if (!lines.has(line) || code === 'BAD_ALIAS') lines.set(line, problem);
    }
    this.syntax.push(...lines.values());
  }

  /** An unclosed quote is reported at the end of the file; the position where it opens is more useful. */
  #findScalarStart(position: number): number {
    return this.#listShownRanges().find(([start, end]) => start < position && position <= end + 1)?.[0] ?? position;
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
    // Copies of the configuration would otherwise have to guard against it.
    if (scalar.value === '__proto__')
      this.syntax.push(this.#createProblem(readRange(scalar), path, '__proto__ is not a valid name'));
  }

  #readValue(path: Path, scalar: Scalar, env: Env): void {
    const text = showBraces(String(scalar.value));
    scalar.value = text;
    const expanded = this.#expand(path, text, env);
    if ('fault' in expanded) {
      this.missing.push(this.#createProblem(readRange(scalar), path, expanded.fault));
      this.#missing.add(JSON.stringify(path));
      return;
    }
    if (expanded.isReference) this.#references.add(JSON.stringify(path));
    scalar.value = expanded.text;
  }

  #expand(path: Path, text: string, env: Env): Expanded {
    const at = joinPath(path);
    if (!SECRET_SETTING.test(at)) return expandReferences(text, env);
    const file = readFileReference(text);
    if (file !== undefined && this.#files) {
      const read = this.#files.readSecret(file);
      return 'fault' in read ? read : { text: read.text, isReference: true };
    }
    if (isLiteralSecret(at, text)) this.literalSecrets.push(path);
    return expandReferences(text, env);
  }

  /** The parser reports unknown anchors and exponentially growing aliases only when it resolves them. */
  #checkAliases(document: Document.Parsed): void {
    if (this.syntax.length > 0) return;
    visit(document, {
      Alias: (at, alias, ancestors) => {
        const target = alias.resolve(document);
        if (target) this.#checkAliasSecret(buildPath(at, alias, ancestors), target);
        if (target) return;
        this.syntax.push(
          this.#createProblem(readRange(alias), buildPath(at, alias, ancestors), `unknown YAML anchor; ${ALIAS_HINT}`),
        );
      },
    });
    if (this.syntax.length > 0) return;
    try {
      document.toJS();
    } catch {
      this.syntax.push(this.#createProblem([0, 1], [], 'YAML aliases expand to too many values'));
    }
  }

  /** A secret may be written in a setting that is none, and be used by an alias. */
  #checkAliasSecret(path: Path, target: Node): void {
    const at = joinPath(path);
    const source = isScalar(target) && typeof target.source === 'string' ? showBraces(target.source) : '';
    if (SECRET_SETTING.test(at) && isLiteralSecret(at, source)) this.literalSecrets.push(path);
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

  #findPlace(range: Range): Place {
    const { line, col } = this.#lines.linePos(Math.min(range[0], this.#text.length));
    const build = (): string => buildExcerpt(this.#text, range, line, this.#listShownRanges());
    return {
      file: this.#file,
      line: Math.max(line, 1),
      column: Math.max(col, 1),
      // On demand: a file may have thousands of problems, of which some are shown.
      get excerpt() {
        return build();
      },
    };
  }

  #listShownRanges(): readonly Shown[] {
    this.#shown ??= this.#document ? listShownRanges(this.#text, this.#document) : [];
    return this.#shown;
  }
}

const MAX_CONFIG_BYTES = 1024 * 1024;

/** The YAML parser recurses; a valid configuration has five levels. */
const MAX_CONFIG_DEPTH = 50;

function findFault(text: string): string | undefined {
  if (Buffer.byteLength(text) > MAX_CONFIG_BYTES) return `the file is larger than ${MAX_CONFIG_BYTES / 1024 / 1024} MiB`;
  return measureDepth(text) > MAX_CONFIG_DEPTH ? `the file is nested deeper than ${MAX_CONFIG_DEPTH} levels` : undefined;
}

/** An upper bound of the nesting: also counts brackets in strings, indentation, and dashes of lists. */
function measureDepth(text: string): number {
  let open = 0;
  let max = 0;
  const indents: number[] = [];
  for (const line of text.split('\n')) {
    const dashes = /^(?:\s*[-?:](?=\s))*/.exec(line)?.[0].replace(/\s/g, '').length ?? 0;
    const indent = line.search(/[^\s-]/);
    if (indent >= 0) {
      while ((indents.at(-1) ?? -1) >= indent) indents.pop();
      indents.push(indent);
    }
    max = Math.max(max, open + indents.length + dashes);
    for (const char of line) {
      if (char === '[' || char === '{') open++;
      else if (char === ']' || char === '}') open = Math.max(0, open - 1);
      max = Math.max(max, open + indents.length);
    }
  }
  return max;
}

const ALIAS_HINT = 'put a name that begins with * in quotes';

/** Clearer messages for the most common parser errors. */
const SYNTAX_MESSAGES: Readonly<Record<string, string>> = {
  BAD_ALIAS: ALIAS_HINT,
  DUPLICATE_KEY: 'duplicate key',
  MULTIPLE_DOCS: 'the file must contain one YAML document',
  TAB_AS_INDENT: 'indent with spaces, not tabs',
  NON_STRING_KEY: 'keys must be strings',
};

/** Cuts the message at a colon, after which the parser quotes the file. */
function describeSyntaxError(code: string, message: string): string {
  const known = Object.hasOwn(SYNTAX_MESSAGES, code) ? SYNTAX_MESSAGES[code] : undefined;
  if (known !== undefined) return known;
  if (/^Missing closing .quote/.test(message)) return 'missing closing quote';
  const [plain = ''] = message.split(/: "|: tag:/, 1);
  return plain.slice(0, 1).toLowerCase() + plain.slice(1);
}

/** Path of a value in the file: `providers.local.api_key`, `models.fast[1]`. */
export type Path = readonly (string | number)[];

/** An error or warning about the configuration. */
export interface Problem {
  readonly message: string;
  readonly path: Path;
  readonly place?: Place;
}

/** Where a problem is in the file. */
export interface Place {
  readonly file: string;
  /** Starts at 1. */
  readonly line: number;
  readonly column: number;
  /** The line with a caret below it; values that may be secret are masked. */
  readonly excerpt: string;
}

/** A configuration that cannot be used, with all its problems. */
export class ConfigError extends Error {
  override readonly name = 'ConfigError';
  readonly problems: readonly Problem[];

  constructor(problems: readonly Problem[]) {
    const sorted = [...problems].sort(comparePlaces);
    const more = sorted.length > MAX_DESCRIBED ? [`… and ${sorted.length - MAX_DESCRIBED} more problems`] : [];
    super(redactPatterns([...sorted.slice(0, MAX_DESCRIBED).map(describeProblem), ...more].join('\n')));
    this.problems = sorted;
  }
}

/** Further problems are rarely useful before the first ones are repaired. */
const MAX_DESCRIBED = 200;

const comparePlaces = ({ place: a }: Problem, { place: b }: Problem): number =>
  (a?.line ?? 0) - (b?.line ?? 0) || (a?.column ?? 0) - (b?.column ?? 0);

/** Formats `sluice.yaml:4:7: providers.grok: …` and the line that it is about. */
function describeProblem({ message, path, place }: Problem): string {
  const subject = path.length === 0 ? message : `${formatPath(path)}: ${message}`;
  return place ? `${place.file}:${place.line}:${place.column}: ${subject}\n${place.excerpt}` : subject;
}

const PLAIN_KEY = /^[\w$-]+$/;

/** A path as text: `providers.local.api_key`, `models.fast[1]`. */
export function formatPath(path: Path): string {
  let text = '';
  for (const step of path) {
    if (typeof step === 'number') text += `[${step}]`;
    else if (PLAIN_KEY.test(step)) text += text === '' ? step : `.${step}`;
    else text += `[${JSON.stringify(step)}]`;
  }
  return text;
}

/**
 * YAML reads the brace of `{ api_key: ${KEY} }` as the start of a map. For the parser, the braces of references are
 * replaced by private-use characters; each is one character, so positions do not change.
 */
const HIDDEN_BRACES = ['\ue000', '\ue001'] as const;

const hideBraces = (text: string): string => text.replace(/\$\{([^{}\n]*)\}/g, `$$${HIDDEN_BRACES[0]}$1${HIDDEN_BRACES[1]}`);

const showBraces = (text: string): string => text.replaceAll(HIDDEN_BRACES[0], '{').replaceAll(HIDDEN_BRACES[1], '}');

type Step = string | number;

/** The path of a node from what `visit` passes. A key has the path of the map that contains it. */
function buildPath(at: number | 'key' | 'value' | null, node: unknown, ancestors: readonly unknown[]): Path {
  const path: Step[] = [];
  const nodes = [...ancestors, node];
  for (const [i, step] of nodes.entries()) {
    if (isPair(step)) path.push(readKeyText(step));
    else if (i + 1 < nodes.length && isSeq(step))
      path.push(typeof at === 'number' && i + 2 === nodes.length ? at : step.items.indexOf(nodes[i + 1]));
  }
  return at === 'key' ? path.slice(0, -1) : path;
}

const readKeyText = ({ key }: Pair<unknown, unknown>): string => showBraces(String(isScalar(key) ? key.value : key));

interface Child {
  key: Node | null;
  value: Node | null;
}

function findChild(node: unknown, step: Step): Child | undefined {
  if (isMap<Node, Node | null>(node)) return node.items.find((pair) => readKeyText(pair) === step);
  if (!isSeq<Node>(node) || typeof step !== 'number') return undefined;
  const value = node.items[step];
  return value && { key: null, value };
}

/** Start and end offset of a node. */
type Range = readonly [start: number, end: number];

const readRange = (node: Node | null | undefined): Range | undefined =>
  node?.range ? [node.range[0], node.range[1]] : undefined;

/**
 * The line of a problem with a caret below it. A broken file may have a secret anywhere, so only keys, punctuation and
 * values that cannot be secret are shown; the rest is masked.
 */
function buildExcerpt(text: string, [start, end]: Range, line: number, scalars: readonly Shown[]): string {
  const newline = text.indexOf('\n', start);
  // Far more than is shown: masks make the text shorter.
  const lineStart = Math.max(text.lastIndexOf('\n', start - 1) + 1, start - MAX_READ_WIDTH);
  const lineEnd = Math.min(newline < 0 ? text.length : newline, start + MAX_READ_WIDTH);
  const shown = scalars.filter(([from, to]) => from < lineEnd && to > lineStart);
  const before = mask(text, lineStart, start, shown);
  const marked = mask(text, start, Math.min(Math.max(end, start + 1), lineEnd), shown);
  const after = mask(text, Math.max(start, Math.min(end, lineEnd)), lineEnd, shown);
  const gutter = String(line);
  const lead = before.length > MAX_EXCERPT_WIDTH / 2 ? `…${before.slice(1 - MAX_EXCERPT_WIDTH / 2)}` : before;
  const body = `${lead}${marked}${after}`
    .replace(/(?:\*{3}){2,}/g, MASK)
    .slice(0, MAX_EXCERPT_WIDTH)
    .trimEnd();
  const carets = '^'.repeat(Math.max(1, Math.min(marked.trimEnd().length, MAX_EXCERPT_WIDTH - lead.length)));
  return `  ${gutter} | ${body}\n  ${' '.repeat(gutter.length)} | ${' '.repeat(lead.length)}${carets}`;
}

/** Longest excerpt of a line. */
const MAX_EXCERPT_WIDTH = 120;

/** Characters on each side of a problem that an excerpt is made of. */
const MAX_READ_WIDTH = 1000;

/** A part of a line with everything masked that may be secret. */
function mask(text: string, start: number, end: number, shown: readonly Shown[]): string {
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

/** Range of a scalar, and whether it may be shown. */
type Shown = readonly [start: number, end: number, isHarmless: boolean];

/** All scalars of a file, and whether they may be shown. */
function listShownRanges(text: string, document: Document.Parsed): Shown[] {
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

function isPlainKey(source: string, path: Path): boolean {
  const map = joinPath(path);
  if (map === 'models') return true;
  if (map === 'providers') return source.length <= 40;
  return KNOWN_MAPS.test(map) && WORD.test(source);
}

/** Maps whose keys are settings or names. The keys of any other map are a mistake and may be anything. */
const KNOWN_MAPS = /^(|listen|listen\/tls|auth|log|limits|providers|providers\/[^/]+(\/(headers|profile(\/tool_(name|id))?))?)$/;

const WORD = /^["']?[a-z_$-]{1,40}["']?$/i;

function isPlainValue(source: string, path: Path): boolean {
  const at = joinPath(path);
  if (SAFE_TO_SHOW.test(at) || (SAFE_WHEN_SHORT.test(at) && source.length <= 10)) return true;
  return isReference(source) || /^(true|false|null|~|)$/.test(source);
}

/** Values that cannot be secret. Excludes `organization`, `project`, `headers`, `auth.keys` and unknown ones. */
const SAFE_TO_SHOW =
  /^(\$schema|listen\/(host|port|tls\/(cert|key))|trusted_proxies\/.*|log\/level|models\/.*|providers\/[^/]+\/(extends|protocol|base_url|auth|api_version|path|ca|repair|on_disconnect|passthrough|profile\/.*))$/;

/** Settings that hold a secret. Only these may refer to files: any other file could be read by an error message. */
const SECRET_SETTING =
  /^(providers\/[^/]+\/(api_key|api_keys\/\d+|proxy|headers\/[^/]+)|auth\/keys\/\d+(\/key)?|(admin|metrics)\/key|store|limits_store(\/url)?)$/;

/** Headers that identify the sender; others may be public. */
const CREDENTIAL_HEADER = /\/headers\/[^/]*(authorization|key|token|secret|cookie)[^/]*$/i;

/** The keys of the gateway itself, which have no placeholders. */
const OWN_KEY = /^(auth\/keys\/\d+(\/key)?|(admin|metrics)\/key)$/;

/** Shorter values are placeholders such as `none`. A proxy or a store is a secret when its URL has a password. */
function isLiteralSecret(at: string, text: string): boolean {
  if ((text.length < 8 && !OWN_KEY.test(at)) || isReference(text) || text.includes('${')) return false;
  if (at.endsWith('/proxy') || at === 'store' || at.startsWith('limits_store')) return /:\/\/[^/]*@/.test(text);
  return !at.includes('/headers/') || CREDENTIAL_HEADER.test(at);
}

/** Numbers with a unit; a long value is something else. */
const SAFE_WHEN_SHORT = /^(limits\/.*|providers\/[^/]+\/\w+_timeout)$/;

const joinPath = (path: Path): string => path.map((step) => String(step).replaceAll('/', '%')).join('/');
