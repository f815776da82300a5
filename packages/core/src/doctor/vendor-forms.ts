import type { Assembled } from '../engine/assembled.ts';
import type { RuleId } from './rules.ts';

/** What is known of a body beside a finding in it. */
interface Circumstances {
  message: Assembled;
  /** The body is a JSON array. */
  isArray: boolean;
  /** The request asked for SSE and named no function. */
  isStrict: boolean;
}

/**
 * Forms of a departure that the vendor of the protocol sends, too, and that no official SDK fails on as its vendor sends it: such a finding is
 * worth knowing, no more. Gives back why, or undefined when the finding is as severe as its rule.
 */
const VENDOR_FORMS: Partial<Record<RuleId, (circumstances: Circumstances) => string | undefined>> = {
  'chat/finish-stop-with-calls': ({ message: { text, tool_calls: calls }, isStrict }) =>
    !isStrict && text === '' && new Set(calls.map(({ name }) => name)).size === 1
      ? 'finish_reason is "stop" with calls of one function; OpenAI does the same when tool_choice names the function'
      : undefined,
  'chat/tool-args-invalid': ({ message: { finish_reason: finish } }) =>
    finish === 'length' || finish === 'content_filter'
      ? `Tool arguments are not JSON; finish_reason is "${finish}", so that they were cut there`
      : undefined,
  'sse/bare-json': ({ message: { protocol }, isArray, isStrict }) =>
    !isStrict && protocol === 'gemini' && isArray ? 'A JSON array; Google streams one unless the request has alt=sse' : undefined,
};

/** Why a finding is no more than an info in this body; undefined when it is what its rule says. */
export const excuseFor = (rule: RuleId, circumstances: Circumstances): string | undefined => VENDOR_FORMS[rule]?.(circumstances);
