import type { Command, OptionTable } from '../../packages/gateway/src/cli/command.ts';

const cell = (text: string): string => text.replaceAll('|', '\\|').replaceAll('<', '&lt;');

function optionRows(options: OptionTable): string[] {
  return Object.entries(options).map(([name, { short, value, summary }]) => {
    const long = `--${name}${value === undefined ? '' : ` ${value}`}`;
    return `| \`${(short === undefined ? long : `-${short}, ${long}`).replaceAll('|', '\\|')}\` | ${cell(summary)} |`;
  });
}

function section(name: string, { summary, usage, about, options, examples }: Command): string[] {
  const rows = optionRows(options);
  return [
    '',
    `## sluice ${name}`,
    `${cell(summary)[0]?.toUpperCase() ?? ''}${cell(summary).slice(1)}.`,
    '',
    '```sh',
    ...`sluice ${usage}`.split('\n').map((line) => line.trim()),
    '```',
    '',
    cell(about),
    ...(rows.length > 0 ? ['', '| option | |', '|---|---|', ...rows] : []),
    '',
    '```sh',
    ...examples.flatMap(({ line, what }) => [`# ${what}`, line]),
    '```',
  ];
}

/** Every command, from what its help is made of. */
export function renderCli(commands: Readonly<Record<string, Command>>): string {
  return `${[
    '<!-- Written by a test: npm run docs -->',
    '# The command line',
    '',
    'Results go to stdout, everything else to stderr. For people on a terminal, for programs with `--json`: one JSON value a line. `-` is standard input. `NO_COLOR` and `FORCE_COLOR` are honoured; long work shows progress when stderr is a terminal.',
    'Exit codes: 0 done, 1 the job failed for at least one input, 2 wrong usage. Without a command, the gateway starts. `sluice COMMAND --help` says what stands here.',
    '',
    ...Object.entries(commands).map(([name, { summary }]) => `- [\`${name}\`](#sluice-${name}): ${cell(summary)}`),
    ...Object.entries(commands).flatMap(([name, command]) => section(name, command)),
  ].join('\n')}\n`;
}
