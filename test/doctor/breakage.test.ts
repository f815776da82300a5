import { RULES, type RuleId } from '@sluice/core';
import { CODECS } from '@sluice/core/engine';
import { expect, test } from 'vitest';
import { SDK_BREAKAGE } from '../../packages/core/src/doctor/sdk-breakage.ts';
import { seededRandom, writeStream } from '../../packages/lab/src/mutate/index.ts';
import { IS_NEXT } from '../sdk/openai.ts';
import { cleanStreams, PROTOCOL_IDS } from './clean-streams.ts';
import { examine } from './examine.ts';
import { SDK_READERS } from './sdk-readers.ts';
import { effectOf, violatingStreams, words } from './violating-streams.ts';

async function measure(): Promise<Record<string, Record<string, string>>> {
  const table: Record<string, Record<string, string>> = {};
  for (const { rule, protocol, chunks, message } of violatingStreams()) {
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
 * What the official SDKs do with a stream that violates this rule alone, as measured: \`npm run docs\` writes this file, and
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
