/** A captured request as a command that sends it again. */

/** A request of a capture. */
interface Request {
  readonly method: string;
  readonly path: string;
  readonly body: string;
}

/** A command for a POSIX shell. The capture has no credentials, so a key has to be filled in. */
export function formatCurl({ method, path, body }: Request, origin: string): string {
  const lines = [
    `curl -N ${method === 'POST' ? '' : `-X ${quote(method)} `}${quote(origin + path)}`,
    "-H 'authorization: Bearer YOUR_KEY'",
    ...(body === '' ? [] : ["-H 'content-type: application/json'", `-d ${quote(body)}`]),
  ];
  return lines.join(' \\\n  ');
}

/** Single quotes keep everything but themselves. */
const quote = (text: string): string => `'${text.replaceAll("'", `'\\''`)}'`;

/** Bytes in base64 as text. Bytes that are not UTF-8 become replacement characters. */
export function decodeBase64(base64: string): string {
  const binary = atob(base64);
  // Not `Uint8Array.from`, which takes a second for 20 MB.
  const bytes = new Uint8Array(binary.length);
  for (let at = 0; at < binary.length; at++) bytes[at] = binary.charCodeAt(at);
  return new TextDecoder().decode(bytes);
}
