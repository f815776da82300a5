/** What was measured, as tables; and into docs/performance.md, between its markers. */
import { readFileSync, writeFileSync } from 'node:fs';
import { cpus } from 'node:os';
import { compare, format, summarize, summarizeRatio } from '../statistics.js';
import { HELD, STALLED } from './measures.js';
import { PORTKEY_VERSION } from './portkey.js';
import { here } from './processes.js';

const PAGE = here('../../docs/performance.md');
const BEGIN = '<!-- bench:gateway -->';
const END = '<!-- /bench:gateway -->';

/** At most this many times what the pipe needs. */
const GOALS = {
  passing: { requestCpu: 1.2, chunkCpu: 1.3, first: 2, bytes: 1.5 },
  converting: { requestCpu: 1.5, chunkCpu: 1.6, first: 2, bytes: 1.5 },
};
const GOAL_NAMES = {
  requestCpu: 'CPU a JSON request',
  chunkCpu: 'CPU a paced chunk',
  first: 'added time to first byte',
  bytes: `memory a stream, ${HELD.toLocaleString('en')} streams`,
};

export function report(measured, size, seconds) {
  const rows = summarise(measured);
  return [
    summary(rows),
    `${machine()}; ${new Date().toISOString().slice(0, 10)}, ${Math.round(seconds / 60)} minutes, ${size.rounds} rounds.`,
    main(rows),
    ledgerTable(measured),
    stalledTable(rows),
  ].join('\n\n');
}

/** What a gateway with its defaults does, in words. */
function summary(rows) {
  const [passing, converting] = ['passing', 'converting'].map((way) =>
    rows.find(({ name }) => name === `Sluice, ${way}, strict ledger`),
  );
  if (!passing || !converting) return 'A part of the subjects was measured.';
  const both = (key, divisor = 1) => `${shown(passing[key] / divisor)} and ${shown(converting[key] / divisor)}`;
  return [
    `On one core, a gateway with its ledger on disk serves ${both('rps')} small requests a second, without and with conversion between protocols.`,
    `It adds ${both('whole')} ms to a request, and ${both('first')} ms to the first byte of a stream. A stream takes ${both('bytes', 1024)} KB of memory.`,
  ].join(' ');
}

/** Which goals were missed, for those who change the code; the page has the figures only. */
export function reportGoals(measured) {
  const rows = [...goals(summarise(measured)), ...ledgerGoals(measured)];
  return table(['goal', 'at most', 'median [interquartile range]', 'reached'], rows);
}

/** Puts the text between the markers of the page. */
export function write(text) {
  const page = readFileSync(PAGE, 'utf8');
  const from = page.indexOf(BEGIN) + BEGIN.length;
  writeFileSync(PAGE, `${page.slice(0, from)}\n${text}\n${page.slice(page.indexOf(END))}`);
}

function machine() {
  const [{ model }] = cpus();
  const undici = JSON.parse(readFileSync(here('../../packages/gateway/package.json'), 'utf8')).dependencies.undici;
  return `Node ${process.versions.node}, ${cpus().length} cores (${model.trim()}), undici ${undici}, @portkey-ai/gateway ${PORTKEY_VERSION}`;
}

const COMPARED = {
  requestCpu: 'CPU a JSON request, us',
  rps: 'requests/s',
  chunkCpu: 'CPU a paced chunk, us',
  fastCpu: 'CPU an unpaced chunk, us',
  whole50: 'JSON p50, ms',
  first50: 'first byte p50, ms',
};

/** Two builds, figure by figure: medians and interquartile ranges, and their ratio within each round. */
export function reportComparison(measured, size, seconds) {
  const lines = measured
    .filter(({ subject }) => subject.before)
    .flatMap((after) => {
      const before = measured.find(({ subject }) => subject.name === after.subject.before);
      return [
        ...Object.keys(COMPARED).map((key) => comparedLine(key, before, after)),
        memoryLine(before, after),
        [after.subject.name, 'lost, wrong', faultsOf(before), faultsOf(after), '', ''],
      ];
    });
  return [
    summary(rows),
    `${machine()}; ${Math.round(seconds / 60)} minutes, ${size.rounds} rounds. Median [interquartile range].`,
    table(['', '', 'before', 'after', 'after / before', ''], lines),
  ].join('\n\n');
}

function comparedLine(key, before, after) {
  const [old, current] = [valuesOf(before.rounds, key), valuesOf(after.rounds, key)];
  const ratio = summarizeRatio(current, old);
  // More requests a second are faster.
  const cost = key === 'rps' ? summarizeRatio(old, current) : ratio;
  return [after.subject.name, COMPARED[key], format(summarize(old)), format(summarize(current)), format(ratio), compare(cost)];
}

const lostOf = ({ rounds, held }) => rounds.reduce((sum, { lost }) => sum + lost, 0) + held.missing + held.errors;

const faultsOf = (row) => `${lostOf(row)}, ${row.held.wrong}`;

/** Memory is measured once. */
function memoryLine({ held: before }, { held: after, subject }) {
  const kilobytes = ({ bytes }) => format(summarize([bytes / 1024]));
  const ratio = format(summarizeRatio([after.bytes], [before.bytes]));
  return [subject.name, 'memory a stream, KB', kilobytes(before), kilobytes(after), ratio, ''];
}

const valuesOf = (rounds, key) => rounds.map((round) => round[key]);

function summarise(measured) {
  const direct = measured.find(({ subject }) => subject.name === 'direct');
  const pipe = measured.find(({ subject }) => subject.name === 'node pipe');
  return measured.map(({ subject, rounds, held, stalled }) => {
    const of = (key) => summarize(valuesOf(rounds, key))?.median;
    const ratio = (key) => (subject.argv ? summarizeRatio(valuesOf(rounds, key), valuesOf(pipe.rounds, key)) : undefined);
    const added = (row, key) => row.rounds.map((round, i) => round[key] - direct.rounds[i][key]);
    return {
      ...subject,
      stalled,
      requestCpu: of('requestCpu'),
      chunkCpu: of('chunkCpu'),
      fastCpu: of('fastCpu'),
      rps: of('rps'),
      chunk50: of('chunk50'),
      chunk99: of('chunk99'),
      whole: subject.argv && summarize(added({ rounds }, 'whole50')).median,
      first: subject.argv && summarize(added({ rounds }, 'first50')).median,
      bytes: held.bytes,
      lost: lostOf({ rounds, held }),
      wrong: held.wrong,
      odd: rounds.map(({ odd }) => odd).find((odd) => odd) ?? '',
      ratios: {
        requestCpu: ratio('requestCpu'),
        chunkCpu: ratio('chunkCpu'),
        fastCpu: ratio('fastCpu'),
        first: subject.argv && summarizeRatio(added({ rounds }, 'first50'), added(pipe, 'first50')),
        bytes: held.bytes && summarizeRatio([held.bytes], [pipe.held.bytes]),
      },
    };
  });
}

function main(rows) {
  const head = [
    '',
    'CPU a JSON request, us',
    'requests/s',
    'added JSON p50, ms',
    'added first byte p50, ms',
    'CPU a paced chunk, us',
    'chunk p50 / p99, ms',
    'CPU an unpaced chunk, us',
    'memory a stream, KB',
    'lost',
    'wrong',
  ];
  return table(
    head,
    rows.map((row) => [
      row.name,
      beside(row.requestCpu, row.ratios.requestCpu),
      Math.round(row.rps).toLocaleString('en'),
      shown(row.whole),
      beside(row.first, row.ratios.first),
      beside(row.chunkCpu, row.ratios.chunkCpu),
      `${shown(row.chunk50)} / ${shown(row.chunk99)}`,
      beside(row.fastCpu, row.ratios.fastCpu),
      beside(row.bytes && row.bytes / 1024, row.ratios.bytes),
      String(row.lost),
      row.odd ? `${row.wrong} (${row.odd.split('\r\n', 1)})` : String(row.wrong),
    ]),
  );
}

const isReached = ({ median }, most) => (median <= most ? 'yes' : 'no');

const goals = (rows) =>
  rows.flatMap((row) =>
    Object.entries(GOALS[row.goal] ?? {}).map(([key, most]) => {
      const ratio = row.ratios[key];
      return [`${row.name}: ${GOAL_NAMES[key]}`, `${most}x`, `${format(ratio)}x`, isReached(ratio, most)];
    }),
  );

/** What a ledger may cost: times the gateway without one, within each round. Without a number it is only shown. `atMost` of a subject replaces the numbers. */
const LEDGER_GOALS = {
  requestLoop: { name: 'event loop CPU a JSON request', most: 1.2 },
  requestCpu: { name: 'CPU a JSON request, all threads', most: 1.7 },
  chunkLoop: { name: 'event loop CPU a paced chunk' },
  fastLoop: { name: 'event loop CPU an unpaced chunk', most: 1.1 },
};

/** The figures of every subject that adds to another one, beside those of the other. */
const compareWithPlain = (measured) =>
  measured.flatMap(({ subject, rounds }) => {
    const plain = measured.find(({ subject: { name } }) => name === subject.plain);
    if (!plain) return [];
    return Object.entries(LEDGER_GOALS).map(([key, { name, most }]) => {
      const [without, own] = [valuesOf(plain.rounds, key), valuesOf(rounds, key)];
      const atMost = subject.atMost ? subject.atMost[key] : most;
      return { name: `${subject.name}: ${name}`, without, own, ratio: summarizeRatio(own, without), atMost };
    });
  });

const ledgerTable = (measured) =>
  table(
    ['', 'without', 'with it', 'ratio'],
    compareWithPlain(measured).map(({ name, without, own, ratio }) => [
      `${name}, us`,
      format(summarize(without)),
      format(summarize(own)),
      format(ratio),
    ]),
  );

const ledgerGoals = (measured) =>
  compareWithPlain(measured)
    .filter(({ atMost }) => atMost !== undefined)
    .map(({ name, ratio, atMost }) => [name, `${atMost}x`, `${format(ratio)}x`, isReached(ratio, atMost)]);

/** Every third second is enough to see whether it grows. */
function stalledTable(rows) {
  const measured = rows.filter(({ stalled }) => stalled);
  const seconds = (measured[0]?.stalled.series ?? []).map((_, i) => i).filter((i) => i % 3 === 0);
  const waits = ['first request beside them, ms', 'median of later ones', 'slowest', 'failed'];
  return table(
    [`memory with ${STALLED} readers that do not read, MB`, ...seconds.map((i) => `${i + 1} s`), ...waits],
    measured.map(({ name, stalled: { series, waits } }) => [
      name,
      ...seconds.map((i) => String(Math.round(series[i] / 1024 / 1024))),
      ...[waits.first, waits.median, waits.slowest].map(shown),
      String(waits.failures),
    ]),
  );
}

function table(head, rows) {
  const line = (cells) => `| ${cells.join(' | ')} |`;
  return [line(head), line(head.map(() => '---')), ...rows.map(line)].join('\n');
}

const beside = (value, ratio) => (value === undefined ? '–' : `${shown(value)} (${shown(ratio?.median)}x)`);

function shown(value) {
  if (value === undefined || Number.isNaN(value)) return '–';
  return value >= 100 ? Math.round(value).toLocaleString('en') : value.toPrecision(3);
}
