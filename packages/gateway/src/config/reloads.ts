/** What happened to the configuration since the gateway started: a bounded list in memory. */

import { redactPatterns } from './secret-patterns.ts';

/** Why the configuration was read: the file changed, the process got SIGHUP, or the database has a new version. */
export const RELOAD_CAUSES = ['start', 'file', 'signal', 'store'] as const;

/** What caused a reload. */
export type ReloadCause = (typeof RELOAD_CAUSES)[number];

/** One attempt to use a configuration. */
export interface Reload {
  /** Milliseconds since 1970. */
  readonly at: number;
  readonly by: ReloadCause;
  /** The version of a configuration in the database; undefined for a file. */
  readonly version?: number;
  /** Why it was rejected; undefined when it is in force. */
  readonly reason?: string;
  /** Changed sections that take effect after a restart. */
  readonly restart: readonly string[];
  /** Number of warnings. */
  readonly warnings: number;
}

const MAX_RELOADS = 50;

/** The reason names places of the file, one line or two for each problem. */
const MAX_REASON = 4000;

/** The last reloads. */
export class ReloadHistory {
  readonly #now: () => number;
  readonly #entries: Reload[] = [];

  constructor(now: () => number = Date.now) {
    this.#now = now;
  }

  /** Adds what happened; the oldest entry beyond the limit is dropped. */
  add(by: ReloadCause, outcome: Partial<Pick<Reload, 'reason' | 'restart' | 'warnings' | 'version'>>): void {
    const { reason, restart = [], warnings = 0, version } = outcome;
    const entry = { at: this.#now(), by, restart, warnings, ...(version !== undefined && { version }) };
    this.#entries.unshift(reason === undefined ? entry : { ...entry, reason: redactPatterns(reason).slice(0, MAX_REASON) });
    this.#entries.length = Math.min(this.#entries.length, MAX_RELOADS);
  }

  /** Newest first. */
  list(): readonly Reload[] {
    return [...this.#entries];
  }
}
