/**
 * `error`: official clients break or lose data on it; `warning`: some clients do; `info`: allowed, or harmless, but worth knowing.
 */
export type Severity = 'error' | 'warning' | 'info';

export interface Rule {
  title: string;
  /** What the wire does, and what it does to clients. */
  explanation: string;
  /** What Sluice does about it. */
  remedy: string;
  severity: Severity;
  /** Providers and servers known for it, from public reports and recordings. */
  providers: readonly string[];
}
