/** A configuration file as a document: parsing, places of problems, and excerpts without secrets. */

import {
  type Document,
  isAlias,
  isMap,
  isScalar,
  isSeq,
  LineCounter,
  type Node,
  parseDocument,
  type Scalar,
  visit,
  type YAMLError,
} from 'yaml';
import { buildExcerpt, listShownRanges, type Range, type Shown } from './excerpt.ts';
import type { SettingFiles } from './files.ts';
import type { Path, Place, Problem } from './problems.ts';
import { type Env, type Expanded, expandReferences, isReference, readFileReference } from './secrets.ts';
import { buildPath, hideBraces, joinPath, readKeyText, showBraces } from './yaml-nodes.ts';

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

/** What a message of the parser means, by its code and if need be by its text. The parser's own messages quote the file. */
const SYNTAX_MESSAGES: Readonly<Record<string, string | readonly (readonly [text: RegExp, message: string])[]>> = {
  ALIAS_PROPS: ALIAS_HINT,
  BAD_ALIAS: ALIAS_HINT,
  BAD_DIRECTIVE: 'a line that begins with % is a directive of YAML; put the text in quotes',
  BAD_DQ_ESCAPE: 'invalid escape; write \\\\ for a backslash in double quotes, or use single quotes',
  BAD_INDENT: [
    [/^Flow map/, 'the { before is not closed; add }, or indent the lines inside'],
    [/^Flow sequence/, 'the [ before is not closed; add ], or indent the lines inside'],
    [
      /must start at the same column/,
      'the items of a map or list must start at the same column; align this line with those before',
    ],
    [/./, 'wrong indentation; align this line with those before'],
  ],
  BAD_SCALAR_START: 'a text cannot begin with this character; put it in quotes',
  BLOCK_AS_IMPLICIT_KEY:
    'a setting inside of a value; write each setting in a line of its own, or put a text with ": " in quotes',
  BLOCK_IN_FLOW: 'inside of { } and [ ], lists with "-" and texts with "|" are not possible; write [ ] or quotes',
  DUPLICATE_KEY: 'duplicate key',
  MISSING_CHAR: [
    [/^Missing closing .quote/, 'missing closing quote'],
    [/^Implicit map keys/, 'the name of a setting must be followed by ":" and a value'],
    [/^Missing ,/, 'missing "," between two items'],
    [/^Missing space after/, 'missing space after ":"'],
    [/^Comments must/, 'missing space before "#"; put a text with "#" in quotes'],
    [/^Sequence item/, 'missing "- " before an item of a list'],
    [/./, 'a character is missing here; check this line and the one before'],
  ],
  MULTILINE_IMPLICIT_KEY: 'the name of a setting must be on a single line; check the quotes and the ":" before',
  MULTIPLE_DOCS: 'the file must contain one YAML document',
  NON_STRING_KEY: 'keys must be strings',
  TAB_AS_INDENT: 'indent with spaces, not tabs',
  TAG_RESOLVE_FAILED: 'unknown YAML tag; put a text that begins with ! in quotes',
};

/** The message of the parser is never shown: it may quote a secret. */
function describeSyntaxError(code: string, text: string): string {
  const known = Object.hasOwn(SYNTAX_MESSAGES, code) ? SYNTAX_MESSAGES[code] : undefined;
  const message = typeof known === 'object' ? known.find(([pattern]) => pattern.test(text))?.[1] : known;
  return message ?? 'this is not valid YAML here; check the quotes, brackets and ":" of this line and the one before';
}

interface Child {
  key: Node | null;
  value: Node | null;
}

function findChild(node: unknown, step: Path[number]): Child | undefined {
  if (isMap<Node, Node | null>(node)) return node.items.find((pair) => readKeyText(pair) === step);
  if (!isSeq<Node>(node) || typeof step !== 'number') return undefined;
  const value = node.items[step];
  return value && { key: null, value };
}

const readRange = (node: Node | null | undefined): Range | undefined =>
  node?.range ? [node.range[0], node.range[1]] : undefined;

/** Settings that hold a secret. Only these may refer to files: any other file could be read by an error message. */
export const SECRET_SETTING =
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
