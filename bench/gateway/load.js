/** What the load scripts share. */

/** The bytes of a request. Who asks is told in the words of all protocols. */
export function requestOf(body, connection) {
  const { PORT, PATH_, HEADERS = '' } = process.env;
  const head = [
    `POST ${PATH_} HTTP/1.1`,
    `host: 127.0.0.1:${PORT}`,
    'content-type: application/json',
    'authorization: Bearer k',
    'x-api-key: k',
    'anthropic-version: 2023-06-01',
    `content-length: ${Buffer.byteLength(body)}`,
    `connection: ${connection}`,
  ];
  return Buffer.from(`${head.join('\r\n')}\r\n${HEADERS}\r\n${body}`);
}

export function percentile(values, share) {
  const sorted = Float64Array.from(values).sort();
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? 0;
}
