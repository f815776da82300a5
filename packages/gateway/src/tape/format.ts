import type { ProtocolId } from '@sluice/core';
import { factsReader } from './facts-reader.ts';

/** Raised when a reader of the version before would misread what is written. docs/tapes.md defines the folder. */
const TAPE_VERSION = 1;

/** The name of the file that makes a folder an exchange. */
export const FACTS_FILE = 'exchange.json';

/** How an answer came to its end. Of all but the first, what was read until then is on the tape. */
const ENDINGS = ['complete', 'upstream_cut', 'client_gone', 'too_large', 'unreachable'] as const;
export type Ending = (typeof ENDINGS)[number];

/** A network read: milliseconds since the request was sent, and bytes. */
export type Read = readonly [atMs: number, bytes: number];

/** What stands in `exchange.json`. Bodies are files beside it. */
export interface Facts {
  tape: typeof TAPE_VERSION;
  /** ISO 8601. */
  recorded: string;
  /** The language of the exchange; null for paths that Sluice does not know. */
  protocol: ProtocolId | null;
  model: string | null;
  /** A stream was asked for. */
  stream: boolean;
  end: Ending;
  request: { method: string; path: string; headers: Record<string, string>; body: string | null };
  /** null when nobody answered. */
  response: { status: number; headers: Record<string, string>; body: string | null; redacted?: true; reads: Read[] } | null;
}

/** JSON for people: a read is one line. Nothing in a string can look like a line end, so the pattern meets lists of two numbers only. */
export const writeFacts = (facts: Omit<Facts, 'tape'>): string =>
  `${JSON.stringify({ tape: TAPE_VERSION, ...facts }, null, 2).replace(/\[\n\s+(\d+),\n\s+(\d+)\n\s+\]/g, '[$1, $2]')}\n`;

/** Throws a TapeError that says what is wrong with which field. */
export function readFacts(text: string, file: string): Facts {
  const facts = factsReader(text, file);
  facts.oneOf('tape', [TAPE_VERSION], `this version of sluice reads tapes of version ${TAPE_VERSION}`);
  const request = facts.object('request');
  const response = facts.objectOrNull('response');
  return {
    tape: TAPE_VERSION,
    recorded: facts.text('recorded', ''),
    protocol: facts.protocolOrNull('protocol'),
    model: facts.textOrNull('model'),
    stream: facts.flag('stream'),
    end: facts.oneOf('end', ENDINGS),
    request: {
      method: request.text('method', 'POST'),
      path: request.text('path', '/'),
      headers: request.headers('headers'),
      body: request.fileName('body'),
    },
    response: response && {
      status: response.status('status'),
      headers: response.headers('headers'),
      body: response.fileName('body'),
      ...(response.flag('redacted') && { redacted: true }),
      reads: response.pairs('reads'),
    },
  };
}
