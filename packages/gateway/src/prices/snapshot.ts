/**
 * The price snapshot: an extract of `@pydantic/genai-prices` that `npm run prices` writes to `prices.json`. The package
 * itself takes 40 ms of CPU and 20 MB to load, the extract 8 ms and 1 MB.
 */

import { readFileSync } from 'node:fs';

/** The snapshot, which the first call reads. Without the file, it has no providers and `problem` says why. */
export function loadSnapshot(): Snapshot {
  snapshot ??= readSnapshot(FILE);
  return snapshot;
}

let snapshot: Snapshot | undefined;

/** `src` and `dist` have the same depth. */
const FILE = new URL('../../prices.json', import.meta.url);

/** Reads a snapshot. An incomplete installation must not fail requests, so this does not throw. */
export function readSnapshot(file: URL): Snapshot {
  try {
    return JSON.parse(readFileSync(file, 'utf8')) as Snapshot; // generated, and held by a test
  } catch (error) {
    return { version: 'missing', providers: {}, problem: String(error) };
  }
}

/** The content of `prices.json`. */
export interface Snapshot {
  /** The version of the package. */
  readonly version: string;
  /** The models of each provider. The first whose name matches counts. */
  readonly providers: Readonly<Record<string, readonly SnapshotModel[]>>;
  readonly problem?: string;
}

/** One model of the snapshot. */
export interface SnapshotModel {
  readonly id: string;
  readonly match: Match;
  readonly context_window?: number;
  /** The first that applies is used; if none applies, the last. */
  readonly periods: readonly SnapshotPeriod[];
}

/** Prices that apply from a day on, or during a part of each day. */
export interface SnapshotPeriod {
  /** A date: midnight UTC. */
  readonly from?: string;
  /** Seconds since midnight UTC; the end is exclusive, and may be on the next day. */
  readonly between?: readonly [start: number, end: number];
  readonly prices: Readonly<Record<string, SnapshotRate>>;
}

/** US dollars per unit of the price key; a tier applies to the whole request. */
export type SnapshotRate =
  | number
  | { readonly base: number; readonly tiers: readonly { readonly above: number; readonly price: number }[] };

/** Which names a model has; texts are in lower case. */
type Match =
  | { readonly or: readonly Match[] }
  | { readonly and: readonly Match[] }
  | { readonly equals: string }
  | { readonly starts_with: string }
  | { readonly ends_with: string }
  | { readonly contains: string }
  | { readonly regex: string };

/** Longer names are not looked up: no vendor has them, and clients choose names. */
const MAX_NAME_CHARS = 256;

/** The model with this name at the first of these snapshot providers that has it, by the rules of the package. */
export function findSnapshotModel(snapshot: Snapshot, providers: readonly string[], name: string): SnapshotModel | undefined {
  if (name.length > MAX_NAME_CHARS) return undefined;
  const models = providers.flatMap((provider) => listSnapshotModels(snapshot, provider));
  const lower = name.toLowerCase().trim();
  const dated = lower.replace(COMPACT_DATE, '-$1-$2-$3');
  return findByName(models, lower) ?? (dated === lower ? undefined : findByName(models, dated));
}

const listSnapshotModels = ({ providers }: Snapshot, id: string): readonly SnapshotModel[] =>
  Object.hasOwn(providers, id) ? (providers[id] ?? []) : [];

/** A date at the end of a version: some providers write gpt-5-20250807 for gpt-5-2025-08-07. */
const COMPACT_DATE = /-(20\d{2})(0[1-9]|1[0-2])(0[1-9]|[12]\d|3[01])(?=-|:|$)/g;

const findByName = (models: readonly SnapshotModel[], name: string): SnapshotModel | undefined =>
  models.find(({ match }) => matches(match, name));

function matches(match: Match, name: string): boolean {
  if ('or' in match) return match.or.some((part) => matches(part, name));
  if ('and' in match) return match.and.every((part) => matches(part, name));
  if ('equals' in match) return name === match.equals;
  if ('starts_with' in match) return name.startsWith(match.starts_with);
  if ('ends_with' in match) return name.endsWith(match.ends_with);
  if ('contains' in match) return name.includes(match.contains);
  return new RegExp(match.regex).test(name);
}

/** A name of each model of these snapshot providers. Ids are names, except where a provider adds a path. */
export function listSnapshotNames(snapshot: Snapshot, providers: readonly string[]): readonly string[] {
  return providers
    .flatMap((provider) => listSnapshotModels(snapshot, provider))
    .map((model) =>
      findSnapshotModel(snapshot, providers, model.id) === model ? model.id : (findText(model.match) ?? model.id),
    );
}

function findText(match: Match): string | undefined {
  if ('equals' in match) return match.equals;
  if ('or' in match) return match.or.map(findText).find((text) => text !== undefined);
  return undefined;
}
