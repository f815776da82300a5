/** What the subjects of a row get: a stream as chunks, bytes or a response, or the text of a request. */
import * as data from '../reference/data.mjs';
import { readRequestSource, readStreamSource, STREAM_CHUNKS } from './sources.js';

const CALLS = 64;

/** A value that is built when it is first read. */
function defineLazily(target, builders) {
  for (const [name, build] of Object.entries(builders)) {
    let value;
    Object.defineProperty(target, name, { enumerable: true, get: () => (value ??= build()) });
  }
  return target;
}

/**
 * A stream of Chat; `kind` is `text`, `tool` (one call) or `parallel` (64 calls, whose fragments take turns). The SDK of Anthropic gets the same
 * content in its own protocol.
 */
export function buildStreamInput({ kind, n, pieceBytes, json }) {
  const input = { kind, n, json };
  const readAnthropic = () => data.anthropicJson(kind, n, CALLS);
  defineLazily(input, {
    payloads: () => data.chunkJson(kind, n, CALLS),
    chunks: () => input.payloads.map((text) => JSON.parse(text)),
    pieces: () => data.pieces(data.sseOpenAI(input.payloads), pieceBytes),
    anthropicEvents: () => readAnthropic().map(([, text]) => JSON.parse(text)),
    anthropicPieces: () => data.pieces(data.sseAnthropic(readAnthropic()), pieceBytes),
    expected: () => data.expected(kind, n, CALLS),
    characters: () => input.payloads.reduce((sum, text) => sum + text.length, '[DONE]'.length),
  });
  const stream = () => data.webStream(input.pieces);
  const response = () => data.sseResponse(input.pieces);
  return Object.assign(input, { stream, response, anthropicResponse: () => data.sseResponse(input.anthropicPieces) });
}

/** A stream of any protocol to convert. */
export function buildConversionInput({ kind, from, to, pieceBytes }) {
  const pieces = data.pieces(readStreamSource(kind, from), pieceBytes);
  const stream = () => data.webStream(pieces);
  return { from, to, pieces, stream, response: () => data.sseResponse(pieces), expected: data.expected(kind, STREAM_CHUNKS) };
}

/** The text of a request to convert. */
export const buildRequestInput = ({ size, from, to }) => ({ from, to, text: readRequestSource(size, from) });

export const countChunks = ({ payloads }) => payloads.length;
