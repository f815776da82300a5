/** The configuration that an import builds: providers, models and other settings, without any secret. */

import { stringify } from 'yaml';
import { isReference } from '../config/secrets.ts';
import { findRow } from '../providers/lookup.ts';
import type { ImportNote } from './section.ts';

/** Settings of a provider, as in sluice.yaml. */
export interface DraftProvider {
  extends?: string;
  protocol?: string;
  base_url?: string;
  api_key?: string;
  headers?: Readonly<Record<string, string>>;
  organization?: string;
  project?: string;
  api_version?: string;
  proxy?: string;
  total_timeout?: string;
}

/** A target of a model. */
export interface DraftTarget {
  target: string;
  weight?: number;
}

/** How the targets of a model share requests. */
export type DraftStrategy = 'order' | 'weighted' | 'least_busy' | 'fastest' | 'cheapest';

/** A rule that sends requests to another model. */
export interface DraftRule {
  name: string;
  when: Readonly<Record<string, unknown>>;
  use: string;
}

/** The configuration while it is being built. */
export class Draft {
  readonly notes: ImportNote[] = [];
  /** Sections other than providers, models and rules. */
  readonly settings = new Map<string, unknown>();
  readonly rules: DraftRule[] = [];
  readonly prices = new Map<string, Readonly<Record<string, number>>>();
  readonly #providers = new Map<string, DraftProvider>();
  readonly #models = new Map<string, unknown>();
  /** Variables by the literal secrets that they replace. */
  readonly #variables = new Map<string, string>();
  readonly #taken = new Set<string>();
  #pools = 0;

  note(path: string, kind: ImportNote['kind'], message: string): void {
    this.notes.push({ path, kind, message });
  }

  get hasProviders(): boolean {
    return this.#providers.size > 0;
  }

  /** A reference to an environment variable. */
  reference(variable: string): string {
    this.#taken.add(variable);
    return `env:${variable}`;
  }

  /** A reference instead of a secret that the source has in clear text; the same secret gets the same variable. */
  secret(literal: string, suggestion: string, path: string): string {
    const known = this.#variables.get(literal);
    if (known !== undefined) return `env:${known}`;
    const variable = this.#chooseFree(toVariable(suggestion), this.#taken, '_');
    this.#variables.set(literal, variable);
    this.note(
      path,
      'secret',
      `is in clear text and was not copied; set the environment variable ${variable} to it, or replace the reference by file:PATH`,
    );
    return this.reference(variable);
  }

  /** A text that the gateway reads as it is; undefined, with a note, for one that it would read as a reference. */
  plain(text: string, path: string): string | undefined {
    if (!isReference(text) && !text.includes('${')) return text;
    this.note(path, 'dropped', 'looks like a reference to a variable or file, which the source does not mean');
    return undefined;
  }

  /**
   * Adds a provider, or finds the one with the same settings. Returns its id. `path` is where the source has its key.
   * An id of a known provider would bring the settings of that one, so a server that has such a name gets another id.
   */
  provider(name: string, given: DraftProvider, path: string): string {
    const wanted = given.extends === undefined && findRow(toId(name)) ? `${toId(name)}-custom` : toId(name);
    const settings = this.#complete(given, path);
    for (const [id, known] of this.#providers) if (isSame(withRow(id, known), withRow(wanted, settings))) return id;
    const id = this.#chooseFree(wanted, this.#providers, '-');
    const { extends: row, ...own } = settings;
    this.#providers.set(id, row === undefined || row === id ? own : { extends: row, ...own });
    return id;
  }

  /** Other gateways take an absent key of a vendor, and the address of one without an address, from the environment. */
  #complete(settings: DraftProvider, path: string): DraftProvider {
    const row = settings.extends === undefined ? undefined : findRow(settings.extends);
    if (!row || row.local) return settings;
    const isVendor = row.base_url === undefined || settings.base_url === undefined;
    const address = row.base_url === undefined && settings.base_url === undefined ? row.base_env?.[0] : undefined;
    const key = isVendor && settings.api_key === undefined ? row.key_env[0] : undefined;
    for (const variable of [address, key])
      if (variable !== undefined && !this.#taken.has(variable))
        this.note(path, 'secret', `is not in the source; set the environment variable ${variable}`);
    return {
      ...settings,
      ...(address !== undefined && { base_url: this.reference(address) }),
      ...(key !== undefined && { api_key: this.reference(key) }),
    };
  }

  hasModel(name: string): boolean {
    return this.#models.has(name);
  }

  /** Sets what a model name stands for. */
  model(name: string, targets: readonly DraftTarget[], strategy: DraftStrategy = 'order'): void {
    const [only] = targets;
    if (!only) return;
    if (targets.length === 1) this.#models.set(name, only.target);
    else if (strategy === 'order')
      this.#models.set(
        name,
        targets.map(({ target }) => target),
      );
    else this.#models.set(name, { strategy, targets: targets.map((one) => (one.weight === undefined ? one.target : one)) });
  }

  /** One target for several: a name of its own, with a `*` when the targets have one. */
  pool(targets: readonly DraftTarget[], strategy: DraftStrategy): DraftTarget {
    const [only] = targets;
    if (only && targets.length === 1) return { target: only.target };
    const star = targets.some(({ target }) => target.includes('*')) ? '/*' : '';
    let name = '';
    do name = `pool-${++this.#pools}${star}`;
    while (this.#models.has(name));
    this.model(name, targets, strategy);
    return { target: name };
  }

  /** The text of sluice.yaml. */
  format(heading: readonly string[]): string {
    const value = {
      ...Object.fromEntries(this.settings),
      ...(this.#providers.size > 0 && { providers: Object.fromEntries(this.#providers) }),
      ...(this.#models.size > 0 && { models: Object.fromEntries(this.#models) }),
      ...(this.rules.length > 0 && { rules: this.rules }),
      ...(this.prices.size > 0 && { prices: Object.fromEntries(this.prices) }),
    };
    const comments = heading.map((line) => `# ${line}`.trimEnd()).join('\n');
    return `${comments}\n\n${stringify(value, { lineWidth: 0, aliasDuplicateObjects: false })}`;
  }

  #chooseFree(wanted: string, taken: { has(name: string): boolean }, separator: string): string {
    let name = wanted;
    for (let n = 2; taken.has(name); n++) name = `${wanted}${separator}${n}`;
    return name;
  }
}

const withRow = (id: string, settings: DraftProvider): DraftProvider => ({
  ...settings,
  ...(settings.extends === undefined && findRow(id.replace(/-\d+$/, '')) && { extends: id.replace(/-\d+$/, '') }),
});

const isSame = (a: DraftProvider, b: DraftProvider): boolean => sortedJson(a) === sortedJson(b);

const sortedJson = (value: DraftProvider): string =>
  JSON.stringify(Object.entries(value).toSorted(([a], [b]) => (a < b ? -1 : 1)));

/** A name as the id of a provider. */
function toId(name: string): string {
  const id = name
    .replace(/[^\w.-]+/g, '-')
    .replace(/^[^A-Za-z0-9]+|-+$/g, '')
    .slice(0, 48);
  return id === '' ? 'provider' : id;
}

const toVariable = (text: string): string =>
  text
    .toUpperCase()
    .replace(/\W+/g, '_')
    .replace(/^(?=\d)|^$/, 'KEY_');
