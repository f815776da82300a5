/** Edits of the JSON payloads and frames of a stream, shared by all mutations. */

import type { SseFrame } from '@sluice/core';
import type { WireStream } from './mutation.ts';
import type { Random } from './random.ts';

/**
 * Changes the payloads of a stream as a list. Frames of unchanged payloads stay as they are, new payloads are framed
 * like their neighbours, and frames that are not JSON (the end marker) stay at the end.
 */
export function rewrite(stream: WireStream, change: (payloads: readonly Json[]) => readonly Json[]): WireStream {
  const known = new Map<Json, SseFrame>();
  const rest: SseFrame[] = [];
  for (const frame of stream.frames) {
    const payload = parse(frame.data);
    if (isObject(payload)) known.set(payload, frame);
    else rest.push(frame);
  }
  const before = [...known.keys()];
  const after = change(before);
  if (after.length === before.length && after.every((payload, at) => payload === before[at])) return stream;
  const hasEvents = stream.frames.some(({ event }) => event !== undefined);
  const frames = after.map((payload) => known.get(payload) ?? buildFrame(payload, hasEvents));
  return { ...stream, frames: [...frames, ...rest] };
}

/** Changes payloads one by one: to another, to several, or to none. */
export const edit = (
  stream: WireStream,
  change: (payload: Json, at: number, all: readonly Json[]) => Json | Json[],
): WireStream => rewrite(stream, (payloads) => payloads.map(change).flatMap((changed) => toList(changed)));

/** `Array.isArray` does not narrow `Json`, which could be a list by its type. */
const toList = (value: Json | Json[]): Json[] => (Array.isArray(value) ? (value as Json[]) : [value]);

const parse = (data: string): unknown => (data.startsWith('{') ? JSON.parse(data) : undefined);

/** Changes frames one by one. */
export function editFrames(stream: WireStream, change: (frame: SseFrame, at: number) => SseFrame | SseFrame[]): WireStream {
  const frames = stream.frames.flatMap(change);
  const isSame = frames.length === stream.frames.length && frames.every((frame, at) => frame === stream.frames[at]);
  return isSame ? stream : { ...stream, frames };
}

/** Inserts extra payloads at random: at least one, never before the first or after the last payload. */
export function insertAtRandom(stream: WireStream, random: Random, make: (before: Json) => Json): WireStream {
  return edit(stream, (payload, at) => (at === 1 || (at > 1 && random() < 0.3) ? [make(payload), payload] : payload));
}

/** Builds the frame of a payload; protocols with event names take the name from `type`. */
export function buildFrame(payload: Json, hasEvent: boolean): SseFrame {
  const { type } = payload;
  const data = JSON.stringify(payload);
  return hasEvent && typeof type === 'string' ? { event: type, data } : { data };
}

// ---- JSON values

/** A payload, or an object in one. */
export type Json = Record<string, unknown>;

/** Whether a value is a JSON object. */
export const isObject = (value: unknown): value is Json => typeof value === 'object' && value !== null && !Array.isArray(value);

/** The objects in a list; empty for any other value. */
export const objects = (value: unknown): Json[] => (Array.isArray(value) ? value.filter(isObject) : []);

/** The value if it is a string, else an empty text. */
export const toText = (value: unknown): string => (typeof value === 'string' ? value : '');

/** The end marker of OpenAI Chat. */
export const DONE = '[DONE]';

/** Whether the stream has the end marker of OpenAI Chat. */
export const hasDone = ({ frames }: WireStream): boolean => frames.some(({ data }) => data === DONE);

/** The object without some of its keys; the same object when it has none of them. */
export function without(object: Json, ...keys: readonly string[]): Json {
  if (!keys.some((key) => Object.hasOwn(object, key))) return object;
  return Object.fromEntries(Object.entries(object).filter(([key]) => !keys.includes(key)));
}

/** The object with one value changed; the same object when the key is absent or the value stays. */
export function within(object: Json, key: string, change: (value: Json) => Json): Json {
  const value = object[key];
  if (!isObject(value)) return object;
  const changed = change(value);
  return changed === value ? object : { ...object, [key]: changed };
}

/** The object with every object of a list changed; the same object when nothing changes. */
export function withinEach(object: Json, key: string, change: (value: Json, at: number) => Json | Json[]): Json {
  const list = object[key];
  if (!Array.isArray(list)) return object;
  const changed = list.map((value: unknown, at) => (isObject(value) ? change(value, at) : value));
  return changed.every((value, at) => value === list[at]) ? object : { ...object, [key]: changed.flat() };
}

/**
 * Parses a text that JSON.stringify would write the same way again: only such a value can be sent as an object and read
 * back as that text.
 */
export function parseRoundTrip(text: string): Json | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return isObject(value) && JSON.stringify(value) === text ? value : undefined;
  } catch {
    return undefined;
  }
}

/** Whether a text is a JSON object that is not empty. */
export function isDocument(text: string): boolean {
  try {
    const value: unknown = JSON.parse(text);
    return isObject(value) && Object.keys(value).length > 0;
  } catch {
    return false;
  }
}

/** Each piece with all that came before it. */
export const accumulateTexts = (pieces: readonly string[]): string[] => pieces.map((_, at) => pieces.slice(0, at + 1).join(''));
