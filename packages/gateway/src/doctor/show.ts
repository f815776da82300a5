import { type Breakage, type Finding, RULES, type RuleId, type Severity } from '@sluice/core';
import { oneLine } from '@sluice/lab/text';
import { adviceFor } from '../terminal/io.ts';
import { bytes, type Colors, wrap } from '../terminal/text.ts';
import { type Checkup, NOT_KNOWN, type Outcome, overallScore, scoreIn, unknownIn } from './checkup.ts';

export interface ShowStyle {
  colors: Colors;
  /** Width of the terminal; undefined: no line is broken. */
  columns: number | undefined;
}

const PAINT = { error: 'red', warning: 'yellow', info: 'blue' } as const;

PAINT satisfies Record<Severity, keyof Colors>;

const INDENT = 10;

/** The report of one body. */
export function showCheckup(checkup: Checkup, style: ShowStyle): string {
  const { examination, error } = checkup;
  const { red, dim } = style.colors;
  const lines = [heading(checkup, style)];
  if (checkup.probe) lines.push(probeLine(checkup.probe, style));
  if (examination) lines.push(scoreLine({ score: scoreIn(checkup) }, examination.findings, style));
  for (const finding of examination?.findings ?? []) lines.push('', ...showFinding(finding, style));
  if (error) {
    const advice = adviceFor(error);
    lines.push('', ...labelled('error', `${oneLine(String(error.code))}: ${oneLine(error.message)}`, red, style));
    if (advice !== undefined) lines.push(...labelled('', advice, dim, style));
  }
  return `${lines.join('\n')}\n`;
}

function heading({ name, examination, probe }: Checkup, { colors }: ShowStyle): string {
  const shown = name === '-' ? 'standard input' : oneLine(name);
  const facts = examination
    ? [examination.protocol ?? '', oneLine(examination.message.model), bytes(examination.bytes)].filter((fact) => fact !== '')
    : [];
  const rest = probe ? [probe.title, ...facts] : facts;
  return colors.bold(shown) + (rest.length > 0 ? colors.dim(` · ${rest.join(' · ')}`) : '');
}

const OUTCOMES = { shown: 'green', 'not-shown': 'yellow', refused: 'red', failed: 'red' } as const;

OUTCOMES satisfies Record<Outcome, keyof Colors>;

function probeLine({ status, outcome, note }: NonNullable<Checkup['probe']>, { colors }: ShowStyle): string {
  const answer = status === null ? 'no answer' : `HTTP ${status}`;
  return `${colors[OUTCOMES[outcome]](outcome.replace('-', ' ').padEnd(INDENT))}${answer}${note === '' ? '' : ` · ${oneLine(note)}`}`;
}

/** What several reports come to: every departure counts once, however many of them show it. */
export function showOverall(checkups: readonly Checkup[], style: ShowStyle): string {
  const { dim } = style.colors;
  const met = new Map(
    checkups.flatMap(({ examination }) => (examination?.findings ?? []).map((finding) => [finding.rule, finding])),
  );
  const findings = [...met.values()];
  const probes = checkups.flatMap(({ probe }) => probe ?? []);
  const unknown = unknownIn(checkups);
  const counts = `${probes.length - unknown.length} of ${probes.length} probes showed what they asked for`;
  const lines = [
    scoreLine({ score: overallScore(checkups), isUpperBound: unknown.length > 0 }, findings, style, 'overall'),
    ...(probes.length > 0 ? [`${' '.repeat(INDENT)}${counts}`] : []),
    ...(unknown.length > 0 ? [`${' '.repeat(INDENT)}${style.colors.yellow(`${NOT_KNOWN}: ${unknown.join(', ')}`)}`] : []),
    ...(findings.length > 0 ? [`${' '.repeat(INDENT)}${dim('"sluice doctor rules RULE" explains a rule')}`] : []),
  ];
  return `\n${lines.join('\n')}\n`;
}

interface Score {
  /** Undefined: not known. */
  score: number | undefined;
  /** Something was not shown that could lower it. */
  isUpperBound?: boolean;
}

/** "score 74 of 100  1 error, 2 warnings" */
function scoreLine(
  { score, isUpperBound = false }: Score,
  findings: readonly Pick<Finding, 'severity'>[],
  { colors }: ShowStyle,
  label = 'score',
): string {
  const counts = score === undefined && findings.length === 0 ? '' : colors.dim(` · ${countsOf(findings)}`);
  return `${colors.cyan(label.padEnd(INDENT))}${scoreText(score, isUpperBound, colors)}${counts}`;
}

function scoreText(score: number | undefined, isUpperBound: boolean, colors: Colors): string {
  if (score === undefined) return colors.yellow(NOT_KNOWN);
  const paint = score === 100 && !isUpperBound ? colors.green : score >= 80 ? colors.yellow : colors.red;
  return paint(`${isUpperBound ? 'at most ' : ''}${score} of 100`);
}

export function countsOf(findings: readonly Pick<Finding, 'severity'>[]): string {
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
  const paint = colors[PAINT[severity]];
  const place = `${count > 1 ? `×${count}, from ` : ''}byte ${offset}`;
  return [
    `${paint(severity.padEnd(INDENT))}${paint(rule)}  ${colors.dim(`(${place})`)}`,
    ...labelled('', message === title ? title : `${title}: ${oneLine(message)}`, String, style),
    ...quoted(excerpt, style),
    ...labelled('sluice', remedy, String, style),
    ...(breaks.length > 0 ? showBreaks(breaks, style) : []),
  ];
}

/** The place in the body, on one line that is never broken: it is cut where the terminal ends. */
function quoted(excerpt: string, { colors, columns }: ShowStyle): string[] {
  if (excerpt === '') return [];
  const line = oneLine(excerpt);
  const room = columns === undefined ? line.length : Math.max(columns - INDENT - 2, 20);
  const cut = line.length > room ? `${line.slice(0, room - 1)}…` : line;
  return [`${' '.repeat(INDENT)}${colors.dim(`│ ${cut}`)}`];
}

function showBreaks(breaks: readonly Breakage[], style: ShowStyle): string[] {
  return groupBreaks(breaks).flatMap(({ clients, effect }, at) =>
    labelled(at === 0 ? 'breaks' : '', `${clients.join(', ')}: ${oneLine(effect)}`, style.colors.magenta, style),
  );
}

/** Clients that do the same stand together. */
export function groupBreaks(breaks: readonly Breakage[]): { clients: string[]; effect: string }[] {
  const byEffect = new Map<string, string[]>();
  for (const { client, effect } of breaks) byEffect.set(effect, [...(byEffect.get(effect) ?? []), client]);
  return [...byEffect].map(([effect, clients]) => ({ clients, effect }));
}

function labelled(label: string, text: string, paint: (line: string) => string, { colors, columns }: ShowStyle): string[] {
  const rows = wrap(text, columns === undefined ? undefined : columns - INDENT);
  return rows.map((row, at) => (at === 0 ? colors.cyan(label.padEnd(INDENT)) : ' '.repeat(INDENT)) + paint(row));
}

/** `sluice doctor rules` */
export function showRules(style: ShowStyle): string {
  const { colors } = style;
  const ids = Object.keys(RULES) as RuleId[]; // the keys of a record closed by its type
  const width = Math.max(...ids.map((id) => id.length));
  return ids
    .map((id) => {
      const { severity, title } = RULES[id];
      return `${colors[PAINT[severity]](severity.padEnd(INDENT))}${id.padEnd(width)}  ${title}\n`;
    })
    .join('');
}

/** `sluice doctor rules RULE` */
export function explainRule(rule: RuleId, breaks: readonly Breakage[], style: ShowStyle): string {
  const { title, explanation, remedy, severity, providers } = RULES[rule];
  const { colors } = style;
  const lines = [
    `${colors.bold(rule)} · ${colors[PAINT[severity]](severity)}`,
    title,
    '',
    ...labelled('what', explanation, String, style),
    ...labelled('sluice', remedy, String, style),
    ...(breaks.length > 0 ? showBreaks(breaks, style) : []),
    ...(providers.length > 0 ? labelled('seen', providers.join(', '), colors.dim, style) : []),
  ];
  return `${lines.join('\n')}\n`;
}
