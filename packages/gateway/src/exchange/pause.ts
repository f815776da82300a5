import type { Presence } from './presence.ts';

/** Waits. Resolves with false, at once, when the exchange is interrupted. */
export function pause(ms: number, presence: Presence): Promise<boolean> {
  if (presence.isInterrupted) return Promise.resolve(false);
  return new Promise((resolve) => {
    const end = (isOver: boolean): void => {
      timer.close();
      presence.unlisten(stop);
      resolve(isOver);
    };
    const stop = (): void => end(false);
    const timer = presence.clock.setTimer(() => end(true), ms);
    presence.listen(stop);
  });
}
