/**
 * How Windows finds and starts a program. npm installs commands as batch files (`claude.cmd`), which only `cmd.exe` can start, and it has
 * a syntax of its own for arguments. Pure, so that tests on any system cover it.
 */

import { win32 } from 'node:path';
import { oneLine } from '@sluice/lab/text';
import { UsageError } from './errors.ts';

type Env = Readonly<Record<string, string | undefined>>;

/** What `spawn` is called with. */
export interface Start {
  readonly file: string;
  readonly args: readonly string[];
  /** The arguments are a command line already, which must not be quoted again. */
  readonly isVerbatim: boolean;
}

/** The file to start, and its arguments; undefined when PATH has no such program. `isFile` says whether a path is a file. */
export function planWindowsStart(
  { command, args, env }: { command: string; args: readonly string[]; env: Env },
  isFile: (path: string) => boolean,
): Start | undefined {
  const file = findProgram(command, env, isFile);
  if (file === undefined) return undefined;
  if (!BATCH.test(file)) return { file, args, isVerbatim: false };
  // Not %ComSpec%, which may name another shell.
  const shell = win32.join(readVariable(env, 'SystemRoot') ?? 'C:\\Windows', 'System32', 'cmd.exe');
  return { file: shell, args: [...SHELL_OPTIONS, `"${buildBatchLine(file, args)}"`], isVerbatim: true };
}

/** No AutoRun, extensions on (`%cd:~,%` needs them), `!NAME!` off, and only the outermost quotes are removed. */
const SHELL_OPTIONS = ['/d', '/e:on', '/v:off', '/s', '/c'] as const;

const BATCH = /\.(cmd|bat)$/i;

// ---- finding

/** Extensions of programs that can be started, in the order of PATHEXT. Scripts of other kinds need a host that is unknown here. */
const STARTABLE: ReadonlySet<string> = new Set(['.com', '.exe', '.bat', '.cmd']);

const DEFAULT_PATHEXT = '.COM;.EXE;.BAT;.CMD';

/** Unlike `cmd.exe`, does not look into the working folder, which may be a checkout of somebody else. */
function findProgram(command: string, env: Env, isFile: (path: string) => boolean): string | undefined {
  const names = listNames(command, env);
  if (/[\\/:]/.test(command)) return names.find(isFile);
  const folders = (readVariable(env, 'PATH') ?? '').split(';').map((folder) => folder.replaceAll('"', '').trim());
  for (const folder of folders.filter((one) => win32.isAbsolute(one))) {
    const found = names.map((name) => win32.join(folder, name)).find(isFile);
    if (found !== undefined) return found;
  }
  return undefined;
}

function listNames(command: string, env: Env): string[] {
  const listed = (readVariable(env, 'PATHEXT') ?? DEFAULT_PATHEXT).split(';').map((one) => one.trim().toLowerCase());
  const extensions = listed.filter((one) => STARTABLE.has(one));
  const isComplete = STARTABLE.has(win32.extname(command).toLowerCase());
  return [...(isComplete ? [command] : []), ...extensions.map((extension) => command + extension)];
}

/** Names of variables have no case: PATH is `Path` on most machines. */
function readVariable(env: Env, name: string): string | undefined {
  const found = Object.keys(env).find((one) => one.toUpperCase() === name.toUpperCase());
  return (found === undefined ? undefined : env[found]) || undefined;
}

// ---- quoting

/** `cmd.exe` allows 8191 characters; some are its own options, and some the batch file adds. */
const MAX_LINE = 7900;

/** The command line of a batch file, for `cmd.exe /s /c`. */
export function buildBatchLine(file: string, args: readonly string[]): string {
  const name = win32.basename(file);
  if (args.some((arg) => /[\r\n\0]/.test(arg)))
    throw new UsageError(
      `an argument has a line break, which "${oneLine(name)}" cannot receive on Windows; pass the text by a file or standard input`,
    );
  const line = [file, ...args].map(quoteForBatch).join(' ');
  if (line.length > MAX_LINE)
    throw new UsageError(
      `the arguments of "${oneLine(name)}" are too long: a batch file of Windows can receive ${MAX_LINE} characters; pass the text by a file or standard input`,
    );
  return line;
}

/**
 * An argument that survives two readings by `cmd.exe` (the line itself, and `%*` in the batch file) and one by the program.
 * Everything is inside of quotes, where `& | < > ( ) ^` mean nothing. A quote is doubled: programs read `""` inside of quotes as one,
 * and for `cmd.exe` the text between stays quoted. `%` is followed by a variable that is always empty, so that no name is between two.
 */
function quoteForBatch(text: string): string {
  const inner = text
    .replace(/(\\*)"/g, '$1$1""')
    .replace(/\\+$/, '$&$&')
    .replaceAll('%', '%%cd:~,%');
  return `"${inner}"`;
}

// ---- signals

/** Whether a signal is passed on to a program that shares our terminal. */
export function isPassedOn(signal: NodeJS.Signals, platform: NodeJS.Platform, hasTerminal: boolean): boolean {
  // The console of Windows sends events to all of its programs, and "passing" one would end the program at once.
  if (platform === 'win32') return false;
  // The terminal sends these to the whole process group; passing them on would deliver them twice.
  return !(hasTerminal && (signal === 'SIGINT' || signal === 'SIGQUIT'));
}
