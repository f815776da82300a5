import { type Document, isAlias, LineCounter, type Node, parseDocument, type Scalar, visit, type YAMLError } from 'yaml';
import { buildExcerpt, type Shown, shownRanges } from './excerpt.ts';
import { buildPath, findChild, type Range, readRange } from './nodes.ts';
import type { Path, Place, Problem } from './problem.ts';
import { type Env, expand } from './references.ts';
import { deepest, hideBraces, showBraces } from './source.ts';

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
