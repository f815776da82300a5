/** The table that `strace -c` prints, and which of its calls are counted. */

/** Calls by name of a table of `strace -c`. The column of errors is empty for most calls. */
export function parseTable(text) {
  const rows = text.split('\n').flatMap((line) => {
    const found = /^\s*[\d.]+\s+[\d.]+\s+\d+\s+(\d+)\s+(?:\d+\s+)?(\w+)\s*$/.exec(line);
    return found && found[2] !== 'total' ? [[found[2], Number(found[1])]] : [];
  });
  if (rows.length === 0) throw new Error(`strace printed no table of calls: ${text.slice(-500) || 'nothing'}`);
  return Object.fromEntries(rows);
}

/** Calls that are counted together, and why the sum is stable. */
const COUNTED = {
  // One to the upstream and one to the client: exact.
  sends: ['writev', 'sendto', 'sendmsg'],
  // Data of sockets, and wake-ups of the threads of the ledger. A busy machine merges some, and has more of those that come by the clock.
  'reads and writes': ['read', 'write', 'readv', 'recvfrom', 'recvmsg'],
  // SQLite commits each request, and the ledger commits some of its own every few seconds.
  'ledger files': ['pwrite64', 'pwritev', 'pread64', 'preadv', 'fsync', 'fdatasync', 'fcntl', 'ftruncate'],
};

/** Calls that are none of these and not ignored: they open files or connections, so that there are nearly none. */
const OTHERS = 'other calls';

/** The names of all counts. */
export const CALL_KINDS = [...Object.keys(COUNTED), OTHERS];

/** Calls that are not counted. */
const IGNORED = [
  // One wait returns several events when they are there already: 8 to 12 a request.
  ['epoll_pwait', 'epoll_pwait2', 'epoll_wait', 'epoll_ctl', 'poll', 'ppoll'],
  // How often threads wait for each other depends on the scheduler: 0.7 to 6 a request.
  ['futex', 'sched_yield', 'restart_syscall', 'rt_sigprocmask', 'rt_sigreturn', 'tgkill'],
  // Memory of V8: by collections and compilations, not by requests.
  ['mmap', 'munmap', 'mprotect', 'madvise', 'brk', 'mremap'],
  // Clocks are system calls only on some virtual machines.
  ['clock_gettime', 'gettimeofday', 'clock_nanosleep', 'nanosleep', 'getrusage'],
].flat();

/** The count of each of CALL_KINDS for each request. */
export function countCalls(table, requests) {
  const sum = (names) => names.reduce((total, name) => total + (table[name] ?? 0), 0) / requests;
  const known = new Set([...Object.values(COUNTED).flat(), ...IGNORED]);
  const others = Object.keys(table).filter((name) => !known.has(name));
  return { ...Object.fromEntries(Object.entries(COUNTED).map(([name, calls]) => [name, sum(calls)])), [OTHERS]: sum(others) };
}
