/** Programs of the system that tests start. */
import { accessSync, constants } from 'node:fs';
import { createServer } from 'node:net';
import { delimiter, join } from 'node:path';

/** Servers are often in a folder that only root has in its path. */
const SYSTEM_FOLDERS = ['/usr/sbin', '/usr/local/sbin'];

/**
 * The path of the first of these programs that is installed; undefined when none is.
 * @param {readonly string[]} names
 * @returns {string | undefined}
 */
export function findProgram(...names) {
  const folders = [...(process.env['PATH'] ?? '').split(delimiter), ...SYSTEM_FOLDERS];
  return names.flatMap((name) => folders.map((folder) => join(folder, name))).find(isExecutable);
}

function isExecutable(file) {
  try {
    accessSync(file, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}

/**
 * A port of the loopback address that was free a moment ago.
 * @returns {Promise<number>}
 */
export const findPort = () =>
  new Promise((resolve, reject) => {
    const probe = createServer().listen(0, '127.0.0.1', () => {
      const { port } = probe.address();
      probe.close(() => resolve(port));
    });
    probe.once('error', reject);
  });

const running = new Set();

// A server must not outlive its test.
process.on('exit', () => {
  for (const child of running) child.kill('SIGKILL');
});

/** Ends a process with the process of the tests, at the latest. */
export function endWithTests(child) {
  running.add(child);
  child.once('exit', () => running.delete(child));
}

/** Sends a signal to a process, and waits until it has ended. */
export async function endProcess(child, signal) {
  if (!child || child.exitCode !== null || child.signalCode !== null) return;
  const ended = new Promise((resolve) => child.once('exit', resolve));
  child.kill(signal);
  await ended;
}
