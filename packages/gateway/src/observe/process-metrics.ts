import { monitorEventLoopDelay, performance } from 'node:perf_hooks';
import { Counter, Gauge, type Registry } from 'prom-client';

/**
 * Metrics of the process, under the names of prom-client's default ones. Those cost 1.4 ms a scrape, wake the process a
 * hundred times a second and observe every garbage collection; these are read on a scrape, but for the event loop.
 */
export class ProcessMetrics {
  readonly #delay = monitorEventLoopDelay({ resolution: DELAY_RESOLUTION_MS });
  #utilization = performance.eventLoopUtilization();

  constructor(registers: Registry[]) {
    this.#delay.enable();
    const gauge = (name: string, help: string, read: () => number): Gauge =>
      new Gauge({
        name,
        help,
        registers,
        collect() {
          this.set(read());
        },
      });
    new Counter({
      name: 'process_cpu_seconds_total',
      help: 'User and system CPU time.',
      registers,
      collect() {
        const { user, system } = process.cpuUsage();
        this.reset();
        this.inc((user + system) / 1e6);
      },
    });
    const start = Math.round(Date.now() / 1000 - process.uptime());
    gauge('process_start_time_seconds', 'Start of the process, in seconds since 1970.', () => start);
    gauge('process_resident_memory_bytes', 'Resident memory.', readResidentBytes);
    gauge('nodejs_heap_size_used_bytes', 'Heap in use.', () => process.memoryUsage().heapUsed);
    gauge('nodejs_eventloop_lag_p50_seconds', 'Median delay of the event loop since the last scrape.', () => this.#lag(50));
    gauge('nodejs_eventloop_lag_p99_seconds', '99th percentile of that delay.', () => this.#lag(99));
    gauge('nodejs_eventloop_lag_max_seconds', 'Longest such delay.', () => this.#takeMax());
    gauge('nodejs_eventloop_utilization', 'Share of time since the last scrape in which the event loop was busy.', () =>
      this.#takeUtilization(),
    );
  }

  close(): void {
    this.#delay.disable();
  }

  /** The histogram holds the time from one sample to the next, of which the interval itself is no delay. */
  #lag(percentile: number): number {
    return toLag(this.#delay.percentile(percentile));
  }

  /** Read last of the delays: begins the next period. */
  #takeMax(): number {
    const max = toLag(this.#delay.max);
    this.#delay.reset();
    return max;
  }

  #takeUtilization(): number {
    const now = performance.eventLoopUtilization();
    const { utilization } = performance.eventLoopUtilization(now, this.#utilization);
    this.#utilization = now;
    return utilization;
  }
}

/** Twenty samples a second. */
const DELAY_RESOLUTION_MS = 50;

/** Seconds beyond the interval. Without a sample the histogram has extreme values. */
const toLag = (nanoseconds: number): number =>
  Number.isFinite(nanoseconds) && nanoseconds < 1e15 ? Math.max(0, nanoseconds / 1e9 - DELAY_RESOLUTION_MS / 1000) : 0;

/** 0 when unknown: node reads it from a file, which fails when no file descriptor is left. */
function readResidentBytes(): number {
  try {
    return process.memoryUsage.rss();
  } catch {
    return 0;
  }
}
