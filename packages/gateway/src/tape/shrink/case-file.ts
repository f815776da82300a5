import { createHash } from 'node:crypto';
import { type Assembled, RULES, type RuleId } from '@sluice/core';

/** What a stream was shrunk for. */
export type Until = { rule: RuleId } | { command: string };

/** A line of `fixtures/*.jsonl`: a stream, and what a reader has to make of it. */
export interface CaseFile {
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

export function caseOf(raw: string, read: Assembled, until: Until): CaseFile {
  const hash = createHash('sha256').update(raw).digest('hex').slice(0, 8);
  const isRule = 'rule' in until;
  return {
    id: `${isRule ? until.rule.replaceAll('/', '-') : 'shrunk'}-${hash}`,
    protocol: read.protocol ?? 'sse',
    class: isRule ? until.rule : 'a program fails on it',
    providers: [],
    title: isRule ? RULES[until.rule].title : `Shows it: ${until.command}`,
    why: isRule ? RULES[until.rule].explanation : '',
    sources: [],
    raw,
    expected: expectedOf(raw, read),
    ambiguity: null,
  };
}

/** What Sluice reads. Ids that are not in the stream were made up, and may be any. */
function expectedOf(raw: string, read: Assembled): Record<string, unknown> {
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
