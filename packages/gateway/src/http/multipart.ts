import { CodecError } from '@sluice/core';

/**
 * A `multipart/form-data` body in which fields can be found and replaced; the other bytes stay as they are (RFC 2046
 * 5.1, RFC 7578).
 */
export class MultipartForm {
  readonly #body: Buffer;
  readonly #boundary: string;
  readonly #parts: readonly Part[];
  /** Where the first boundary begins. */
  readonly #first: number;

  /** Throws for a body that cannot be read, because a server might find other fields in it. */
  constructor(body: Buffer, contentType: string) {
    const [, quoted, plain] = BOUNDARY.exec(contentType) ?? [];
    this.#body = body;
    this.#boundary = quoted ?? plain ?? '';
    const reader = new PartReader(body, this.#boundary);
    this.#parts = [...reader];
    this.#first = reader.first;
  }

  /** The values of the fields with this name, without files. */
  find(name: string): readonly Range[] {
    return this.#parts.filter(({ headers }) => readFieldName(headers) === name).map(({ value }) => value);
  }

  /** The names and values of the fields with at most so many bytes, without files. */
  texts(maxBytes: number): [name: string, value: string][] {
    return this.#parts.flatMap(({ headers, value: { start, end } }): [string, string][] => {
      const name = readFieldName(headers);
      return name === undefined || end - start > maxBytes ? [] : [[name, this.#body.toString('utf8', start, end)]];
    });
  }

  /** Names and values of the fields that are no files. A long value is cut. */
  listFields(): [name: string, value: string][] {
    return this.#parts.flatMap(({ headers, value: { start, end } }) => {
      const name = readFieldName(headers);
      return name === undefined ? [] : [[name, this.#body.toString('utf8', start, Math.min(end, start + MAX_VALUE_BYTES))]];
    });
  }

  /** How many parts are files, and their bytes together. */
  get files(): { readonly count: number; readonly bytes: number } {
    const files = this.#parts.filter(({ headers }) => readFieldName(headers) === undefined);
    return { count: files.length, bytes: files.reduce((sum, { value }) => sum + value.end - value.start, 0) };
  }

  replace({ start, end }: Range, value: string): Buffer {
    return Buffer.concat([this.#body.subarray(0, start), Buffer.from(value), this.#body.subarray(end)]);
  }

  /** The body with one more field, before all others. */
  add(name: string, value: string): Buffer {
    const part = `--${this.#boundary}\r\nContent-Disposition: form-data; name="${name}"\r\n\r\n${value}\r\n`;
    return this.replace({ start: this.#first, end: this.#first }, part);
  }
}

/** Settings are shorter. */
const MAX_VALUE_BYTES = 256;

/** A range of bytes; the end is exclusive. */
interface Range {
  start: number;
  end: number;
}

interface Part {
  /** As text; it contains the names of fields and files. */
  headers: string;
  value: Range;
}

function readFieldName(headers: string): string | undefined {
  const parameters = DISPOSITION.exec(headers)?.[1] ?? '';
  const [, quoted, plain] = FIELD_NAME.exec(parameters) ?? [];
  return FILE_NAME.test(parameters) ? undefined : (quoted ?? plain);
}

/** The boundary of a form by its content type; undefined for other content. */
export function readBoundary(contentType: string): string | undefined {
  const [, quoted, plain] = /^multipart\//i.test(contentType) ? (BOUNDARY.exec(contentType) ?? []) : [];
  return quoted ?? plain;
}

/** The parts of a form, in their order. Undefined for other content; throws for a form that cannot be read. */
export function readParts(body: Buffer, contentType: string): readonly Part[] | undefined {
  const boundary = readBoundary(contentType);
  return boundary === undefined ? undefined : [...new PartReader(body, boundary)];
}

const BOUNDARY = /;\s*boundary=(?:"([^"]{1,70})"|([^\s;"]{1,70}))/i;

const DISPOSITION = /^content-disposition:\s*form-data\b(.*)$/im;

const FIELD_NAME = /;\s*name=(?:"([^"]*)"|([^\s;"]+))/i;

const FILE_NAME = /;\s*filename\*?=/i;

/** Reads the parts of a body, one after the other. */
class PartReader implements Iterable<Part> {
  readonly #body: Buffer;
  readonly #delimiter: Buffer;
  readonly first: number;

  constructor(body: Buffer, boundary: string) {
    if (boundary === '') throw createError('the content type has no boundary');
    this.#body = body;
    this.#delimiter = Buffer.from(`\r\n--${boundary}`);
    // The first boundary may be at the very beginning.
    const begins = body.subarray(0, this.#delimiter.length - CRLF.length).equals(this.#delimiter.subarray(CRLF.length));
    this.first = begins ? 0 : this.#next(0).start + CRLF.length;
  }

  *[Symbol.iterator](): Iterator<Part> {
    const { length } = this.#delimiter;
    let at = this.first + length - CRLF.length;
    for (let count = 0; !this.#isLast(at); count++) {
      if (count === MAX_PARTS) throw createError(`more than ${MAX_PARTS} parts`);
      const headers = this.#headers(this.#endOfLine(at) ?? this.#body.length);
      const value = headers.end + BLANK_LINE.length;
      // An empty value ends where it begins: its boundary shares no bytes with the blank line before it.
      const next = this.#next(value);
      yield { headers: this.#body.toString('latin1', headers.start, headers.end), value: { start: value, end: next.start } };
      at = next.start + length;
    }
  }

  #isLast(at: number): boolean {
    return this.#body[at] === DASH && this.#body[at + 1] === DASH;
  }

  #headers(start: number): Range {
    // Without headers, the blank line is the end of the boundary's own line and one more.
    const from = start - CRLF.length;
    const end = this.#body.subarray(from, from + MAX_HEADER_BYTES).indexOf(BLANK_LINE);
    if (end < 0) throw createError('the headers of a part are incomplete or too long');
    return { start: Math.min(start, from + end), end: from + end };
  }

  /** The position after a boundary's line end, which spaces may precede; undefined when something else follows. */
  #endOfLine(from: number): number | undefined {
    let at = from;
    while (SPACES.has(this.#body[at])) at++;
    return this.#body[at] === CRLF[0] && this.#body[at + 1] === CRLF[1] ? at + CRLF.length : undefined;
  }

  /** The next boundary. Text that only begins like one belongs to the value. */
  #next(from: number): Range {
    const { length } = this.#delimiter;
    for (let start = this.#body.indexOf(this.#delimiter, from); start >= 0; ) {
      const end = start + length;
      if (this.#isLast(end) || this.#endOfLine(end) !== undefined) return { start, end };
      start = this.#body.indexOf(this.#delimiter, end);
    }
    throw createError('a boundary is missing');
  }
}

/** More parts than any client of these APIs sends. */
const MAX_PARTS = 1000;

/** Headers of one part; a file name is the longest of them. */
const MAX_HEADER_BYTES = 16 * 1024;

const CRLF = Buffer.from('\r\n');

const BLANK_LINE = Buffer.from('\r\n\r\n');

const DASH = 0x2d;

const SPACES: ReadonlySet<number | undefined> = new Set([0x20, 0x09]);

const createError = (reason: string): CodecError =>
  new CodecError({ code: 'INVALID_INPUT', message: `invalid multipart body: ${reason}`, http_status: 400 });
