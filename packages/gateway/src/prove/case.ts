import { createHash } from 'node:crypto';
import type { Failure } from './failure.ts';

/** A line of a file of cases: a stream, and what it is to be read as. */
interface CaseLine {
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

/** A failure as a case: there the reader has to say what is expected, however the bytes are split. Undefined when nobody knows what that is. */
export function caseOf({ property, id, message, protocol, raw, expected, title }: Failure): CaseLine | undefined {
  if (!protocol || raw === undefined || !expected) return undefined;
  const hash = createHash('sha256').update(raw).digest('hex').slice(0, 8);
  return {
    id: `prove-${id.replaceAll('/', '-')}-${hash}`,
    protocol,
    class: property,
    providers: [],
    title: title ?? id,
    why: message,
    sources: [],
    raw,
    expected: {
      text: expected.text,
      ...(expected.reasoning !== '' && { reasoning: expected.reasoning }),
      ...(expected.refusal !== null && { refusal: expected.refusal }),
      tool_calls: expected.tool_calls.map(({ id: callId, name, arguments: text }) => ({ id: callId, name, arguments: text })),
      finish_reason: expected.finish_reason,
      ...(expected.wire_usage && { usage: expected.wire_usage }),
      ...(expected.error && { error: { code: expected.error.code, message: expected.error.message } }),
    },
    ambiguity: null,
  };
}
