import { isObject, type JsonObject, parseJson } from '../json/json.ts';
import type { SseFrame } from '../sse/encode.ts';

/** A stream broke a rule that some client relies on. */
export class GrammarError extends Error {
  override readonly name = 'GrammarError';
}

/** The state machine of an outgoing stream: what an encoder writes is accepted frame by frame, whatever the encoder was told. */
export interface StreamGrammar {
  /** Throws a GrammarError when the frame may not stand here. */
  push(frame: SseFrame): void;
  /** Throws a GrammarError when the stream may not end here; else says how it ended, in the words of the protocol. */
  end(): string;
}

export function must(condition: unknown, rule: string): asserts condition {
  if (!condition) throw new GrammarError(rule);
}

/** Holds frames against a grammar, from the first to the last. */
export function accept<Grammar extends StreamGrammar>(grammar: Grammar, frames: Iterable<SseFrame>): ReturnType<Grammar['end']>;

export function accept(grammar: StreamGrammar, frames: Iterable<SseFrame>): string {
  for (const frame of frames) grammar.push(frame);
  return grammar.end();
}

/** The fields of a frame that are written; where it stood is not. */
export function mustHave({ offset: _, ...frame }: SseFrame, fields: string, rule: string): void {
  must(Object.keys(frame).toSorted().join() === fields, rule);
}

export function payloadOf({ data }: SseFrame): JsonObject {
  return objectAt(parseJson(data), 'a payload');
}

export function objectAt(value: unknown, what: string): JsonObject {
  must(isObject(value), `${what} is an object`);
  return value;
}

export function listAt(value: unknown, what: string): readonly unknown[] {
  must(Array.isArray(value), `${what} is a list`);
  return value;
}

/** A stranger's value in a rule: an object may not even become text. */
export const inWords = (value: unknown): string => (isText(value) ? value : value === null ? 'null' : typeof value);

export const isText = (value: unknown): value is string => typeof value === 'string';

export const isFilled = (value: unknown): value is string => isText(value) && value !== '';

export const isCount = (value: unknown): value is number => Number.isSafeInteger(value) && Number(value) >= 0;
