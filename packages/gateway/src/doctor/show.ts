/** Prints checkups and rules for people. */

import { type Breakage, type Finding, RULES, type RuleId, type Severity } from '@sluice/core';
import { oneLine } from '@sluice/lab/text';
import { findAdvice } from '../terminal/io.ts';
import { type Colors, formatBytes, wrapText } from '../terminal/text.ts';
import { type Checkup, computeOverallScore, findScore, listUnknown, NOT_KNOWN, type Outcome } from './checkup.ts';

/** The report of one body. */
export function showCheckup(checkup: Checkup, style: ShowStyle): string {
  const { examination, error } = checkup;
  const { red, dim } = style.colors;
  const lines = [formatHeading(checkup, style)];
  if (checkup.probe) lines.push(formatProbe(checkup.probe, style));
  if (examination) lines.push(formatScoreLine({ score: findScore(checkup) }, examination.findings, style));
  for (const finding of examination?.findings ?? []) lines.push('', ...showFinding(finding, style));
  if (error) {
    const advice = findAdvice(error);
    lines.push('', ...formatLabelled('error', `${oneLine(String(error.code))}: ${oneLine(error.message)}`, red, style));
    if (advice !== undefined) lines.push(...formatLabelled('', advice, dim, style));
  }
  return `${lines.join('\n')}\n`;
}

/** How a report is printed. */
export interface ShowStyle {
  colors: Colors;
  /** Width of the terminal; undefined: lines are not wrapped. */
  columns: number | undefined;
}

const SEVERITY_COLORS = { error: 'red', warning: 'yellow', info: 'blue' } as const;

SEVERITY_COLORS satisfies Record<Severity, keyof Colors>;

const INDENT = 10;

function formatHeading({ name, examination, probe }: Checkup, { colors }: ShowStyle): string {
  const shown = name === '-' ? 'standard input' : oneLine(name);
  const facts = examination
    ? [examination.protocol ?? '', oneLine(examination.message.model), formatBytes(examination.bytes)].filter(
        (fact) => fact !== '',
      )
    : [];
  const rest = probe ? [probe.title, ...facts] : facts;
  return colors.bold(shown) + (rest.length > 0 ? colors.dim(` · ${rest.join(' · ')}`) : '');
}

const OUTCOME_COLORS = { shown: 'green', 'not-shown': 'yellow', refused: 'red', failed: 'red' } as const;

OUTCOME_COLORS satisfies Record<Outcome, keyof Colors>;

function formatProbe({ status, outcome, note }: NonNullable<Checkup['probe']>, { colors }: ShowStyle): string {
  const response = status === null ? 'no answer' : `HTTP ${status}`;
  return `${colors[OUTCOME_COLORS[outcome]](outcome.replace('-', ' ').padEnd(INDENT))}${response}${note === '' ? '' : ` · ${oneLine(note)}`}`;
}

/** The totals over several reports, counting each rule once. */
export function showOverall(checkups: readonly Checkup[], style: ShowStyle): string {
  const { dim } = style.colors;
  const byRule = new Map(
    checkups.flatMap(({ examination }) => (examination?.findings ?? []).map((finding) => [finding.rule, finding])),
  );
  const findings = [...byRule.values()];
  const probes = checkups.flatMap(({ probe }) => probe ?? []);
  const unknown = listUnknown(checkups);
  const counts = `${probes.length - unknown.length} of ${probes.length} probes showed what they asked for`;
  const lines = [
    formatScoreLine({ score: computeOverallScore(checkups), isUpperBound: unknown.length > 0 }, findings, style, 'overall'),
    ...(probes.length > 0 ? [`${' '.repeat(INDENT)}${counts}`] : []),
    ...(unknown.length > 0 ? [`${' '.repeat(INDENT)}${style.colors.yellow(`${NOT_KNOWN}: ${unknown.join(', ')}`)}`] : []),
    ...(findings.length > 0 ? [`${' '.repeat(INDENT)}${dim('"sluice doctor rules RULE" explains a rule')}`] : []),
  ];
  return `\n${lines.join('\n')}\n`;
}

interface Score {
  /** Undefined: not known. */
  score: number | undefined;
  /** A probe without a result could lower the score. */
  isUpperBound?: boolean;
}

/** Formats "score 74 of 100 · 1 error, 2 warnings". */
function formatScoreLine(
  { score, isUpperBound = false }: Score,
  findings: readonly Pick<Finding, 'severity'>[],
  { colors }: ShowStyle,
  label = 'score',
): string {
  const counts = score === undefined && findings.length === 0 ? '' : colors.dim(` · ${describeCounts(findings)}`);
  return `${colors.cyan(label.padEnd(INDENT))}${formatScore(score, isUpperBound, colors)}${counts}`;
}

function formatScore(score: number | undefined, isUpperBound: boolean, colors: Colors): string {
  if (score === undefined) return colors.yellow(NOT_KNOWN);
  const paint = score === 100 && !isUpperBound ? colors.green : score >= 80 ? colors.yellow : colors.red;
  return paint(`${isUpperBound ? 'at most ' : ''}${score} of 100`);
}

/** Formats the number of findings by severity. */
export function describeCounts(findings: readonly Pick<Finding, 'severity'>[]): string {
  const counts = (['error', 'warning', 'info'] as const).flatMap((severity) => {
    const count = findings.filter((finding) => finding.severity === severity).length;
    const word = severity === 'info' || count === 1 ? severity : `${severity}s`;
    return count === 0 ? [] : [`${count} ${word}`];
  });
  return counts.length === 0 ? 'no departure from the standard' : counts.join(', ');
}

function showFinding(finding: Finding, style: ShowStyle): string[] {
  const { rule, severity, title, message, count, offset, excerpt, remedy, breaks } = finding;
  const { colors } = style;
  const paint = colors[SEVERITY_COLORS[severity]];
  const place = `${count > 1 ? `×${count}, from ` : ''}byte ${offset}`;
  return [
    `${paint(severity.padEnd(INDENT))}${paint(rule)}  ${colors.dim(`(${place})`)}`,
    ...formatLabelled('', message === title ? title : `${title}: ${oneLine(message)}`, String, style),
    ...formatExcerpt(excerpt, style),
    ...formatLabelled('sluice', remedy, String, style),
    ...(breaks.length > 0 ? showBreaks(breaks, style) : []),
  ];
}

/** The excerpt on one line, cut at the width of the terminal. */
function formatExcerpt(excerpt: string, { colors, columns }: ShowStyle): string[] {
  if (excerpt === '') return [];
  const line = oneLine(excerpt);
  const room = columns === undefined ? line.length : Math.max(columns - INDENT - 2, 20);
  const cut = line.length > room ? `${line.slice(0, room - 1)}…` : line;
  return [`${' '.repeat(INDENT)}${colors.dim(`│ ${cut}`)}`];
}

function showBreaks(breaks: readonly Breakage[], style: ShowStyle): string[] {
  return groupBreaks(breaks).flatMap(({ clients, effect }, at) =>
    formatLabelled(at === 0 ? 'breaks' : '', `${clients.join(', ')}: ${oneLine(effect)}`, style.colors.magenta, style),
  );
}

/** Groups clients that break in the same way. */
export function groupBreaks(breaks: readonly Breakage[]): { clients: string[]; effect: string }[] {
  const byEffect = new Map<string, string[]>();
  for (const { client, effect } of breaks) byEffect.set(effect, [...(byEffect.get(effect) ?? []), client]);
  return [...byEffect].map(([effect, clients]) => ({ clients, effect }));
}

function formatLabelled(label: string, text: string, paint: (line: string) => string, { colors, columns }: ShowStyle): string[] {
  const rows = wrapText(text, columns === undefined ? undefined : columns - INDENT);
  return rows.map((row, at) => (at === 0 ? colors.cyan(label.padEnd(INDENT)) : ' '.repeat(INDENT)) + paint(row));
}

/** Text of `sluice doctor rules`. */
export function showRules(style: ShowStyle): string {
  const { colors } = style;
  const ids = Object.keys(RULES) as RuleId[]; // the type of RULES lists all keys
  const width = Math.max(...ids.map((id) => id.length));
  return ids
    .map((id) => {
      const { severity, title } = RULES[id];
      return `${colors[SEVERITY_COLORS[severity]](severity.padEnd(INDENT))}${id.padEnd(width)}  ${title}\n`;
    })
    .join('');
}

/** Text of `sluice doctor rules RULE`. */
export function explainRule(rule: RuleId, breaks: readonly Breakage[], style: ShowStyle): string {
  const { title, explanation, remedy, severity, providers } = RULES[rule];
  const { colors } = style;
  const lines = [
    `${colors.bold(rule)} · ${colors[SEVERITY_COLORS[severity]](severity)}`,
    title,
    '',
    ...formatLabelled('what', explanation, String, style),
    ...formatLabelled('sluice', remedy, String, style),
    ...(breaks.length > 0 ? showBreaks(breaks, style) : []),
    ...(providers.length > 0 ? formatLabelled('seen', providers.join(', '), colors.dim, style) : []),
  ];
  return `${lines.join('\n')}\n`;
}
