import type { ServerResponse } from 'node:http';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { ClientConnection } from '../../src/exchange/client-connection.ts';
import { Streams } from '../../src/exchange/load.ts';
import { STOPPED } from '../../src/exchange/types.ts';

// Nothing of it is used here but that it can be listened to.
const connection = (): ClientConnection => new ClientConnection({ on: () => undefined } as unknown as ServerResponse);

test('streams can be added and removed in any order', () => {
  fc.assert(
    fc.property(fc.array(fc.nat(9), { maxLength: 200 }), (steps) => {
      const streams = new Streams(1000);
      const all = Array.from({ length: 10 }, connection);
      const inside = new Set<ClientConnection>();
      for (const step of steps) {
        const one = all[step] ?? connection();
        if (inside.delete(one)) streams.leave(one);
        else {
          inside.add(one);
          streams.enter(one);
        }
        expect(new Set(streams.underWay)).toEqual(inside);
        expect(streams.count).toBe(inside.size);
      }
    }),
  );
});

test('stop notifies all streams, also those added later', async () => {
  const streams = new Streams(10);
  const [first, second] = [connection(), connection()];
  streams.enter(first);
  streams.stop(STOPPED);
  streams.enter(second);
  expect([first.isStopped, second.isStopped]).toEqual([true, true]);
  const empty = streams.empty();
  streams.leave(first);
  streams.leave(second);
  await empty;
  expect(streams.count).toBe(0);
});
