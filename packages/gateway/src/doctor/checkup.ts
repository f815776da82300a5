import {
  type AssembledError,
  breakageOf,
  type Examination,
  Examiner,
  type Protocol,
  type ProviderProfile,
  RULES,
  type RuleId,
  scoreOf,
} from '@sluice/core';
import { oneLine, systemCode } from '@sluice/lab/text';
import { readInput } from '../terminal/inputs.ts';
import { type CliIo, describeSystemError } from '../terminal/io.ts';
import { colorsFor } from '../terminal/text.ts';

/** One body that was looked at: a file, or the answer to a probe. */
export interface Checkup {
  /** The argument as it was given, or the name of the probe. */
  name: string;
  /** Undefined for what could not be read at all. */
  examination?: Examination;
  /** The error of the body, or of reading it. */
  error: AssembledError | null;
  /** What a probe asked, and what came of it. */
  probe?: { title: string; status: number | null; outcome: Outcome; note: string };
}

/** `shown`: the answer has what was asked for; `not-shown`: a good answer without it; `refused`: an error came, and `failed`: no answer. */
export type Outcome = 'shown' | 'not-shown' | 'refused' | 'failed';

export interface Expected {
  protocols: readonly Protocol[];
  /** The request did not ask for a stream. */
  whole: boolean;
}

/** Examines an input. Whatever is wrong with it is part of the result. */
export async function checkInput(file: string, { protocols, whole }: Expected, io: CliIo): Promise<Checkup> {
  const examiner = new Examiner({ protocol: protocols, whole });
  let isRead = false;
  try {
    for await (const chunk of readInput(file, io)) {
      isRead = true;
      examiner.push(chunk);
      if (examiner.hasFailed) break;
    }
  } catch (error) {
    const code = systemCode(error);
    if (code === undefined) throw error;
    const described = describeSystemError(code, error, file, 'doctor');
    return { name: file, error: described, ...(isRead && { examination: examiner.fail(described.message) }) };
  }
  const examination = examiner.end();
  return { name: file, examination, error: examination.message.error };
}

/** Shown beside a probe that its answer tells nothing about. */
export const NOT_KNOWN = 'not known';

/** What several checkups come to. `unknown`: nothing is wrong, but a probe did not show what it asked for. */
export type Verdict = 'clean' | 'sick' | 'unknown';

export function judge(checkups: readonly Checkup[]): Verdict {
  if (checkups.some(isSick)) return 'sick';
  return unknownIn(checkups).length > 0 ? 'unknown' : 'clean';
}

/** The probes that did not show what they asked for. */
export const unknownIn = (checkups: readonly Checkup[]): string[] =>
  checkups.flatMap(({ name, probe }) => (probe && probe.outcome !== 'shown' ? [name] : []));

/** The score of one body; undefined when there is none, or when it answers a probe without showing what was asked for. */
export const scoreIn = ({ examination, probe }: Checkup): number | undefined =>
  probe && probe.outcome !== 'shown' ? undefined : examination?.score;

/** The score over all: every departure counts once, however many bodies show it. Undefined when no body has a score. */
export function overallScore(checkups: readonly Checkup[]): number | undefined {
  if (checkups.every((checkup) => scoreIn(checkup) === undefined)) return undefined;
  return scoreOf(checkups.flatMap(({ examination }) => examination?.findings ?? []));
}

/** Whether a client is in for trouble: no answer, an error, an early end, or a departure that official clients break on. */
function isSick({ examination, error, probe }: Checkup): boolean {
  const hasErrors = examination?.findings.some(({ severity }) => severity === 'error') ?? false;
  if (probe) return hasErrors || probe.outcome === 'refused' || probe.outcome === 'failed';
  return hasErrors || error !== null || !examination?.message.complete;
}

/** Writes what was learned; false when the file could not be written. */
export async function writeProfile(path: string, profile: Partial<ProviderProfile>, io: CliIo): Promise<boolean> {
  const { green, red } = colorsFor(io.stderr, io.env);
  try {
    const file = await io.createFile(path);
    await file.write(new TextEncoder().encode(`${JSON.stringify(profile, null, 2)}\n`));
    await file.commit();
  } catch (error) {
    const code = systemCode(error);
    if (code === undefined) throw error;
    await io.stderr.write(`${red('sluice:')} ${oneLine(path)}: ${oneLine(describeSystemError(code, error, path).message)}\n`);
    return false;
  }
  const fields = Object.keys(profile);
  const learned = fields.length === 0 ? 'nothing that differs was learned' : `learned ${fields.join(', ')}`;
  await io.stderr.write(`${green('sluice:')} ${oneLine(path)}: ${learned}\n`);
  return true;
}

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
