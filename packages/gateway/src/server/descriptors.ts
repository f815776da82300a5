/** File descriptors for everything but connections: listeners, files, logs, name lookups. */
const RESERVE = 64;
/** Minimum number of connections, for very low limits. */
const MIN_CONNECTIONS = 8;

/** The system's limit of open files for this process; undefined when there is none. */
function openFileLimit(): number | undefined {
  const { report } = process;
  // Otherwise the report looks up the host names of all peers.
  Object.assign(report, { excludeNetwork: true });
  const { userLimits }: { userLimits?: { open_files?: { soft?: unknown } } } = report.getReport();
  const soft = userLimits?.open_files?.soft;
  return typeof soft === 'number' ? soft : undefined;
}

/**
 * How many connections there are file descriptors for: a request needs one to its client and one to an upstream, so
 * each side gets half of what is left after the reserve.
 */
export function connectionShare(openFiles: number | undefined): number {
  if (openFiles === undefined) return Number.POSITIVE_INFINITY;
  return Math.max(MIN_CONNECTIONS, Math.floor((openFiles - RESERVE) / 2));
}

/** The same for this process. Node's report takes about 4 ms, so call this once per gateway. */
export const ownConnectionShare = (): number => connectionShare(openFileLimit());
