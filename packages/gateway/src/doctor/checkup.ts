/** The checkup of one body, and what several checkups add up to. */

import {
  type AccumulatedError,
  type Examination,
  Examiner,
  type Protocol,
  type ProviderProfile,
  RULES,
  type RuleId,
} from '@sluice/core';
import { computeScore, findBreakage } from '@sluice/core/internal';
import { oneLine, systemCode } from '@sluice/lab/text';
import { readInput } from '../terminal/inputs.ts';
import { type CliIo, describeSystemError } from '../terminal/io.ts';
import { chooseColors } from '../terminal/text.ts';

/** Examines an input. Failures of the input are part of the result. */
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
  /** What a probe requested, and its outcome. */
  probe?: { title: string; status: number | null; outcome: Outcome; note: string };
}

/**
 * `shown`: the response has what was requested; `not-shown`: it does not; `refused`: an error response; `failed`: none.
 */
export type Outcome = 'shown' | 'not-shown' | 'refused' | 'failed';

/** The verdict over several checkups. */
export function judgeCheckups(checkups: readonly Checkup[]): Verdict {
  if (checkups.some(isFailing)) return 'sick';
  return listUnknown(checkups).length > 0 ? 'unknown' : 'clean';
}

/** `unknown`: nothing is wrong, but a probe did not show what it requested. */
export type Verdict = 'clean' | 'sick' | 'unknown';

/** No response, an error, an early end, or a departure that breaks official clients. */
function isFailing({ examination, error, probe }: Checkup): boolean {
  const hasErrors = examination?.findings.some(({ severity }) => severity === 'error') ?? false;
  if (probe) return hasErrors || probe.outcome === 'refused' || probe.outcome === 'failed';
  return hasErrors || error !== null || !examination?.message.complete;
}

/** Names of the probes that did not show what they requested. */
export const listUnknown = (checkups: readonly Checkup[]): string[] =>
  checkups.flatMap(({ name, probe }) => (probe && probe.outcome !== 'shown' ? [name] : []));

/** Label for a score or probe without a result. */
export const NOT_KNOWN = 'not known';

/** The score of one body; undefined when there is none, or when a probe did not show what it requested. */
export const findScore = ({ examination, probe }: Checkup): number | undefined =>
  probe && probe.outcome !== 'shown' ? undefined : examination?.score;

/** The score over all bodies, counting each rule once. Undefined when no body has a score. */
export function computeOverallScore(checkups: readonly Checkup[]): number | undefined {
  if (checkups.every((checkup) => findScore(checkup) === undefined)) return undefined;
  return computeScore(checkups.flatMap(({ examination }) => examination?.findings ?? []));
}

/** Writes the learned profile; false when the file cannot be written. */
export async function writeProfile(path: string, profile: Partial<ProviderProfile>, io: CliIo): Promise<boolean> {
  const { green, red } = chooseColors(io.stderr, io.env);
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

/** A checkup as a JSON record, without the message, which `assemble` prints. */
export function buildRecord(checkup: Checkup): object {
  const { name, examination, error, probe } = checkup;
  const { protocol = null, bytes = null, findings = [], traits = null, message } = examination ?? {};
  return {
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
