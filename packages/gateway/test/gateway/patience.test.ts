import { describe, expect, test } from 'vitest';
import { Deadline } from '../../src/upstream/deadline.ts';
import { TestClock } from './test-clock.ts';

function waiting(totalMs: number): { deadline: Deadline; heard: string[]; clock: TestClock } {
  const heard: string[] = [];
  const clock = new TestClock();
  const deadline = new Deadline({ clock, totalMs, onSilence: () => heard.push('silence'), onTotal: () => heard.push('total') });
  return { deadline, heard, clock };
}

describe('deadline', () => {
  test('expires once when nothing arrives in time', async () => {
    const { deadline, heard, clock } = waiting(60_000);
    deadline.expect(20);
    await clock.advance(19);
    expect(heard).toEqual([]);
    await clock.advance(1);
    expect(heard).toEqual(['silence']);
    await clock.advance(100_000);
    expect(heard).toEqual(['silence']);
  });

  test('is extended by every event', async () => {
    const { deadline, heard, clock } = waiting(60_000);
    deadline.expect(300);
    for (let i = 0; i < 8; i++) {
      await clock.advance(299);
      deadline.recordData();
    }
    await clock.advance(299);
    expect(heard).toEqual([]);
    await clock.advance(1);
    expect(heard).toEqual(['silence']);
  });

  test('applies a shorter and a longer timeout at once', async () => {
    const { deadline, heard, clock } = waiting(60_000);
    deadline.expect(50_000);
    deadline.expect(20);
    await clock.advance(20);
    expect(heard).toEqual(['silence']);
    const { deadline: other, heard: later, clock: otherClock } = waiting(60_000);
    other.expect(20);
    other.expect(50_000);
    await otherClock.advance(49_999);
    expect(later).toEqual([]);
    await otherClock.advance(1);
    expect(later).toEqual(['silence']);
  });

  test('does not expire while suspended, except by the total timeout', async () => {
    const { deadline, heard, clock } = waiting(150);
    deadline.expect(30);
    deadline.rest();
    await clock.advance(149);
    expect(heard).toEqual([]);
    await clock.advance(1);
    expect(heard).toEqual(['total']);
  });

  test('expires at the total timeout, regardless of events', async () => {
    const { deadline, heard, clock } = waiting(100);
    deadline.expect(60_000);
    const signs = clock.setRepeating(() => deadline.recordData(), 5);
    await clock.advance(99);
    expect(heard).toEqual([]);
    await clock.advance(1);
    signs.close();
    expect(heard).toEqual(['total']);
  });

  test('does not expire after it was stopped', async () => {
    const { deadline, heard, clock } = waiting(30);
    deadline.expect(20);
    deadline.stop();
    deadline.expect(1);
    await clock.advance(80);
    expect(heard).toEqual([]);
  });
});
