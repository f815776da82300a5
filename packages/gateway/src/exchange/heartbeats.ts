import type { Codec } from '@sluice/core';

const encoded = new Map<string, Uint8Array>();

/** What keeps a silent stream of the protocol open; undefined where its clients accept nothing of the kind. */
export function encodeHeartbeat({ heartbeat }: Codec): Uint8Array | undefined {
  if (heartbeat === undefined) return undefined;
  const known = encoded.get(heartbeat) ?? Buffer.from(heartbeat);
  encoded.set(heartbeat, known);
  return known;
}
