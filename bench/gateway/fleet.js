/** The processes of a run: subjects with their instances, the upstream, the load generator, and what one slice of load costs an instance. */
import { cpuOf } from '../method/machine.js';
import { CORES, sleep, startHelper, stop } from './processes.js';
import { buildTarget, findSubjects, launch, prepare, startUpstream } from './subjects.js';

/** Work of a slice that ends a little later, such as rows for the ledger, belongs to it. */
const SETTLE_MS = 10;
/** Gateways notice that their streams have ended. */
const DROP_MS = 300;

export class Fleet {
  /** Subjects that cannot be measured here, and why. */
  missing = {};
  #subjects = [];
  #instances = new Map();
  #targets = new Map();
  #upstream;

  /** With all subjects of subjects.js, or without: the processes of a comparison are started by it. */
  static async start({ hasSubjects = true } = {}) {
    const fleet = new Fleet();
    const { found, missing } = hasSubjects ? await findSubjects() : { found: [], missing: {} };
    fleet.#subjects = found;
    fleet.missing = missing;
    fleet.#upstream = await startUpstream();
    fleet.load = startHelper('./load.js', CORES.others);
    fleet.readSpeed = startHelper('../method/speed.js', CORES.gateway);
    return fleet;
  }

  /** The subject of this name for a direction; undefined when it is missing or cannot do it. */
  find(name, direction) {
    const way = direction === 'pass' ? 'pass' : 'convert';
    return this.#subjects.find((subject) => subject.name === name && (subject.way === undefined || subject.way === way));
  }

  /** The running processes of a subject, started when they are first needed. */
  async instances(subject) {
    if (!this.#instances.has(subject)) {
      const started = [];
      for (let i = 0; i < subject.processes; i++) started.push(await launch(subject));
      this.#instances.set(subject, started);
    }
    return this.#instances.get(subject);
  }

  /** A fresh process of a subject, for one measurement. */
  launch(subject, options) {
    return launch(subject, options);
  }

  /** The function starts the process: what can be done before is done. */
  prepare(subject, port) {
    return prepare(subject, port, { isColdLater: true }).begin;
  }

  /** The target of an instance; built once, because a request of 1 MB takes a while. */
  target(instance, request) {
    const key = `${instance.port} ${JSON.stringify(request)}`;
    if (!this.#targets.has(key)) this.#targets.set(key, buildTarget(instance, request));
    return this.#targets.get(key);
  }

  /** Ends all held streams, on both sides of the subject. */
  async drop() {
    await this.load('drop');
    this.#upstream.kill('SIGUSR2');
    await sleep(DROP_MS);
  }

  /** Ends the processes of all subjects, so that the next measurement begins with few of them. */
  async clear() {
    this.#targets.clear();
    const all = [...this.#instances.values()].flat();
    this.#instances.clear();
    await Promise.all(all.map((instance) => instance.end()));
  }

  /** Ends everything, also the load generator: another fleet has its own. */
  async end() {
    await this.clear();
    await Promise.all([this.#upstream, this.load.child, this.readSpeed.child].map((child) => stop(child)));
  }
}

/** What `work` returns, with the CPU microseconds that it cost an instance. */
export async function spend({ pid }, work) {
  const before = cpuOf(pid);
  const result = await work();
  await sleep(SETTLE_MS);
  return { ...result, cpu: cpuOf(pid) - before };
}
