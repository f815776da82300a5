import { createHash } from 'node:crypto';
import type { Assembled, ProtocolId } from '@sluice/core';
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
  /** What it should have been read as. */
  expected?: Assembled;
  title?: string;
}

/** Runs a check over a body; what it says is a failure, and whatever it throws is one, too. */
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
  return message === undefined ? undefined : { ...about, message, raw: raw(), ...expectedOf(about.protocol, raw()) };
}

/** What the stream says before anything is done to it, if it can be read at all. */
function expectedOf(protocol: ProtocolId, raw: string): Pick<Failure, 'expected'> {
  try {
    return { expected: assemble(protocol, [new TextEncoder().encode(raw)]) };
  } catch {
    return {};
  }
}

/** In words, where one message is not what the other was. */
export function differences<T extends object>(before: T, after: T): string | undefined {
  const differ = (Object.keys(before) as (keyof T)[]).filter(
    (part) => JSON.stringify(before[part]) !== JSON.stringify(after[part]),
  );
  const [part] = differ;
  return part === undefined
    ? undefined
    : `${differ.join(', ')}: ${JSON.stringify(after[part])} is not ${JSON.stringify(before[part])}`;
}

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
