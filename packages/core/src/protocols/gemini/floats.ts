const BYTES_PER_FLOAT = 4;

/** The numbers in base64 of little-endian 32-bit floats; undefined when it is none. */
export function unpackFloats(text: string): number[] | undefined {
  const binary = binaryOf(text);
  if (binary === undefined || binary.length % BYTES_PER_FLOAT !== 0) return undefined;
  const bytes = Uint8Array.from(binary, (char) => char.charCodeAt(0));
  const view = new DataView(bytes.buffer);
  return Array.from({ length: bytes.length / BYTES_PER_FLOAT }, (_, i) => view.getFloat32(i * BYTES_PER_FLOAT, true));
}

function binaryOf(text: string): string | undefined {
  try {
    return atob(text.replaceAll('-', '+').replaceAll('_', '/'));
  } catch {
    return undefined;
  }
}
