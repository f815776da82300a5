/** Turns the configuration of another gateway into one for Sluice, and checks it as the gateway does. */

import { parseDocument } from 'yaml';
import { ConfigError } from '../config/problems.ts';
import { SecretRegistry } from '../config/secrets.ts';
import { readConfig } from '../config/watch.ts';
import { importClaudeCodeRouter } from './claude-code-router.ts';
import { Draft } from './draft.ts';
import { importLitellm } from './litellm.ts';
import { importPortkey } from './portkey.ts';
import { ImportError, type ImportNote, isMap, Section } from './section.ts';

/** Gateways whose configurations can be imported. */
export const FORMATS = {
  litellm: { title: 'LiteLLM', read: importLitellm },
  portkey: { title: 'Portkey', read: importPortkey },
  'claude-code-router': { title: 'claude-code-router', read: importClaudeCodeRouter },
} as const satisfies Record<string, { title: string; read(root: Section, draft: Draft): void }>;

/** The name of a format. */
export type Format = keyof typeof FORMATS;

/** The result of an import. */
export interface Imported {
  /** The text of sluice.yaml. */
  config: string;
  notes: readonly ImportNote[];
}

/** Imports a configuration. Throws an `ImportError` when nothing can be carried over. */
export async function importConfig(format: Format, text: string): Promise<Imported> {
  const { title, read } = FORMATS[format];
  const value = parseSource(text, title);
  const draft = new Draft();
  read(new Section(value, '', draft.notes), draft);
  if (!draft.hasProviders) throw new ImportError(describeNothing(draft.notes));
  const config = draft.format([
    `Imported from ${title}. docs/import.md describes what is carried over.`,
    'Check it with: sluice config check',
    ...listOpen(draft.notes),
  ]);
  await check(config);
  return { config, notes: draft.notes };
}

const MAX_BYTES = 4 * 1024 * 1024;

/** YAML includes JSON; comments of JSON5 are removed first. */
function parseSource(text: string, title: string): unknown {
  if (text.length > MAX_BYTES) throw new ImportError('the file is longer than 4 MiB');
  const isJson = /^\s*(\{|\/[/*])/.test(text);
  const document = parseDocument(isJson ? removeComments(text) : text, {
    prettyErrors: false,
    logLevel: 'silent',
    uniqueKeys: false,
    // The merge key of YAML 1.1, which Python reads.
    merge: true,
  });
  const [error] = document.errors;
  if (error) {
    const line = text.slice(0, error.pos[0]).split('\n').length;
    // Messages of the parser may quote the file, which may contain keys.
    throw new ImportError(`line ${line}: this is not valid ${isJson ? 'JSON' : 'YAML'} (${error.code})`);
  }
  const value = expand(() => document.toJS({ maxAliasCount: 100 }) as unknown);
  if (!isMap(value)) throw new ImportError(`this is not a configuration of ${title}: it must be a map`);
  if (hasMoreMaps(value, MAX_MAPS))
    throw new ImportError(
      `the file has more than ${MAX_MAPS} maps, such as models or targets; import a part of it, or use model names with *`,
    );
  return value;
}

/** Maps of a source: two or three for a model. */
const MAX_MAPS = 10_000;

function hasMoreMaps(value: unknown, limit: number): boolean {
  const open: unknown[] = [value];
  for (let maps = 0; open.length > 0; ) {
    const next = open.pop();
    if (isMap(next) && ++maps > limit) return true;
    if (typeof next === 'object' && next !== null) for (const item of Object.values(next)) open.push(item);
  }
  return false;
}

function expand(read: () => unknown): unknown {
  try {
    return read();
  } catch (error) {
    throw new ImportError('YAML aliases expand to too many values, or to unknown ones', { cause: error });
  }
}

/** Replaces comments by spaces, so that positions stay. */
const removeComments = (text: string): string =>
  text.replace(/"(?:[^"\\\n]|\\.)*"|\/\/[^\n]*|\/\*[\s\S]*?\*\//g, (found) =>
    found.startsWith('"') ? found : found.replace(/[^\n]/g, ' '),
  );

const describeNothing = (notes: readonly ImportNote[]): string =>
  [
    'no provider could be carried over',
    ...notes.slice(0, 5).map(({ path, message }) => `${path === '' ? '(file)' : path}: ${message}`),
  ].join('; ');

/** What the operator has to do, as comments at the top of the file. */
function listOpen(notes: readonly ImportNote[]): string[] {
  const lines = notes.map(({ path, kind, message }) => `- ${kind} ${path}: ${message}`.replace(/[\r\n\u2028\u2029]+/g, ' '));
  if (lines.length === 0) return [];
  const more = lines.length > MAX_LISTED ? [`… and ${lines.length - MAX_LISTED} more`] : [];
  return ['', 'To check:', ...lines.slice(0, MAX_LISTED), ...more];
}

const MAX_LISTED = 100;

/** A result that the gateway would reject is a mistake of the import, or of a value that it cannot judge. */
async function check(config: string): Promise<void> {
  const addresses = new Set(listNames(config, /\b(?:base_url|proxy): env:([A-Za-z_]\w*)/g));
  const names = listNames(config, /\benv:([A-Za-z_]\w*)/g);
  // A value that suits the settings that refer to a variable: an address, or a key that differs from others.
  const env = Object.fromEntries(
    names.map((name, i) => [name, addresses.has(name) ? 'http://127.0.0.1:9' : `sample-${i}-0123456789abcdef`]),
  );
  try {
    await readConfig('sluice.yaml', { env, secrets: new SecretRegistry(), storedKeys: () => 'unknown' }, config);
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    const problems = error.problems.map(({ path, message }) => `${path.join('.')}: ${message}`);
    throw new ImportError(`the result would not be valid: ${problems.slice(0, 5).join('; ')}`, { cause: error });
  }
}

/** What the group of a pattern matches, without duplicates. */
const listNames = (text: string, pattern: RegExp): string[] => [
  ...new Set([...text.matchAll(pattern)].map(([, name = '']) => name)),
];
