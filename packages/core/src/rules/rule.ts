/**
 * What a violation is called, and what Sluice does about it. Separate from the facts, because a bundler cannot drop a
 * part of a table: every program that reads streams has the texts of its protocols, and only the doctor the rest.
 */
export interface RuleText {
  title: string;
  /** What Sluice does about it. */
  remedy: string;
}

/** What the doctor and the pages of the rules add. */
export interface RuleFacts {
  /** What is on the wire, and how it affects clients. */
  explanation: string;
  severity: Severity;
  /** Providers and servers known for it, from public reports and recordings. */
  providers: readonly string[];
}

/** A violation of a standard: what it is, what it does to clients, and what Sluice does about it. */
export interface Rule extends RuleText, RuleFacts {}

/**
 * `error`: official clients break or lose data; `warning`: some clients do; `info`: allowed or harmless, but worth
 * knowing.
 */
export type Severity = 'error' | 'warning' | 'info';
