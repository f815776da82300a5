import { beforeEach, expect, test, vi } from 'vitest';
import { comparePage, measureFramework } from '../../../test/frameworks.ts';
import { READERS } from './readers.ts';

/** A call that has no name, or that changes after it was complete, cannot be repaired in a stream. */
const LEFT = ['anthropic/input-after-stop', 'anthropic/tool-name-missing'];

/** The framework warns about what it cannot read, which is the subject here. */
beforeEach(() => {
  for (const method of ['log', 'warn', 'error'] as const) vi.spyOn(console, method).mockImplementation(() => undefined);
});

test('docs/adapters.md shows what the AI SDK reads without the repair and with it', { timeout: 300_000 }, async () => {
  const rows = await measureFramework(READERS);
  expect(rows.filter(({ after }) => after !== undefined).map(({ rule }) => rule)).toEqual(LEFT);
  await comparePage('ai-sdk', rows, 100);
});
