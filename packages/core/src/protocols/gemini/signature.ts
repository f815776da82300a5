import type { SignedBlob } from '../../canonical/protocol.ts';
import { CARRIED_AS_BASE64, decodeCarrier, encodeCarrier } from '../shared/carrier.ts';
import type { CodecContext } from '../shared/codec.ts';
import { signed } from './blocks.ts';

/** The field is of bytes: a blob of another provider goes as base64 of its carrier, our own as it came. */
export function encodeSignature(blob: SignedBlob, { target }: CodecContext): string {
  if (blob.origin === 'gemini') return blob.value;
  return btoa(encodeCarrier(blob, blob.provider ?? target?.provider.id ?? '', 'self'));
}

/** Whose the signature of a part is: a carrier names its issuer, anything else was issued by Gemini. */
export function decodeSignature(value: string): SignedBlob {
  return (value.startsWith(CARRIED_AS_BASE64) ? carried(value) : undefined) ?? signed(value);
}

function carried(value: string): SignedBlob | undefined {
  try {
    return decodeCarrier(atob(value.replaceAll('-', '+').replaceAll('_', '/')))?.blob;
  } catch {
    return undefined;
  }
}
