import { type AccumulatedMessage, Examiner } from '@sluice/core';
import { describe, expect, test } from 'vitest';
import { repairStream } from '../../packages/gateway/src/doctor/repair.ts';
import { jsonLines, run, systemError } from '../../packages/gateway/test/fake-io.ts';
import { anthropic, chat, chatCall, chatError, cutChat } from '../../packages/gateway/test/streams.ts';
import { readCases, readManifest, readRecording } from '../corpus.ts';
import { bytesOf, protocolOf } from '../run.ts';
import { examine } from './examine.ts';

interface Row {
  name: string;
  protocol: ReturnType<typeof protocolOf>;
  bytes: () => Uint8Array;
}

const cases: Row[] = readCases().map(({ id, protocol, raw }) => ({
  name: id,
  protocol: protocolOf(protocol),
  bytes: () => bytesOf(raw),
}));

const recordings: Row[] = readManifest()
  .filter(({ stream }) => stream)
  .map(({ file, protocol }) => ({
    name: file,
    protocol: protocolOf(protocol),
    bytes: () => new Uint8Array(readRecording(file)),
  }));

const joined = (chunks: readonly Uint8Array[]): Buffer => Buffer.concat(chunks);

/** Calls go out in the order in which they were whole. */
const callsOf = ({ tool_calls: calls }: AccumulatedMessage): string[] =>
  calls.map(({ name, arguments: args }) => `${name} ${args}`).toSorted();

function check({ protocol, bytes }: Row, all: boolean): 'same' | 'repaired' {
  const body = bytes();
  const options = { protocols: [protocol], all };
  const { chunks = [], repaired, examination } = repairStream([body], options);
  const isConforming = Examiner.findRepairs(examination, all).length === 0;
  if (isConforming) {
    expect(joined(chunks).equals(body), 'a conforming stream changed').toBe(true);
    return 'same';
  }
  expect(repaired.length).toBeGreaterThan(0);
  const after = examine(chunks, { protocol });
  const left = Examiner.findRepairs(after, all);
  expect(left.map(({ rule }) => rule)).toEqual([]);
  expect(after.message.text).toBe(examination.message.text);
  expect(after.message.reasoning).toBe(examination.message.reasoning);
  expect(callsOf(after.message)).toEqual(callsOf(examination.message));
  expect(joined(repairStream(chunks, options).chunks ?? []).equals(joined(chunks)), 'a second repair changed it').toBe(true);
  return 'repaired';
}

describe.each([
  ['what breaks clients', false],
  ['everything', true],
])('repairs %s', (_, all) => {
  test.each(cases)('$name', (row) => {
    check(row, all);
  });

  test('every recording: those that conform byte for byte, the others conform afterwards', () => {
    const failures: string[] = [];
    const counts = { same: 0, repaired: 0 };
    for (const row of recordings) {
      try {
        counts[check(row, all)]++;
      } catch (error) {
        failures.push(`${row.name}: ${error instanceof Error ? error.message.split('\n', 4).join(' ') : error}`);
      }
    }
    console.log(`repair (${all ? 'all' : 'default'}): ${counts.same} recordings unchanged, ${counts.repaired} repaired`);
    expect(failures).toEqual([]);
  });
});

describe('sluice repair', () => {
  const noIndex = chatCall('{}').replaceAll('"index":0,"id"', '"id"');

  test('passes a conforming stream through', async () => {
    const body = `\uFEFF${anthropic('hé 😀')}`;
    expect(await run(['repair', 'a.sse'], { files: { 'a.sse': body } })).toMatchObject({
      code: 0,
      stdout: body,
      stderr: 'a.sse: conforms: unchanged\n',
    });
  });

  test('repairs other streams and reports it', async () => {
    const { code, stdout, stderr } = await run(['repair'], { stdin: noIndex });
    expect(stdout).toContain('"tool_calls":[{"index":0,"id":"call_1"');
    expect(stderr).toContain('-: chat/tool-index-missing byte 0: ');
    expect(code).toBe(0);
    const [report] = jsonLines(await run(['doctor', '--json'], { stdin: stdout }));
    expect(report).toMatchObject({ score: 100, findings: [] });
  });

  test('--quiet prints nothing to stderr', async () => {
    expect((await run(['repair', '--quiet'], { stdin: noIndex })).stderr).toBe('');
  });

  test.each([
    ['an error in the stream', chatError('slow down'), /slow down/, /"error"/],
    ['a stream that was cut', cutChat('he'), /ended_early/, /"error"/],
    ['no stream at all', '<html></html>', /not_a_stream/, /^$/],
  ])('%s is unchanged', async (_, body, told, written) => {
    const { code, stdout, stderr } = await run(['repair'], { stdin: body });
    expect(stderr).toMatch(told);
    expect(stdout).toMatch(written);
    expect(code).toBe(1);
  });

  test('a missing file is an error', async () => {
    const { code, stdout, stderr } = await run(['repair', 'gone'], {});
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
    expect(stderr).toMatch(/^sluice: gone: ENOENT/);
  });

  test('exits quietly on EPIPE', async () => {
    const { code, stderr } = await run(['repair', 'a'], { files: { a: chat('hi') }, stdoutError: systemError('EPIPE') });
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  });

  test.each([
    [['a', 'b'], '2 streams cannot share stdout'],
    [['--protocol', 'gemni', 'a'], 'did you mean "gemini"?'],
  ])('wrong usage: %s', async (argv, words) => {
    const { code, stderr } = await run(['repair', ...argv]);
    expect(stderr).toContain(words);
    expect(code).toBe(2);
  });
});
