/** Reads the write-ahead log of a database before SQLite does, which drops every page from the first damaged one on without an error. */
import { closeSync, fstatSync, openSync, readSync } from 'node:fs';
import { readCode } from '@sluice/lab/text';

const HEADER_BYTES = 32;
const FRAME_HEADER_BYTES = 24;

/** The lowest bit of the magic number tells the byte order of checksums. */
const MAGIC = 0x377f0682;

/** The log is written again from its beginning after a checkpoint, with the next salt: pages behind the end have earlier ones. */
const MAX_EARLIER_SALTS = 1_000_000;

/**
 * Counts the pages that SQLite drops because the log is damaged at or before them. Not the last one alone: a process that is killed
 * leaves the page that it was writing, whose write was not acknowledged. 0 without a log.
 */
export function countDroppedPages(file: string): number {
  let handle: number;
  try {
    handle = openSync(file, 'r');
  } catch (error) {
    if (readCode(error) === 'ENOENT') return 0;
    throw error;
  }
  try {
    return countInLog(handle, fstatSync(handle).size);
  } finally {
    closeSync(handle);
  }
}

function countInLog(handle: number, size: number): number {
  const header = Buffer.alloc(HEADER_BYTES);
  if (size < HEADER_BYTES || readSync(handle, header, 0, HEADER_BYTES, 0) < HEADER_BYTES) return 0;
  const pageBytes = header.readUInt32BE(8);
  const read = header.readUInt32BE(0) === MAGIC ? readLittleEndian : readBigEndian;
  const start = sum(header, 0, 24, { first: 0, second: 0 }, read);
  const isHeaderValid = isMagic(header) && isPageSize(pageBytes) && matches(header, 24, start);
  // All pages are lost with the header.
  if (!isHeaderValid) return Math.max(1, Math.floor(size / (FRAME_HEADER_BYTES + DEFAULT_PAGE_BYTES)));
  return countFrames(handle, { size, header, pageBytes, start, read });
}

const DEFAULT_PAGE_BYTES = 4096;

const isMagic = (header: Buffer): boolean => (header.readUInt32BE(0) & ~1) >>> 0 === MAGIC;

const isPageSize = (bytes: number): boolean => bytes >= 512 && bytes <= 65_536 && (bytes & (bytes - 1)) === 0;

interface Log {
  readonly size: number;
  readonly header: Buffer;
  readonly pageBytes: number;
  readonly start: Checksum;
  readonly read: ReadWord;
}

function countFrames(handle: number, { size, header, pageBytes, start, read }: Log): number {
  const frame = Buffer.alloc(FRAME_HEADER_BYTES + pageBytes);
  const salt = header.readUInt32BE(16);
  let checksum = start;
  let isIntact = true;
  let dropped = 0;
  for (let at = HEADER_BYTES; at + frame.length <= size; at += frame.length) {
    if (readSync(handle, frame, 0, frame.length, at) < frame.length) break;
    if (isIntact) {
      checksum = sum(frame, FRAME_HEADER_BYTES, frame.length, sum(frame, 0, 8, checksum, read), read);
      isIntact = frame.compare(header, 16, 24, 8, 16) === 0 && matches(frame, 16, checksum);
    }
    if (!isIntact && !isLeftover(frame.readUInt32BE(8), salt)) dropped += 1;
  }
  return dropped > 1 ? dropped : 0;
}

/** Whether a page with this salt was written before the log began again, or never. */
const isLeftover = (salt: number, current: number): boolean => {
  const age = (current - salt) >>> 0;
  return salt === 0 || (age > 0 && age < MAX_EARLIER_SALTS);
};

interface Checksum {
  readonly first: number;
  readonly second: number;
}

type ReadWord = (bytes: Buffer, at: number) => number;

const readLittleEndian: ReadWord = (bytes, at) => bytes.readUInt32LE(at);
const readBigEndian: ReadWord = (bytes, at) => bytes.readUInt32BE(at);

function sum(bytes: Buffer, from: number, to: number, { first, second }: Checksum, read: ReadWord): Checksum {
  let a = first;
  let b = second;
  for (let at = from; at < to; at += 8) {
    a = (a + read(bytes, at) + b) >>> 0;
    b = (b + read(bytes, at + 4) + a) >>> 0;
  }
  return { first: a, second: b };
}

/** Checksums are stored with the high byte first, whatever the order of the words they were made of. */
const matches = (bytes: Buffer, at: number, { first, second }: Checksum): boolean =>
  bytes.readUInt32BE(at) === first && bytes.readUInt32BE(at + 4) === second;
