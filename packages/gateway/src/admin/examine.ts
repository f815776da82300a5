/** What the doctor finds in a captured exchange, and the exchange as a case for tests. */

import { type Examination, Examiner } from '@sluice/core';
import { CODECS } from '@sluice/core/engine';
import { z } from 'zod';
import type { Capture, CapturedAttempt } from '../capture/capture.ts';
import { Problem } from './problem.ts';

/** One violation. */
const FINDING = z.strictObject({
  rule: z.string(),
  severity: z.enum(['error', 'warning', 'info']),
  title: z.string(),
  count: z.int(),
  offset: z.int().describe('The first byte of the body that shows it.'),
  message: z.string(),
  excerpt: z.string(),
  remedy: z.string().describe('What the gateway does about it.'),
  breaks: z.array(z.string()).describe('Clients that are known to fail on it.'),
});

/** The findings in the response of one attempt. */
const CHECKUP = z.strictObject({
  attempt: z.int(),
  provider: z.string(),
  protocol: z.string(),
  status: z.int().nullable(),
  bytes: z.int(),
  score: z.int().nullable().describe('100 without violations; null when there is nothing to examine.'),
  is_complete: z.boolean(),
  error: z.string().nullable(),
  findings: z.array(FINDING),
});

/** What the doctor finds in an exchange. */
export const EXAMINED = z.strictObject({ is_truncated: z.boolean(), checkups: z.array(CHECKUP) });

/** Examines the response of every attempt. */
export async function examineCapture(capture: Capture): Promise<z.infer<typeof EXAMINED>> {
  const checkups: z.infer<typeof CHECKUP>[] = [];
  for (const [index, attempt] of capture.attempts.entries()) checkups.push(await examineAttempt(attempt, index + 1, capture));
  return { is_truncated: capture.isTruncated, checkups };
}

async function examineAttempt(attempt: CapturedAttempt, number: number, capture: Capture): Promise<z.infer<typeof CHECKUP>> {
  const { provider, protocol, response } = attempt;
  const facts = { attempt: number, provider, protocol, status: response?.status ?? null, bytes: response?.body.length ?? 0 };
  const nothing = { ...facts, score: null, is_complete: false, error: null, findings: [] };
  // Only conversations have rules, and error responses are judged by their status.
  if (!response || capture.endpoint !== 'CHAT' || response.status >= 400) return nothing;
  const { score, findings, message } = await examineBytes(attempt, response.body, capture);
  return {
    ...facts,
    score,
    is_complete: message.complete,
    error: message.error?.message ?? null,
    findings: findings.map(viewFinding),
  };
}

/** Bytes that are examined before other requests are served. */
const SLICE = 65_536;

async function examineBytes({ protocol }: CapturedAttempt, body: Uint8Array, { isStream }: Capture): Promise<Examination> {
  const examiner = new Examiner({ protocol: CODECS[protocol], whole: !isStream });
  for (let at = 0; at < body.length && !examiner.hasFailed; at += SLICE) {
    examiner.push(body.subarray(at, at + SLICE));
    await new Promise((resolve) => setImmediate(resolve));
  }
  return examiner.end();
}

function viewFinding(finding: Examination['findings'][number]): z.infer<typeof FINDING> {
  const { rule, severity, title, message, excerpt, remedy, breaks } = finding;
  return {
    rule,
    severity,
    title,
    count: finding.count,
    offset: finding.offset,
    message,
    excerpt: excerpt.slice(0, MAX_EXCERPT),
    remedy,
    breaks: breaks.map(({ client }) => client),
  };
}

const MAX_EXCERPT = 400;

/** A line of `fixtures/cases.jsonl`: a body, and the message that it must be read as. */
export const CASE = z.strictObject({
  id: z.string(),
  protocol: z.string(),
  class: z.string(),
  providers: z.array(z.string()),
  title: z.string(),
  why: z.string(),
  sources: z.array(z.string()),
  raw: z.string(),
  expected: z.record(z.string(), z.unknown()),
  ambiguity: z.null(),
});

/** The body of the first attempt that violates its protocol, as a case. */
export async function buildCaptureCase(capture: Capture): Promise<z.infer<typeof CASE>> {
  if (capture.isTruncated) throw new Problem(409, 'the capture was cut, so it is no case; see capture.exchange_bytes');
  for (const attempt of capture.endpoint === 'CHAT' ? capture.attempts : []) {
    const { response, provider } = attempt;
    if (!response || response.status >= 400) continue;
    const { findings, message } = await examineBytes(attempt, response.body, capture);
    const rule = findings[0]?.rule;
    if (rule === undefined) continue;
    const raw = Buffer.from(response.body).toString();
    if (!Buffer.from(raw).equals(response.body))
      throw new Problem(409, 'the body is not UTF-8, and a case is text; use the tape');
    const { buildCase } = await import('@sluice/lab/shrink');
    return { ...buildCase(raw, message, { rule }), providers: [provider] };
  }
  throw new Problem(409, 'no response of this exchange violates its protocol, so there is no case');
}
