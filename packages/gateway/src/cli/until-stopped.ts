const SIGNALS = ['SIGTERM', 'SIGINT'] as const;

interface StopOptions {
  /** SIGHUP stops as well. Without this it does what it did before: by default it ends the process. */
  stopsOnHangup?: boolean;
}

/** Resolves with the signal that stopped it, when `close` is done. A second SIGTERM or SIGINT does not wait. */
export function untilStopped(close: () => Promise<void>, { stopsOnHangup = false }: StopOptions = {}): Promise<NodeJS.Signals> {
  const signals = stopsOnHangup ? [...SIGNALS, 'SIGHUP' as const] : SIGNALS;
  return new Promise((resolve, reject) => {
    let isStopping = false;
    const stop = (signal: NodeJS.Signals): void => {
      // A closed terminal sends SIGHUP several times: through the shell and by the kernel.
      if (isStopping && signal === 'SIGHUP') return;
      if (isStopping) process.exit(1);
      isStopping = true;
      close()
        .finally(() => {
          for (const name of signals) process.off(name, stop);
        })
        .then(() => resolve(signal), reject);
    };
    for (const name of signals) process.on(name, stop);
  });
}
