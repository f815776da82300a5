/** The streaming repair over all cases, recordings and dialects: conforming streams byte for byte, all others conform afterwards. */
import { type AccumulatedMessage, Examiner } from '@sluice/core';
import { describe, expect, test } from 'vitest';
import { SDK_BREAKAGE } from '../packages/core/src/doctor/sdk-breakage.ts';
import { REPAIRS } from '../packages/core/src/protocols/index.ts';
import { HARMLESS, isHarmful, RepairStream } from '../packages/core/src/repair/stream.ts';
import { RULES, type RuleId } from '../packages/core/src/rules/index.ts';
import { listMutations, seededRandom, writeStream } from '../packages/lab/src/mutate/index.ts';
import { readCases, readManifest, readRecording } from './corpus.ts';
import { cleanStreams, PROTOCOL_IDS } from './doctor/clean-streams.ts';
import { examine } from './doctor/examine.ts';
import { bytesOf, protocolOf } from './run.ts';

interface Row {
  name: string;
  protocol: keyof typeof REPAIRS;
  chunks: () => Uint8Array[];
}

const cases: Row[] = readCases().map(({ id, protocol, raw }) => ({
  name: id,
  protocol: protocolOf(protocol).id,
  chunks: () => [bytesOf(raw)],
}));

const recordings: Row[] = readManifest()
  .filter(({ stream }) => stream)
  .map(({ file, protocol }) => ({
    name: file,
    protocol: protocolOf(protocol).id,
    chunks: () => [new Uint8Array(readRecording(file))],
  }));

const dialects: Row[] = PROTOCOL_IDS.flatMap((protocol) =>
  cleanStreams(protocol).flatMap((clean, at) =>
    listMutations(protocol).flatMap((mutation) => {
      const random = seededRandom(11);
      const mutated = mutation.apply(clean, random);
      if (mutated === clean) return [];
      const chunks = writeStream(mutated, random);
      return [{ name: `${mutation.id} of ${protocol} ${at}`, protocol, chunks: () => chunks }];
    }),
  ),
);

/** The same, of servers that close the connection without the blank line of the last event. */
const unterminated: Row[] = dialects.map(({ name, protocol, chunks }) => ({
  name,
  protocol,
  chunks: () => [trimLineEnds(Buffer.concat(chunks()))],
}));

function trimLineEnds(bytes: Buffer): Buffer {
  let end = bytes.length;
  while (bytes[end - 1] === 0x0a || bytes[end - 1] === 0x0d) end--;
  return bytes.subarray(0, end);
}

/** Dialects violate their protocol by construction, also those that have no rule. */
const isDialect = (name: string): boolean => name.includes(' of ');

function repair(chunks: readonly Uint8Array[], protocol: Row['protocol']): { bytes: Buffer; stage: RepairStream } {
  const stage = new RepairStream({ codec: REPAIRS[protocol], model: 'm-1' });
  const out: Uint8Array[] = [];
  for (const chunk of chunks) for (const piece of stage.push(chunk)) out.push(piece.slice());
  out.push(...stage.end());
  return { bytes: Buffer.concat(out), stage };
}

const split = (bytes: Uint8Array, size: number): Uint8Array[] =>
  Array.from({ length: Math.ceil(bytes.length / size) }, (_, at) => bytes.subarray(at * size, (at + 1) * size));

/** Calls go out in the order in which they were whole. */
const callsOf = ({ tool_calls: calls }: AccumulatedMessage): string[] =>
  calls.map(({ name, arguments: args }) => `${name} ${args}`).toSorted();

/** A call that changes after it was complete needs the whole message: `sluice repair` has it, a stream has not. */
const NEEDS_THE_WHOLE: ReadonlySet<string> = new Set([
  'own-name-grows-after-arguments',
  'own-second-document-after-another-call',
  'own-input-after-stop',
  'own-growing-name-repeated-object',
  'chat/names-split-by-arguments',
  // A call without a name cannot be run.
  'anthropic/names-missing',
  'anthropic/call-starts-missing',
]);

/** Azure's first chunk has the results of filters, and blanks in place of all that others have. */
const isOfAzure = (name: string): boolean => /^(?:openai-chat\/azure-|chat\/filter-results-first of )/.test(name);

function check({ name, protocol, chunks }: Row): 'same' | 'repaired' | 'skipped' {
  if (NEEDS_THE_WHOLE.has(name.split(' of ', 1).join())) return 'skipped';
  const body = Buffer.concat(chunks());
  const codec = REPAIRS[protocol];
  const before = examine([body], { protocol: codec });
  const isHarm = (rule: RuleId): boolean => isHarmful(rule) && !(rule === 'chat/envelope-incomplete' && isOfAzure(name));
  const { bytes } = repair(chunks(), protocol);
  const isSound = before.message.complete && before.message.error === null;
  if (isSound && before.findings.every(({ rule }) => !isHarm(rule)) && !isDialect(name)) {
    expect(bytes.equals(body), 'a conforming stream changed').toBe(true);
    return 'same';
  }
  const after = examine([bytes], { protocol: codec });
  if (isSound) {
    expect(Examiner.findRepairs(after, false).flatMap(({ rule }) => (isHarm(rule) ? [rule] : []))).toEqual([]);
    expect(after.message.complete || after.message.error !== null, 'the end is lost').toBe(true);
  } else expect(after.message.error !== null || !after.message.complete).toBe(true);
  expect(after.message.text).toBe(before.message.text);
  expect(after.message.reasoning).toBe(before.message.reasoning);
  expect(callsOf(after.message)).toEqual(callsOf(before.message));
  return bytes.equals(body) ? 'same' : 'repaired';
}

describe('the streaming repair', () => {
  test.each([
    ['cases', cases],
    ['dialects', dialects],
    ['dialects without the last blank line', unterminated],
  ])('%s', (_, rows) => {
    const failures: string[] = [];
    const counts = { same: 0, repaired: 0, skipped: 0 };
    for (const row of rows) {
      try {
        counts[check(row)]++;
      } catch (error) {
        failures.push(`${row.name}: ${error instanceof Error ? error.message.split('\n', 8).join(' ') : error}`);
      }
    }
    console.log(`${rows.length} rows: ${counts.same} unchanged, ${counts.repaired} repaired`);
    expect(failures).toEqual([]);
  });

  test('recordings', () => {
    const failures: string[] = [];
    const counts = { same: 0, repaired: 0, skipped: 0 };
    for (const row of recordings) {
      try {
        counts[check(row)]++;
      } catch (error) {
        failures.push(`${row.name}: ${error instanceof Error ? error.message.split('\n', 8).join(' ') : error}`);
      }
    }
    console.log(`recordings: ${counts.same} unchanged, ${counts.repaired} repaired`);
    expect(failures).toEqual([]);
  });

  test('the result does not depend on how the bytes are split', () => {
    for (const { name, protocol, chunks } of [...cases, ...dialects.filter((_, at) => at % 7 === 0)]) {
      const body = Buffer.concat(chunks());
      const whole = repair([body], protocol).bytes.toString();
      for (const size of [1, 3, 17])
        expect(repair(split(body, size), protocol).bytes.toString(), `${name} by ${size}`).toBe(whole);
    }
  });
});

test.each([
  ['text', { text: 'a' }],
  ['a part of an unknown kind', { hologram: { depth: 3 } }],
  ['another call', { functionCall: { name: 'g', args: {} } }],
])('a call of Gemini behind %s of the same chunk is handed out once when a later chunk is rewritten', (_, part) => {
  const write = (parts: object[], finishReason?: number): string =>
    `data: ${JSON.stringify({ candidates: [{ content: { parts, role: 'model' }, finishReason, index: 0 }] })}\r\n\r\n`;
  const body = write([part, { functionCall: { name: 'f', args: { a: 1 } } }]) + write([{ text: 'b' }], 1);
  const { message } = examine([repair([bytesOf(body)], 'gemini').bytes], { protocol: REPAIRS.gemini });
  expect(callsOf(message).filter((call) => call.startsWith('f'))).toEqual(['f {"a":1}']);
});

test('no harmless rule breaks an official SDK or is more than an info', () => {
  const wrong = [...HARMLESS].filter((rule) => RULES[rule].severity !== 'info' || SDK_BREAKAGE[rule]);
  expect(wrong).toEqual([]);
  const repairedInfos = (Object.keys(RULES) as RuleId[]).filter((rule) => RULES[rule].severity === 'info' && isHarmful(rule));
  expect(repairedInfos).toMatchInlineSnapshot(`
    [
      "sse/missing-done",
      "chat/legacy-function-call",
      "chat/finish-repeated",
      "chat/role-blank",
      "responses/event-line-missing",
      "responses/items-overlap",
      "gemini/parts-after-finish",
      "gemini/finish-reason-number",
    ]
  `);
});
