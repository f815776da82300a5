// All mutants of a file in one text: each stands beside the code it changes, and `__mutant(id)` says whether it is the one at work.
import { parseSync } from 'oxc-parser';
import { childMutationsOf, isLeftOut, mutationsOf, placeOf } from './mutators.js';

const SKIPPED = new Set(['ImportDeclaration', 'ExportAllDeclaration', 'Super', 'TemplateElement', 'PrivateIdentifier']);
/** Types have no mutants; of these three the expression counts. */
const TYPED = new Set(['TSAsExpression', 'TSSatisfiesExpression', 'TSNonNullExpression']);
const STATEMENT = /Statement$/;

class Instrumenter {
  #source;
  #wraps = new Map();

  constructor(source) {
    this.#source = source;
  }

  /** `edit` changes a part of the node `wrap`, the smallest that can be exchanged as a whole. */
  #add(wrap, kind, edit) {
    const key = `${wrap.start} ${wrap.end} ${kind}`;
    const found = this.#wraps.get(key) ?? { start: wrap.start, end: wrap.end, kind, edits: [] };
    found.edits.push(edit);
    this.#wraps.set(key, found);
  }

  visit(node, parent, place, wrap) {
    if (SKIPPED.has(node.type) || (node.type.startsWith('TS') && !TYPED.has(node.type))) return;
    if (STATEMENT.test(node.type) && isLeftOut(node, parent)) {
      const text = node.type === 'BlockStatement' ? '{}' : '';
      this.#add(node, node.type === 'BlockStatement' ? 'block' : 'statement', { start: node.start, end: node.end, text });
    }
    for (const edit of mutationsOf(node, place, this.#source)) this.#add(wrap, 'expression', edit);
    for (const edit of childMutationsOf(node)) this.#add(edit, 'expression', edit);
    for (const [key, child] of childrenOf(node))
      this.visit(child, node, placeOf(node, key, place), this.#wrapOf(node, key, child, wrap));
  }

  /** What a callee, a link of a `?.` chain or the target of an assignment is exchanged with. */
  #wrapOf(node, key, child, wrap) {
    if (node.type === 'ChainExpression') return wrap;
    const isLink = (key === 'object' || key === 'callee') && isChained(child);
    const isTarget = (key === 'callee' || key === 'left' || key === 'argument') && child.type === 'MemberExpression';
    return isLink || (isTarget && !isRead(node, key)) ? wrap : child;
  }

  get wraps() {
    return [...this.#wraps.values()].sort(
      (a, b) => a.start - b.start || b.end - a.end || (a.kind === 'expression') - (b.kind === 'expression'),
    );
  }
}

/** Part of a `?.` chain: it cannot be exchanged alone. */
function isChained(node) {
  if (node.type === 'MemberExpression') return node.optional || isChained(node.object);
  return node.type === 'CallExpression' && (node.optional || isChained(node.callee));
}

function isRead(node, key) {
  if (key === 'left') return node.type === 'BinaryExpression' || node.type === 'LogicalExpression';
  if (key === 'argument') return node.type !== 'UpdateExpression' && node.operator !== 'delete';
  return false;
}

/** The children that hold code: no names of properties, no patterns but their defaults. */
function childrenOf(node) {
  const isNamed = (key) => (key === 'key' || key === 'property') && !node.computed;
  return Object.entries(node).flatMap(([key, value]) => {
    if (key === 'source' || isNamed(key)) return [];
    return (Array.isArray(value) ? value : [value])
      .filter((child) => typeof child?.type === 'string')
      .map((child) => [key, child]);
  });
}

function wrapped(wrap, inner, source, next) {
  const ids = wrap.edits.map((edit) => ({ ...edit, id: next(edit) }));
  if (wrap.kind === 'block') return `{ if (!__mutant(${ids[0].id})) ${inner} }`;
  if (wrap.kind === 'statement') return `{ if (!__mutant(${ids[0].id})) { ${inner}\n} }`;
  const variants = ids.map(({ id, start, end, text }) => {
    const form = source.slice(wrap.start, start) + text + source.slice(end, wrap.end);
    return `__mutant(${id}) ? (${form}) : `;
  });
  return `(${variants.join('')}${inner})`;
}

/** `first`: the number of the first mutant. */
export function instrument(source, file, first = 0) {
  const { program, errors } = parseSync(file, source);
  if (errors.length > 0) throw new Error(`${file}: ${errors[0].message}`);
  const instrumenter = new Instrumenter(source);
  instrumenter.visit(program, program, 'value', program);
  const { wraps } = instrumenter;
  const mutants = [];
  const lines = source.split('\n');
  const next = ({ start, end, text }) => {
    const id = first + mutants.length;
    const line = source.slice(0, start).split('\n').length;
    mutants.push({ id, file, line, source: lines[line - 1].trim(), code: source.slice(start, end), text });
    return id;
  };
  let at = 0;
  const emit = (from, to) => {
    let out = '';
    let done = from;
    while (at < wraps.length && wraps[at].start >= done && wraps[at].end <= to) {
      const wrap = wraps[at++];
      out += source.slice(done, wrap.start) + wrapped(wrap, emit(wrap.start, wrap.end), source, next);
      done = wrap.end;
    }
    return out + source.slice(done, to);
  };
  const code = emit(0, source.length);
  return { code, mutants };
}
