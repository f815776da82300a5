import { breakageOf, RULES, type RuleId } from '@sluice/core';
import { type Checkup, scoreIn } from './checkup.ts';

/** A checkup as a line of JSON: the message itself is what `assemble` is for. */
export function recordOf(checkup: Checkup): object {
  const { name, examination, error, probe } = checkup;
  const { protocol = null, bytes = null, findings = [], traits = null, message } = examination ?? {};
  return {
    ...(probe ? { probe: name, ...probe } : { file: name }),
    protocol,
    model: message?.model ?? null,
    complete: message?.complete ?? false,
    bytes,
    score: scoreIn(checkup) ?? null,
    findings,
    traits,
    error,
  };
}

export const ruleRecord = (rule: RuleId): object => ({ rule, ...RULES[rule], breaks: breakageOf(rule) });
