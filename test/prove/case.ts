import { createHash } from 'node:crypto';
import type { Assembled, ProtocolId } from '../../packages/core/src/index.ts';
import type { Case } from '../shared.ts';

/** An input for which a property does not hold. */
export interface Failure {
  property: string;
  /** What was done to the input: a mutation, a cut, a pair. */
  id: string;
  message: string;
  protocol?: ProtocolId;
  /** The whole body, as small as it could be made. */
  raw?: string;
  /** What it should have been read as. */
  expected?: Assembled;
  title?: string;
}

/** A failure as a line for `fixtures/cases-own.jsonl`: there the reader has to say what is expected, however the bytes are split. */
export function caseOf({
  property,
  id,
  message,
  protocol,
  raw,
  expected,
  title,
}: Failure): (Case & Record<string, unknown>) | undefined {
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
    },
    ambiguity: null,
  };
}
