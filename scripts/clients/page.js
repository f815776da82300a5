// docs/clients.md from the results of the matrix and from the table of clients that the commands use.
import { CLIENTS as SETUPS } from '../../packages/gateway/dist/cli/clients.js';
import { setupLines } from '../../packages/gateway/dist/cli/setup.js';
import { CLIENTS, UPSTREAMS, VARIANTS } from './table.js';

const TARGET = { url: 'http://127.0.0.1:4141', key: 'any', model: 'provider/model' };

export function renderPage(results) {
  return [
    HEAD,
    '## Every client with every upstream protocol',
    pairs(results),
    '## Upstreams that misbehave',
    tally(results),
    ...Object.keys(UPSTREAMS).map((protocol) => `### ${protocol}\n\n${variants(protocol, results)}`),
    LEGEND,
    '## Setting clients up',
    SETUP,
    ...Object.entries(SETUPS).map(([id, client]) => setup(id, client)),
    '',
  ].join('\n\n');
}

const HEAD = `# Clients

This page is written by \`scripts/clients/matrix.js\`; nothing in it is typed by hand. Real clients run as they are, headless, against a gateway whose upstreams are one scripted
model that speaks all four protocols. A file holds a random word; the prompt names the file; the model calls the client's own tool to read it. A cell passes when the client's last words have
the word in them and its exit code is 0: the request was taken, the stream read, the tool called, its result sent back, and the second stream read. The log of the gateway must say, too, that the upstream of the cell was asked, and no other one.

\`\`\`sh
npm run build
INST=<folder> <shared folder>/clients/install.sh     # the clients, once, outside of the repository; about 2 GB
INST=<folder> node scripts/clients/matrix.js         # all of it; "pairs", "variants" or "page" for a part, --only PATTERN for some cells, --again for all of them
\`\`\``;

const LEGEND = `What cannot be healed, and should not be: ${VARIANTS.filter(({ cannot }) => cannot)
  .map(({ what, cannot }) => `*${what}* (${cannot})`)
  .join(', ')}. There the client gets an error in its own protocol; those that ask again by themselves pass.
An answer that ends without saying so is not made whole: half a program that looks like a whole one does more harm than an error. Clients that took such an answer for a whole one are told.`;

const SETUP = `\`sluice env CLIENT\` prints what follows, for your address, key and model; \`sluice run CLIENT -- …\` starts the client that way, for one run, with a gateway of its own
if none listens. [docs/gateway.md](gateway.md) tells more.`;

const mark = (cell) => (cell === undefined ? ' ' : cell.passed ? 'ok' : '**fails**');

function pairs({ cells, versions }) {
  const upstreams = Object.keys(UPSTREAMS);
  const rows = CLIENTS.filter(({ name }) => versions[name]).map(({ name, title, protocol }) => [
    `${title} ${versions[name]}`,
    protocol,
    ...upstreams.map((upstream) => mark(cells[`${name} > ${upstream}`])),
  ]);
  const run = rows.flatMap((row) => row.slice(2)).filter((cell) => cell !== ' ');
  const passed = run.filter((cell) => cell === 'ok').length;
  return `${passed} of ${run.length} pass.\n\n${table(['client', 'it speaks', ...upstreams.map((id) => `upstream: ${id}`)], rows)}`;
}

/** Alone, then through the gateway. */
const COURSES = { 'ok ok': 'ok', 'fails ok': '**healed**', 'fails fails': 'fails', 'ok fails': '**told**' };

function courseOf(name, variant, { cells }) {
  const [alone, through] = ['alone', 'through'].map((way) => cells[`${name} > ${variant} ${way}`]);
  if (!alone || !through) return undefined;
  return `${alone.passed ? 'ok' : 'fails'} ${through.passed ? 'ok' : 'fails'}`;
}

function tally(results) {
  const courses = VARIANTS.flatMap((variant) =>
    CLIENTS.filter(({ protocol }) => variant.in.includes(protocol)).flatMap(({ name }) => {
      const course = courseOf(name, variant.id, results);
      return course === undefined ? [] : [{ course, cannot: variant.cannot !== undefined }];
    }),
  );
  const count = (test) => courses.filter(test).length;
  const alone = count(({ course }) => course.startsWith('ok'));
  const through = count(({ course }) => course.endsWith('ok'));
  const open = count(({ course, cannot }) => course.endsWith('fails') && !cannot);
  return `Each client with each variant of an upstream of its own protocol, alone and through the gateway (\`repair: true\`). Of ${courses.length} cells, ${alone} pass alone and ${through} through the gateway;
${count(({ course }) => course === 'fails ok')} are healed, and ${open === 0 ? 'none' : open} of those that fail through the gateway could be healed.

ok: passes both ways. **healed**: fails alone, passes through the gateway. fails: both ways. **told**: passes alone, and is told of an error through the gateway. Blank: not run.`;
}

function variants(protocol, results) {
  const clients = CLIENTS.filter((client) => client.protocol === protocol && results.versions[client.name]);
  const rows = VARIANTS.filter((variant) => variant.in.includes(protocol)).map(({ id, what }) => [
    what,
    ...clients.map(({ name }) => COURSES[courseOf(name, id, results)] ?? ' '),
  ]);
  return table(['the upstream …', ...clients.map(({ title }) => title)], rows);
}

function setup(id, client) {
  const { title, install, snippet } = client;
  const language = snippet && id !== 'curl' ? 'js' : 'sh';
  const from = install === undefined ? '' : `\`${install}\`\n\n`;
  return `### ${title}: \`sluice env ${id}\`\n\n${from}\`\`\`${language}\n${setupLines(client, TARGET).join('\n')}\n\`\`\``;
}

const line = (cells) => `| ${cells.join(' | ')} |`;
const table = (head, rows) => [line(head), line(head.map(() => '---')), ...rows.map(line)].join('\n');
