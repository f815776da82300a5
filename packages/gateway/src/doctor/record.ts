import { breakageOf, RULES, type RuleId } from '@sluice/core';
import type { Checkup } from './checkup.ts';

/** A checkup as a line of JSON: the message itself is what `assemble` is for. */
export function recordOf({ name, examination, error, probe }: Checkup): object {
  const { protocol = null, bytes = null, score = null, findings = [], traits = null, message } = examination ?? {};
  return {
    ...(probe ? { probe: name, ...probe } : { file: name }),
    protocol,
    model: message?.model ?? null,
    complete: message?.complete ?? false,
    bytes,
    score,
    findings,
    traits,
    error,
  };
}

export const ruleRecord = (rule: RuleId): object => ({ rule, ...RULES[rule], breaks: breakageOf(rule) });
