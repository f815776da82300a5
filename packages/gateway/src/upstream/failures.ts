// Why a call failed. Messages of `TooLarge` and `NotUnpacked` are for the client: what follows the name of the provider in a sentence.

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
