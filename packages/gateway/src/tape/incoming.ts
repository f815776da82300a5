/** Reads requests to the recorder and the replayer. */

import type { IncomingMessage } from 'node:http';
import { CodecError, type HeaderBag } from '@sluice/core';
import { type Route, readRequestTarget } from '@sluice/core/engine';
import { parseBody } from '../exchange/request-body.ts';
import { refusal } from '../http/refusal.ts';
import { Collector } from '../upstream/body.ts';

/** The headers of a request, with repeated ones joined. */
export function readHeaders({ headers }: IncomingMessage): HeaderBag {
  const entries = Object.entries(headers).flatMap(([name, value]) =>
    value === undefined ? [] : [[name, Array.isArray(value) ? value.join(', ') : value] as const],
  );
  return Object.fromEntries(entries);
}

/** The path as the client sent it, without the host that clients of a proxy put before it. */
export const readPath = ({ url = '/' }: IncomingMessage): string => url.replace(/^https?:\/\/[^/?#]*/i, '') || '/';

/** JSON levels of a recorded request: more than the gateway accepts, and few enough for JSON.stringify. */
const MAX_RECORDED_DEPTH = 512;

/** The body of a request. Throws when it is longer than the limit. */
export async function collectBody(request: IncomingMessage, limit: number): Promise<Buffer> {
  const collector = new Collector(limit);
  for await (const chunk of request)
    if (!collector.push(chunk as Buffer))
      throw refusal(413, 'PAYLOAD_TOO_LARGE', `the request body has more than ${limit} bytes`);
  return collector.take();
}

/** Parses a body as JSON; undefined when it is not JSON. */
export function parseJson(body: Uint8Array): unknown {
  try {
    return parseBody(body, MAX_RECORDED_DEPTH).body;
  } catch (error) {
    if (error instanceof CodecError) return undefined;
    throw error;
  }
}

/** The model and whether a stream is requested; defaults when the request cannot be read. */
export function readTarget(
  { client, path }: Route,
  headers: HeaderBag,
  body: unknown,
): { model: string | null; stream: boolean } {
  try {
    const { model, isStream } = readRequestTarget(client, { method: 'POST', path, headers, body });
    return { model, stream: isStream };
  } catch (error) {
    if (error instanceof CodecError) return { model: null, stream: false };
    throw error;
  }
}
