/** The doctor's report as JUnit XML, the format that CI systems read. */

import type { Severity } from '@sluice/core';
import { type Checkup, describeFault, listCounted } from './checkup.ts';

/** One test case per body or probe: a fault is an error, counted findings are failures, an inconclusive probe is skipped. */
export function renderJunit(checkups: readonly Checkup[], { suite, failOn }: JunitOptions): string {
  const cases = checkups.map((checkup) => buildCase(checkup, failOn));
  const count = (kind: CaseResult['kind']): number => cases.filter((one) => one.kind === kind).length;
  const totals = attributes({
    name: `sluice doctor ${suite}`,
    tests: String(cases.length),
    failures: String(count('failure')),
    errors: String(count('error')),
    skipped: String(count('skipped')),
  });
  return [
    '<?xml version="1.0" encoding="UTF-8"?>',
    `<testsuites${totals}>`,
    `<testsuite${totals}>`,
    ...cases.map(renderCase),
    '</testsuite>',
    '</testsuites>',
    '',
  ].join('\n');
}

/** What the report is about, and which findings count. */
export interface JunitOptions {
  /** Name of the suite: the URL and model, or the kind of input. */
  suite: string;
  failOn: Severity;
}

interface CaseResult {
  checkup: Checkup;
  kind: 'passed' | 'failure' | 'error' | 'skipped';
  message: string;
  /** Identifies the kind of problem: the worst rule, or the outcome. */
  type: string;
}

function buildCase(checkup: Checkup, failOn: Severity): CaseResult {
  const fault = describeFault(checkup);
  const counted = listCounted(checkup, failOn);
  const { probe } = checkup;
  if (fault !== undefined) return { checkup, kind: 'error', message: fault, type: probe?.outcome ?? 'response' };
  // The most severe finding comes first.
  const [worst] = counted;
  if (worst) return { checkup, kind: 'failure', message: counted.map(({ rule }) => rule).join(', '), type: worst.rule };
  if (probe && probe.outcome !== 'shown') return { checkup, kind: 'skipped', message: probe.note, type: probe.outcome };
  return { checkup, kind: 'passed', message: '', type: '' };
}

function renderCase({ checkup, kind, message, type }: CaseResult): string {
  const { name, probe, examination } = checkup;
  const classname = `sluice.doctor.${examination?.protocol ?? 'unknown'}`;
  const findings = (examination?.findings ?? []).map(formatFinding).join('\n');
  const head = `<testcase${attributes({ name: probe ? `${name}: ${probe.title}` : name, classname })}>`;
  const output = findings === '' ? '' : `<system-out>${escapeXml(findings)}</system-out>`;
  return `${head}${renderResult(kind, message, type, findings)}${output}</testcase>`;
}

function renderResult(kind: CaseResult['kind'], message: string, type: string, findings: string): string {
  switch (kind) {
    case 'passed':
      return '';
    case 'skipped':
      return `<skipped${attributes({ message })}/>`;
    case 'error':
    case 'failure':
      return `<${kind}${attributes({ message, type })}>${escapeXml(findings === '' ? message : findings)}</${kind}>`;
  }
}

type Finding = NonNullable<Checkup['examination']>['findings'][number];

const formatFinding = ({ severity, rule, title, message, count, offset, excerpt, remedy }: Finding): string =>
  [
    `${severity} ${rule} (${count > 1 ? `${count} times, from ` : ''}byte ${offset}): ${title}`,
    ...(message === title ? [] : [`  ${message}`]),
    ...(excerpt === '' ? [] : [`  ${excerpt}`]),
    `  ${remedy}`,
  ].join('\n');

const attributes = (values: Readonly<Record<string, string>>): string =>
  Object.entries(values)
    .map(([name, value]) => ` ${name}="${escapeXml(value)}"`)
    .join('');

/** Escapes text. Characters that XML 1.0 does not allow, such as those of escape sequences, are replaced. */
const escapeXml = (text: string): string =>
  text.replace(NOT_XML, '\ufffd').replace(/[<>&"]/g, (found) => `&#${found.charCodeAt(0)};`);

// biome-ignore lint/suspicious/noControlCharactersInRegex: these are the characters to find
const NOT_XML = /[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f-\u009f\ufffe\uffff]/g;
