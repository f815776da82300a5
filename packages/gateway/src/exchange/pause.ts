/** Waits, unless one of the signals comes first: then false, at once. */
export function pause(ms: number, ...signals: readonly AbortSignal[]): Promise<boolean> {
  if (signals.some(({ aborted }) => aborted)) return Promise.resolve(false);
  return new Promise((resolve) => {
    const end = (isOver: boolean): void => {
      clearTimeout(timer);
      for (const signal of signals) signal.removeEventListener('abort', stop);
      resolve(isOver);
    };
    const stop = (): void => end(false);
    const timer = setTimeout(() => end(true), ms);
    for (const signal of signals) signal.addEventListener('abort', stop, { once: true });
  });
}
