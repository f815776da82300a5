/**
 * Loaded into the gateway with `--import`: responds to the requests of the check over the IPC channel. Threads of the gateway have no preload.
 * The channel does not keep the process alive.
 */
import { GCProfiler, writeHeapSnapshot } from 'node:v8';

let profiler;

/** What a request of the check does; its result is sent back. */
const COMMANDS = {
  /** Live heap: twice, because finalizers of the first collection release more. */
  collect: () => {
    gc();
    gc();
    return { heap: process.memoryUsage().heapUsed };
  },
  snapshot: ({ file }) => {
    writeHeapSnapshot(file);
    return {};
  },
  beginWindow: () => {
    gc();
    profiler = new GCProfiler();
    profiler.start();
    return { heap: process.memoryUsage().heapUsed };
  },
  endWindow: () => {
    const heap = process.memoryUsage().heapUsed;
    return { heap, collections: profiler.stop().statistics.length };
  },
};

process.on('message', ({ command, ...rest }) => process.send(COMMANDS[command](rest)));
// The check was killed.
process.on('disconnect', () => process.exit());
process.channel.unref();
