import {
  type CanonicalRequest,
  CODECS,
  type Codec,
  collectStream,
  convertError,
  convertResponse,
  createSseDecoder,
  decodeRequest,
  type HeaderBag,
  type Route,
  replayResponse,
  streamConverter,
} from '@sluice/core';
import { spoken } from '../mutate/by-name.ts';
import { type Mutation, PLAIN_FRAMING, seededRandom, type WireStream, writeStream } from '../mutate/index.ts';
import { parsed } from './asked.ts';
import type { Answer, Exchange } from './exchange.ts';
import { inReads, type Piece } from './play.ts';

/** What a client of the replay wants. */
export interface Wish {
  route: Route;
  headers: HeaderBag;
  /** The body of its request. */
  body: unknown;
  model: string;
  isStream: boolean;
  mutations: readonly Mutation[];
  /** 1: as slowly as it was; 0: at once. */
  speed: number;
  /** Decoded and written anew also in the protocol of the tape. */
  repair: boolean;
}

export interface Reply {
  status: number;
  headers: Record<string, string>;
  pieces: Iterable<Piece>;
  /** Dialects that had no place in this answer. */
  skipped: readonly string[];
}

const STREAM = { 'content-type': 'text/event-stream' };
const JSON_BODY = { 'content-type': 'application/json' };

/** A recorded answer for this client: byte for byte in the protocol of the tape, converted in any other. Throws a CodecError. */
export function replyOf(exchange: Exchange, answer: Answer, body: Uint8Array, wish: Wish): Reply {
  const { route, mutations, speed } = wish;
  const from = exchange.protocol && CODECS[exchange.protocol];
  const fitting =
    wish.isStream && answer.status < 400 ? mutations.filter(({ protocols }) => protocols.includes(route.client.id)) : [];
  const skipped = mutations.filter((mutation) => !fitting.includes(mutation)).map(({ id }) => id);
  const isAsItWas = !from || route.type !== 'CHAT' || (isSameForm(exchange, wish) && !wish.repair && fitting.length === 0);
  if (isAsItWas) {
    const { status, headers } = answer;
    return { status, headers: withLength(headers, body), pieces: inReads(body, answer.reads, speed), skipped };
  }
  if (answer.status >= 400) return { ...failed(answer, body, from, route.client), skipped };
  const conversion = { from, to: route.client, model: wish.model, request: questionOf(wish) };
  if (!wish.isStream) return { ...whole(exchange, body, conversion), skipped };
  const framing = route.client.framing?.(route.path) ?? 'sse';
  const pieces = streamed(exchange, answer, body, { ...conversion, framing }, speed);
  const headers = framing === 'sse' ? STREAM : JSON_BODY;
  return { status: 200, headers, pieces: fitting.length > 0 ? mutated(pieces, route.client, fitting) : pieces, skipped };
}

/** The client reads what the one of the tape has read: the same protocol, a stream or none, and the same frames around it. */
function isSameForm({ protocol, isStream, request }: Exchange, { route: { client, path }, isStream: wanted }: Wish): boolean {
  return protocol === client.id && isStream === wanted && client.framing?.(path) === client.framing?.(request.path);
}

const questionOf = ({ route, headers, body, model, isStream }: Wish): CanonicalRequest => ({
  ...decodeRequest(body, { from: route.client, path: route.path, headers, stream: isStream }),
  model,
});

/** A length that was said then is said again; it may have been edited since. */
const withLength = (headers: Record<string, string>, { length }: Uint8Array): Record<string, string> =>
  headers['content-length'] === undefined ? headers : { ...headers, 'content-length': String(length) };

type Head = Omit<Reply, 'skipped'>;

const json = (status: number, headers: Record<string, string>, body: unknown): Head => {
  const bytes = Buffer.from(JSON.stringify(body));
  return {
    status,
    headers: { ...headers, ...JSON_BODY, 'content-length': String(bytes.length) },
    pieces: [{ waitMs: 0, bytes }],
  };
};

function failed({ status, headers }: Answer, body: Uint8Array, from: Codec, to: Codec): Head {
  const text = Buffer.from(body).toString('utf8');
  const reply = convertError({ status, headers, body: parsed(body) ?? text }, { from, to });
  return json(reply.status, reply.headers, reply.body);
}

interface Conversion {
  from: Codec;
  to: Codec;
  model: string;
  request: CanonicalRequest;
}

function whole({ isStream }: Exchange, body: Uint8Array, conversion: Conversion): Head {
  const converted = isStream ? collectStream([body], conversion) : convertResponse(parsed(body), conversion);
  return json(200, {}, converted.body);
}

function* streamed(
  exchange: Exchange,
  { reads }: Answer,
  body: Uint8Array,
  conversion: Conversion & { framing: 'sse' | 'json-array' },
  speed: number,
): Iterable<Piece> {
  if (!exchange.isStream) {
    yield { waitMs: 0, bytes: replayResponse(parsed(body), conversion).body };
    return;
  }
  const converter = streamConverter(conversion);
  for (const { waitMs, bytes } of inReads(body, reads, speed)) yield { waitMs, bytes: joined(converter.push(bytes)) };
  // A connection that broke is seen to break: no last words are made up for it.
  if (exchange.ending === 'complete') yield { waitMs: 0, bytes: joined(converter.end()) };
}

const joined = (pieces: Iterable<Uint8Array>): Uint8Array => Buffer.concat([...pieces]);

/** Dialects are made out of clean streams: whatever the tape does wrong is mended first. */
function* mutated(pieces: Iterable<Piece>, client: Codec, mutations: readonly Mutation[]): Iterable<Piece> {
  const decoder = createSseDecoder();
  const frames = [...[...pieces].flatMap(({ bytes }) => [...decoder.push(bytes)]), ...decoder.end()];
  const random = seededRandom(1);
  const clean: WireStream = { protocol: client.id, frames, framing: PLAIN_FRAMING };
  for (const bytes of writeStream(spoken(clean, mutations, random), random)) yield { waitMs: 0, bytes };
}
