// docs/clients-tested.md from the results of the matrix.
import { FAULTS } from './faults.js';
import { CLIENTS, UPSTREAMS, VARIANTS } from './table.js';

/** `results`: of matrix.js; `reactions`: of errors.js. */
export function renderPage(results, reactions) {
  const protocols = Object.keys(UPSTREAMS);
  return [
    HEAD,
    '## Every client with every upstream protocol',
    pairs(results),
    '## Upstreams that misbehave',
    tally(results),
    ...protocols.map((protocol) => `### ${protocol}\n\n${variants(protocol, results)}`),
    '### Worse through the gateway',
    worse(results),
    '## Streams that fail in the middle',
    ERRORS,
    chosen(reactions),
    ...protocols.map((protocol) => `### ${protocol}: failed streams\n\n${faults(protocol, reactions)}`),
    '## How it is tested',
    METHOD,
    '',
  ].join('\n\n');
}

const HEAD = `# Tested clients

Real clients, unmodified and headless, through a gateway with every upstream protocol, and with upstreams that misbehave. [Clients](clients.md) has the settings of each; [how it is tested](#how-it-is-tested) is at the end.`;

const METHOD = `The upstreams are one scripted model that uses all four protocols. A file holds a random word, and the prompt names the file. The model calls the client's own tool to read it. A cell passes when the client's final output
contains the word and its exit code is 0: the request was accepted, the stream parsed, the tool called, its result sent back, and the second stream parsed. The log of the gateway must also show
that the upstream of the cell received the request, and no other one.

\`scripts/clients/matrix.js\` runs the clients and writes this page. They are not part of the repository: \`INST\` names the folder where they are installed.`;

const ERRORS = `When an upstream fails after part of a response was sent, only the stream itself can report it. What a client does then depends on the form of the error, so each form was tried with every
client, without the gateway. **retries**: the client sends the request again and succeeds. reports: it shows the message of the error. fails: it fails with a message of its own.
**silent**: it takes the partial response for a complete one. The gateway uses the form in bold.

- A closed connection without an error event hides the reason from SDKs, and Gemini CLI does not retry it.
- Qwen Code retries chat errors by \`code: "ECONNRESET"\`; opencode, pi and Qwen Code retry Anthropic errors by \`overloaded_error\`; pi and Continue retry by "socket hang up" in the message.
- Codex gives up on \`server_is_overloaded\`, so Responses streams never use it.
- @google/genai 2 and the AI SDK read an error only from a \`data:\` event. @google/genai 1, pi and Kimi Code read it only from bare JSON that arrives on its own. Gemini streams therefore carry both, in two reads. An error that Google itself reports in a stream is passed on as the event alone, so that clients do what they do without a gateway.`;

/** The clients by protocol; a cell that fails has a line of its own. */
function pairs({ cells, versions }) {
  const upstreams = Object.keys(UPSTREAMS);
  const tested = CLIENTS.filter(({ name }) => versions[name]);
  const run = tested.flatMap(({ name, title }) =>
    upstreams.flatMap((upstream) => {
      const cell = cells[`${name} > ${upstream}`];
      return cell === undefined ? [] : [{ text: `${title} with ${upstream}`, passed: cell.passed }];
    }),
  );
  const failed = run.filter(({ passed }) => !passed).map(({ text }) => `- fails: ${text}`);
  const rows = upstreams.map((protocol) => [
    protocol,
    tested
      .filter((client) => client.protocol === protocol)
      .map(({ name, title }) => `${title} ${versions[name]}`)
      .join('; '),
  ]);
  const count = `${run.length - failed.length} of ${run.length} pass: each of these clients with upstreams of all four protocols.`;
  return [count, table(['protocol of the client', 'clients'], rows), ...(failed.length > 0 ? [failed.join('\n')] : [])].join(
    '\n\n',
  );
}

/** Alone, then through the gateway. */
const COURSES = { 'ok ok': 'ok', 'fails ok': '**healed**', 'fails fails': 'fails', 'ok fails': '**worse**' };

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
  return `Each client with each variant of an upstream of its own protocol, alone and through the gateway (\`repair: true\`). Of ${courses.length} cells, ${alone} pass alone and ${through} through the gateway.
${count(({ course }) => course === 'fails ok')} are healed, ${count(({ course }) => course === 'ok fails')} are worse, and ${open} fail through the gateway although a gateway could heal them.

ok: passes both ways. **healed**: fails alone, passes through the gateway. fails: both ways. **worse**: passes alone, fails through the gateway. Blank: not run.

No gateway can heal these variants: ${VARIANTS.filter(({ cannot }) => cannot)
    .map(({ what, cannot }) => `*${what}* (${cannot})`)
    .join(', ')}. The client gets an error in its own protocol; clients that retry by themselves pass.`;
}

/** Every cell that passes alone only, with the reason. */
function worse(results) {
  const lines = VARIANTS.flatMap(({ id, what, cannot, in: protocols }) => {
    const names = CLIENTS.filter(
      ({ protocol, name }) => protocols.includes(protocol) && courseOf(name, id, results) === 'ok fails',
    );
    const titles = names.map(({ title, name }) => `${title} ${results.versions[name] ?? ''}`.trim()).join(', ');
    return names.length === 0 ? [] : [`- *${what}* (${cannot ?? 'open'}): ${titles}`];
  });
  if (lines.length === 0) return 'None.';
  return `A response that ends early is never presented as complete: half a program that looks like a whole one does more harm than an error. Anthropic and Responses streams whose blocks or items have all ended are passed on as they came.\n\n${lines.join('\n')}`;
}

/** What the form that the gateway uses comes to. */
function chosen(reactions) {
  const cells = CLIENTS.map(({ name, protocol }) => ({
    cut: reactions[`${name} > cut`],
    now: reactions[`${name} > ${protocol === 'gemini' ? 'plain-pause-bare-end' : 'gateway-end'}`],
  })).filter(({ now }) => now !== undefined);
  const count = (test) => cells.filter(test).length;
  const kept = count(({ cut, now }) => cut === 'retries' && now === 'retries');
  return `Of ${cells.length} clients, ${count(({ now }) => now === 'retries')} retry this form, ${count(({ now }) => now === 'reports')} report its message, ${count(({ now }) => now === 'fails')} fail with a message of their own,
and ${count(({ now }) => now === 'silent')} take it for success. ${kept} of the ${count(({ cut }) => cut === 'retries')} clients that retry a closed connection retry this form too.`;
}

const REACTIONS = { retries: '**retries**', reports: 'reports', fails: 'fails', silent: '**silent**' };

function faults(protocol, reactions) {
  const clients = CLIENTS.filter((client) => client.protocol === protocol && !client.isWhole);
  const rows = FAULTS.filter((fault) => fault.in.includes(protocol)).map(({ id, what }) => [
    what,
    ...clients.map(({ name }) => REACTIONS[reactions[`${name} > ${id}`]] ?? ' '),
  ]);
  return table(['the stream ends in …', ...clients.map(({ title }) => title)], rows);
}

/** A table of the variants that some client fails with; the others in one line. */
function variants(protocol, results) {
  const clients = CLIENTS.filter((client) => client.protocol === protocol && results.versions[client.name]);
  const rows = VARIANTS.filter((variant) => variant.in.includes(protocol))
    .map(({ id, what }) => [what, ...clients.map(({ name }) => COURSES[courseOf(name, id, results)] ?? ' ')])
    .filter(([, ...cells]) => cells.some((cell) => cell !== ' '));
  const isFine = ([, ...cells]) => cells.every((cell) => cell === 'ok' || cell === ' ');
  const fine = rows.filter(isFine).map(([what]) => what);
  return [
    `Every client that was tried passes both ways: ${fine.join('; ')}.`,
    table(
      ['the upstream …', ...clients.map(({ title }) => title)],
      rows.filter((row) => !isFine(row)),
    ),
  ].join('\n\n');
}

const line = (cells) => `| ${cells.join(' | ')} |`;
const table = (head, rows) => [line(head), line(head.map(() => '---')), ...rows.map(line)].join('\n');
