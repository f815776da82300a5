import { createHash } from 'node:crypto';
import type { AccumulatedMessage, ProtocolId } from '@sluice/core';
import { assemble } from './wire.ts';

/** An input for which a property does not hold. */
export interface Failure {
  property: string;
  /** What was done to the input: a mutation, a cut, a pair. */
  id: string;
  message: string;
  protocol?: ProtocolId;
  /** The whole body, as small as it could be made. */
  raw?: string;
  /** The message that it should have been read as. */
  expected?: AccumulatedMessage;
  title?: string;
}

/** Runs a check on a body. A returned message or a thrown error is a failure. */
export function attempt(
  about: Pick<Failure, 'property' | 'id'> & { protocol: ProtocolId },
  raw: () => string,
  run: () => string | undefined,
): Failure | undefined {
  let message: string | undefined;
  try {
    message = run();
  } catch (error) {
    message = error instanceof Error ? `${error.name}: ${error.message}` : String(error);
  }
  return message === undefined ? undefined : { ...about, message, raw: raw(), ...readExpected(about.protocol, raw()) };
}

/** The message of the unchanged stream, if it can be read at all. */
function readExpected(protocol: ProtocolId, raw: string): Pick<Failure, 'expected'> {
  try {
    return { expected: assemble(protocol, [new TextEncoder().encode(raw)]) };
  } catch {
    return {};
  }
}

/** Describes the parts in which two messages differ. */
export function differences<T extends object>(before: T, after: T): string | undefined {
  const differ = (Object.keys(before) as (keyof T)[]).filter(
    (part) => JSON.stringify(before[part]) !== JSON.stringify(after[part]),
  );
  const [part] = differ;
  return part === undefined
    ? undefined
    : `${differ.join(', ')}: ${JSON.stringify(after[part])} is not ${JSON.stringify(before[part])}`;
}

/**
 * A failure as a case, in which any split of the bytes must give the expected message. Undefined when that message is
 * not known.
 */
export function buildCase({ property, id, message, protocol, raw, expected, title }: Failure): CaseLine | undefined {
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

/** A line of a file of cases: a stream, and the message it must be read as. */
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
