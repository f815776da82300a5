/** Reads the usage of a response that is only passed on, while its bytes go by: whole JSON, or a stream of events. */

import { type CanonicalUsage, createSseDecoder, type SseFrame } from '@sluice/core';
import { decodeChatUsage } from '@sluice/core/internal';
import { isRecord } from '../routing/prompt-blocks.ts';

/** Reads the usage of a response of this content type; undefined for types that have none. */
export function createUsageReader(contentType: string, maxEventBytes: number): UsageReader | undefined {
  if (/^\s*text\/event-stream\b/i.test(contentType)) return new EventUsage(maxEventBytes);
  return /^\s*application\/(?:[\w.+-]+\+)?json\b/i.test(contentType) ? new WholeUsage() : undefined;
}

/** Reads usage from the bytes of a response. Never throws. */
export interface UsageReader {
  push(chunk: Uint8Array): void;
  /** What was reported until now; undefined for nothing. */
  readonly usage: CanonicalUsage | undefined;
}

/** The last usage of a stream of events: its counts include those before. */
class EventUsage implements UsageReader {
  readonly #decoder: ReturnType<typeof createSseDecoder>;
  #isBroken = false;
  #found: CanonicalUsage | undefined;

  constructor(maxEventBytes: number) {
    this.#decoder = createSseDecoder({ maxEventBytes, maxLineBytes: maxEventBytes });
  }

  push(chunk: Uint8Array): void {
    if (this.#isBroken) return;
    try {
      for (const frame of this.#decoder.push(chunk)) this.#read(frame);
    } catch {
      // An event that is too long, or no event stream at all.
      this.#isBroken = true;
    }
  }

  get usage(): CanonicalUsage | undefined {
    if (!this.#isBroken) this.#end();
    return this.#found;
  }

  /** A server may end its last event without an empty line. */
  #end(): void {
    this.#isBroken = true;
    try {
      for (const frame of this.#decoder.end()) this.#read(frame);
    } catch {
      // As in `push`.
    }
  }

  #read({ data }: SseFrame): void {
    if (!data.startsWith('{')) return;
    const event = parseJson(data);
    if (!isRecord(event)) return;
    const { response } = event;
    this.#found = readUsage(event['usage'] ?? (isRecord(response) ? response['usage'] : undefined)) ?? this.#found;
  }
}

/** The member `usage` of a JSON object. Images make such responses large, so only this member is kept. */
class WholeUsage implements UsageReader {
  #depth = 0;
  #isInString = false;
  #isEscaped = false;
  /** Whether the next string of the object is the name of a member. */
  #isName = false;
  /** The bytes of a name or a value that is read; undefined while nothing is kept. */
  #kept: number[] | undefined;
  #name = '';
  #found: CanonicalUsage | undefined;

  get usage(): CanonicalUsage | undefined {
    return this.#found;
  }

  push(chunk: Uint8Array): void {
    for (let at = 0; at < chunk.length; at++) {
      if (this.#isInString && !this.#isEscaped && !this.#kept) {
        at = findStringEnd(chunk, at);
        if (at < 0) return;
      }
      this.#read(chunk[at] ?? 0);
    }
  }

  #read(byte: number): void {
    if (this.#isInString) this.#readText(byte);
    else if (byte === QUOTE) this.#beginText();
    else if (byte === OPEN_OBJECT || byte === OPEN_LIST) this.#open(byte);
    else if (byte === CLOSE_OBJECT || byte === CLOSE_LIST) this.#close(byte);
    else if (this.#depth === 1 && byte === COMMA) this.#endMember();
    else if (this.#depth === 1 && byte === COLON) this.#beginValue();
    else this.#keep(byte);
  }

  #beginText(): void {
    this.#isInString = true;
    if (this.#isName) this.#kept = [];
    else this.#keep(QUOTE);
  }

  #readText(byte: number): void {
    const isEnd = byte === QUOTE && !this.#isEscaped;
    this.#isEscaped = byte === BACKSLASH && !this.#isEscaped;
    if (isEnd) this.#isInString = false;
    if (!isEnd || !this.#isName) {
      this.#keep(byte);
      return;
    }
    this.#name = String.fromCharCode(...(this.#kept ?? []));
    this.#kept = undefined;
    this.#isName = false;
  }

  #beginValue(): void {
    this.#kept = this.#name === 'usage' ? [] : undefined;
  }

  #open(byte: number): void {
    this.#depth++;
    this.#isName = this.#depth === 1 && byte === OPEN_OBJECT;
    this.#keep(byte);
  }

  #close(byte: number): void {
    this.#depth--;
    if (this.#depth === 0) this.#endMember();
    else this.#keep(byte);
  }

  #endMember(): void {
    if (this.#kept) this.#found = readUsage(parseJson(Buffer.from(this.#kept).toString('utf8'))) ?? this.#found;
    this.#kept = undefined;
    this.#name = '';
    this.#isName = this.#depth === 1;
  }

  #keep(byte: number): void {
    this.#kept?.push(byte);
    if (this.#kept && this.#kept.length > MAX_KEPT_BYTES) this.#kept = undefined;
  }
}

const [QUOTE, BACKSLASH, COMMA, COLON] = [0x22, 0x5c, 0x2c, 0x3a];

const [OPEN_OBJECT, CLOSE_OBJECT, OPEN_LIST, CLOSE_LIST] = [0x7b, 0x7d, 0x5b, 0x5d];

/** Usage has some hundred bytes; names have less. */
const MAX_KEPT_BYTES = 16 * 1024;

/** The next quote or backslash; -1 without one. */
function findStringEnd(chunk: Uint8Array, from: number): number {
  for (let at = from; at < chunk.length; at++) if (chunk[at] === QUOTE || chunk[at] === BACKSLASH) return at;
  return -1;
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** Undefined for a report without tokens: some servers report zeros, and transcriptions may report seconds. */
function readUsage(value: unknown): CanonicalUsage | undefined {
  if (!isRecord(value)) return undefined;
  // Transcriptions spell it like this.
  const { input_token_details: details, ...rest } = value;
  const raw = { ...rest, ...(isRecord(details) && { input_tokens_details: details }) };
  const usage = decodeChatUsage(raw, { note: () => undefined });
  const total = value['total_tokens'];
  if (usage.input_tokens + usage.output_tokens > 0) return usage;
  return typeof total === 'number' && total > 0 ? { ...usage, input_tokens: total } : undefined;
}
