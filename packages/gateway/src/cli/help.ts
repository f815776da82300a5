import type { OptionTable } from './arguments.ts';
import type { Colors } from './colors.ts';
import type { Command } from './command.ts';
import { wrap } from './layout.ts';

export interface HelpStyle {
  colors: Colors;
  columns: number | undefined;
}

const HELP_OPTION = { help: { type: 'boolean', short: 'h', summary: 'show this help' } } as const;
const VERSION_OPTION = { version: { type: 'boolean', summary: 'show the version' } } as const;
HELP_OPTION satisfies OptionTable;
VERSION_OPTION satisfies OptionTable;

/** `sluice --help` */
export function programHelp(commands: Readonly<Record<string, Command>>, style: HelpStyle): string {
  const { bold } = style.colors;
  const rows = Object.entries(commands).map(([name, { summary }]): Row => [name, summary]);
  return [
    `${bold('sluice')} – the gate between LLM protocols`,
    heading('Usage', style, ['sluice [COMMAND] [OPTIONS] [FILE…]']),
    heading('Commands', style, table(rows, style)),
    heading('Options', style, table(optionRows({ ...HELP_OPTION, ...VERSION_OPTION }), style)),
    heading('Exit codes', style, ['0 done · 1 failed for at least one input · 2 wrong usage']),
    'Without a command, the gateway starts. Run "sluice COMMAND --help" for its options and examples.\n',
  ].join('\n\n');
}

/** `sluice COMMAND --help` */
export function commandHelp(command: Command, style: HelpStyle): string {
  const { dim } = style.colors;
  const examples = command.examples.flatMap(({ line, what }) => [dim(`# ${what}`), line]);
  return [
    wrap(command.about, style.columns).join('\n'),
    heading('Usage', style, [`sluice ${command.usage}`]),
    heading('Options', style, table(optionRows({ ...command.options, ...HELP_OPTION }), style)),
    `${heading('Examples', style, examples)}\n`,
  ].join('\n\n');
}

type Row = readonly [left: string, right: string];

function optionRows(options: OptionTable): Row[] {
  return Object.entries(options).map(([name, { short, value, summary }]): Row => {
    const long = `--${name}${value === undefined ? '' : ` ${value}`}`;
    return [short === undefined ? long : `-${short}, ${long}`, summary];
  });
}

const heading = (title: string, { colors }: HelpStyle, lines: readonly string[]): string =>
  [colors.bold(title), ...lines.map((line) => `  ${line}`)].join('\n');

function table(rows: readonly Row[], { colors, columns }: HelpStyle): string[] {
  const width = Math.max(...rows.map(([left]) => left.length)) + 3;
  return rows.flatMap(([left, right]) => {
    const [first = '', ...rest] = wrap(right, columns === undefined ? undefined : columns - width - 2);
    return [colors.cyan(left.padEnd(width)) + first, ...rest.map((line) => ' '.repeat(width) + line)];
  });
}
