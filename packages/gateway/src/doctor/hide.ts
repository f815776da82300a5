/** Puts stars in the place of a key that the other side repeats, byte for byte: places in the body stay what they are. */
export function hideKey(chunks: readonly Uint8Array[], key: string | undefined): Uint8Array[] {
  if (key === undefined || key === '') return [...chunks];
  const body = Buffer.concat(chunks);
  const secret = Buffer.from(key);
  for (let at = body.indexOf(secret); at >= 0; at = body.indexOf(secret, at)) body.fill('*', at, at + secret.length);
  return [body];
}

/** The same for a text. */
export const hideIn = (text: string, key: string | undefined): string =>
  key === undefined || key === '' ? text : text.replaceAll(key, '*'.repeat(8));
