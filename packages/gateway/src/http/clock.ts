/** Time and timers. Tests pass a clock that they advance themselves. */
export interface Clock {
  /** Milliseconds since any fixed moment; never jumps. */
  readonly now: () => number;
  /** Calls back once. */
  readonly setTimer: (run: () => void, ms: number) => Timer;
  /** Calls back again and again. */
  readonly setRepeating: (run: () => void, ms: number) => Timer;
}

/** A running timer, such as those of node. */
export interface Timer {
  /** Stops it. */
  close(): unknown;
  /** Starts it again with the same duration. */
  refresh(): unknown;
  /** Lets the process end while the timer runs. */
  unref(): Timer;
}

/** The clock of the process. */
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
