/** The configuration in force as a list of settings, each with its origin. Secrets are shown as references, or not at all. */

import { findRow } from '../providers/lookup.ts';
import { ConfigDocument } from './document.ts';
import { formatPath, type Path } from './problems.ts';
import type { GatewayState } from './resolve.ts';
import { buildJsonSchema } from './schema.ts';
import { redactPatterns } from './secret-patterns.ts';
import { type Env, findAddress, isReference, readEnv } from './secrets.ts';
import type { PendingSettings } from './watch.ts';

/** Where a value comes from. */
export const ORIGINS = ['file', 'store', 'environment', 'default', 'flag'] as const;

/** One setting in force. */
export interface Setting {
  /** `limits.streams`, `models.fast[1]`. */
  readonly path: string;
  /** As text; null when it may be secret. */
  readonly value: string | null;
  /** What it refers to, as written: `env:NAME`, `file:/path`; null without a reference. */
  readonly reference: string | null;
  readonly origin: (typeof ORIGINS)[number];
  /** The line of the file or of the document in the database; null when it is in neither. */
  readonly line: number | null;
}

/** What the list is made from. */
export interface EffectiveSources {
  /** The text of the configuration file; null without one. */
  readonly text: string | null;
  /** The text of the configuration in the database; null without one. It has no setting that the file has. */
  readonly shared: string | null;
  readonly env: Env;
  readonly state: GatewayState;
  /** Values of the command line by their paths, such as `listen.port`. */
  readonly flags: ReadonlyMap<string, string>;
  /** The data folder; null in memory. */
  readonly folder: string | null;
  /** Settings that were changed and wait for a restart; those of the start are in force. */
  readonly pending?: PendingSettings | undefined;
}

/** A configuration has some hundred settings; one with more is cut, and the list says so. */
const MAX_SETTINGS = 2000;

/** Lists all settings, in the order of the schema. */
export function listSettings({ pending, ...sources }: EffectiveSources): { settings: readonly Setting[]; omitted: number } {
  const schema = buildJsonSchema() as SchemaNode; // the output of toJSONSchema has this form
  const found = collectSettings(sources, schema);
  const waits = ({ path }: Setting): boolean => pending?.settings.some((name) => isBelow(path, name)) ?? false;
  // Their lines are those of another text.
  const started = pending && pending.settings.length > 0 ? collectSettings({ ...sources, ...pending }, schema).filter(waits) : [];
  const settings = [...found.filter((setting) => !waits(setting)), ...started.map((setting) => ({ ...setting, line: null }))];
  const sections = Object.keys(schema.properties ?? {});
  const rank = ({ path }: Setting): number => sections.indexOf(path.split(/[.[]/, 1)[0] ?? '');
  // Within a section, the order of the file is kept.
  const sorted = settings.sort((a, b) => rank(a) - rank(b));
  return { settings: sorted.slice(0, MAX_SETTINGS), omitted: Math.max(0, sorted.length - MAX_SETTINGS) };
}

/** Whether a path is that of a setting, or of a part of it. */
const isBelow = (path: string, setting: string): boolean =>
  path.startsWith(setting) && /^($|[.[])/.test(path.slice(setting.length));

function collectSettings(sources: Omit<EffectiveSources, 'pending'>, schema: SchemaNode): Setting[] {
  const found = new Map<string, Setting>();
  const add = (setting: Setting): void => {
    if (!found.has(setting.path)) found.set(setting.path, setting);
  };
  for (const [path, value] of sources.flags) add({ path, value, reference: null, origin: 'flag', line: null });
  const written = [
    ...(sources.text === null ? [] : [new WrittenSettings(sources.text, sources.env, 'file')]),
    ...(sources.shared === null ? [] : [new WrittenSettings(sources.shared, sources.env, 'store')]),
  ];
  for (const setting of written.flatMap((one) => one.list())) add(setting);
  const hasPath = (path: string): boolean => [...found.keys()].some((one) => isBelow(one, path));
  for (const setting of listFromEnvironment(sources, hasPath)) add(setting);
  for (const [path, value] of listDefaults(schema, [], (at) => written.some((one) => one.isClosed(at))))
    add({ path: formatPath(path), value: formatValue(value), reference: null, origin: 'default', line: null });
  add({ path: 'data', value: sources.folder ?? 'memory', reference: null, origin: 'default', line: null });
  return [...found.values()];
}

// ---- the file

/** The settings of a file, with references as they are written. */
class WrittenSettings {
  /** Nothing is resolved in it, so it has nothing of the environment. */
  readonly #raw: ConfigDocument;
  readonly #resolved: ConfigDocument;
  readonly #origin: Setting['origin'];

  constructor(text: string, env: Env, origin: Setting['origin']) {
    this.#origin = origin;
    this.#raw = new ConfigDocument('', text, {});
    this.#resolved = new ConfigDocument('', text, env);
  }

  list(): Setting[] {
    return [...listLeaves(this.#raw.value, [])].map(([path, value]) => this.#describe(path, value));
  }

  /** Whether the file has a value here that is no map, so that there are no defaults below. */
  isClosed(path: Path): boolean {
    const value = readAt(this.#raw.value, path);
    return value !== undefined && value !== null && (typeof value !== 'object' || Array.isArray(value));
  }

  #describe(path: Path, value: unknown): Setting {
    const references = listReferences(value);
    const isPublic = PUBLIC.test(joinPath(path));
    const shown = isPublic ? formatValue(references.length > 0 ? readAt(this.#resolved.value, path) : value, path) : null;
    return {
      path: formatPath(path),
      value: shown,
      reference: references.length > 0 ? references.join(' ') : null,
      origin: references.some((reference) => !reference.startsWith('file:')) ? 'environment' : this.#origin,
      line: this.#raw.problem(path, '').place?.line ?? null,
    };
  }
}

/** Everything that is no map; lists of plain values that are no secrets are one setting. */
function* listLeaves(value: unknown, path: Path): Generator<[Path, unknown], void, undefined> {
  if (Array.isArray(value)) {
    const isPlain = value.every((item) => typeof item !== 'object' && listReferences(item).length === 0);
    if (isPlain && PUBLIC.test(joinPath([...path, 0]))) yield [path, value];
    else for (const [index, item] of value.entries()) yield* listLeaves(item, [...path, index]);
  } else if (typeof value === 'object' && value !== null)
    for (const [name, item] of Object.entries(value)) yield* listLeaves(item, [...path, name]);
  else if (value !== null) yield [path, value];
}

/** The references in a text, without anything else of it: the rest may be secret. */
function listReferences(value: unknown): string[] {
  if (typeof value !== 'string') return [];
  if (isReference(value)) return [value];
  return [...value.matchAll(/\$\{[A-Za-z_]\w*\}/g)].map(([reference]) => reference);
}

/**
 * Settings whose values may be shown. Everything else is hidden, also what is added to the schema later: keys, headers, proxies, and
 * header values of rules.
 */
const PUBLIC = new RegExp(
  `^(${[
    '\\$schema',
    'listen/.+',
    'trusted_proxies(/\\d+)?',
    'auth/pepper_file',
    'auth/keys/\\d+/(name|models|budget|rpm|tpm|concurrency|expires|ip|tags)(/\\d+)?',
    'metrics/listen',
    'providers/[^/]+',
    'providers/[^/]+/(extends|protocol|base_url|base_urls(/\\d+)?|auth|api_version|path|ca|repair|on_disconnect|passthrough|on_malformed|profile/.+|\\w+_timeout|upstream_keep_alive)',
    'rules/\\d+/(name|use)',
    'rules/\\d+/when/(?!header/).+',
    '(models|prices|default_price|budgets|capture|idempotency|recovery|cache|limits|log)(/.+)?',
    'affinity|model_in_answer|time_zone|data|config|node_lease|durability|retention|reset',
  ].join('|')})$`,
);

// ---- the environment

/** What providers and keys have from variables. `hasPath`: whether the file or the command line has a setting. */
function* listFromEnvironment(
  { env, state }: EffectiveSources,
  hasPath: (path: string) => boolean,
): Generator<Setting, void, undefined> {
  const refer = (path: string, name: string, value: string | null = null): Setting => {
    const variable = readEnv(env, name) === undefined && readEnv(env, `${name}_FILE`) !== undefined ? `${name}_FILE` : name;
    return { path, value, reference: `env:${variable}`, origin: 'environment', line: null };
  };
  if (!hasPath('auth.keys') && state.keys.length > 0) yield refer('auth.keys', 'SLUICE_KEYS');
  if (!hasPath('admin.key') && state.adminKey) yield refer('admin.key', 'SLUICE_ADMIN_KEY');
  for (const { id, provider, keyFrom, isDemo } of state.providers.values()) {
    if (isDemo) continue;
    const path = formatPath(['providers', id]);
    if (keyFrom !== undefined && keyFrom !== 'file') yield refer(`${path}.api_key`, keyFrom);
    if (hasPath(`${path}.base_url`)) continue;
    const row = findRow(id);
    const address = row && !(hasPath(`${path}.api_key`) && !row.local) ? findAddress(env, row) : undefined;
    const value = formatUrl(provider.base_url);
    if (address && 'value' in address) yield refer(`${path}.base_url`, address.from, value);
    else yield { path: `${path}.base_url`, value, reference: null, origin: 'default', line: null };
  }
}

// ---- defaults

interface SchemaNode {
  readonly default?: unknown;
  readonly properties?: Readonly<Record<string, SchemaNode>>;
  readonly anyOf?: readonly SchemaNode[];
}

/** The defaults of a schema. `isClosed`: whether the file replaces a whole section. */
function* listDefaults(
  node: SchemaNode,
  path: Path,
  isClosed: (path: Path) => boolean,
): Generator<[Path, unknown], void, undefined> {
  const { properties } = node.properties ? node : (node.anyOf?.find((other) => other.properties) ?? {});
  const isSection = path.length === 0 || node.default !== undefined;
  if (!isSection || isClosed(path)) return;
  if (properties) for (const [name, child] of Object.entries(properties)) yield* listDefaults(child, [...path, name], isClosed);
  // An empty map has no settings.
  else if (typeof node.default !== 'object' || Array.isArray(node.default)) yield [path, node.default];
}

// ---- text

const joinPath = (path: Path): string => path.map((step) => String(step).replaceAll('/', '%')).join('/');

function readAt(value: unknown, path: Path): unknown {
  let node = value;
  for (const step of path)
    node = typeof node === 'object' && node !== null && Object.hasOwn(node, step) ? Reflect.get(node, step) : undefined;
  return node;
}

const MAX_VALUE = 500;

function formatValue(value: unknown, path: Path = []): string {
  const isUrl = path.some((step) => step === 'base_url' || step === 'base_urls');
  if (isUrl && Array.isArray(value)) return JSON.stringify(value.map((item) => formatUrl(String(item))));
  const text = typeof value === 'string' ? (isUrl ? formatUrl(value) : value) : JSON.stringify(value ?? null);
  return redactPatterns(text).slice(0, MAX_VALUE);
}

/** A path with long parts may have a token in it. */
function formatUrl(text: string): string {
  if (!URL.canParse(text)) return '…';
  const { origin, pathname } = new URL(text);
  return origin + (/^(\/[\w.-]{1,12}){0,4}\/?$/.test(pathname) ? pathname.replace(/\/$/, '') : '/…');
}
