/** Programs of the system that tests start, and what ends with the tests. */
import { execFileSync, spawn } from 'node:child_process';
import { accessSync, constants, mkdtempSync, rmSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
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

/**
 * Reads what tests have started, one line each, until they are over or were killed, which closes its input. Then it ends what is left:
 * processes by their signal, file systems and folders. `-`: a process has ended, and its number may be used by another.
 */
const WATCHDOG = `
processes= mounts= folders=
line='
'
while read -r kind what; do
  case $kind in
    +) processes="$processes $what" ;;
    -) processes=$(printf '%s' "$processes" | sed "s/ $what:[A-Z]*//") ;;
    mount) mounts="$mounts$what$line" ;;
    folder) folders="$folders$what$line" ;;
  esac
done
for process in $processes; do kill -s "\${process#*:}" "\${process%:*}"; done
for turn in 1 2 3 4 5 6 7 8 9 10; do
  alive=
  for process in $processes; do kill -0 "\${process%:*}" && alive=1; done
  [ -z "$alive" ] && break
  sleep 0.5
done
# Paths may have spaces.
IFS=$line
for folder in $mounts; do umount -l "$folder"; done
rm -rf $mounts $folders
`;

let watchdog;

/** The input of the watchdog of this test file. It is a process of its own, which also notices that the tests were killed. */
function report(line) {
  if (!watchdog) {
    const child = spawn('sh', ['-c', WATCHDOG], { stdio: ['pipe', 'ignore', 'ignore'], detached: true });
    child.unref();
    child.stdin.unref();
    watchdog = child.stdin;
  }
  watchdog.write(`${line}\n`);
}

/** Ends a process with the tests, at the latest. `signal`: one that ends its children, too. */
export function endWithTests(child, signal = 'SIGKILL') {
  report(`+ ${child.pid}:${signal.replace('SIG', '')}`);
  child.once('exit', () => report(`- ${child.pid}`));
}

/**
 * A new folder, deleted with the tests at the latest.
 * @param {string} name
 */
export function createTestFolder(name) {
  const folder = mkdtempSync(join(tmpdir(), `sluice-${name}-`));
  report(`folder ${folder}`);
  return folder;
}

/**
 * A new file system of this size, removed with the tests at the latest; undefined where tmpfs cannot be mounted.
 * @param {number} bytes
 * @returns {{ folder: string, remove: () => void } | undefined}
 */
export function mountSmallDisk(bytes) {
  const folder = createTestFolder('full-disk');
  report(`mount ${folder}`);
  try {
    execFileSync('mount', ['-t', 'tmpfs', '-o', `size=${bytes}`, 'tmpfs', folder], { stdio: 'ignore' });
  } catch {
    return undefined;
  }
  const remove = () => {
    execFileSync('umount', ['-l', folder]);
    rmSync(folder, { recursive: true, force: true });
  };
  return { folder, remove };
}

/** Waits until a program prints that it is ready. Rejects with what it has printed when it ends before. */
export const untilPrinted = (child, stream, ready, name) =>
  new Promise((resolve, reject) => {
    let text = '';
    stream.on('data', (data) => {
      text = (text + data).slice(-4000);
      if (text.includes(ready)) resolve(undefined);
    });
    child.once('exit', () => reject(new Error(`${name} did not start: ${text}`)));
    child.once('error', reject);
  });

/** Sends a signal to a process, and waits until it has ended. */
export async function endProcess(child, signal) {
  if (!child || child.exitCode !== null || child.signalCode !== null) return;
  const ended = new Promise((resolve) => child.once('exit', resolve));
  child.kill(signal);
  await ended;
}
