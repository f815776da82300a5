/** Redacts upstream errors, which may quote the key that was sent. */
export function redactBytes(pieces: Iterable<Uint8Array>, redact: (text: string) => string): Uint8Array {
  return Buffer.from(redact(Buffer.concat([...pieces]).toString('utf8')));
}
