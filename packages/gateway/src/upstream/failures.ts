// Why a call failed. Messages of `TooLarge`, `NotUnpacked` and `MalformedResponse` are sent to the client after the
// name of the provider.

/** The body exceeded its limit. */
export class TooLarge extends Error {
  override readonly name = 'TooLarge';
}

/** What a call was waiting for when it timed out. */
export type Wait =
  /** The headers of the response. */
  | 'response'
  /** The first event of a stream. */
  | 'event'
  /** More of a body. */
  | 'more'
  /** The end of the response. */
  | 'end';

/** The upstream took too long. */
export class TooLate extends Error {
  override readonly name = 'TooLate';
  readonly wait: Wait;
  readonly ms: number;

  constructor(wait: Wait, ms: number) {
    super(`no ${wait} within ${ms} ms`);
    this.wait = wait;
    this.ms = ms;
  }
}

/** The body has an encoding that was not requested and is not supported, or its encoding is broken. */
export class NotUnpacked extends Error {
  override readonly name = 'NotUnpacked';
}

/** The URL is not at the address of its provider. The call is not made, because the key belongs to that address. */
export class WrongAddress extends Error {
  override readonly name = 'WrongAddress';
}

/** The upstream sent bytes that are not HTTP/1.1. It received the request and may have processed it. */
export class MalformedResponse extends Error {
  override readonly name = 'MalformedResponse';
}

/** Converts undici's errors about invalid HTTP; undefined for all others. `hasHead`: the response headers were read. */
export function malformedResponse(error: Error, hasHead: boolean): MalformedResponse | undefined {
  const reason = malformation(error, hasHead);
  return reason === undefined ? undefined : new MalformedResponse(`sent an invalid HTTP response: ${reason}`, { cause: error });
}

/** The parser's reason: `Response does not match the HTTP/1.1 protocol (Invalid character in chunk size)`. */
const PARSER_REASON = /\(([\w ,/'-]{1,80})\)$/;

function malformation(error: Error, hasHead: boolean): string | undefined {
  const code = 'code' in error ? error.code : undefined;
  if (error.name === 'HTTPParserError') {
    const reason = PARSER_REASON.exec(error.message)?.[1] ?? 'it is not HTTP/1.1';
    // This is how the parser reports a closed connection.
    return reason.startsWith('Invalid EOF state') ? undefined : reason;
  }
  // After the headers it means that the connection was closed.
  if (code === 'UND_ERR_RES_CONTENT_LENGTH_MISMATCH') return hasHead ? undefined : 'its content-length is ambiguous';
  if (code === 'UND_ERR_HEADERS_OVERFLOW') return 'its headers are too large';
  return code === 'UND_ERR_SOCKET' && error.message === 'bad upgrade' ? 'it switches to another protocol' : undefined;
}
