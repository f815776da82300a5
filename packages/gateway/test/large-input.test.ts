import { describe, expect, test } from 'vitest';
import { jsonLines, run, type World } from './fake-io.ts';
import * as streams from './streams.ts';

const MIB = 1024 * 1024;

/** Two hundred megabytes without a line end, and the most memory this thread held meanwhile. */
function endlessLine(opening: string): { chunks: () => AsyncGenerator<Uint8Array, void, undefined>; peak: () => number } {
  const filler = new Uint8Array(MIB).fill(0x61);
  let peak = 0;
  async function* chunks(): AsyncGenerator<Uint8Array, void, undefined> {
    yield new TextEncoder().encode(opening);
    for (let i = 0; i < 200; i++) {
      const { heapUsed, arrayBuffers } = process.memoryUsage();
      peak = Math.max(peak, heapUsed + arrayBuffers);
      yield filler;
    }
  }
  return { chunks, peak: () => peak };
}

describe('large inputs', () => {
  test.each(['data: {"choices":[{"delta":{"content":"', '{"choices":[{"message":{"content":"', 'aaa', 'data: a\ndata: '])(
    '200 MB on one line after %j is an error, in bounded memory',
    async (opening) => {
      const { chunks, peak } = endlessLine(opening);
      const before = process.memoryUsage();
      const outcome = await run(['assemble', '--json', 'big', 'a'], { files: { big: chunks, a: streams.chat('still here') } });
      expect(jsonLines(outcome)).toMatchObject([
        { file: 'big', complete: false, error: { code: 'too_large', canonical: 'PAYLOAD_TOO_LARGE' } },
        { text: 'still here' },
      ]);
      expect(outcome.code).toBe(1);
      expect(peak() - before.heapUsed - before.arrayBuffers).toBeLessThan(180 * MIB);
    },
  );

  const progress = async (world: World): Promise<string> => {
    const chunk = new TextEncoder().encode(`: ${'x'.repeat(MIB)}\n`);
    async function* chunks(): AsyncGenerator<Uint8Array, void, undefined> {
      for (let i = 0; i < 12; i++) yield chunk;
      yield new TextEncoder().encode(streams.chat('hi'));
    }
    const outcome = await run(['assemble', '--json', 'a'], { files: { a: chunks }, ...world });
    expect(jsonLines(outcome)).toMatchObject([{ text: 'hi', error: null }]);
    return outcome.stderr;
  };

  test('progress on a terminal: percent, bytes, rate, cleared at the end', async () => {
    const stderr = await progress({ terminals: ['stderr'], size: 13 * MIB });
    expect(stderr).toMatch(/ 53 % {2}7\.3 MB of 13\.6 MB {2}[\d.]+ MB\/s {2}a/);
    expect(stderr.endsWith('\r\u001b[K')).toBe(true);
  });

  test.each([20, 40, 71, 200])('progress fits in %i columns', async (columns) => {
    const stderr = await progress({ terminals: ['stderr'], size: 13 * MIB, columns });
    const lines = stderr.split('\r\u001b[K');
    expect(lines.length).toBeGreaterThan(3);
    expect(lines.filter((line) => line.length >= columns)).toEqual([]);
  });

  test('progress of unknown size', async () => {
    expect(await progress({ terminals: ['stderr'] })).toMatch(/8\.4 MB|9\.4 MB/);
  });

  test.each<[string, World]>([
    ['stderr is no terminal', { size: 13 * MIB }],
    ['the input is small', { terminals: ['stderr'], size: 1000 }],
    ['the terminal is dumb', { terminals: ['stderr'], size: 13 * MIB, env: { TERM: 'dumb' } }],
  ])('no progress when %s', async (_, world) => expect(await progress(world)).toBe(''));
});
