import { isObject, type JsonObject } from '../../accumulate/overlay.ts';
import type { Citation, TokenLogprob, TopLogprob } from '../../canonical/blocks.ts';
import type { SignedBlob } from '../../canonical/protocol.ts';
import type { Length } from '../shared/answer.ts';
import { type Attach, encodeCarrier } from '../shared/carrier.ts';
import type { CodecContext } from '../shared/codec.ts';
import { PROTOCOL } from './kept.ts';

/** A citation as an annotation of its part of this length; undefined for what has a meaning only in another protocol. */
export function encodeCitation(citation: Citation, length: Length): JsonObject | undefined {
  const { kind, url, title, start, end, origin, raw } = citation;
  if (origin === PROTOCOL) return isObject(raw) ? raw : undefined;
  if (kind !== 'url' || url === undefined) return undefined;
  return { type: 'url_citation', start_index: start ?? 0, end_index: end ?? length.value, title: title ?? '', url };
}

/** Whether an annotation needs the whole text of its part. */
export const isOpenEnded = ({ origin, end }: Citation): boolean => origin !== PROTOCOL && end === undefined;

const encodeToken = ({ token, logprob, bytes }: TopLogprob): JsonObject => ({ token, logprob, bytes: bytes ?? [] });

export const encodeLogprobs = (tokens: readonly TokenLogprob[]): JsonObject[] =>
  tokens.map(({ top = [], ...token }) => ({ ...encodeToken(token), top_logprobs: top.map(encodeToken) }));

/** The ciphertext of a reasoning item: this protocol's own goes as it came, another's travels in a carrier. */
export function encodeBlob(blob: SignedBlob, attach: Attach, context: CodecContext): string {
  if (blob.origin === PROTOCOL && blob.form === 'encrypted') return blob.value;
  return encodeCarrier(blob, blob.provider ?? context.target?.provider.id ?? '', attach);
}
