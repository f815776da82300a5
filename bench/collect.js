/** Every piece of a stream, as fast as it comes. */
export async function collect(stream) {
  const out = [];
  for await (const piece of stream) out.push(piece);
  return out;
}
