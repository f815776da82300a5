// The section of docs/clients-tested.md about stored responses. It is written by a run of its own, and kept when the rest is written again.
import { STATE_CLIENTS, UPSTREAMS } from './table.js';

const TITLE = '## Stored responses';

/** `results`: of state.js. */
export function renderState({ versions, cells }) {
  const upstreams = Object.keys(UPSTREAMS);
  const head = ['client', 'how it continues', ...upstreams.map((id) => `upstream: ${id}`)];
  const rows = STATE_CLIENTS.filter(({ name }) => versions[name]).map(({ name, title, how }) => [
    `${title} ${versions[name]}`,
    how,
    ...upstreams.map((upstream) => ({ true: 'ok', false: '**fails**' })[cells[`${name} > ${upstream}`]?.passed] ?? ' '),
  ]);
  const line = (texts) => `| ${texts.join(' | ')} |`;
  return [TITLE, TEXT, [line(head), line(head.map(() => '---')), ...rows.map(line)].join('\n')].join('\n\n');
}

const TEXT = `Three turns with one of these clients, each with a random word. A cell passes when the request of the last turn reaches the upstream with
these words and the result of the tool, although the client sends only references to earlier turns. The background response is left after three events, and its stream is
resumed after every event: each time the events are those of the whole stream. See [stored responses](responses.md).`;

/** The section of a page that is written already; undefined when it has none. */
export function readState(page) {
  const [, rest] = page.split(`\n${TITLE}\n`);
  return rest === undefined ? undefined : `${TITLE}\n${rest.split('\n## ')[0]}`.trimEnd();
}

/** A page with this section, in place of the old one or before the misbehaving upstreams. */
export function replaceState(page, section) {
  const old = readState(page);
  return old === undefined ? page.replace(BEFORE, `${section}\n\n${BEFORE}`) : page.replace(old, () => section);
}

const BEFORE = '## Upstreams that misbehave';
