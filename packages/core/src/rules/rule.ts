/** A violation of a standard: what it is, what it does to clients, and what Sluice does about it. */
export interface Rule {
  title: string;
  /** What is on the wire, and how it affects clients. */
  explanation: string;
  /** What Sluice does about it. */
  remedy: string;
  severity: Severity;
  /** Providers and servers known for it, from public reports and recordings. */
  providers: readonly string[];
}

/**
 * `error`: official clients break or lose data; `warning`: some clients do; `info`: allowed or harmless, but worth
 * knowing.
 */
export type Severity = 'error' | 'warning' | 'info';
