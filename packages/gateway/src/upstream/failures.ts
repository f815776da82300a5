// Why a call failed. Messages of `TooLarge`, `NotUnpacked` and `MalformedResponse` are for the client: what follows the name of the provider in a sentence.

/** The body passed its limit. */
export class TooLarge extends Error {
  override readonly name = 'TooLarge';
}

/** What a call waited for when its time was up. */
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

/** A call would have left the address of its provider. It is not made: the key belongs to that address. */
export class WrongAddress extends Error {
  override readonly name = 'WrongAddress';
}

/** The upstream sent bytes that are not HTTP/1.1. It had the request, and may have processed it. */
export class MalformedResponse extends Error {
  override readonly name = 'MalformedResponse';
}

/** An error of undici that says that a response breaks the rules of HTTP; undefined for all others. `hasHead`: its headers were read. */
export function malformedResponse(error: Error, hasHead: boolean): MalformedResponse | undefined {
  const reason = malformation(error, hasHead);
  return reason === undefined ? undefined : new MalformedResponse(`sent an invalid HTTP response: ${reason}`, { cause: error });
}

/** What the parser says in its own words: `Response does not match the HTTP/1.1 protocol (Invalid character in chunk size)`. */
const PARSER_REASON = /\(([\w ,/'-]{1,80})\)$/;

function malformation(error: Error, hasHead: boolean): string | undefined {
  const code = 'code' in error ? error.code : undefined;
  if (error.name === 'HTTPParserError') {
    const reason = PARSER_REASON.exec(error.message)?.[1] ?? 'it is not HTTP/1.1';
    // The parser's name for a connection that broke.
    return reason.startsWith('Invalid EOF state') ? undefined : reason;
  }
  // Behind the headers it means that the connection broke.
  if (code === 'UND_ERR_RES_CONTENT_LENGTH_MISMATCH') return hasHead ? undefined : 'its content-length is ambiguous';
  if (code === 'UND_ERR_HEADERS_OVERFLOW') return 'its headers are too large';
  return code === 'UND_ERR_SOCKET' && error.message === 'bad upgrade' ? 'it switches to another protocol' : undefined;
}
