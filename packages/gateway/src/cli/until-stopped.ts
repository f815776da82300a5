const SIGNALS = ['SIGTERM', 'SIGINT'] as const;

/** Until the system says so, and what runs has been closed; a second signal does not wait. */
export function untilStopped(close: () => Promise<void>): Promise<void> {
  return new Promise((resolve, reject) => {
    let isStopping = false;
    const stop = (): void => {
      if (isStopping) process.exit(1);
      isStopping = true;
      close()
        .then(resolve, reject)
        .finally(() => {
          for (const signal of SIGNALS) process.off(signal, stop);
        });
    };
    for (const signal of SIGNALS) process.on(signal, stop);
  });
}
