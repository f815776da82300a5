import { beforeEach, expect, test, vi } from 'vitest';
import { comparePage, measureFramework } from '../../../test/frameworks.ts';
import { READERS } from './readers.ts';

/** LangChain completes arguments that are not JSON by a guess. */
const LEFT = ['chat/tool-args-invalid'];

/** The framework warns about what it cannot read, which is the subject here. */
beforeEach(() => {
  for (const method of ['log', 'warn', 'error'] as const) vi.spyOn(console, method).mockImplementation(() => undefined);
});

test('docs/adapters.md shows what LangChain reads without the repair and with it', { timeout: 300_000 }, async () => {
  const rows = await measureFramework(READERS);
  expect(rows.filter(({ after }) => after !== undefined).map(({ rule }) => rule)).toEqual(LEFT);
  await comparePage('langchain', rows, 45);
});
