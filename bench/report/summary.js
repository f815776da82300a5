/** The headline figures in words. A sentence whose figures were not measured is dropped. */
import { formatNumber } from '../method/statistics.js';
import { findProgram, findResult, findRow, listWrong, medianOf } from './data.js';
import { formatCount, formatFigure, formatRatio } from './frame.js';
import { nameOf } from './names.js';

const FULL = 'sluice-full';
const CONVERTING = 'anthropic>chat';

/** `12.3 and 14.5`, passing and converting; undefined when one is missing. */
function both(run, id, shown = formatFigure) {
  const values = ['pass', CONVERTING].map((way) => medianOf(run, id(way), FULL));
  return values.includes(undefined) ? undefined : values.map(shown).join(' and ');
}

/** How many times the reference. */
const ratioOf = (run, id) => findResult(findRow(run, id), FULL)?.ratio?.median;

/** Requests that one core has time for. */
const perSecond = (microseconds) => formatNumber(Math.round(1e6 / microseconds / 10) * 10);

const SENTENCES = [
  (run) => {
    const [cpu, ratio] = [both(run, (way) => `json-0.1k ${way}`), ratioOf(run, 'json-0.1k pass')];
    const times = ratio ? ` Passing takes ${formatRatio(ratio)} the CPU time of a plain proxy of node:http and undici.` : '';
    return cpu && `A small request takes ${cpu} µs of CPU time, passing and converting.${times}`;
  },
  (run) => {
    const rate = both(run, (way) => `json-0.1k ${way}`, perSecond);
    return rate && `That is about ${rate} requests a second on one core.`;
  },
  (run) => {
    const added = both(run, (way) => `latency-200 ${way} p50`);
    return added && `At 200 requests a second, the gateway adds ${added} ms to a request (p50).`;
  },
  (run) => {
    const first = both(run, (way) => `first-1000 ${way}`);
    return first && `It adds ${first} ms to the first byte of a stream, after 1,000 streams.`;
  },
  (run) => {
    const memory = both(run, (way) => `rss ${way}`);
    return memory && `A stream takes ${memory} KB of memory.`;
  },
  (run) => {
    const wrong = run.rows.flatMap((row) =>
      listWrong(row).map(({ subject }) => ({ id: row.id, subject: findProgram(row, subject) })),
    );
    const measured = run.rows.some(({ results }) => results.some((result) => result.wrong !== undefined));
    return measured && describeWrong(wrong);
  },
];

/** Not how many: rows of one measurement have the same count, such as those of p50 and p99. */
function describeWrong(wrong) {
  const isOwn = ({ subject }) => subject.startsWith('sluice');
  const rows = new Set(wrong.filter(isOwn).map(({ id }) => id)).size;
  const others = [...new Set(wrong.filter((one) => !isOwn(one)).map(({ subject }) => nameOf(subject)))];
  const us =
    rows === 0
      ? 'Sluice lost or changed no response.'
      : `Sluice lost or changed responses in ${formatCount(rows)} ${rows === 1 ? 'row' : 'rows'} of the tables.`;
  return others.length === 0 ? us : `${us} Other programs with lost or changed responses: ${others.join(', ')}.`;
}

export const writeSummary = (run) => SENTENCES.map((write) => write(run)).filter(Boolean);

/** For the README: two sentences. */
export function writeShortSummary(run) {
  const [first, memory] = [both(run, (way) => `first-1000 ${way}`), both(run, (way) => `rss ${way}`)];
  const [request] = [both(run, (way) => `latency-200 ${way} p50`)];
  const parts = [request && `${request} ms to a request`, first && `${first} ms to the first byte of a stream`].filter(Boolean);
  return [
    parts.length > 0 && `The gateway adds ${parts.join(', and ')}, passing and converting.`,
    memory && `A stream takes ${memory} KB of memory.`,
  ].filter(Boolean);
}
