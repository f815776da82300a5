import { open } from 'node:fs/promises';
import { isatty, type WriteStream } from 'node:tty';
import type { CliIo, Input, Output } from './io.ts';

/** Large enough that a system call costs nothing beside the decoding, small enough that progress is smooth. */
const CHUNK_BYTES = 256 * 1024;

/** The real world. */
export function nodeIo(): CliIo {
  return {
    stdout: output(process.stdout),
    stderr: quiet(output(process.stderr)),
    // `process.stdin` opens the descriptor when it is first touched: only when it is to be read.
    stdin: { isTTY: isatty(0), open: () => ({ size: undefined, chunks: process.stdin }) },
    env: process.env,
    openFile,
    now: () => performance.now(),
  };
}

async function openFile(path: string): Promise<Input> {
  const file = await open(path);
  const { size } = await file.stat();
  // A pipe or a device has no size: it is 0 there.
  return { size: size || undefined, chunks: file.createReadStream({ highWaterMark: CHUNK_BYTES }) };
}

function quiet(inner: Output): Output {
  const { isTTY } = inner;
  return {
    isTTY,
    get columns() {
      return inner.columns;
    },
    write: (text) => inner.write(text).catch(() => undefined),
  };
}

function output(stream: WriteStream): Output {
  // A closed pipe is told twice, to the callback and as an event; without a listener the event would end the process.
  stream.on('error', () => undefined);
  return {
    isTTY: stream.isTTY === true,
    get columns() {
      return stream.isTTY ? stream.columns : undefined;
    },
    write: (text) => new Promise((resolve, reject) => stream.write(text, (error) => (error ? reject(error) : resolve()))),
  };
}
