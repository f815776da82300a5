/** Writes the frames of a stream as bytes, in any of the framings that servers use. */

import type { SseFrame } from '@sluice/core';
import type { WireStream } from './mutation.ts';
import { below, chance, pick, type Random } from './random.ts';

/** How frames are written. */
export interface Framing {
  /**
   * `lines`: events without blank lines between them; `ndjson`: one document per line; `array`: one JSON array for the
   * whole body.
   */
  readonly shape: 'sse' | 'lines' | 'ndjson' | 'array';
  readonly lineEnd: '\n' | '\r\n' | '\r' | 'mixed';
  /** What is between the colon and the value of a field. */
  readonly space: '' | ' ';
  readonly bom: boolean;
  /** Blocks of lines inserted between frames at random: comments, blank lines, other fields. */
  readonly between: readonly (readonly string[])[];
  /** Lines inserted into frames at random. */
  readonly inside: readonly string[];
  /** Splits the data of a frame into several lines, where JSON allows a line end. */
  readonly multiLine: boolean;
  /** Writes the data before the event name. */
  readonly dataFirst: boolean;
  /** How the body ends: with the blank line, with one line end, or right after the last character. */
  readonly end: 'blank' | 'line' | 'none';
  /** Lines after the last frame, written as they are. */
  readonly tail: readonly string[];
  /** The reads in which the body arrives. */
  readonly chunks: 'frames' | 'whole' | 'bytes' | 'random' | 'characters';
}

/** The framing that the standards show. */
export const PLAIN_FRAMING: Framing = {
  shape: 'sse',
  lineEnd: '\n',
  space: ' ',
  bom: false,
  between: [],
  inside: [],
  multiLine: false,
  dataFirst: false,
  end: 'blank',
  tail: [],
  chunks: 'frames',
};

const INSERT_CHANCE = 0.3;

const DONE = '[DONE]';

/** The body as bytes, in the pieces in which it arrives. */
export function writeStream(stream: WireStream, random: Random): Uint8Array[] {
  const encoder = new TextEncoder();
  const pieces = pieceTexts(stream, random).map((piece) => encoder.encode(piece));
  return stream.framing.chunks === 'frames' ? pieces : CUTS[stream.framing.chunks](concat(pieces), random);
}

function pieceTexts({ frames, framing }: WireStream, random: Random): string[] {
  const isBare = framing.shape === 'ndjson' || framing.shape === 'array';
  const pieces = isBare ? bareLines(frames, framing) : frames.map((frame) => writeLines(frame, framing, random));
  const strewn = [...pieces.flatMap((lines) => [...strewnBetween(framing, random), lines]), framing.tail];
  const written = strewn.map((lines) => lines.map((line) => line + lineEnd(framing, random)).join(''));
  return withEnd([...(framing.bom ? ['\uFEFF'] : []), ...written], framing);
}

const strewnBetween = ({ between }: Framing, random: Random): (readonly string[])[] => {
  const [first, ...rest] = between;
  return first && chance(random, INSERT_CHANCE) ? [pick(random, [first, ...rest])] : [];
};

/** The lines of a frame, including the blank one. */
function writeLines({ event, data, id, retry }: SseFrame, framing: Framing, random: Random): string[] {
  const field = (name: string, value: string | number): string => `${name}:${framing.space}${value}`;
  const names = event === undefined ? [] : [field('event', event)];
  const values = dataLines(data, framing, random).map((line) => field('data', line));
  const fields = framing.dataFirst ? [...values, ...names] : [...names, ...values];
  if (id !== undefined) fields.unshift(field('id', id));
  if (retry !== undefined) fields.unshift(field('retry', retry));
  const strewn = framing.inside.filter(() => chance(random, INSERT_CHANCE));
  return [...strewn, ...fields, ...(framing.shape === 'lines' ? [] : [''])];
}

/**
 * Breaks lines after commas outside of strings: JSON allows a line end there, and the parser joins the lines with one.
 */
function dataLines(data: string, { multiLine }: Framing, random: Random): string[] {
  if (!multiLine || !data.startsWith('{')) return data.split(/\r\n|\n|\r/);
  const lines = [''];
  for (const [token] of data.matchAll(/"(?:[^"\\]|\\.)*"|,|[^",]+/g)) {
    lines.push((lines.pop() ?? '') + token);
    if (token === ',' && chance(random, 0.5)) lines.push('');
  }
  return lines;
}

/** The documents without SSE. The end marker is a line of its own and not an element of an array. */
function bareLines(frames: readonly SseFrame[], { shape }: Framing): string[][] {
  const documents = frames
    .map(({ data }) => data)
    .filter((data) => data.startsWith('{') || (data === DONE && shape === 'ndjson'));
  if (shape === 'ndjson') return documents.map((document) => [document]);
  return documents.map((document, at) => [`${at === 0 ? '[' : ','}${document}`, ...(at === documents.length - 1 ? [']'] : [])]);
}

function lineEnd({ lineEnd: end }: Framing, random: Random): string {
  return end === 'mixed' ? pick(random, ['\n', '\r\n', '\r\n', '\n']) : end;
}

function withEnd(pieces: readonly string[], { end }: Framing): string[] {
  const written = pieces.filter((piece) => piece !== '');
  if (end === 'blank') return written;
  const last = (written.pop() ?? '').replace(/[\r\n]+$/, '');
  return [...written, end === 'line' ? `${last}\n` : last];
}

function concat(pieces: readonly Uint8Array[]): Uint8Array {
  const bytes = new Uint8Array(pieces.reduce((sum, { length }) => sum + length, 0));
  let at = 0;
  for (const piece of pieces) {
    bytes.set(piece, at);
    at += piece.length;
  }
  return bytes;
}

const isContinuation = (byte: number | undefined): boolean => byte !== undefined && (byte & 0xc0) === 0x80;

const CUTS: Record<Exclude<Framing['chunks'], 'frames'>, (bytes: Uint8Array, random: Random) => Uint8Array[]> = {
  whole: (bytes) => [bytes],
  bytes: (bytes) => cutBefore(bytes, () => true),
  random: (bytes, random) => {
    const size = 1 + below(random, 200);
    return cutBefore(bytes, () => chance(random, 1 / size));
  },
  /** Inside every character that has more than one byte. */
  characters: (bytes) => cutBefore(bytes, (at) => isContinuation(bytes[at])),
};

function cutBefore(bytes: Uint8Array, isCut: (at: number) => boolean): Uint8Array[] {
  const pieces: Uint8Array[] = [];
  let from = 0;
  for (let at = 1; at < bytes.length; at++) {
    if (!isCut(at)) continue;
    pieces.push(bytes.subarray(from, at));
    from = at;
  }
  return bytes.length > 0 ? [...pieces, bytes.subarray(from)] : pieces;
}
