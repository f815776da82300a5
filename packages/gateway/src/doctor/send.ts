import { request } from 'undici';

/** Longer than any small answer takes, also of a model that thinks and of a server that loads it first. */
const PATIENCE_MS = 180_000;
const MAX_RESPONSE_BYTES = 32 * 1024 * 1024;

export interface Sent {
  url: string;
  headers: Record<string, string>;
  body: string;
}

export interface Received {
  status: number;
  contentType: string;
  chunks: Uint8Array[];
  /** The connection broke before the end. */
  broken?: string;
}

/** Sends one question. No redirect is followed: the key belongs to this address and to no other. */
export async function send({ url, headers, body }: Sent): Promise<Received> {
  const {
    statusCode,
    headers: answered,
    body: stream,
  } = await request(url, {
    method: 'POST',
    headers: { ...headers, 'accept-encoding': 'identity' },
    body,
    headersTimeout: PATIENCE_MS,
    bodyTimeout: PATIENCE_MS,
    signal: AbortSignal.timeout(PATIENCE_MS),
  });
  const chunks: Uint8Array[] = [];
  const received = { status: statusCode, contentType: String(answered['content-type'] ?? ''), chunks };
  let size = 0;
  try {
    for await (const chunk of stream as AsyncIterable<Uint8Array>) {
      chunks.push(chunk);
      size += chunk.length;
      if (size > MAX_RESPONSE_BYTES) return { ...received, broken: 'the answer is longer than 32 MB' };
    }
    return received;
  } catch (error) {
    return { ...received, broken: error instanceof Error ? error.message : String(error) };
  }
}
