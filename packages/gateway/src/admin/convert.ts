/** A request in another protocol, with what is lost by that: for code that sends it, and for the playground. */

import { CodecError } from '@sluice/core';
import { CODECS, type Codec, convertRequest, findRoute, type Route } from '@sluice/core/engine';
import { isDeeperThan } from '@sluice/core/internal';
import { z } from 'zod';
import { Problem } from './problem.ts';
import { buildPath, setModel } from './send.ts';

// Every protocol of the table, which is not empty.
const PROTOCOL_IDS = Object.keys(CODECS) as [keyof typeof CODECS];

/** What to convert. */
export const CONVERSION_REQUEST = z.strictObject({
  path: z.string().min(1).max(2000).describe('The path that the request was made for, which decides about its protocol.'),
  body: z.record(z.string(), z.unknown()),
  to: z.enum(PROTOCOL_IDS).optional().describe('Its own protocol by default.'),
  model: z.string().min(1).max(512).optional().describe('Another model than that of the request.'),
});

/** The converted request. */
export const CONVERTED = z.strictObject({
  from: z.string(),
  to: z.string(),
  model: z.string(),
  is_stream: z.boolean(),
  path: z.string().describe('Where this gateway accepts it.'),
  body: z.record(z.string(), z.unknown()),
  notes: z
    .array(z.strictObject({ code: z.string(), path: z.string(), feature: z.string(), message: z.string() }))
    .describe('What was dropped or approximated.'),
});

/** Bodies may have images. */
export const MAX_CONVERTED_BYTES = 24_000_000;

const MAX_DEPTH = 200;

/** Converts a request for a model. */
export function convertForClient({ path, body, to, model }: z.infer<typeof CONVERSION_REQUEST>): z.infer<typeof CONVERTED> {
  if (isDeeperThan(body, MAX_DEPTH)) throw new Problem(400, `body: is nested more than ${MAX_DEPTH} levels deep`);
  const route = findRoute(path, {});
  const target = to === undefined ? route.client : CODECS[to];
  if (target.id !== route.client.id && route.type !== 'CHAT')
    throw new Problem(400, 'path: only requests for a conversation can be converted');
  try {
    return convert(route, body, target, model);
  } catch (error) {
    if (error instanceof CodecError) throw new Problem(400, `the request cannot be converted: ${error.message}`);
    throw error;
  }
}

function convert(
  { client: from, path }: Route,
  body: Record<string, unknown>,
  to: Codec,
  model: string | undefined,
): z.infer<typeof CONVERTED> {
  const target = from.readTarget({ method: 'POST', path, headers: {}, body });
  const name = model ?? target?.model ?? '';
  const is_stream = target?.isStream ?? false;
  const facts = { from: from.id, to: to.id, model: name, is_stream };
  // The same protocol needs no conversion, which could change something.
  if (from.id === to.id)
    return { ...facts, ...(model === undefined ? { path, body } : setModel({ path, body }, model)), notes: [] };
  const converted = convertRequest(body, { from, to, path, model: name, stream: is_stream });
  return {
    ...facts,
    path: buildPath(to, 'CHAT', name, is_stream),
    // Encoders write objects only.
    body: converted.body as Record<string, unknown>,
    notes: converted.notes.map(({ code, path: where, feature, message }) => ({ code, path: where, feature, message })),
  };
}
