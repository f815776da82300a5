import type { ImageBlock } from '../../canonical/blocks.ts';
import type { CanonicalRequest } from '../../canonical/request.ts';
import { sha256 } from '../../passes/sha256.ts';
import type { CodecContext } from './codec.ts';
import { expectObject, expectText, optional } from './expect.ts';
import { isTexts } from './read.ts';

// What both protocols of OpenAI say in the same words.

type Detail = NonNullable<ImageBlock['source']['detail']>;

const DETAILS: readonly unknown[] = ['auto', 'low', 'high', 'original'] satisfies Detail[];

/** How closely an image is looked at. */
export const isDetail = (detail: unknown): detail is Detail => DETAILS.includes(detail);

/** Texts only; what holds something else goes back as it came. */
export function decodeMetadata(value: unknown): Pick<CanonicalRequest, 'metadata'> {
  const metadata = optional(value, 'metadata', expectObject);
  return metadata && isTexts(metadata) ? { metadata } : {};
}

const TIERS: Readonly<Record<string, string>> = {
  auto: 'auto',
  default: 'standard',
  flex: 'flex',
  scale: 'scale',
  priority: 'priority',
  fast: 'priority',
};

/** A tier that only its server knows has no canonical word, and goes back as it came. */
export function decodeTier(value: unknown): Pick<CanonicalRequest, 'service_tier'> {
  const word = optional(value, 'service_tier', expectText);
  const tier = word !== undefined && Object.hasOwn(TIERS, word) ? TIERS[word] : undefined;
  return tier === undefined ? {} : { service_tier: tier };
}

/** `sent`: the client's own word, which stands as long as it means the same. */
export function encodeTier(tier: string | undefined, sent: unknown): string | undefined {
  if (typeof sent === 'string' && decodeTier(sent).service_tier === tier) return sent;
  return tier === undefined || tier === 'batch' ? undefined : tier === 'standard' ? 'default' : tier;
}

/** Longer ids are refused. */
const MAX_USER = 64;

export const shortUser = (id: string): string => (id.length > MAX_USER ? sha256(id) : id);

/** The id of the user as OpenAI takes it. */
export function encodeUserId(id: string, context: CodecContext): string {
  const short = shortUser(id);
  const message = `the id of the user is longer than ${MAX_USER}; its hash is sent`;
  if (short !== id) context.note({ code: 'RENAMED', path: '/user_id', feature: 'user_id', message });
  return short;
}
