import { createParser } from 'eventsource-parser';
import { createSseDecoder, type SseFrame } from '../../packages/core/src/index.ts';

/** A frame as every reader of event streams gives it out. */
type Frame = Pick<SseFrame, 'event' | 'data' | 'id'>;

const frame = (event: string | undefined, data: string, id: string | undefined): Frame => ({
  ...(event !== undefined && { event }),
  data,
  ...(id !== undefined && { id }),
});

/** The frames of `eventsource-parser`. It takes text, and waits after CR for the LF that may follow. */
function oracleFrames(bytes: Uint8Array): Frame[] {
  const frames: Frame[] = [];
  const parser = createParser({ onEvent: ({ event, data, id }) => frames.push(frame(event, data, id)) });
  const text = new TextDecoder().decode(bytes);
  parser.feed(text.endsWith('\r') ? `${text}\n` : text);
  return frames;
}

export interface Framed {
  frames: Frame[];
  /** The violations that were named. */
  rules: string[];
}

export function framed(pieces: Iterable<Uint8Array>): Framed {
  const rules: string[] = [];
  const decoder = createSseDecoder({ report: (rule) => rules.push(rule) });
  const frames: SseFrame[] = [];
  for (const piece of pieces) frames.push(...decoder.push(piece));
  frames.push(...decoder.end());
  return { frames: frames.map(({ event, data, id }) => frame(event, data, id)), rules };
}

/**
 * Where we read otherwise than the standard says, and why. Each of these violations is named when it is met; whatever else differs from the
 * oracle is a failure.
 */
export const DELIBERATE: Readonly<Record<string, string>> = {
  'sse/unterminated-event':
    'The standard discards an event without its blank line. Many servers end like this, and the last event of a response has its finish reason and usage: data that is complete JSON, or the sentinel, is kept.',
  'sse/truncated-event': 'Discarded, as the standard requires, and reported.',
  'sse/bare-json':
    'Whole JSON bodies, NDJSON and JSON arrays are sent instead of streams; the standard reads their lines as unknown fields.',
  'sse/error-field':
    'Servers built on llama.cpp write an error as a field of that name; the standard ignores it, and the response would only look truncated.',
  'sse/error-event-without-data':
    'The standard dispatches no event without data; an event named error is an error even without data.',
};

/** Our frames are those of the oracle, or a violation that explains the difference is named. */
export function differsFromOracle(bytes: Uint8Array, { frames, rules }: Framed): string | undefined {
  const expected = oracleFrames(bytes);
  if (JSON.stringify(frames) === JSON.stringify(expected)) return undefined;
  return rules.some((rule) => Object.hasOwn(DELIBERATE, rule))
    ? undefined
    : `${JSON.stringify(frames)} is not ${JSON.stringify(expected)} of eventsource-parser, in ${JSON.stringify(new TextDecoder().decode(bytes))}`;
}
