/** The machine: what it is, and how quiet it was while a benchmark ran. */
import { execFileSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { cpus, release } from 'node:os';
import { summarize } from './statistics.js';

export function describeMachine(versions = {}) {
  const [{ model = 'unknown' } = {}] = cpus();
  return { node: process.versions.node, cpu: model.trim(), cores: cpus().length, kernel: release(), versions };
}

/** The commit of this checkout, with `+` when files differ from it; undefined outside of git. */
export function describeCommit(folder) {
  try {
    const git = (...args) => execFileSync('git', args, { cwd: folder, encoding: 'utf8' }).trim();
    return git('rev-parse', '--short=10', 'HEAD') + (git('status', '--porcelain', '--', 'packages') === '' ? '' : '+');
  } catch {
    return undefined;
  }
}

/** CPU time of all threads of a process and of its children, in microseconds. The times in `stat` are hundredths of seconds. */
export function cpuOf(pid) {
  return listTree(pid).reduce((sum, one) => sum + listThreads(one).reduce((part, thread) => part + threadCpu(one, thread), 0), 0);
}

/** Resident memory of a process and its children, in bytes. */
export function memoryOf(pid) {
  return listTree(pid).reduce((sum, one) => {
    const found = /VmRSS:\s+(\d+)/.exec(readOr(`/proc/${one}/status`, ''));
    return sum + (found ? Number(found[1]) * 1024 : 0);
  }, 0);
}

/** A process and all that it started. */
function listTree(pid) {
  const children = listThreads(pid).flatMap((thread) =>
    readOr(`/proc/${pid}/task/${thread}/children`, '').split(' ').filter(Boolean).map(Number),
  );
  return [pid, ...children.flatMap(listTree)];
}

function listThreads(pid) {
  try {
    return readdirSync(`/proc/${pid}/task`);
  } catch {
    return [];
  }
}

/** A thread may have ended since it was listed. */
const threadCpu = (pid, thread) => Number(readOr(`/proc/${pid}/task/${thread}/schedstat`, '0').split(' ')[0]) / 1000;

function readOr(file, otherwise) {
  try {
    return readFileSync(file, 'utf8');
  } catch {
    return otherwise;
  }
}

const HUNDREDTHS = 10_000;

/** What all cores did since the start, in microseconds. */
function readCores() {
  const [, user, nice, system, idle, wait, irq, softirq, steal] = readFileSync('/proc/stat', 'utf8')
    .split('\n', 1)[0]
    .split(/\s+/)
    .map((value) => Number(value) * HUNDREDTHS);
  const busy = user + nice + system + irq + softirq;
  return { busy, steal, all: busy + idle + wait + steal };
}

/** CPU time of this benchmark: of its processes, and of those that ended (`cutime` and `cstime`). */
function ownCpu() {
  const ended = listTree(process.pid).map((pid) => {
    const fields = readOr(`/proc/${pid}/stat`, '').split(') ').at(-1).split(' ');
    return (Number(fields[13] ?? 0) + Number(fields[14] ?? 0)) * HUNDREDTHS;
  });
  return ended.reduce((sum, value) => sum + value, cpuOf(process.pid));
}

/**
 * `quiet`: everything is judged. `busy`: ratios of CPU time are, because they are taken within slices; times of the clock are not. `too noisy`:
 * nothing is. One busy process is half of two cores.
 */
const LIMITS = {
  quiet: { foreign: 0.04, steal: 0.01, spread: 1.2 },
  busy: { foreign: 0.6, steal: 0.1, spread: 1.6 },
};

/** Whether shares of all cores and a spread are those of a machine on which figures can be judged. */
export function judgeNoise({ foreign, steal, spread }) {
  const isWithin = (limit) => foreign <= limit.foreign && steal <= limit.steal && spread <= limit.spread;
  return isWithin(LIMITS.quiet) ? 'quiet' : isWithin(LIMITS.busy) ? 'busy' : 'too noisy';
}

/** The noise between two readings `{ busy, steal, all, own }` of the machine. `speeds`: how long the same work took each time. */
export function computeNoise(before, after, speeds) {
  const all = after.all - before.all || 1;
  const foreign = Math.max(0, (after.busy - before.busy - (after.own - before.own)) / all);
  const steal = (after.steal - before.steal) / all;
  const speed = summarize(speeds);
  const spread = speed === undefined ? 1 : speed.p90 / speed.p10;
  return { state: judgeNoise({ foreign, steal, spread }), foreign, steal, spread, speed };
}

const readMachine = () => ({ ...readCores(), own: ownCpu() });

/** How noisy the machine was: the share of all cores that other processes had, what the host took, and how much the time of the same work differed. */
export class NoiseMeter {
  #begun = readMachine();
  #speeds = [];

  /** CPU time of one piece of work that is always the same. */
  addSpeed(value) {
    this.#speeds.push(value);
  }

  read() {
    return computeNoise(this.#begun, readMachine(), this.#speeds);
  }
}

/** One line about it. */
export function describeNoise({ state, foreign, steal, spread }) {
  const percent = (share) => `${(share * 100).toFixed(1)} %`;
  return `The machine was ${state}: other processes had ${percent(foreign)} of its cores, the host took ${percent(steal)}, and the same work took up to ${percent(spread - 1)} longer.`;
}
