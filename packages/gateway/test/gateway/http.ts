// What servers write, for scripts; and what clients read, for tests.

/** The head of an answer. */
export function head(status: number, headers: Record<string, string> = {}): string {
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`);
  return `HTTP/1.1 ${status} Some Words\r\n${lines.join('')}\r\n`;
}

/** A whole answer with its length. */
export function whole(status: number, body: string | Uint8Array, headers: Record<string, string> = {}): Buffer {
  const bytes = Buffer.from(body);
  const type = { 'content-type': 'application/json', ...headers, 'content-length': String(bytes.length) };
  return Buffer.concat([Buffer.from(head(status, type)), bytes]);
}

export const streamHead = (headers: Record<string, string> = {}): string =>
  head(200, { 'content-type': 'text/event-stream', 'transfer-encoding': 'chunked', ...headers });

/** A chunk of the transfer coding. */
export const chunk = (body: string | Uint8Array): Buffer => {
  const bytes = Buffer.from(body);
  return Buffer.concat([Buffer.from(`${bytes.length.toString(16)}\r\n`), bytes, Buffer.from('\r\n')]);
};

export const LAST_CHUNK = '0\r\n\r\n';

export interface Reply {
  status: number;
  headers: Record<string, string>;
  body: Buffer;
  /** All of it is there, by its length or its last chunk. */
  isWhole: boolean;
  /** What follows it on the connection. */
  rest: Buffer;
}

/** The first answer in the bytes of a connection; undefined as long as its head is not there. Interim answers are skipped. */
export function parseReply(bytes: Buffer): Reply | undefined {
  const end = bytes.indexOf('\r\n\r\n');
  if (end < 0) return undefined;
  const [line = '', ...fields] = bytes.subarray(0, end).toString('latin1').split('\r\n');
  const status = Number(line.split(' ')[1]);
  const rest = bytes.subarray(end + 4);
  if (status < 200) return parseReply(rest);
  const headers = Object.fromEntries(
    fields.map((field): [string, string] => {
      const colon = field.indexOf(':');
      return [field.slice(0, colon).toLowerCase(), field.slice(colon + 1).trim()];
    }),
  );
  if (headers['transfer-encoding'] === 'chunked') return { status, headers, ...dechunk(rest) };
  const length = Number(headers['content-length'] ?? Number.NaN);
  if (Number.isNaN(length)) return { status, headers, body: rest, isWhole: false, rest: Buffer.alloc(0) };
  return { status, headers, body: rest.subarray(0, length), isWhole: rest.length >= length, rest: rest.subarray(length) };
}

function dechunk(bytes: Buffer): Pick<Reply, 'body' | 'isWhole' | 'rest'> {
  const pieces: Buffer[] = [];
  let at = 0;
  for (;;) {
    const line = bytes.indexOf('\r\n', at);
    const size = line < 0 ? Number.NaN : Number.parseInt(bytes.toString('latin1', at, line), 16);
    if (Number.isNaN(size)) return { body: Buffer.concat(pieces), isWhole: false, rest: Buffer.alloc(0) };
    const piece = bytes.subarray(line + 2, line + 2 + size);
    pieces.push(piece);
    at = line + 2 + size + 2;
    if (size === 0) return { body: Buffer.concat(pieces), isWhole: true, rest: bytes.subarray(at) };
    if (piece.length < size) return { body: Buffer.concat(pieces), isWhole: false, rest: Buffer.alloc(0) };
  }
}
