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

/** The body of an answer in chunks, as text, in whatever pieces it comes. */
export class Unchunked {
  /** What has come of the head of the answer, or of the line before a chunk. */
  #line = '';
  /** Of the chunk, and of the line end behind it. */
  #left = 0;
  #isInBody = false;

  push(text) {
    let body = '';
    for (let at = 0; at < text.length; ) {
      if (this.#left > 0) {
        const end = Math.min(text.length, at + this.#left);
        body += text.slice(at, Math.max(at, end - Math.max(0, 2 - (this.#left - (end - at)))));
        this.#left -= end - at;
        at = end;
      } else at = this.#readLine(text, at);
    }
    return body;
  }

  #readLine(text, at) {
    const ending = this.#isInBody ? '\r\n' : '\r\n\r\n';
    const line = this.#line + text.slice(at);
    const end = line.indexOf(ending);
    if (end < 0) {
      this.#line = line;
      return text.length;
    }
    const next = at + end + ending.length - this.#line.length;
    if (this.#isInBody) this.#left = Number.parseInt(line, 16) + 2;
    this.#isInBody = true;
    this.#line = '';
    return next;
  }
}
