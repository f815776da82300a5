import { createHash } from 'node:crypto';
import { type AccumulatedMessage, RULES, type RuleId } from '@sluice/core';

/** The shrunk stream as a case. */
export function buildCase(raw: string, read: AccumulatedMessage, until: Until): CaseFile {
  const hash = createHash('sha256').update(raw).digest('hex').slice(0, 8);
  const isRule = 'rule' in until;
  return {
    id: `${isRule ? until.rule.replaceAll('/', '-') : 'shrunk'}-${hash}`,
    protocol: read.protocol ?? 'sse',
    class: isRule ? until.rule : 'a program fails on this stream',
    providers: [],
    title: isRule ? RULES[until.rule].title : `Fails: ${until.command}`,
    why: isRule ? RULES[until.rule].explanation : '',
    sources: [],
    raw,
    expected: describeExpected(raw, read),
    ambiguity: null,
  };
}

/** What a stream is shrunk for: a rule, or a command that fails. */
export type Until = { rule: RuleId } | { command: string };

/** A line of `fixtures/*.jsonl`: a stream, and the message it must be read as. */
interface CaseFile {
  id: string;
  protocol: string;
  class: string;
  providers: string[];
  title: string;
  why: string;
  sources: string[];
  raw: string;
  expected: Record<string, unknown>;
  ambiguity: null;
}

/** The message that Sluice reads. Ids that are not in the stream were generated and may have any value. */
function describeExpected(raw: string, read: AccumulatedMessage): Record<string, unknown> {
  const { text, reasoning, refusal, tool_calls: calls, finish_reason, wire_usage: usage, error, complete } = read;
  return {
    text,
    ...(reasoning !== '' && { reasoning }),
    ...(refusal !== null && { refusal }),
    tool_calls: calls.map(({ id, name, arguments: args }) => ({
      id: id !== '' && raw.includes(JSON.stringify(id)) ? id : '<generated>',
      name,
      arguments: args,
    })),
    finish_reason,
    ...(usage && { usage }),
    ...(error && { error: { code: error.code, message: error.message } }),
    ...(!complete && !error && { extras: { incomplete: true } }),
  };
}

/** Writes a Markdown report for the operator of the server. */
export function writeReport(facts: ReportFacts): string {
  const { until, read, bytesBefore, bytesAfter, tries, isDone, version, stream } = facts;
  const rule = 'rule' in until ? RULES[until.rule] : undefined;
  return [
    `# ${facts.case.title}`,
    '',
    ...(rule ? [`**Rule** \`${facts.case.class}\` (${rule.severity}). ${rule.explanation}`, ''] : []),
    `The stream below is the smallest that reproduces it: ${bytesAfter} bytes of ${bytesBefore}, after ${tries} attempts${isDone ? '' : ' (stopped at the time limit; a smaller one may exist)'}. Irrelevant texts, ids and numbers are replaced.`,
    '',
    '## The stream',
    '',
    ...fenced(visible(facts.case.raw), 'text'),
    '',
    '## What Sluice reads from it',
    '',
    ...fenced(JSON.stringify(facts.case.expected, null, 2), 'json'),
    '',
    ...read.diagnostics.map(
      ({ rule: id, message, offset, count }) =>
        `- \`${id}\` at byte ${offset}${count > 1 ? ` (${count} times)` : ''}: ${message}`,
    ),
    '',
    '## Reproduce',
    '',
    ...fenced(reproduce(until, read, stream), 'sh'),
    '',
    `Protocol: ${read.protocol ?? 'unknown'}. Made by \`sluice shrink\` ${version}.`,
    '',
  ].join('\n');
}

/** What a report contains. */
export interface ReportFacts {
  until: Until;
  case: CaseFile;
  read: AccumulatedMessage;
  bytesBefore: number;
  bytesAfter: number;
  tries: number;
  isDone: boolean;
  version: string;
  /** The name of the file with the stream, beside the report. */
  stream: string;
}

function reproduce(until: Until, { protocol }: AccumulatedMessage, stream: string): string {
  const name = protocol === null ? '' : `--protocol ${protocol} `;
  return [`sluice assemble ${name}${stream}`, ...('command' in until ? [until.command] : [])].join('\n');
}

/** Makes characters visible that Markdown would drop. */
const visible = (raw: string): string => raw.replace(/\r/g, '␍').replaceAll('\0', '␀');

/** A fence is longer than any in the text. */
function fenced(text: string, language: string): string[] {
  const longest = Math.max(2, ...[...text.matchAll(/`+/g)].map(([ticks]) => ticks.length));
  const fence = '`'.repeat(longest + 1);
  return [fence + language, text.replace(/\n$/, ''), fence];
}
