/** What a configuration must not have when it is stored for several nodes: texts that are, or may be, a secret. */

import { SECRET_SETTING } from './document.ts';
import type { Path } from './problems.ts';
import { redactPatterns } from './secret-patterns.ts';
import { isReference } from './secrets.ts';
import { joinPath } from './yaml-nodes.ts';

/** The settings of a document whose values must be references. `value`: the document as it is written. */
export function findLiteralSecrets(value: unknown): Path[] {
  const found: Path[] = [];
  const visit = (node: unknown, path: Path): void => {
    if (typeof node === 'string' && !mayBeStored(joinPath(path), node)) found.push(path);
    else if (Array.isArray(node)) for (const [index, item] of node.entries()) visit(item, [...path, index]);
    else if (typeof node === 'object' && node !== null)
      for (const [name, item] of Object.entries(node)) visit(item, [...path, name]);
  };
  visit(value, []);
  return found;
}

function mayBeStored(at: string, text: string): boolean {
  if (ADDRESS.test(at)) return !text.split(/[/?#&=]/).some(looksRandom);
  if (!SECRET_SETTING.test(at) || isReference(text)) return true;
  if (URL_SETTING.test(at)) return hasReferencesOnly(text);
  const header = /\/headers\/([^/]+)$/.exec(at)?.[1];
  if (header !== undefined) return PUBLIC_HEADERS.has(header.toLowerCase()) || SCHEME_AND_REFERENCE.test(text);
  return at.startsWith('providers/') && PLACEHOLDERS.has(text.toLowerCase());
}

/** Some servers have a token in the path of their address. */
const ADDRESS = /^providers\/[^/]+\/(?:base_url|base_urls\/\d+|path)$/;

/** Secret when there is a user or a password in the address. */
const URL_SETTING = /^(?:providers\/[^/]+\/proxy|store|limits_store(?:\/url)?)$/;

/** Headers whose values are no secrets. Any other header may be how a server recognises its clients. */
const PUBLIC_HEADERS: ReadonlySet<string> = new Set([
  ...['accept', 'accept-language', 'user-agent', 'http-referer', 'referer', 'x-title'],
  ...['anthropic-beta', 'anthropic-version', 'openai-beta'],
]);

/** `Bearer ${TOKEN}` */
const SCHEME_AND_REFERENCE = /^(?:[Bb]earer|[Bb]asic|[Tt]oken) \$\{[A-Za-z_]\w*\}$/;

/** Keys for servers without keys. */
const PLACEHOLDERS: ReadonlySet<string> = new Set([
  ...['none', 'empty', 'dummy', 'unused', 'local', 'test'],
  ...['ollama', 'lm-studio', 'not-needed', 'no-key'],
]);

/** Whether the password of an address, or its user without one, is a reference. */
function hasReferencesOnly(text: string): boolean {
  const user = /:\/\/([^/]*)@/.exec(text)?.[1];
  if (user === undefined) return true;
  const colon = user.replace(BRACES, (name) => '_'.repeat(name.length)).indexOf(':');
  return isReference(user.slice(colon + 1));
}

const BRACES = /\$\{\w{0,100}\}/g;

/** Whether a part of an address is a long run of letters and digits, which no word, date, version or UUID has. */
const looksRandom = (text: string): boolean =>
  text
    .replace(BRACES, '')
    .split(/[^A-Za-z\d]/)
    .some((run) => run.length >= RANDOM_LENGTH && /\d/.test(run) && /[A-Za-z]/.test(run));

const RANDOM_LENGTH = 20;

/** Whether a line has something that looks like a secret. A reference is none, whatever stands before it. */
export function looksSecret(line: string): boolean {
  const rest = line.replace(REFERENCE, '""');
  return redactPatterns(rest) !== rest || NAMED_IN_COMMENT.test(COMMENT.exec(rest)?.[0] ?? '');
}

const REFERENCE = /\$\{[A-Za-z_]\w*\}|\b(?:env[:.]|os\.environ\/)[A-Za-z_]\w*|\bfile:[^\s"',}\]]+/g;

/** `# password: …`, with letters and digits: not `# token: renewed monthly`. */
const NAMED_IN_COMMENT =
  /^#.{0,200}?(?:pass(?:word|wd)?|pwd|secret|token|key|credentials?)["']?\s{0,4}[:=]\s{0,4}["']?(?=\S{0,200}\d)(?=\S{0,200}[a-z])\S{8}/i;

const COMMENT = /#.{1,1000}/;
