/** The checkup of one body: how it is made, judged, summed up and printed. */

import {
  type AccumulatedError,
  type Breakage,
  type Examination,
  Examiner,
  type Finding,
  type Protocol,
  type ProviderProfile,
  RULES,
  type RuleId,
  type Severity,
} from '@sluice/core';
import { computeScore, findBreakage } from '@sluice/core/internal';
import { oneLine } from '@sluice/lab/text';
import { describeWriteError, findAdvice, UnreadableError } from '../terminal/errors.ts';
import { isNoResponse, type Source } from '../terminal/inputs.ts';
import type { CliIo } from '../terminal/io.ts';
import { type Colors, chooseColors, formatBytes, wrapText } from '../terminal/text.ts';

/** Examines an input. Failures of the input are part of the result. */
export async function checkSource(source: Source, { protocols, whole }: Expected): Promise<Checkup> {
  const { file: name } = source;
  const examiner = new Examiner({ protocol: protocols, whole });
  let isRead = false;
  try {
    for await (const chunk of source.read()) {
      isRead = true;
      examiner.push(chunk);
      if (examiner.hasFailed) break;
    }
  } catch (error) {
    if (!(error instanceof UnreadableError)) throw error;
    const { failure } = error;
    return { name, error: failure, isUnreadable: true, ...(isRead && { examination: examiner.fail(failure.message) }) };
  }
  const examination = examiner.end();
  return { name, examination, error: examination.message.error };
}

/** What an input is expected to be. */
export interface Expected {
  protocols: readonly Protocol[];
  /** The request did not ask for a stream. */
  whole: boolean;
}

/** The examination of one body: a file, or the response to a probe. */
export interface Checkup {
  /** The argument as given, or the name of the probe. */
  name: string;
  /** Undefined when nothing could be read. */
  examination?: Examination;
  /** The error in the body, or of reading it. */
  error: AccumulatedError | null;
  /** The input could not be read, or not to its end. */
  isUnreadable?: boolean;
  /** What a probe requested, and its outcome. */
  probe?: { title: string; status: number | null; outcome: Outcome; note: string };
}

/**
 * `shown`: the response has what was requested; `not-shown`: it does not; `refused`: an error response; `failed`: none.
 */
export type Outcome = 'shown' | 'not-shown' | 'refused' | 'failed';

/** The verdict over several checkups; findings of severity `failOn` and above count as wrong. */
export function judgeCheckups(checkups: readonly Checkup[], failOn: Severity = 'error'): Verdict {
  if (checkups.some((checkup) => isFailing(checkup, failOn))) return 'sick';
  return listUnknown(checkups).length > 0 ? 'unknown' : 'clean';
}

/** `unknown`: nothing is wrong, but a probe did not show what it requested. */
export type Verdict = 'clean' | 'sick' | 'unknown';

/** No response, an error, an early end, or a finding that counts. */
function isFailing(checkup: Checkup, failOn: Severity): boolean {
  return describeFault(checkup) !== undefined || listCounted(checkup, failOn).length > 0;
}

/** Why a body or probe failed regardless of its findings; undefined when it did not. */
export function describeFault({ examination, error, probe }: Checkup): string | undefined {
  const reason = error ? `${error.code}: ${error.message}` : undefined;
  if (probe) return probe.outcome === 'refused' || probe.outcome === 'failed' ? (reason ?? probe.outcome) : undefined;
  return reason ?? (examination?.message.complete ? undefined : 'the response ended early');
}

/** The findings of severity `failOn` and above. */
export const listCounted = ({ examination }: Checkup, failOn: Severity): Finding[] =>
  (examination?.findings ?? []).filter(({ severity }) => SEVERITIES.indexOf(severity) <= SEVERITIES.indexOf(failOn));

/** The severities of findings, the most severe first. */
export const SEVERITIES = ['error', 'warning', 'info'] as const satisfies readonly Severity[];

/** Names of the probes that did not show what they requested. */
export const listUnknown = (checkups: readonly Checkup[]): string[] =>
  checkups.flatMap(({ name, probe }) => (probe && probe.outcome !== 'shown' ? [name] : []));

/** Label for a score or probe without a result. */
export const NOT_KNOWN = 'not known';

/** The score of one body; undefined when there is none, when it is no response, or when a probe did not show what it requested. */
export const findScore = ({ examination, error, probe }: Checkup): number | undefined =>
  isNoResponse(error) || (probe && probe.outcome !== 'shown') ? undefined : examination?.score;

/** The score over all bodies, counting each rule once. Undefined when no body has a score. */
export function computeOverallScore(checkups: readonly Checkup[]): number | undefined {
  if (checkups.every((checkup) => findScore(checkup) === undefined)) return undefined;
  return computeScore(listRated(checkups).flatMap(({ examination }) => examination?.findings ?? []));
}

/** The checkups of responses. The only finding of another body is that it is none. */
const listRated = (checkups: readonly Checkup[]): Checkup[] => checkups.filter(({ error }) => !isNoResponse(error));

/** Writes the learned profile; false when the file cannot be written. */
export async function writeProfile(path: string, profile: Partial<ProviderProfile>, io: CliIo): Promise<boolean> {
  if (!(await writeReport(path, `${JSON.stringify(profile, null, 2)}\n`, io))) return false;
  const { green } = chooseColors(io.stderr, io.env);
  const fields = Object.keys(profile);
  const learned = fields.length === 0 ? 'nothing was learned that differs from the defaults' : `learned ${fields.join(', ')}`;
  await io.stderr.write(`${green('sluice:')} ${oneLine(path)}: ${learned}\n`);
  return true;
}

/** Writes a file; false when it cannot be written, which is reported on stderr. */
export async function writeReport(path: string, text: string, io: CliIo): Promise<boolean> {
  try {
    const file = await io.createFile(path);
    await file.write(new TextEncoder().encode(text));
    await file.commit();
    return true;
  } catch (error) {
    const message = describeWriteError(error);
    if (message === undefined) throw error;
    const { red } = chooseColors(io.stderr, io.env);
    await io.stderr.write(`${red('sluice:')} ${oneLine(path)}: ${oneLine(message)}\n`);
    return false;
  }
}

/** Version of the JSON records. It is raised when a field is removed or its meaning changes, not when one is added. */
export const RECORD_VERSION = 1;

/** A checkup as a JSON record (`doctor.schema.json`), without the message, which `assemble` prints. */
export function buildRecord(checkup: Checkup): object {
  const { name, examination, error, probe } = checkup;
  const { protocol = null, bytes = null, findings = [], traits = null, message } = examination ?? {};
  return {
    version: RECORD_VERSION,
    ...(probe ? { probe: name, ...probe } : { file: name }),
    protocol,
    model: message?.model ?? null,
    complete: message?.complete ?? false,
    bytes,
    score: findScore(checkup) ?? null,
    findings,
    traits,
    error,
  };
}

/** A rule as a JSON record. */
export const buildRuleRecord = (rule: RuleId): object => ({ rule, ...RULES[rule], breaks: findBreakage(rule) });

/** The report of one body. */
export function showCheckup(checkup: Checkup, style: ShowStyle): string {
  const { examination, error } = checkup;
  const { red, dim } = style.colors;
  const lines = [formatHeading(checkup, style)];
  if (checkup.probe) lines.push(formatProbe(checkup.probe, style));
  // What is no response has no score, and its one finding says the same as its error.
  const rated = isNoResponse(error) ? undefined : examination;
  const rule = rated ? undefined : examination?.findings[0]?.rule;
  if (rated) lines.push(formatScoreLine({ score: findScore(checkup) }, rated.findings, style));
  for (const finding of rated?.findings ?? []) lines.push('', ...showFinding(finding, style));
  if (error) {
    const advice = findAdvice(error, checkup.probe ? 'server' : 'file');
    lines.push('', ...formatLabelled('error', `${rule ?? oneLine(String(error.code))}: ${oneLine(error.message)}`, red, style));
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
  const response = status === null ? 'no response' : `HTTP ${status}`;
  return `${colors[OUTCOME_COLORS[outcome]](outcome.replace('-', ' ').padEnd(INDENT))}${response}${note === '' ? '' : ` · ${oneLine(note)}`}`;
}

/** The totals over several reports, counting each rule once. */
export function showOverall(checkups: readonly Checkup[], style: ShowStyle): string {
  const { dim } = style.colors;
  const byRule = new Map(
    listRated(checkups).flatMap(({ examination }) => (examination?.findings ?? []).map((finding) => [finding.rule, finding])),
  );
  const findings = [...byRule.values()];
  const probes = checkups.flatMap(({ probe }) => probe ?? []);
  const unknown = listUnknown(checkups);
  const counts = `${probes.length - unknown.length} of ${probes.length} probes were conclusive`;
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
  const counts = SEVERITIES.flatMap((severity) => {
    const count = findings.filter((finding) => finding.severity === severity).length;
    const word = severity === 'info' || count === 1 ? severity : `${severity}s`;
    return count === 0 ? [] : [`${count} ${word}`];
  });
  return counts.length === 0 ? 'no violations' : counts.join(', ');
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
