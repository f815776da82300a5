import type { ClientConnection } from './presence.ts';

/** Waits. Resolves with false, at once, when the exchange is interrupted. */
export function pause(ms: number, connection: ClientConnection): Promise<boolean> {
  if (connection.isInterrupted) return Promise.resolve(false);
  return new Promise((resolve) => {
    const end = (isOver: boolean): void => {
      timer.close();
      connection.unlisten(stop);
      resolve(isOver);
    };
    const stop = (): void => end(false);
    const timer = connection.clock.setTimer(() => end(true), ms);
    connection.listen(stop);
  });
}
