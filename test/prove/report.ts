import { MUTATIONS } from '../../packages/lab/src/mutate/index.ts';
import { DELIBERATE } from './framing.ts';
import { SETTLED_LATE } from './late.ts';
import { OPEN } from './open.ts';
import { blockOf, COUNTED, number, sum, table, triedRows } from './summary.ts';
import type { Row } from './tally.ts';

const PAIR = ' → ';

/** A cell: how many inputs held, and what did not. */
function cell(rows: readonly Row[]): string {
  if (rows.length === 0) return '';
  const [failed, open] = [sum(rows, 'failed'), sum(rows, 'open')];
  return `${number(sum(rows, 'tried'))}${failed > 0 ? `, **${number(failed)} failed**` : ''}${open > 0 ? `, ${number(open)} open` : ''}`;
}

const unique = (values: readonly string[]): string[] => [...new Set(values)];
const isPair = ({ subject }: Row): boolean => subject.includes(PAIR);

/** Property by property, a column for each subject. */
function properties(rows: readonly Row[]): string {
  const subjects = unique(rows.map(({ subject }) => subject)).toSorted();
  return table(
    ['', ...subjects],
    unique(rows.map(({ property }) => property)).map((property) => [
      property,
      ...subjects.map((subject) => cell(rows.filter((row) => row.property === property && row.subject === subject))),
    ]),
  );
}

/** Pair by pair: from the line to the column. */
function pairs(rows: readonly Row[], property: string): string {
  const own = rows.filter((row) => row.property === property);
  const subjects = unique(own.flatMap(({ subject }) => subject.split(PAIR)));
  return table(
    [`${property}: from, to`, ...subjects],
    subjects.map((from) => [from, ...subjects.map((to) => cell(own.filter(({ subject }) => subject === from + PAIR + to)))]),
  );
}

/** What was seen, by name, with the counts of all rows together. */
function seen(rows: readonly Row[]): Map<string, number> {
  const counts = new Map<string, number>();
  for (const row of rows) for (const [name, count] of Object.entries(row.seen)) counts.set(name, (counts.get(name) ?? 0) + count);
  return counts;
}

/** The most frequent first. */
const ranked = (counts: Map<string, number>): [string, number][] =>
  [...counts].toSorted(([a, n], [b, m]) => m - n || (a < b ? -1 : 1));

function dialects(): string {
  const kinds = unique(MUTATIONS.map(({ kind }) => kind));
  const protocols = unique(MUTATIONS.flatMap((mutation) => [...mutation.protocols]));
  return table(
    ['dialects', ...protocols],
    kinds.map((kind) => [
      kind,
      ...protocols.map((protocol) =>
        String(MUTATIONS.filter((one) => one.kind === kind && one.protocols.some((own) => own === protocol)).length),
      ),
    ]),
  );
}

function recordings(rows: readonly Row[]): string {
  const counts = Object.values(COUNTED).map((property) => seen(rows.filter((row) => row.property === property)));
  const providers = unique(counts.flatMap((count) => [...count.keys()])).toSorted();
  const total = counts.map((count) => [...count.values()].reduce((all, one) => all + one, 0));
  return table(
    ['provider', 'streams', 'whole responses', 'requests'],
    [
      ...providers.map((provider) => [provider, ...counts.map((count) => number(count.get(provider) ?? 0))]),
      ['**all**', ...total.map((count) => `**${number(count)}**`)],
    ],
  );
}

/** Which notes, and between which protocols. */
function notes(rows: readonly Row[]): string {
  const names = ranked(seen(rows.filter(isPair)));
  return table(
    ['note', 'times', 'pairs'],
    names.map(([name, count]) => {
      const subjects = unique(rows.filter((row) => isPair(row) && name in row.seen).map(({ subject }) => subject));
      return [name, number(count), String(subjects.length)];
    }),
  );
}

const list = (entries: Iterable<readonly [string, string]>): string =>
  [...entries].map(([name, reason]) => `- \`${name}\`: ${reason}`).join('\n');

export interface Facts {
  version: string;
  /** Names and versions of the programs that judge ours. */
  judges: readonly string[];
}

/** The figures of a run as a page: the same run gives the same page. */
export function reportOf(rows: readonly Row[], { version, judges }: Facts): string {
  const tried = triedRows(rows);
  const plain = tried.filter((row) => !isPair(row));
  const isJudge = ({ subject }: Row): boolean => /\d\.\d/.test(subject);
  const seeds = unique(rows.flatMap(({ seed }) => (seed === null ? [] : [String(seed)])));
  const paired = unique(tried.filter(isPair).map(({ property }) => property));
  return `${[
    '# Conformance',
    `Written by \`npm run prove\` for Sluice ${version}, with the seed ${seeds.join(', ')}: the same version gives the same page. It reads \`fixtures/corpus\`: bodies and requests rendered from the shapes of recorded ones. The same checks, with fewer inputs, are part of \`npm test\`; \`sluice prove\` runs them over recordings of your own. How many changes of the code the tests would notice: [mutation.md](mutation.md).`,
    blockOf(rows),
    '## Property by property',
    'Number of checks; all of them passed unless the cell shows otherwise.',
    properties(plain.filter((row) => !isJudge(row))),
    '## Pair by pair',
    'A response or request of one protocol, converted to the other and, for responses, back. What every protocol supports is unchanged except for what a note reports; with the same protocol, everything is unchanged.',
    ...paired.map((property) => pairs(tried, property)),
    '## Judges',
    `${judges.join(', ')}. What the official SDKs read from our streams, through a fetch that responds from memory, equals what our own reader reads; frames equal those of \`eventsource-parser\`.`,
    properties(plain.filter(isJudge)),
    'Deliberate differences from the standard in reading frames, each reported when it occurs:',
    list(Object.entries(DELIBERATE)),
    '## Dialects',
    'Violations of the standards, applied to clean streams. Each must be read as the clean stream, or the loss must be reported.',
    dialects(),
    '## Corpus',
    'Shapes of recorded responses and requests, by provider.',
    recordings(rows),
    '## Notes',
    'What conversions dropped or approximated.',
    notes(tried),
    '## Exemptions',
    'Reported streams that are excluded from the pairs, because they change something after it was sent to the client.',
    list(Object.entries(SETTLED_LATE)),
    '## Open',
    OPEN.length === 0 ? 'Nothing.' : OPEN.map(({ reason }) => `- ${reason}.`).join('\n'),
  ].join('\n\n')}\n`;
}
