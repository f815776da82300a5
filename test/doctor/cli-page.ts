import { type Command, listGroups, type OptionTable } from '../../packages/gateway/src/cli/command.ts';
import { LINES, type LineShape } from './json-lines.ts';

const cell = (text: string): string => text.replaceAll('|', '\\|').replaceAll('<', '&lt;');

function optionRows(options: OptionTable): string[] {
  return Object.entries(options).map(([name, { short, value, summary }]) => {
    const long = `--${name}${value === undefined ? '' : ` ${value}`}`;
    return `| \`${(short === undefined ? long : `-${short}, ${long}`).replaceAll('|', '\\|')}\` | ${cell(summary)} |`;
  });
}

function jsonRows(shapes: readonly LineShape[]): string[] {
  return shapes.flatMap(({ when, keys }) => [
    '',
    `With \`--json\`, ${when.replace(/^with (--\w+)/, 'and `$1`')}:`,
    '',
    '| key | |',
    '|---|---|',
    ...Object.entries(keys).map(([key, what]) => `| \`${key}\` | ${cell(what)} |`),
  ]);
}

function section(name: string, { summary, usage, about, options, examples }: Command): string[] {
  const rows = optionRows(options);
  return [
    '',
    `## sluice ${name}`,
    `${cell(summary)}.`,
    '',
    '```sh',
    ...usage.map((line) => `sluice ${line}`),
    '```',
    '',
    cell(about),
    ...(rows.length > 0 ? ['', '| option | |', '|---|---|', ...rows] : []),
    '',
    '```sh',
    ...examples.flatMap(({ line, what }) => [`# ${what}`, line]),
    '```',
    ...jsonRows(LINES[name] ?? []),
  ];
}

const INTRODUCTION = `Results go to stdout, everything else to stderr. Without a command, the gateway starts. \`sluice help COMMAND\` prints the options and examples of a command; \`sluice --version\` (\`-V\`) prints the version.

**Inputs.** Commands that read responses take the same inputs: files (SSE, NDJSON, a JSON array or a whole JSON body), folders (every file below them; files that are not responses are skipped and counted on stderr), tapes of [\`sluice record\`](tapes.md) (the response of each exchange), and \`-\` for standard input, which is also read when no input is given. The protocol is detected from the bytes; \`--protocol\` overrides it. One bad input does not stop the others.

**Exit codes.** The worst one over all inputs counts.

| code | |
|---|---|
| 0 | success |
| 1 | a finding, a difference, or a failure of an input that was read: it is not a response, failed, ended early, or lost something under \`--strict\` |
| 2 | wrong usage, or an input that cannot be read |
| 3 | \`doctor --url\` only: nothing is wrong, but a probe was inconclusive |

**JSON.** With \`--json\`, stdout has one JSON object per line and nothing else; messages and errors stay on stderr. Every key below is always present, unless it ends in \`?\`. Keys may be added, but are not removed or renamed within a major version.

**Terminals.** \`--no-color\`, \`NO_COLOR\` and \`FORCE_COLOR\` are honoured. Help is wrapped at 80 columns or the width of the terminal. Long work shows progress when stderr is a terminal. A reader that closes the pipe, such as \`head\`, is not an error.

**Completion.** \`sluice completion bash|zsh|fish\` prints a script that completes commands, options, protocols, clients and files.`;

/** How commands find their gateway: the table of cli/find-gateway.ts. */
const GATEWAY = `## The gateway of a command
Commands that use a gateway look for it in this order:

| place | |
|---|---|
| \`--url URL\` | used as it is |
| \`SLUICE_URL\` | used as it is |
| the configuration | \`listen\` of \`--config FILE\`, or else of \`sluice.yaml\` in this folder. 127.0.0.1 for a wildcard address; \`https\` with \`listen.tls\` |
| the data folder | the address of the gateway that owns it, which may have another port than the configuration. The folder is that of \`SLUICE_DATA\`, or else of the configuration, or of the user |
| the default address | \`http://127.0.0.1:4141\`, if the configuration has no \`listen\` |

At an address that you have not named with \`--url\` or \`SLUICE_URL\`, the gateway must be that of the configuration. One with a data folder must own the folder, one with a PostgreSQL store must be a node of that database, and one in memory must have the same configuration file, or none and the same user. \`/health/live\` has what is compared in the header \`x-sluice-instance\`; the admin key is sent only after that.

| what runs | commands that read | commands that change something |
|---|---|---|
| the gateway of the configuration | use it | use it |
| none | read the data folder or database | change it |
| another gateway at that address | read the data folder or database | fail with exit code 2 and name both; with a PostgreSQL store, they change the database |

An error lists every place and what was found there. A gateway in a container, or of a user whose folder you cannot read, cannot be identified: name it with \`--url\`.`;

/** Every command, from what its help is made of, and the keys of its JSON lines. */
export function renderCli(commands: Readonly<Record<string, Command>>): string {
  return `${[
    '<!-- Written by a test: npm run docs -->',
    '# The command line',
    '',
    INTRODUCTION,
    '',
    ...listGroups(commands).flatMap(({ title, rows }) => [
      `**${title}**`,
      '',
      ...rows.map(([name, { summary }]) => `- [\`${name}\`](#sluice-${name}): ${cell(summary)}`),
      '',
    ]),
    GATEWAY,
    ...Object.entries(commands).flatMap(([name, command]) => section(name, command)),
  ].join('\n')}\n`;
}
