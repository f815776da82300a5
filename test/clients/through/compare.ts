import { isDeepStrictEqual } from 'node:util';
import type { ProtocolId } from '@sluice/core';
import { type Facts, type Json, READ_FACTS } from './facts.ts';
import type { Way } from './sdks.ts';

/** An error as a client can tell it from others. */
interface ErrorView {
  class: string;
  status: unknown;
  code: unknown;
  type: unknown;
  message: string;
}

/** What an SDK handed out for one request. */
export interface Outcome {
  events: Json[];
  error: ErrorView | undefined;
  /** The first event came before the last piece was sent. */
  isEarly: boolean;
}

/**
 * What the gateway made of a response, from the client's side. `equal`: the same events and error. `restated`: other events that
 * say the same. `healed`: the client reads what the model said, which it does not directly. `reported`: it gets an error
 * instead of a part of a response that looks whole. `renamed`: another error. `worse`: everything else.
 */
export const VERDICTS = ['equal', 'restated', 'healed', 'reported', 'renamed', 'worse'] as const;
export type Verdict = (typeof VERDICTS)[number];

export function viewError(error: unknown): ErrorView {
  const { status, code, type, message } = error as Error & Json; // SDKs throw errors with fields of their own
  return { class: Object(error).constructor.name, status, code, type, message: String(message) };
}

interface Outcomes {
  direct: Outcome;
  through: Outcome;
  /** What the same request gets from the model without a fault. */
  clean: Outcome;
}

export function compare(protocol: ProtocolId, way: Way, { direct, through, clean }: Outcomes): Verdict {
  const [before, after, right] = [direct, through, clean].map((one) => readFacts(protocol, way, one)) as [Facts, Facts, Facts];
  if (isRight(protocol, way, direct, clean) && direct.isEarly && !through.isEarly) return 'worse';
  if (isDeepStrictEqual(through.events, direct.events) && isDeepStrictEqual(through.error, direct.error)) return 'equal';
  if (through.error) return compareErrors(way, { direct, through }, { before, after, right });
  if (direct.error) return isDeepStrictEqual(after, right) ? 'healed' : after.finish === 'failed' ? 'reported' : 'worse';
  const names = Object.keys(after) as (keyof Facts)[]; // the keys of a closed interface
  if (names.every((name) => isDeepStrictEqual(after[name], before[name]))) return 'restated';
  return names.every((name) => [before, right].some((one) => isDeepStrictEqual(after[name], one[name]))) ? 'healed' : 'worse';
}

/** The request failed through the gateway. */
function compareErrors(
  way: Way,
  { direct, through }: Omit<Outcomes, 'clean'>,
  facts: Record<'before' | 'after' | 'right', Facts>,
) {
  const { before, after, right } = facts;
  // With an error status there is no response that a client could have shown a part of.
  const isKept = way !== 'events' || through.error?.status !== undefined || after.text.startsWith(before.text);
  // Clients decide by the status whether they send the request again.
  const isSameStatus = direct.error?.status === undefined || through.error?.status === direct.error.status;
  if (!isKept || !isSameStatus) return 'worse';
  if (!direct.error) return isDeepStrictEqual(before, right) ? 'worse' : 'reported';
  return isDeepStrictEqual(through.error, direct.error) ? 'restated' : 'renamed';
}

/** Whether the client reads what the model said. */
export const isRight = (protocol: ProtocolId, way: Way, one: Outcome, clean: Outcome): boolean =>
  !one.error && isDeepStrictEqual(readFacts(protocol, way, one), readFacts(protocol, way, clean));

function readFacts(protocol: ProtocolId, way: Way, { events }: Outcome): Facts {
  const facts = READ_FACTS[protocol](events);
  // Counts and embeddings have no text: their fields are what they say.
  return way === 'count' || way === 'embed' ? { ...facts, finish: events.map(({ model: _, ...fields }) => fields) } : facts;
}
