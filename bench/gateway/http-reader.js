/** The little of HTTP that the load generator reads: responses with a length or in chunks, in whatever pieces they come. */

const END_OF_HEAD = Buffer.from('\r\n\r\n');

/** Reads one response: `push` returns the bytes of its body that came, and `isWhole` says whether it has ended. */
export class ResponseReader {
  status = 0;
  isWhole = false;
  #waiting = Buffer.alloc(0);
  #state = 'head';
  /** Bytes that are left of the body, or of the chunk. */
  #left = 0;

  push(data) {
    const found = [];
    let bytes = this.#waiting.length > 0 ? Buffer.concat([this.#waiting, data]) : data;
    this.#waiting = Buffer.alloc(0);
    while (bytes.length > 0 && !this.isWhole) {
      const used = this.#read(bytes, found);
      if (used === 0) {
        this.#waiting = Buffer.from(bytes);
        break;
      }
      bytes = bytes.subarray(used);
    }
    return found;
  }

  /** How many bytes were used; 0 when more are needed. */
  #read(bytes, found) {
    switch (this.#state) {
      case 'head':
        return this.#readHead(bytes);
      case 'size':
        return this.#readSize(bytes);
      case 'chunk end':
        if (bytes.length < 2) return 0;
        this.#state = 'size';
        return 2;
      default:
        return this.#readBody(bytes, found);
    }
  }

  #readHead(bytes) {
    const end = bytes.indexOf(END_OF_HEAD);
    if (end < 0) return 0;
    const head = bytes.latin1Slice(0, end);
    this.status = Number(head.slice(9, 12));
    const length = /\r\ncontent-length: *(\d+)/i.exec(head);
    if (!length && !/\r\ntransfer-encoding: *chunked/i.test(head))
      throw new Error(`a response has neither a length nor chunks: ${head.slice(0, 300)}`);
    this.#state = length ? 'body' : 'size';
    this.#left = length ? Number(length[1]) : 0;
    if (length && this.#left === 0) this.isWhole = true;
    return end + END_OF_HEAD.length;
  }

  #readSize(bytes) {
    const end = bytes.indexOf(10);
    if (end < 0) return 0;
    const size = bytes.latin1Slice(0, end);
    this.#left = Number.parseInt(size, 16);
    if (Number.isNaN(this.#left)) throw new Error(`the size of a chunk is ${JSON.stringify(size.slice(0, 100))}`);
    if (this.#left === 0) {
      // The empty line behind the last chunk; there are no trailers here.
      if (bytes.length < end + 3) return 0;
      this.isWhole = true;
      return end + 3;
    }
    this.#state = 'chunk';
    return end + 1;
  }

  #readBody(bytes, found) {
    const used = Math.min(bytes.length, this.#left);
    found.push(bytes.subarray(0, used));
    this.#left -= used;
    if (this.#left === 0) {
      if (this.#state === 'body') this.isWhole = true;
      else this.#state = 'chunk end';
    }
    return used;
  }
}
