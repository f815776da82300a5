import type { ProtocolId } from '../canonical/protocol.ts';
import type { Assembled } from '../engine/assembled.ts';
import type { Breakage } from './breakage.ts';
import type { Diagnostic, Severity } from './rules.ts';

/** A departure from the standard, with all that is known of it. */
export interface Finding extends Diagnostic {
  severity: Severity;
  title: string;
  /** The body at that place. */
  excerpt: string;
  /** What Sluice does about it. */
  remedy: string;
  /** Clients that are known to break on it. */
  breaks: readonly Breakage[];
}

/** What is no departure, and still worth knowing of a server. */
export interface Traits {
  /** Chat: the fields in which reasoning came; `parts` for parts of the content. */
  reasoning_fields: string[];
  /** The text has thoughts between tags. */
  think_tags: boolean;
  /** Gemini: whether calls have ids; null when there was no call. */
  call_ids: boolean | null;
  /** Comment lines in the stream. */
  comments: number;
}

/** What the doctor says of one body. */
export interface Examination {
  protocol: ProtocolId | null;
  bytes: number;
  /** 100 for a body without departures; see `scoreOf`. */
  score: number;
  /** The worst first, then in the order of the body. */
  findings: Finding[];
  traits: Traits;
  /** The message that was read; its diagnostics are the findings, in the order of the body. */
  message: Assembled;
}

const COST = { error: 20, warning: 5, info: 1 } as const;
COST satisfies Record<Severity, number>;

const RANK = { error: 0, warning: 1, info: 2 } as const;
RANK satisfies Record<Severity, number>;

/** 100, less 20 for each rule of severity error, 5 for a warning, 1 for an info; never below 0. How often a rule was met does not count. */
export function scoreOf(findings: Iterable<Pick<Finding, 'rule' | 'severity'>>): number {
  const met = new Map([...findings].map(({ rule, severity }) => [rule, severity]));
  return Math.max(
    0,
    [...met.values()].reduce((score, severity) => score - COST[severity], 100),
  );
}

export const byWeight = (a: Finding, b: Finding): number => RANK[a.severity] - RANK[b.severity] || a.offset - b.offset;
