import { didYouMean, oneLine } from '@sluice/lab/text';
import { CLIENTS } from '../../clients/clients.ts';
import { EXIT, UsageError } from '../../terminal/errors.ts';
import type { CliIo } from '../../terminal/io.ts';
import type { Command, Option, Values } from '../command.ts';

/** `sluice completion`: prints a completion script. The table is an argument, because it loads this module. */
export const createRun =
  (commands: Readonly<Record<string, Command>>) =>
  async ({ words: [name, more] }: { words: string[] }, io: CliIo): Promise<number> => {
    const list = Object.keys(SCRIPTS).join(', ');
    if (name === undefined) throw new UsageError(`name a shell: ${list}`);
    if (more !== undefined) throw new UsageError(`only one shell can be named; "${oneLine(more)}" is the second`);
    const write = Object.hasOwn(SCRIPTS, name) ? SCRIPTS[name] : undefined;
    if (!write)
      throw new UsageError(`unknown shell "${oneLine(name)}"${didYouMean(name, Object.keys(SCRIPTS))}\nKnown shells: ${list}`);
    await io.stdout.write(write([...Object.entries(commands), ['help', createHelp(Object.keys(commands))]]));
    return EXIT.ok;
  };

/** All commands, "help" included. */
type Rows = readonly (readonly [name: string, command: Command])[];

const SCRIPTS: Readonly<Record<string, (rows: Rows) => string>> = { bash: writeBash, zsh: writeZsh, fish: writeFish };

const createHelp = (names: readonly string[]): Command => ({
  group: 'gateway',
  summary: 'Print the help of a command',
  usage: ['help [COMMAND]'],
  about: '',
  options: {},
  words: names,
  examples: [],
  load: () => Promise.reject(new TypeError('help is not a command')),
});

/** The words that can be typed; undefined for files, folders and values that are not known. */
function listValues(values: Values | undefined): readonly string[] | undefined {
  switch (values) {
    case undefined:
    case 'nothing':
    case 'files':
    case 'folders':
      return undefined;
    case 'clients':
      return Object.keys(CLIENTS);
    default:
      return values;
  }
}

const listFlags = ({ options }: Command): string[] => [...Object.keys(options).map((name) => `--${name}`), '--help'];

/** Options of the command that take a value. */
const listValued = ({ options }: Command): [name: string, option: Option][] =>
  Object.entries(options).filter(([, { type }]) => type === 'string');

/** Actions of commands, after which files follow. */
const isAction = (values: Values): boolean => typeof values === 'object';

function writeBash(rows: Rows): string {
  const values = (kind: Values | undefined): string => {
    const words = listValues(kind);
    if (words) return `COMPREPLY=($(compgen -W '${words.join(' ')}' -- "$cur"))`;
    // With "-o default", an empty reply completes files.
    if (kind === 'files') return ':';
    return kind === 'folders' ? 'compopt -o dirnames +o default' : 'compopt +o default';
  };
  const valued = rows.flatMap(([name, command]) =>
    listValued(command).map(([option, { values: kind }]) => `    '${name} --${option}') ${values(kind)}; return ;;`),
  );
  const positional = rows.map(([name, { words }]) =>
    isAction(words)
      ? `    ${name}) if [[ $COMP_CWORD -eq 2 ]]; then ${values(words)}; fi ;;`
      : `    ${name}) ${values(words)} ;;`,
  );
  return `# Completion of sluice for bash: eval "$(sluice completion bash)"
_sluice() {
  local cur=\${COMP_WORDS[COMP_CWORD]} prev=\${COMP_WORDS[COMP_CWORD-1]} command=\${COMP_WORDS[1]}
  COMPREPLY=()
  # "--to=x" is three words: the option, "=" and the value.
  if [[ $cur == = ]]; then cur=; elif [[ $prev == = ]]; then prev=\${COMP_WORDS[COMP_CWORD-2]}; fi
  if [[ $COMP_CWORD -eq 1 ]]; then
    COMPREPLY=($(compgen -W '${rows.map(([name]) => name).join(' ')} --help --version' -- "$cur"))
    return
  fi
  case "$command $prev" in
${valued.join('\n')}
  esac
  if [[ $cur == -* ]]; then
    case $command in
${rows.map(([name, command]) => `      ${name}) COMPREPLY=($(compgen -W '${listFlags(command).join(' ')}' -- "$cur")) ;;`).join('\n')}
    esac
    return
  fi
  case $command in
${positional.join('\n')}
  esac
}
complete -o default -F _sluice sluice
`;
}

const quote = (text: string): string => `'${text.replaceAll("'", `'\\''`)}'`;

function writeZsh(rows: Rows): string {
  const values = (kind: Values | undefined): string => {
    const words = listValues(kind);
    if (words) return `compadd -- ${words.join(' ')}`;
    if (kind === 'files') return '_files';
    return kind === 'folders' ? '_files -/' : '_message value';
  };
  const valued = rows.flatMap(([name, command]) =>
    listValued(command).map(([option, { values: kind }]) => `    ('${name} --${option}') ${values(kind)}; return ;;`),
  );
  const flags = rows.map(([name, { options }]) => {
    const described = Object.entries(options).map(([option, { summary }]) => quote(`--${option}:${summary}`));
    return `      (${name}) options=(${[...described, quote('--help:print this help')].join(' ')}) ;;`;
  });
  const positional = rows.map(([name, { words }]) =>
    isAction(words)
      ? `    (${name}) if (( CURRENT == 3 )); then ${values(words)}; else _files; fi ;;`
      : `    (${name}) ${values(words)} ;;`,
  );
  return `#compdef sluice
# Completion of sluice for zsh: eval "$(sluice completion zsh)"
_sluice() {
  local -a commands options
  commands=(
${rows.map(([name, { summary }]) => `    ${quote(`${name}:${summary}`)}`).join('\n')}
  )
  if (( CURRENT == 2 )); then
    _describe -t commands command commands
    return
  fi
  case "$words[2] $words[CURRENT-1]" in
${valued.join('\n')}
  esac
  if [[ $words[CURRENT] == -* ]]; then
    case $words[2] in
${flags.join('\n')}
    esac
    _describe -o option options
    return
  fi
  case $words[2] in
${positional.join('\n')}
  esac
}
compdef _sluice sluice
`;
}

/** Quotes for fish, where single quotes know the escapes of the quote and of the backslash only. */
const quoteFish = (text: string): string => `'${text.replace(/['\\]/g, '\\$&')}'`;

function writeFish(rows: Rows): string {
  const values = (kind: Values | undefined): string => {
    const words = listValues(kind);
    if (words) return `-x -a ${quoteFish(words.join(' '))}`;
    if (kind === 'files') return '-r -F';
    return kind === 'folders' ? "-x -a '(__fish_complete_directories)'" : '-x';
  };
  const lines = rows.flatMap(([name, { options, words, summary: title }]) => {
    const condition = `-n '__fish_seen_subcommand_from ${name}'`;
    const names = listValues(words);
    return [
      `complete -c sluice -n __fish_use_subcommand -f -a ${name} -d ${quoteFish(title)}`,
      ...(names ? [`complete -c sluice ${condition} ${isAction(words) ? '' : '-f '}-a ${quoteFish(names.join(' '))}`] : []),
      ...(words === 'nothing' ? [`complete -c sluice ${condition} -f`] : []),
      ...Object.entries(options).map(
        ([option, { type, summary, values: kind }]) =>
          `complete -c sluice ${condition} -l ${option} ${type === 'string' ? `${values(kind)} ` : ''}-d ${quoteFish(summary)}`,
      ),
    ];
  });
  return `# Completion of sluice for fish: sluice completion fish | source
complete -c sluice -n __fish_use_subcommand -f
complete -c sluice -s h -l help -d 'Print the help'
complete -c sluice -n __fish_use_subcommand -s V -l version -d 'Print the version'
${lines.join('\n')}
`;
}
