/** The text of a client key: `sluice_<public id>_<secret><checksum>`. The checksum refuses other texts without a lookup. */

import { randomBytes } from 'node:crypto';
import { crc32 } from 'node:zlib';

/** A new key: its text, which only its holder keeps, and the id that names it everywhere else. */
export interface KeyText {
  readonly id: string;
  readonly text: string;
}

const PREFIX = 'sluice_';

const ID_LENGTH = 16;

/** 43 digits of base 62 hold 256 bits. */
const SECRET_LENGTH = 43;

const CHECKSUM_LENGTH = 6;

const SECRET_BYTES = 32;

/** The length of every key. */
const KEY_LENGTH = PREFIX.length + ID_LENGTH + 1 + SECRET_LENGTH + CHECKSUM_LENGTH;

const DIGITS = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';

const FORM = new RegExp(`^${PREFIX}([0-9A-Za-z]{${ID_LENGTH}})_[0-9A-Za-z]{${SECRET_LENGTH + CHECKSUM_LENGTH}}$`);

/** Creates a key with another secret; with the id of an existing key for its rotation. */
export function createKeyText(id: string = createId(), random: (size: number) => Buffer = randomBytes): KeyText {
  const secret = toBase62(BigInt(`0x${random(SECRET_BYTES).toString('hex')}`), SECRET_LENGTH);
  const body = `${PREFIX}${id}_${secret}`;
  return { id, text: body + computeChecksum(body) };
}

/** The public id in a key text; undefined for every text that is not one, by its form and checksum alone. */
export function parseKeyId(text: string): string | undefined {
  if (text.length !== KEY_LENGTH || !text.startsWith(PREFIX)) return undefined;
  const id = FORM.exec(text)?.[1];
  if (id === undefined) return undefined;
  const end = KEY_LENGTH - CHECKSUM_LENGTH;
  return computeChecksum(text.slice(0, end)) === text.slice(end) ? id : undefined;
}

const computeChecksum = (body: string): string => toBase62(BigInt(crc32(body)), CHECKSUM_LENGTH);

function createId(): string {
  // 96 bits, of which 16 digits hold 95: the rest of the first digit is not used.
  const value = BigInt(`0x${randomBytes(12).toString('hex')}`);
  return toBase62(value % 62n ** BigInt(ID_LENGTH), ID_LENGTH);
}

function toBase62(value: bigint, length: number): string {
  let text = '';
  for (let rest = value, place = 0; place < length; place++, rest /= 62n) text = DIGITS[Number(rest % 62n)] + text;
  return text;
}
