import type { IncomingMessage } from 'node:http';
import { CodecError, type HeaderBag, type Route, readAsked } from '@sluice/core';
import { parseBody } from '../exchange/request-body.ts';
import { refusal } from '../http/refusal.ts';
import { Collector } from '../upstream/body.ts';

export function headersOf({ headers }: IncomingMessage): HeaderBag {
  const entries = Object.entries(headers).flatMap(([name, value]) =>
    value === undefined ? [] : [[name, Array.isArray(value) ? value.join(', ') : value] as const],
  );
  return Object.fromEntries(entries);
}

/** As the client sent it; those who think that they talk to a proxy name a host, which is not theirs to choose. */
export const pathOf = ({ url = '/' }: IncomingMessage): string => url.replace(/^https?:\/\/[^/?#]*/i, '') || '/';

/** Levels of a recorded request: more than the gateway accepts, and few enough for JSON.stringify. */
const MAX_RECORDED_DEPTH = 512;

/** The bytes of a request's body, up to a limit. */
export async function collectBody(request: IncomingMessage, limit: number): Promise<Buffer> {
  const collector = new Collector(limit);
  for await (const chunk of request)
    if (!collector.push(chunk as Buffer))
      throw refusal(413, 'PAYLOAD_TOO_LARGE', `the body of the request has more than ${limit} bytes`);
  return collector.take();
}

/** A body as JSON; undefined when it is none. */
export function parsed(body: Uint8Array): unknown {
  try {
    return parseBody(body, MAX_RECORDED_DEPTH).body;
  } catch (error) {
    if (error instanceof CodecError) return undefined;
    throw error;
  }
}

/** The model, and whether a stream is wanted, as far as the request says. */
export function askedOf({ client, path }: Route, headers: HeaderBag, body: unknown): { model: string | null; stream: boolean } {
  try {
    const { model, isStream } = readAsked(client, { method: 'POST', path, headers, body });
    return { model, stream: isStream };
  } catch (error) {
    if (error instanceof CodecError) return { model: null, stream: false };
    throw error;
  }
}
