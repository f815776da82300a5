/** Figures of a proof in docs/reliability.md, between the markers of its name. The test that writes the rest of the page keeps them. */
import { readFileSync, writeFileSync } from 'node:fs';

const PAGE = new URL('../../docs/reliability.md', import.meta.url);

export function writeFigures(name, text) {
  const page = readFileSync(PAGE, 'utf8');
  const [begin, end] = [`<!-- nightly:${name} -->`, `<!-- /nightly:${name} -->`];
  const from = page.indexOf(begin);
  const to = page.indexOf(end);
  if (from < 0 || to < from) throw new Error(`docs/reliability.md has no ${begin} … ${end}`);
  writeFileSync(PAGE, `${page.slice(0, from + begin.length)}\n${text}\n${page.slice(to)}`);
}
