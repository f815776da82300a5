/** What the stream grammars of the protocols share. */
import { isObject, type JsonObject, parseJson } from '../json/json.ts';
import type { SseFrame } from '../sse/encode.ts';

/** The state machine of an encoded stream. Every frame that an encoder writes must be accepted, whatever its input. */
export interface StreamGrammar {
  /** Throws a GrammarError when the frame is not allowed at this point. */
  push(frame: SseFrame): void;
  /** How the stream ended, in the words of the protocol. Throws a GrammarError when it may not end here. */
  end(): string;
}

/** An encoded stream broke a rule that some client relies on. */
export class GrammarError extends Error {
  override readonly name = 'GrammarError';
}

/** Checks all frames of a stream against a grammar. Returns how the stream ended. */
export function accept<Grammar extends StreamGrammar>(grammar: Grammar, frames: Iterable<SseFrame>): ReturnType<Grammar['end']>;
export function accept(grammar: StreamGrammar, frames: Iterable<SseFrame>): string {
  for (const frame of frames) grammar.push(frame);
  return grammar.end();
}

/** Throws a GrammarError with the rule unless the condition holds. */
export function must(condition: unknown, rule: string): asserts condition {
  if (!condition) throw new GrammarError(rule);
}

/** Checks the names of the fields that a frame is written with; `offset` is not written. */
export function mustHave({ offset: _, ...frame }: SseFrame, fields: string, rule: string): void {
  must(Object.keys(frame).toSorted().join() === fields, rule);
}

/** The JSON object of a frame. */
export function parsePayload({ data }: SseFrame): JsonObject {
  return objectAt(parseJson(data), 'a payload');
}

/** The value as an object; throws a GrammarError for anything else. */
export function objectAt(value: unknown, what: string): JsonObject {
  must(isObject(value), `${what} is an object`);
  return value;
}

/** The value as a list; throws a GrammarError for anything else. */
export function listAt(value: unknown, what: string): readonly unknown[] {
  must(Array.isArray(value), `${what} is a list`);
  return value;
}

/** Whether a value is a string. */
export const isText = (value: unknown): value is string => typeof value === 'string';

/** Whether a value is a non-empty string. */
export const isFilled = (value: unknown): value is string => isText(value) && value !== '';

/** Whether a value is a non-negative integer. */
export const isCount = (value: unknown): value is number => Number.isSafeInteger(value) && Number(value) >= 0;

/**
 * A value for the text of a rule. Objects are named by type, because converting an untrusted object to text may throw.
 */
export const describeType = (value: unknown): string => (isText(value) ? value : value === null ? 'null' : typeof value);
