/** A started timer. Those of node are one. */
export interface Timer {
  /** Stops it. */
  close(): unknown;
  /** Starts it again with the same duration. */
  refresh(): unknown;
  /** The process may end while it waits. */
  unref(): Timer;
}

/** Time, and what waits for it. Tests pass a clock that moves only when they say so. */
export interface Clock {
  /** Milliseconds since any fixed moment; never jumps. */
  readonly now: () => number;
  /** Calls back once. */
  readonly setTimer: (run: () => void, ms: number) => Timer;
  /** Calls back again and again. */
  readonly setRepeating: (run: () => void, ms: number) => Timer;
}

export const REAL_CLOCK: Clock = {
  now: () => performance.now(),
  setTimer: (run, ms) => setTimeout(run, ms),
  setRepeating: (run, ms) => setInterval(run, ms),
};

/** Resolves after this time. Does not keep the process alive. */
export const sleep = (clock: Clock, ms: number): Promise<void> =>
  new Promise((resolve) => {
    clock.setTimer(resolve, ms).unref();
  });
