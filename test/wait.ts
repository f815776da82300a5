/** The only place where tests wait for time to pass. */

const sleep = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

type Found<T> = T | undefined | null | false;

/** Waits until there is something. */
export async function eventually<T>(find: () => Found<T> | Promise<Found<T>>, ms = 60_000): Promise<T> {
  const deadline = performance.now() + ms;
  for (;;) {
    const found = await find();
    if (found) return found;
    if (performance.now() > deadline) throw new Error(`nothing within ${ms} ms`);
    await sleep(1);
  }
}

/** Lets time pass in which something must not happen. On a slow machine such a test proves less, and never fails for that. */
export const quietFor: (ms: number) => Promise<void> = sleep;

/** Lets time pass between the steps of a test. Its result must not depend on how long that takes. */
export const pace: (ms: number) => Promise<void> = sleep;

/** Lets this process read what its sockets have received from itself, which the system delivers at once. */
export async function takeTurns(count = 20): Promise<void> {
  for (let turn = 0; turn < count; turn++) await new Promise(setImmediate);
}
