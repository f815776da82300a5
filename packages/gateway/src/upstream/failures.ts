/** The body passed its limit. */
export class TooLarge extends Error {
  override readonly name = 'TooLarge';
}

/** The answer is late. */
export class TooLate extends Error {
  override readonly name = 'TooLate';
}

/** The answer is packed in a way that was not asked for and is not read, or its packing is broken. `message` is for the client. */
export class NotUnpacked extends Error {
  override readonly name = 'NotUnpacked';
}

/** A call would have left the address of its provider. It is not made: the key belongs to that address. */
export class WrongAddress extends Error {
  override readonly name = 'WrongAddress';
}
