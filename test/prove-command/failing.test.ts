import { expect, test, vi } from 'vitest';
import { jsonLines, run } from '../../packages/gateway/test/fake-io.ts';
import * as streams from '../../packages/gateway/test/streams.ts';

/** A converter to Gemini that takes one word for another. */
vi.mock('../../packages/lab/src/prove/wire.ts', async (original) => {
  const wire = await original<typeof import('../../packages/lab/src/prove/wire.ts')>();
  const tainted = (chunks: Iterable<Uint8Array>): Uint8Array =>
    new TextEncoder().encode(wire.decodeBody([...chunks]).replace('"poison"', '"honey"'));
  const convert: typeof wire.convert = (from, to, chunks, onNote) =>
    wire.convert(from, to, to === 'gemini' ? [tainted(chunks)] : chunks, onNote);
  return { ...wire, convert };
});

const body = streams.chat('so', ...Array.from('me words before '), 'poison', ...Array.from(' and after'));

test('failures are reported, and the other properties hold', async () => {
  const outcome = await run(['prove', '--json', 'a'], { files: { a: body } });
  const [line] = jsonLines(outcome);
  expect(outcome.code).toBe(1);
  expect(line?.['failures']).toEqual([
    { property: 'to gemini and back', id: 'pair/openai-chat/gemini', message: expect.stringMatching(/^text: /), case: null },
  ]);
  expect(outcome.files).toEqual({});
  expect(outcome.stderr).toMatch(/^sluice: a: to gemini and back: text: /);
});

test('the smallest failing stream is written as a case', async () => {
  const { stdout, files } = await run(['prove', '--out', 'cases', 'a'], { files: { a: body } });
  const [[path = '', text = ''] = []] = Object.entries(files);
  expect(path).toMatch(/^cases\/prove-pair-openai-chat-gemini-[0-9a-f]{8}\.jsonl$/);
  expect(stdout).toContain(`case: ${path}`);
  const found = JSON.parse(text) as { raw: string; expected: object };
  expect(found.raw.match(/^data: /gm)?.length).toBeLessThanOrEqual(2);
  expect(found.raw).toContain('poison');
  expect(found).toMatchObject({ protocol: 'openai-chat', class: 'pair', expected: { text: 'poison', tool_calls: [] } });
});
