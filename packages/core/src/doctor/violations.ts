/**
 * Decides what a reported violation means: whether it counts in a body, how severe it is there, and whether it can be
 * repaired. `assemble`, `doctor`, `shrink` and `repair` all use it, through the Examiner.
 */

import type { AccumulatedMessage } from '../engine/message.ts';
import type { Diagnostic, RuleId, Severity } from '../rules/index.ts';

/** The body in which a violation was reported. */
export interface Circumstances {
  message: AccumulatedMessage;
  /** The body is one JSON document and nothing else. */
  isDocument: boolean;
  /** The body is a JSON array. */
  isArray: boolean;
  /** The body holds a complete chat message in place of deltas. */
  hasWholeMessage: boolean;
  /** The request did not ask for a stream. */
  isWhole: boolean;
  /** The request asked for SSE and named no function. */
  isStrict: boolean;
}

type Forms = Pick<Circumstances, 'isDocument' | 'hasWholeMessage' | 'isWhole'>;

/** Whether a rule applies to such a body at all. */
export function isViolation(
  rule: RuleId,
  { message, isDocument, hasWholeMessage, isWhole }: Forms & { message: Pick<AccumulatedMessage, 'error'> },
): boolean {
  if (rule === 'sse/json-body-instead-of-stream') return !isWhole;
  if (rule === 'chat/tool-index-missing' && hasWholeMessage) return false;
  if (message.error !== null && NOT_IN_FAILURES.has(rule)) return false;
  return !(isDocument && NOT_IN_DOCUMENTS.has(rule));
}

/** A stream that reports an error need not close what it opened. */
const NOT_IN_FAILURES: ReadonlySet<RuleId> = /* @__PURE__ */ new Set<RuleId>([
  'responses/item-not-done',
  'anthropic/block-stop-missing',
]);

/** Expected of a body that is one JSON document. */
const NOT_IN_DOCUMENTS: ReadonlySet<RuleId> = /* @__PURE__ */ new Set<RuleId>([
  'sse/bare-json',
  'sse/missing-done',
  'chat/tool-index-missing',
  'gemini/finish-missing',
]);

/** Why a finding is only an info in this body; undefined when the rule keeps its severity. */
export const findExcuse = (rule: RuleId, circumstances: Circumstances): string | undefined => VENDOR_FORMS[rule]?.(circumstances);

/**
 * Forms of a violation that the vendor of the protocol sends itself, and that no official SDK fails on: such a finding
 * is only an info. Each returns the reason, or undefined when the rule keeps its severity.
 */
const VENDOR_FORMS: Partial<Record<RuleId, (circumstances: Circumstances) => string | undefined>> = {
  'chat/finish-stop-with-calls': ({ message: { text, tool_calls: calls }, isStrict }) =>
    !isStrict && text === '' && new Set(calls.map(({ name }) => name)).size === 1
      ? 'finish_reason is "stop" with calls of one function; OpenAI does the same when tool_choice names the function'
      : undefined,
  'chat/tool-args-invalid': ({ message: { finish_reason: finish } }) =>
    finish === 'length' || finish === 'content_filter'
      ? `Tool arguments are not JSON; finish_reason "${finish}" shows that they were truncated`
      : undefined,
  'sse/bare-json': ({ message: { protocol }, isArray, isStrict }) =>
    !isStrict && protocol === 'gemini' && isArray ? 'A JSON array; Google streams one unless the request has alt=sse' : undefined,
};

/** Whether rewriting the stream removes the violation. */
export const isRepairable = ({ rule }: Pick<Diagnostic, 'rule'>): boolean => !PERMANENT.has(rule);

/**
 * Part of the content, so rewriting does not remove it: an error, invalid arguments of the model, a signature after its
 * block, a finish reason that Google may have added.
 */
const PERMANENT: ReadonlySet<RuleId> = /* @__PURE__ */ new Set<RuleId>([
  'chat/error-in-stream',
  'chat/tool-args-invalid',
  'chat/tool-args-not-object',
  'anthropic/input-not-json',
  'anthropic/signature-late',
  'gemini/unknown-finish-reason',
]);

/** Whether `sluice repair` rewrites a stream because of the finding; infos only count with `all`. */
export const needsRepair = (finding: { rule: RuleId; severity: Severity }, all: boolean): boolean =>
  isRepairable(finding) && (all || finding.severity !== 'info');
