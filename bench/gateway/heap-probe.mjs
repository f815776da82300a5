/** Preloaded into a subject: at SIGUSR2 it collects garbage and writes what is left of the heap to the file HEAP_FILE. */
import { renameSync, writeFileSync } from 'node:fs';

process.on('SIGUSR2', () => {
  globalThis.gc();
  globalThis.gc();
  const { heapUsed, external } = process.memoryUsage();
  writeFileSync(`${process.env.HEAP_FILE}.new`, JSON.stringify({ bytes: heapUsed + external }));
  renameSync(`${process.env.HEAP_FILE}.new`, process.env.HEAP_FILE);
});
