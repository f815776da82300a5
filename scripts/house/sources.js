/** Reads the structure of TypeScript sources: imports, cycles, exports without a comment. */
import { existsSync, readFileSync } from 'node:fs';
import { dirname, resolve } from 'node:path';

/** The files that a source file imports or re-exports, types included. */
export function readImports(file) {
  const text = readFileSync(file, 'utf8');
  const specifiers = [
    ...text.matchAll(/^(?:import|export)\b[^;]*?from '(\.[^']+)';/gms),
    ...text.matchAll(/^import '(\.[^']+)';/gm),
    ...text.matchAll(/\bimport\('(\.[^']+)'\)/g),
  ].map((match) => match[1]);
  return specifiers.map((specifier) => resolve(dirname(file), specifier)).filter((path) => existsSync(path));
}

/** The groups of nodes that reach each other, each sorted. */
export function findCycles(graph) {
  const reaches = new Map([...graph.keys()].map((node) => [node, reachable(graph, node)]));
  const groups = new Map();
  for (const node of graph.keys()) {
    const group = [...graph.keys()].filter((other) => reaches.get(node).has(other) && reaches.get(other)?.has(node)).sort();
    if (group.length > 0) groups.set(group.join(' '), group);
  }
  return [...groups.values()];
}

function reachable(graph, start) {
  const seen = new Set();
  const pending = [...(graph.get(start) ?? [])];
  while (pending.length > 0) {
    const node = pending.pop();
    if (seen.has(node)) continue;
    seen.add(node);
    pending.push(...(graph.get(node) ?? []));
  }
  return seen;
}

const EXPORT = /^export (?:abstract |async |declare )*(?:function\*?|const|let|class|interface|type|enum) ([\w$]+)/;

/** How many things a file declares and exports, and those without a doc comment right before. */
export function exportsWithoutComment(file) {
  const lines = readFileSync(file, 'utf8').split('\n');
  const found = lines.flatMap((line, i) => {
    const name = EXPORT.exec(line)?.[1];
    return name === undefined
      ? []
      : [{ name, isCommented: /\*\/\s*$/.test(lines[i - 1] ?? '') || /^export function/.test(lines[i - 1] ?? '') }];
  });
  return { total: found.length, missing: found.filter(({ isCommented }) => !isCommented).map(({ name }) => name) };
}
