import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, describe, expect, test } from 'vitest';
import { Patience } from '../../src/upstream/patience.ts';
import { eventually } from './start.ts';

let patience: Patience | undefined;
afterEach(() => patience?.stop());

function waiting(totalMs: number): { patience: Patience; heard: string[] } {
  const heard: string[] = [];
  patience = new Patience({ totalMs, onSilence: () => heard.push('silence'), onTotal: () => heard.push('total') });
  return { patience, heard };
}

describe('patience', () => {
  test('ends with the silence that is too long, once', async () => {
    const { patience: own, heard } = waiting(60_000);
    own.expect(20);
    await eventually(() => heard.length > 0);
    await sleep(60);
    expect(heard).toEqual(['silence']);
  });

  test('is given anew by every sign', async () => {
    const { patience: own, heard } = waiting(60_000);
    own.expect(300);
    for (let i = 0; i < 8; i++) {
      await sleep(50);
      own.heard();
    }
    expect(heard).toEqual([]);
    await eventually(() => heard.length > 0);
    expect(heard).toEqual(['silence']);
  });

  test('takes a shorter time at once, and a longer one', async () => {
    const { patience: own, heard } = waiting(60_000);
    own.expect(50_000);
    own.expect(20);
    await eventually(() => heard.length > 0);
    const { patience: other, heard: later } = waiting(60_000);
    other.expect(20);
    other.expect(50_000);
    await sleep(100);
    expect(later).toEqual([]);
  });

  test('allows any silence while it rests, but not for ever', async () => {
    const { patience: own, heard } = waiting(150);
    own.expect(30);
    own.rest();
    await sleep(80);
    expect(heard).toEqual([]);
    await eventually(() => heard.length > 0);
    expect(heard).toEqual(['total']);
  });

  test('ends with the total, however many signs there are', async () => {
    const { patience: own, heard } = waiting(100);
    own.expect(60_000);
    const signs = setInterval(() => own.heard(), 5);
    await eventually(() => heard.length > 0);
    clearInterval(signs);
    expect(heard).toEqual(['total']);
  });

  test('says nothing once it has stopped', async () => {
    const { patience: own, heard } = waiting(30);
    own.expect(20);
    own.stop();
    own.expect(1);
    await sleep(80);
    expect(heard).toEqual([]);
  });
});
