import { CodecError } from '../protocols/shared/codec.ts';

/** A whole body as text. Throws when it is longer than allowed. */
export async function readText(
  body: ReadableStream<Uint8Array> | null,
  maxBytes: number,
  what: 'request' | 'answer',
): Promise<string> {
  if (!body) return '';
  const decoder = new TextDecoder();
  const reader = body.getReader();
  let text = '';
  let length = 0;
  for (let read = await reader.read(); !read.done; read = await reader.read()) {
    length += read.value.length;
    if (length > maxBytes) {
      await reader.cancel();
      throw tooLong(maxBytes, what);
    }
    text += decoder.decode(read.value, { stream: true });
  }
  return text + decoder.decode();
}

const tooLong = (maxBytes: number, what: 'request' | 'answer'): CodecError =>
  new CodecError({
    code: what === 'request' ? 'PAYLOAD_TOO_LARGE' : 'UPSTREAM_ERROR',
    message: `the body of the ${what} has more than ${maxBytes} bytes`,
    http_status: what === 'request' ? 413 : 502,
  });
