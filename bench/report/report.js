/** Everything that is written from results, as texts: a pure function, so that running it again changes nothing. */
import { buildCharts } from './charts.js';
import { buildOverview } from './overview.js';
import { writePage } from './page.js';
import { writeReadme } from './readme.js';
import { THEMES } from './theme.js';

export const PAGE = 'docs/performance.md';
export const README = 'README.md';
export const IMAGES = 'docs/images';
/** Files in the folder of images that are written here. */
export const isChart = (name) => /^performance-.*\.svg$/.test(name);

const MARKERS = {
  [PAGE]: ['<!-- bench: written by npm run bench:report -->', '<!-- /bench -->'],
  [README]: ['<!-- performance: written by npm run bench:report -->', '<!-- /performance -->'],
};

/** Puts `content` between the markers of a file. */
export function replaceBlock(file, text, content) {
  const [begin, end] = MARKERS[file];
  const [from, to] = [text.indexOf(begin), text.indexOf(end)];
  if (from < 0 || to < from) throw new Error(`${file}: the markers ${begin} and ${end} are missing`);
  return `${text.slice(0, from + begin.length)}\n${content}\n${text.slice(to)}`;
}

/**
 * The files by path. `runs`: `{ gateway, library }`, each of which may be undefined; `texts`: what the pages contain now.
 *
 * @returns {Record<string, string>}
 */
export function buildReport(runs, texts) {
  const [charts, overview] = [buildCharts(runs), buildOverview(runs.gateway)];
  const pictures = [...overview, ...charts].flatMap(({ name, draw }) =>
    Object.entries(THEMES).map(([scheme, theme]) => [`${IMAGES}/performance-${name}-${scheme}.svg`, draw(theme)]),
  );
  return {
    ...Object.fromEntries(pictures),
    [PAGE]: replaceBlock(PAGE, texts[PAGE], writePage(runs, charts)),
    [README]: replaceBlock(README, texts[README], writeReadme(runs, overview)),
  };
}
