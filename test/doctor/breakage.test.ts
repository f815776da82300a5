import { isDeepStrictEqual } from 'node:util';
import { type AccumulatedMessage, type ProtocolId, RULES, type RuleId } from '@sluice/core';
import { CODECS } from '@sluice/core/engine';
import { expect, test } from 'vitest';
import { SDK_BREAKAGE } from '../../packages/core/src/doctor/sdk-breakage.ts';
import { listMutations, seededRandom, writeStream } from '../../packages/lab/src/mutate/index.ts';
import { bytesOf, protocolOf } from '../run.ts';
import { IS_NEXT } from '../sdk/openai.ts';
import { readCases } from '../shared.ts';
import { cleanStreams, PROTOCOL_IDS } from './clean-streams.ts';
import { examine } from './examine.ts';
import { type Heard, SDK_READERS } from './sdk-readers.ts';

interface Departing {
  rule: RuleId;
  protocol: ProtocolId;
  chunks: Uint8Array[];
  message: AccumulatedMessage;
}

/** The one departure of a stream; undefined when there is none, or when it is not clear which of several a client stumbles over. */
function departing(protocol: ProtocolId, chunks: Uint8Array[]): Departing[] {
  // Arguments that Gemini streams, and calls that Google runs itself, are parts like others to its SDK, departures or not.
  if (/willContinue|functionResponse/.test(Buffer.concat(chunks).toString())) return [];
  const { findings, message } = examine(chunks, { protocol: CODECS[protocol] });
  const [only, another] = findings;
  return only && !another ? [{ rule: only.rule, protocol, chunks, message }] : [];
}

/** One case departs in a second way that has no rule: blanks behind the sentinel. */
const isPlain = ({ id }: { id: string }): boolean => id !== 'sse-done-variants';

/** Every departure that can be made out of a clean stream, and the reported ones. */
function departingStreams(): Departing[] {
  const made = PROTOCOL_IDS.flatMap((protocol) =>
    cleanStreams(protocol).flatMap((clean) =>
      listMutations(protocol).flatMap((mutation) => {
        const random = seededRandom(7);
        const mutated = mutation.apply(clean, random);
        return mutated === clean ? [] : departing(protocol, writeStream(mutated, random));
      }),
    ),
  );
  return [
    ...made,
    ...readCases()
      .filter(isPlain)
      .flatMap(({ protocol, raw }) => departing(protocolOf(protocol).id, [bytesOf(raw)])),
  ];
}

const MOST = 90;

/** A message of an SDK in one line, without what differs from stream to stream. */
function words(error: unknown): string {
  const message = error instanceof Error ? error.message : JSON.stringify(error);
  const line = message
    .replaceAll(/(?<=\w)'(?=\w)/g, '’')
    .replaceAll("'", '"')
    .replaceAll(/ at position \d+|\\/g, '')
    .replaceAll(/\b(?=\w*\d)\w{20,}/g, '…')
    .replaceAll(/\s+/g, ' ')
    .trim();
  return line.length > MOST ? `${line.slice(0, MOST).trim()}…` : line;
}

/** What is wrong with what a client heard; undefined when nothing is. */
function effectOf(heard: Heard, { text, tool_calls: calls, complete, error }: AccumulatedMessage): string | undefined {
  if (error) return 'does not see the error';
  if (!complete) return 'treats a truncated response as complete';
  // Half a character that stayed alone is none to us.
  if (heard.text.toWellFormed() !== text) return heard.text.length < text.length ? 'loses text' : 'reads text that was not sent';
  if (heard.calls.length !== calls.length) return heard.calls.length < calls.length ? 'loses a call' : 'reads an extra call';
  const hasName = (name: string, at: number): boolean => heard.calls[at]?.name === name;
  if (!calls.every(({ name }, at) => hasName(name, at))) return 'reads another tool name';
  const isSame = calls.every(({ arguments: args }, at) => isDeepStrictEqual(heard.calls[at]?.input, parsed(args)));
  return isSame ? undefined : 'reads other arguments';
}

function parsed(json: string): unknown {
  try {
    return JSON.parse(json || '{}');
  } catch {
    return json;
  }
}

async function measure(): Promise<Record<string, Record<string, string>>> {
  const table: Record<string, Record<string, string>> = {};
  for (const { rule, protocol, chunks, message } of departingStreams()) {
    const pieces = chunks.map((chunk) => new TextDecoder('utf-8', { ignoreBOM: true }).decode(chunk));
    for (const { client, read } of SDK_READERS[protocol]) {
      // An SDK that throws at an error of the stream does what it should.
      const effect = await read(pieces).then(
        (heard) => effectOf(heard, message),
        (error) => (message.error ? undefined : `throws: ${words(error)}`),
      );
      if (effect === undefined) continue;
      table[rule] = { [client]: effect, ...table[rule] };
    }
  }
  return table;
}

const line = (client: string, effect: string): string => {
  const text = `    '${client}': '${effect}',`;
  return `${text.length <= 130 ? text : text.replace("': '", "':\n      '")}\n`;
};

/** The source file of the table. */
function render(table: Record<string, Record<string, string>>): string {
  const rows = Object.keys(table)
    .toSorted()
    .map((rule) => {
      const effects = Object.entries(table[rule] ?? {}).toSorted(([a], [b]) => (a < b ? -1 : 1));
      return `  '${rule}': {\n${effects.map(([client, effect]) => line(client, effect)).join('')}  },\n`;
    });
  return `import type { RuleId } from '../rules/index.ts';

/**
 * What the official SDKs do with a stream that departs by this rule alone, as measured: \`npm run docs\` writes this file, and
 * the same test holds it.
 */
export const SDK_BREAKAGE: Partial<Record<RuleId, Readonly<Record<string, string>>>> = {
${rows.join('')}};
`;
}

/** The rows of the table for the SDKs of this run. */
function readTable(): Record<string, Record<string, string>> {
  const clients = new Set(PROTOCOL_IDS.flatMap((protocol) => SDK_READERS[protocol].map(({ client }) => client)));
  const rows = Object.entries(SDK_BREAKAGE).map(([rule, effects]) => {
    const own = Object.entries(effects).filter(([client]) => clients.has(client));
    return [rule, Object.fromEntries(own)] as const;
  });
  return Object.fromEntries(rows.filter(([, effects]) => Object.keys(effects).length > 0));
}

test('the table matches what the official SDKs do', async () => {
  const measured = await measure();
  // The file has all majors, so it is written by `npm run test:sdk-next`.
  if (IS_NEXT) await expect(render(measured)).toMatchFileSnapshot('../../packages/core/src/doctor/sdk-breakage.ts');
  else expect(measured).toEqual(readTable());
});

/** What an official SDK breaks on, and still is none of the worst. */
const FORGIVEN: Partial<Record<RuleId, string>> = {
  'sse/after-end': 'the helper for Responses breaks on one event that follows the end; all others have what they need by then',
};

test.each(Object.keys(RULES) as RuleId[])('%s: a rule that breaks an official SDK is an error', (rule) => {
  if (SDK_BREAKAGE[rule] && !FORGIVEN[rule]) expect(RULES[rule].severity).toBe('error');
  if (FORGIVEN[rule]) expect(SDK_BREAKAGE[rule]).toBeDefined();
});

test.each(PROTOCOL_IDS)('streams written for %s have no findings, and the SDKs read them completely', async (protocol) => {
  for (const stream of cleanStreams(protocol)) {
    const chunks = writeStream(stream, seededRandom(7));
    const { findings, message } = examine(chunks, { protocol: CODECS[protocol] });
    expect(findings.map(({ rule }) => rule)).toEqual([]);
    const pieces = chunks.map((chunk) => new TextDecoder().decode(chunk));
    for (const { read } of SDK_READERS[protocol]) expect(effectOf(await read(pieces), message)).toBeUndefined();
  }
});
