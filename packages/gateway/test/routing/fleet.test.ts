import { expect, test } from 'vitest';
import { findAffinity } from '../../src/routing/router.ts';
import { Fleet } from './fleet.ts';

// `node bench/affinity.js` prints the same for all strategies, and without affinity.

const SESSIONS = 200;

test('200 conversations on three targets keep their cache; those of a target that fails move once and do not come back', () => {
  const fleet = new Fleet({ seed: 7 });
  const [failing] = fleet.targets;
  if (!failing) throw new Error('no targets');
  const counts = { hit: 0, miss: 0, new: 0 };
  let requests = 0;
  const turn = (): typeof counts => {
    const before = { ...counts };
    for (let session = 0; session < SESSIONS; session++) {
      fleet.now += 100;
      requests++;
      const { target, plan } = fleet.request(`session ${session}`);
      if (!target) throw new Error('no target has responded');
      counts[findAffinity(plan, target) ?? 'new']++;
    }
    return { hit: counts.hit - before.hit, miss: counts.miss - before.miss, new: counts.new - before.new };
  };
  expect(turn()).toEqual({ hit: 0, miss: 0, new: SESSIONS });
  for (const { served } of fleet.targets) expect(served).toBeGreaterThan(SESSIONS / 3 - 25);
  for (let i = 0; i < 5; i++) expect(turn()).toEqual({ hit: SESSIONS, miss: 0, new: 0 });

  const moving = failing.served / 6;
  failing.isUp = false;
  expect(turn()).toEqual({ hit: SESSIONS - moving, miss: moving, new: 0 });
  for (let i = 0; i < 5; i++) expect(turn()).toEqual({ hit: SESSIONS, miss: 0, new: 0 });

  failing.isUp = true;
  for (let i = 0; i < 5; i++) expect(turn()).toEqual({ hit: SESSIONS, miss: 0, new: 0 });
  // New conversations find the target again.
  const before = failing.served;
  for (let i = 0; i < 90; i++) fleet.request(`new session ${i}`);
  expect(failing.served - before).toBeGreaterThan(15);
  expect(fleet.targets.reduce((sum, target) => sum + target.requests, 0)).toBeLessThan(1.05 * requests + 90);
});
