/** What a framework makes of violating streams, without the repair and with it: the tables of docs/adapters.md. */
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import type { AccumulatedMessage, ProtocolId } from '@sluice/core';
import type { Fetch, RepairFetchOptions } from '@sluice/core/fetch';
import { expect } from 'vitest';
import type { Heard } from './doctor/sdk-readers.ts';
import { effectOf, type Violating, violatingStreams, words } from './doctor/violating-streams.ts';

/** What a user of a framework gets. */
export interface HeardCalls extends Heard {
  /** The ids of the calls. */
  ids: readonly (string | undefined)[];
}

/** A framework with one of its providers. */
export interface FrameworkReader {
  client: string;
  protocol: ProtocolId;
  /** Reads the response that `fetch` gives. Rejects when the framework reports an error. */
  read(fetch: Fetch, message: AccumulatedMessage): Promise<HeardCalls>;
  /** The `fetch` of its adapter. */
  repaired(options: RepairFetchOptions): Fetch;
}

/** What one violation does to one client. */
export interface Row {
  rule: string;
  client: string;
  before: string;
  /** Undefined when the repair helps. */
  after: string | undefined;
}

/** A stream of these values. */
export function streamOf<T>(values: Iterable<T>): ReadableStream<T> {
  return new ReadableStream<T>({
    start(controller) {
      for (const value of values) controller.enqueue(value);
      controller.close();
    },
  });
}

/** A `fetch` that always responds with this stream. */
export function serve(chunks: readonly Uint8Array[]): Fetch {
  return async () => new Response(streamOf(chunks), { headers: { 'content-type': 'text/event-stream' } });
}

/** Whether every stream is read, as `npm run docs` and `npm run nightly` do; otherwise one of each violation, and the reported ones. */
const isComplete = Boolean(process.env['SLUICE_ALL_STREAMS']);

/** The streams with violations that frameworks are measured with. */
export const listStreams = (protocols: readonly ProtocolId[]): Violating[] =>
  violatingStreams({ protocols, ...(!isComplete && { most: 1 }) });

/** Throwing at an error, or at a response that was cut, is right. */
async function findEffect(reader: FrameworkReader, fetch: Fetch, { message }: Violating): Promise<string | undefined> {
  try {
    const heard = await reader.read(fetch, message);
    return effectOf(heard, message) ?? (hasOwnIds(heard) ? undefined : 'reads calls without ids of their own');
  } catch (error) {
    return message.error || !message.complete ? undefined : `throws: ${words(error)}`;
  }
}

const hasOwnIds = ({ ids }: HeardCalls): boolean => ids.every(Boolean) && new Set(ids).size === ids.length;

/** Every pair of violation and client where one of the two reads is wrong, sorted. */
export async function measureFramework(readers: readonly FrameworkReader[]): Promise<Row[]> {
  const rows = new Map<string, Row>();
  for (const violating of listStreams([...new Set(readers.map(({ protocol }) => protocol))])) {
    for (const reader of readers.filter(({ protocol }) => protocol === violating.protocol)) {
      const fetch = serve(violating.chunks);
      const before = await findEffect(reader, fetch, violating);
      const after = await findEffect(reader, reader.repaired({ fetch }), violating);
      if (before === undefined && after === undefined) continue;
      const { client } = reader;
      const key = `${violating.rule} ${client}`;
      const row = rows.get(key);
      rows.set(key, {
        rule: violating.rule,
        client,
        before: row && row.before !== FINE ? row.before : (before ?? FINE),
        after: row?.after ?? after,
      });
    }
  }
  return [...rows.values()].toSorted((a, b) => (`${a.rule} ${a.client}` < `${b.rule} ${b.client}` ? -1 : 1));
}

const FINE = 'reads it correctly';
const CORRECT = 'correct';

/** Compares a table of docs/adapters.md with what was measured: the whole page, or the rows of the streams that were read. */
export async function comparePage(name: string, rows: readonly Row[], atLeast: number): Promise<void> {
  const page = new URL('../docs/adapters.md', import.meta.url);
  if (isComplete) await expect(renderPage(page, name, rows)).toMatchFileSnapshot(fileURLToPath(page));
  else expect(readPage(page, name)).toEqual(expect.arrayContaining(rows.map(describePair)));
  expect(rows.length).toBeGreaterThan(atLeast);
}

/** What two runs with different streams have in common: the effect without the repair may differ in its details. */
const describePair = ({ rule, client, after }: Omit<Row, 'before'>): string => `${rule} ${client}: ${after ?? CORRECT}`;

function readPage(page: URL, name: string): string[] {
  const [, section = ''] = findSection(name).exec(readFileSync(page, 'utf8')) ?? [];
  const rows = section.matchAll(/^\| \[(\S+)\]\(\S+\) \| (.+?) \| .* \| (.+?) \|$/gm);
  return [...rows].map(([, rule = '', client = '', after]) => describePair({ rule, client, after }));
}

const findSection = (name: string): RegExp => new RegExp(`(?<=<!-- ${name}:start -->\\n)([\\s\\S]*?)(?=<!-- ${name}:end -->)`);

/** The page with a table in the place of that name. */
function renderPage(page: URL, name: string, rows: readonly Row[]): string {
  const table = [
    '| violation | provider | without the repair | with it |',
    '|---|---|---|---|',
    ...rows.map(
      ({ rule, client, before, after = CORRECT }) =>
        `| [${rule}](rules/${rule.replace('/', '-')}.md) | ${client} | ${escapeCell(before)} | ${escapeCell(after)} |`,
    ),
  ];
  const healed = rows.filter(({ after }) => after === undefined).length;
  const text = `${rows.length} pairs of violation and provider break without the repair; ${healed} of them are correct with it.`;
  return readFileSync(page, 'utf8').replace(findSection(name), () => [text, '', ...table, ''].join('\n'));
}

const escapeCell = (text: string): string =>
  text.replaceAll('|', '\\|').replaceAll(/[<>]/g, (sign) => (sign === '<' ? '&lt;' : '&gt;'));
