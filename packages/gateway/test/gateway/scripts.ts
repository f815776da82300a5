import type { ProtocolId } from '@sluice/core';
import { framesOf, wholeOf } from './dialects.ts';
import type { Script } from './faultd.ts';
import { chunk, LAST_CHUNK, streamHead, whole } from './http.ts';

/** A stream in these pieces, to its end. */
export const streamOf = (...pieces: readonly (string | Uint8Array)[]): Script => [
  { send: streamHead() },
  ...pieces.map((piece) => ({ send: chunk(piece) })),
  { send: LAST_CHUNK },
];

/** What a good upstream answers. */
export const good = ({ upstream }: { upstream: ProtocolId }, stream: boolean): Script =>
  stream ? streamOf(framesOf(upstream).join('')) : [{ send: whole(200, wholeOf(upstream)) }];
