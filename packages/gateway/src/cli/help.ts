/** Help texts, the version, and the message for internal errors. */

import { readFileSync } from 'node:fs';
import { oneLine, printable } from '@sluice/lab/text';
import type { CliIo } from '../terminal/io.ts';
import { type Colors, chooseColors, wrapText } from '../terminal/text.ts';
import { type Command, listGroups, type OptionTable } from './command.ts';

/** Text of `sluice --help`. */
export function formatProgramHelp(commands: Readonly<Record<string, Command>>, style: HelpStyle): string {
  const { bold } = style.colors;
  // One width for all groups, so that their columns are one.
  const width = Math.max(...Object.keys(commands).map((name) => name.length));
  const groups = listGroups(commands).map(({ title, rows }) =>
    formatSection(
      title,
      style,
      formatTable(
        rows.map(([name, { summary }]) => [name.padEnd(width), summary]),
        style,
      ),
    ),
  );
  return [
    `${bold('sluice')} – the gate between LLM protocols`,
    formatSection('Usage', style, ['sluice [COMMAND] [OPTIONS] [FILE…]']),
    ...groups,
    formatSection('Options', style, formatTable(listOptions({ ...HELP_OPTION, ...VERSION_OPTION, ...COLOR_OPTION }), style)),
    formatSection('Exit codes', style, formatTable(EXIT_ROWS, style)),
    `${wrapText(FOOTER, chooseWidth(style)).join('\n')}\n`,
  ].join('\n\n');
}

const EXIT_ROWS: readonly Row[] = [
  ['0', 'success'],
  ['1', 'an input has a finding or failed'],
  ['2', 'wrong usage, or an input that cannot be read'],
];

const FOOTER = 'Without a command, the gateway starts. "sluice help COMMAND" shows the options of a command, with examples.';

/** Text of `sluice COMMAND --help`. */
export function formatCommandHelp(command: Command, style: HelpStyle): string {
  const { dim } = style.colors;
  const examples = command.examples.flatMap(({ line, what }) => [dim(`# ${what}`), line]);
  return [
    wrapText(`${command.summary}.`, chooseWidth(style)).join('\n'),
    formatSection(
      'Usage',
      style,
      command.usage.flatMap((line) => formatUsage(`sluice ${line}`, style)),
    ),
    wrapText(command.about, chooseWidth(style)).join('\n'),
    formatSection('Options', style, formatTable(listOptions({ ...command.options, ...HELP_OPTION }), style)),
    `${formatSection('Examples', style, examples)}\n`,
  ].join('\n\n');
}

/** How help is printed. */
export interface HelpStyle {
  colors: Colors;
  /** Width of the terminal; undefined when there is none. */
  columns: number | undefined;
}

/** Longer lines are hard to read, whatever the width of the terminal. */
const MAX_COLUMNS = 80;

const chooseWidth = ({ columns = MAX_COLUMNS }: HelpStyle): number => Math.min(columns, MAX_COLUMNS);

/** A line of usage; its continuation is indented. Options stay together with their values. */
function formatUsage(line: string, style: HelpStyle): string[] {
  const glued = line.replace(/\[[^\]]*\]/g, (option) => option.replaceAll(' ', '\u00a0'));
  return wrapText(glued, chooseWidth(style) - 6).map((row, at) => (at === 0 ? '' : '    ') + row.replaceAll('\u00a0', ' '));
}

const HELP_OPTION = { help: { type: 'boolean', short: 'h', summary: 'print this help' } } as const;

const VERSION_OPTION = { version: { type: 'boolean', short: 'V', summary: 'print the version' } } as const;

const COLOR_OPTION = { 'no-color': { type: 'boolean', summary: 'print without colours, as with NO_COLOR=1' } } as const;

HELP_OPTION satisfies OptionTable;

VERSION_OPTION satisfies OptionTable;

COLOR_OPTION satisfies OptionTable;

type Row = readonly [left: string, right: string];

function listOptions(options: OptionTable): Row[] {
  return Object.entries(options).map(([name, { short, value, summary }]): Row => {
    const long = `--${name}${value === undefined ? '' : ` ${value}`}`;
    return [short === undefined ? long : `-${short}, ${long}`, summary];
  });
}

const formatSection = (title: string, { colors }: HelpStyle, lines: readonly string[]): string =>
  [colors.bold(title), ...lines.map((line) => `  ${line}`)].join('\n');

function formatTable(rows: readonly Row[], style: HelpStyle): string[] {
  const { colors } = style;
  const width = Math.max(...rows.map(([left]) => left.length)) + 3;
  return rows.flatMap(([left, right]) => {
    const [first = '', ...rest] = wrapText(right, chooseWidth(style) - width - 2);
    return [colors.cyan(left.padEnd(width)) + first, ...rest.map((line) => ' '.repeat(width) + line)];
  });
}

/** The message for an unexpected exception, which is a bug in Sluice. SLUICE_DEBUG=1 adds the stack. */
export function formatInternalError(error: unknown, io: CliIo): string {
  const { red } = chooseColors(io.stderr, io.env);
  const message = error instanceof Error ? `${error.name}: ${error.message}` : String(error);
  const stack = io.env['SLUICE_DEBUG'] === '1' && error instanceof Error ? `${printable(error.stack ?? '')}\n` : '';
  return `${red('sluice:')} internal error: ${oneLine(message)} – a bug in sluice; please report it with the input that caused it (SLUICE_DEBUG=1 shows the stack)\n${stack}`;
}

/** Version of the package. `src/cli` and `dist/cli` are at the same depth below its manifest. */
export function readVersion(): string {
  const manifest: unknown = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8'));
  const isManifest = typeof manifest === 'object' && manifest !== null && 'version' in manifest;
  return isManifest ? String(manifest.version) : 'unknown';
}
