import type { CanonicalRequest } from '../canonical/request.ts';
import { isClientCall } from '../canonical/response.ts';
import type { NameRule, ToolRules } from './rules.ts';
import { sha256 } from './sha256.ts';

/** Anything that is called by a name. */
export interface Called {
  name: string;
  namespace?: string;
}

export const isLegal = (name: string, { pattern, max }: NameRule): boolean => name.length <= max && pattern.test(name);

type Naming = Pick<ToolRules, 'toolName' | 'namespaces'>;

/** What tells two tools apart: where namespaces are known, names are legalised in each alike. */
export const keyOf = ({ name, namespace }: Called, { namespaces }: Naming): string =>
  namespace === undefined || namespaces ? name : `${namespace}\0${name}`;

/** All that is called in a request, in its order. Tools that a provider runs keep their names. */
export function* calledIn({ tools, tool_choice: choice, messages }: CanonicalRequest): Iterable<Called & { kind?: string }> {
  for (const tool of tools ?? []) if (isClientCall(tool.kind)) yield tool;
  for (const { content } of messages) {
    for (const block of content) {
      if (block.type === 'tool_use' && isClientCall(block.kind)) yield block;
      else if (block.type === 'tool_result' && isClientCall(block.kind) && block.name !== undefined) yield { name: block.name };
    }
  }
  if (!choice) return;
  const isServed = new Set(tools?.filter(({ kind }) => !isClientCall(kind)).map(({ name }) => name));
  const chosen = choice.type === 'tool' ? [choice.name] : (choice.allowed_tools ?? []);
  for (const name of chosen) if (!isServed.has(name)) yield { name };
}

/** The names under which tools are sent, by their key; those that stay are not in it. The same request always gives the same names. */
export function sentNames(request: CanonicalRequest, rules: Naming): ReadonlyMap<string, string> {
  const all = new Map([...calledIn(request)].map((called) => [keyOf(called, rules), called]));
  const isKept = (key: string, { name }: Called): boolean => key === name && isLegal(name, rules.toolName);
  const used = new Set([...all].filter(([key, called]) => isKept(key, called)).map(([key]) => key));
  const names = new Map<string, string>();
  for (const [key, called] of all) {
    if (isKept(key, called)) continue;
    const name = legalName(key, rules.toolName, used);
    used.add(name);
    names.set(key, name);
  }
  return names;
}

/** Readable when nobody has that name; else with a hash of the key, and of as many tries as it takes. */
function legalName(key: string, rule: NameRule, used: ReadonlySet<string>): string {
  const wanted = key.replace('\0', '__');
  const plain = shorten(wanted, rule);
  if (isLegal(plain, rule) && !used.has(plain)) return plain;
  for (let salted = key; ; salted += '#') {
    const name = hashed(plain, salted, rule);
    if (!used.has(name)) return name;
  }
}

/** Characters that all protocols allow; some want a letter or `_` first. */
function shorten(name: string, rule: NameRule): string {
  if (isLegal(name, rule)) return name;
  const plain = name.replace(/[^A-Za-z0-9_-]/g, '_');
  const begun = plain !== '' && !rule.pattern.test(plain) && rule.pattern.test(`_${plain}`) ? `_${plain}` : plain;
  return begun.length > rule.max ? hashed(begun, name, rule) : begun;
}

/** Long enough to be read, and eight digits of the hash of the whole. */
const KEPT = 48;
const DIGITS = 8;

function hashed(plain: string, name: string, { max }: NameRule): string {
  const kept = plain.slice(0, Math.max(0, Math.min(KEPT, max - DIGITS - 1))) || 'tool';
  return `${kept}_${sha256(name).slice(0, DIGITS)}`;
}
