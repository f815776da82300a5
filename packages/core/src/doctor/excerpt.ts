import type { BodyRecord } from './body-record.ts';
import type { RuleId } from './rules.ts';

/** How far a frame is searched for the place that matters, and how much of it is shown. */
const SEARCHED = 64 * 1024;
const SHOWN = 160;
const LEAD = 24;

/** What to look for in the frame, by the beginning of the rule; the first that fits counts. */
const FOCUS: readonly (readonly [rule: string, key: string])[] = [
  ['chat/tool-', '"tool_calls"'],
  ['chat/finish-', '"finish_reason"'],
  ['chat/legacy-function-call', '"function_call"'],
  ['chat/usage-elsewhere', '"x_groq"'],
  ['chat/usage-', '"usage"'],
  ['chat/role-', '"role"'],
  ['chat/model-', '"model"'],
  ['chat/reasoning-', '"reasoning'],
  ['chat/delta-', '"choices"'],
  ['chat/choice', '"choices"'],
  ['chat/error-', '"error"'],
  ['sse/lone-surrogate', '\\ud'],
  ['gemini/finish-', '"finishReason"'],
  ['gemini/parts-after-finish', '"finishReason"'],
];

/** A line of the body at a finding: the frame, or what matters of it. */
export function excerptAt(body: BodyRecord, rule: RuleId, offset: number): string {
  const [frame = ''] = body.text(offset, offset + SEARCHED).split(/\r?\n\r?\n|\r\r/, 1);
  const key = FOCUS.find(([start]) => rule.startsWith(start))?.[1];
  const at = key === undefined ? -1 : frame.indexOf(key);
  const start = at > LEAD && frame.length > SHOWN ? at - LEAD : 0;
  const shown = frame.slice(start, start + SHOWN);
  return `${start > 0 ? '…' : ''}${shown}${start + SHOWN < frame.length ? '…' : ''}`;
}
