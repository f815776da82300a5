import type { AccumulatedMessage } from '../../../packages/core/src/index.ts';
import {
  type Effect,
  type Mutation,
  seededRandom,
  type WireStream,
  writeStream,
} from '../../../packages/lab/src/mutate/index.ts';
import type { Failure } from '../../../packages/lab/src/prove/failure.ts';
import { listDifferentParts, type MessageParts, readMessageParts } from '../../../packages/lab/src/prove/normal.ts';
import { shortest } from '../../../packages/lab/src/prove/prove-body.ts';
import { assemble, decodeBody } from '../../../packages/lab/src/prove/wire.ts';
import { chunksOf } from '../wire.ts';

const PROPERTY = 'mutation';

/** A stream that needs no excuse: whole, and without a violation of the standard. */
export interface Clean {
  stream: WireStream;
  result: AccumulatedMessage;
  seen: MessageParts;
}

/** Endings that say nothing of a dialect: recorders leave the sentinel or the last blank line out. */
const HARMLESS = new Set(['sse/missing-done', 'sse/unterminated-event', 'gemini/unknown-part']);

export function cleanOf(stream: WireStream): Clean | undefined {
  const result = assemble(stream.protocol, chunksOf(stream));
  const isClean = result.complete && !result.error && result.diagnostics.every(({ rule }) => HARMLESS.has(rule));
  return isClean ? { stream, result, seen: readMessageParts(result) } : undefined;
}

/** Undefined when there was no occasion for the mutation, else what came of it. */
export function checkMutation(clean: Clean, mutation: Mutation, seed: number): { failure?: Failure } | undefined {
  const random = seededRandom(seed);
  const mutated = mutation.apply(clean.stream, random);
  if (mutated === clean.stream) return undefined;
  const chunks = writeStream(mutated, random);
  const message = judge(clean, mutation, chunks);
  return message === undefined ? {} : { failure: failureOf(clean, mutation, chunks, message) };
}

function judge(clean: Clean, mutation: Mutation, chunks: Uint8Array[]): string | undefined {
  try {
    return judgeResult(clean, mutation, assemble(clean.stream.protocol, chunks));
  } catch (error) {
    return `no canonical stream: ${error}`;
  }
}

function judgeResult(clean: Clean, { effect, rule }: Mutation, result: AccumulatedMessage): string | undefined {
  if (rule && !result.diagnostics.some((met) => met.rule === rule)) return `${rule} is not reported`;
  if (effect === 'cut') return judgeCut(clean.result, result);
  const wanted = withoutLostOrder(effect, clean.seen);
  const seen = withoutLostOrder(effect, readMessageParts(result));
  const differ = listDifferentParts(wanted, seen).filter((part) => !isLost(effect, part));
  const [part] = differ;
  if (part === undefined) return undefined;
  return `${differ.join(', ')}: ${JSON.stringify(seen[part])} is not ${JSON.stringify(wanted[part])}`;
}

/** Calls that come in another order have the same ids in another order. */
const withoutLostOrder = (effect: Effect, parts: MessageParts): MessageParts =>
  isLost(effect, 'call_order') && Array.isArray(parts['call_ids']) ? { ...parts, call_ids: parts['call_ids'].toSorted() } : parts;

const isLost = (effect: Effect, part: keyof MessageParts): boolean =>
  typeof effect === 'object' && effect.loses.some((lost) => lost === part);

/** What was read before the damage stays, and nobody is told that it is all. */
function judgeCut(whole: AccumulatedMessage, cut: AccumulatedMessage): string | undefined {
  if (cut.complete && !cut.error) return 'the message counts as whole';
  if (!whole.text.startsWith(cut.text)) return `the text ${JSON.stringify(cut.text)} is not the beginning of the whole`;
  if (cut.tool_calls.length > whole.tool_calls.length) return 'there are more calls than in the whole message';
  return undefined;
}

function failureOf(clean: Clean, { id, title, effect }: Mutation, chunks: Uint8Array[], message: string): Failure {
  const { protocol } = clean.stream;
  return {
    property: PROPERTY,
    id,
    title,
    message,
    protocol,
    raw: decodeBody(chunks),
    // What a cut or a loss leaves is not what the clean stream says: such a case has to be completed by hand.
    ...(effect === 'same' && { expected: clean.result }),
  };
}

/** The same failure with as few frames of the stream as still show it. */
export function shortestMutation(clean: Clean, mutation: Mutation, seed: number): Failure | undefined {
  const failureWith = (frames: WireStream['frames']): Failure | undefined => {
    const shorter = cleanOf({ ...clean.stream, frames });
    return shorter && checkMutation(shorter, mutation, seed)?.failure;
  };
  return failureWith(shortest(clean.stream.frames, (frames) => failureWith(frames) !== undefined));
}
