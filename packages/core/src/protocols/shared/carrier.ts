import type { ProtocolId, SignedBlob } from '../../canonical/protocol.ts';

/** Whether the blob belongs to the block that carries it, or to the call or text that follows. */
export type Attach = 'self' | 'next';

const PREFIX = 'cv1.';
const ID_MARK = '--cv1--';

/** The beginning of every carrier as base64: Gemini's signatures are bytes. */
export const CARRIED_AS_BASE64 = 'Y3Yx';

const PROTOCOLS: Record<ProtocolId, true> = {
  'openai-chat': true,
  'anthropic-messages': true,
  'openai-responses': true,
  gemini: true,
};

const FORMS: Record<SignedBlob['form'], true> = { signature: true, redacted: true, encrypted: true, thought_signature: true };

/**
 * Another provider's opaque value in a field of the client's own protocol, so that the client hands it back on the next turn:
 * `cv1.<protocol>.<provider>.<form>.<attach>.<base64url(value)>`. It names its issuer, so that nobody else ever gets it.
 */
export function encodeCarrier({ origin, form, value }: SignedBlob, provider: string, attach: Attach): string {
  return `${PREFIX}${origin}.${escapeDots(provider)}.${form}.${attach}.${toBase64Url(value)}`;
}

/** Whether the JSON text of a request may hold a carrier: as a value, in a call id, or as base64. */
export const holdsCarrier = (text: string): boolean =>
  text.includes(PREFIX) || text.includes(ID_MARK) || text.includes(`"${CARRIED_AS_BASE64}`);

/** What a carrier holds; undefined for anything else: such a value was issued by the protocol it came in. */
export function decodeCarrier(text: string): Carried | undefined {
  if (!text.startsWith(PREFIX)) return undefined;
  const [origin = '', provider = '', form = '', attach = '', encoded = '', ...rest] = text.slice(PREFIX.length).split('.');
  return rest.length > 0 ? undefined : readFields(origin, unescapeDots(provider), form, attach, encoded);
}

interface Carried {
  blob: SignedBlob;
  attach: Attach;
}

function readFields(origin: string, issuer: string, form: string, attach: string, encoded: string): Carried | undefined {
  const value = fromBase64Url(encoded);
  if (value === undefined || !isProtocol(origin) || !isForm(form)) return undefined;
  if (attach !== 'self' && attach !== 'next') return undefined;
  return { blob: { origin, form, value, ...(issuer !== '' && { provider: issuer }) }, attach };
}

/** Longer ids are not written. Clients replay an id as it is, and send it twice a turn; a signature of Gemini has a few kB. */
const MAX_ID = 16_384;

/** The same behind the id of a call, in the characters that ids may have: letters, digits, `_`, `-`. Undefined where the id would be too long. */
export function encodeCarrierInId(
  id: string,
  { origin, form, value }: SignedBlob,
  provider: string,
  attach: Attach,
): string | undefined {
  const carried = `${id}${ID_MARK}${[origin, escapeWord(provider), form, attach, toBase64Url(value)].join('--')}`;
  return carried.length > MAX_ID ? undefined : carried;
}

/** The id as its issuer wrote it, and what was carried behind it. */
export function decodeCarrierInId(text: string): { id: string; carried?: Carried } {
  const at = text.indexOf(ID_MARK);
  if (at <= 0) return { id: text };
  const [origin = '', provider = '', form = '', attach = '', ...value] = text.slice(at + ID_MARK.length).split('--');
  const carried = readFields(origin, unescapeWord(provider), form, attach, value.join('--'));
  return carried ? { id: text.slice(0, at), carried } : { id: text };
}

const escapeWord = (text: string): string =>
  text.replace(/[^a-zA-Z0-9]/g, (char) => `_${char.charCodeAt(0).toString(16).padStart(4, '0')}`);

const unescapeWord = (text: string): string =>
  text.replace(/_([0-9a-f]{4})/g, (_, code: string) => String.fromCharCode(Number.parseInt(code, 16)));

const isProtocol = (text: string): text is ProtocolId => Object.hasOwn(PROTOCOLS, text);
const isForm = (text: string): text is SignedBlob['form'] => Object.hasOwn(FORMS, text);

const escapeDots = (text: string): string => encodeURIComponent(text.toWellFormed()).replaceAll('.', '%2E');

function unescapeDots(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

function toBase64Url(text: string): string {
  let binary = '';
  for (const byte of new TextEncoder().encode(text)) binary += String.fromCharCode(byte);
  return btoa(binary).replaceAll('+', '-').replaceAll('/', '_').replaceAll('=', '');
}

function fromBase64Url(text: string): string | undefined {
  try {
    const binary = atob(text.replaceAll('-', '+').replaceAll('_', '/'));
    return new TextDecoder().decode(Uint8Array.from(binary, (char) => char.charCodeAt(0)));
  } catch {
    return undefined;
  }
}
