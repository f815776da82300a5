/** Errors are an upstream's own words, and may show whose key was sent. */
export function redactBytes(pieces: Iterable<Uint8Array>, redact: (text: string) => string): Uint8Array {
  return Buffer.from(redact(Buffer.concat([...pieces]).toString('utf8')));
}
