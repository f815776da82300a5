/** What `sluice env`, `sluice run`, the welcome text and the console print of the table of clients. */

import { didYouMean, oneLine } from '@sluice/lab/text';
import { UsageError } from '../terminal/errors.ts';
import { CLIENTS, type Client, DEMO_MODEL, GROUPS, quoteForShell, type Target } from './clients.ts';

/** Finds a client by its id. Throws a usage error for an unknown one. */
export function chooseClient(name: string | undefined): { id: string; client: Client } {
  if (name === undefined) throw new UsageError(`name a client\n${listClients()}`);
  const client = Object.hasOwn(CLIENTS, name) ? CLIENTS[name] : undefined;
  if (client) return { id: name, client };
  throw new UsageError(`unknown client "${oneLine(name)}"${didYouMean(name, Object.keys(CLIENTS))}\n${listClients()}`);
}

/** The clients by group, one line for each. */
function listClients(): string {
  const lines = Object.entries(GROUPS).map(([group, title]) => {
    const ids = Object.keys(CLIENTS).filter((id) => CLIENTS[id]?.group === group);
    return `  ${title.padEnd(18)} ${ids.join(', ')}`;
  });
  return [...lines, '"sluice env other" prints the base URL and the key for any client that is not listed'].join('\n');
}

/** Whether `sluice run` can start it: as a command, or as a program that reads variables. */
export const isStartable = ({ command, env, file }: Client): boolean =>
  command !== undefined || (env !== undefined && file === undefined);

/** The model to set up: the given one, or the demo model for clients that need one. */
export const chooseModel = ({ needsModel }: Client, model: string | undefined): Pick<Target, 'model'> => {
  const chosen = model ?? (needsModel ? DEMO_MODEL : undefined);
  return chosen === undefined ? {} : { model: chosen };
};

/** A line to paste into a shell that starts the client once. */
export function formatPasteLine(client: Client, target: Target): string {
  if (client.snippet) return client.snippet.text(target);
  const command = client.command === undefined ? [] : [client.command, ...(client.args?.(target) ?? []).map(quoteForShell)];
  const notes = client.notes === undefined ? [] : [` # ${client.notes.join('; ')}`];
  return [...listAssignments(client, target), ...command, ...notes].join(' ');
}

/** Lines for a shell to evaluate, or code; the content of settings files, steps and notes are comments. */
export function setupLines(client: Client, target: Target, shell: Shell): string[] {
  const { env, file, snippet, steps, notes = [], unset = [] } = client;
  const { set, remove } = SHELLS[shell];
  if (snippet) return [snippet.text(target)];
  return [
    ...(unset.length > 0 ? remove(unset) : []),
    ...Object.entries(env?.(target) ?? {}).map(([name, value]) => set(name, value)),
    ...(file ? [`# ${file.home}:`, ...comment(file.text(target), '#   ')] : []),
    ...(steps?.(target) ?? []).flatMap((step) => comment(step, '# ')),
    ...notes.flatMap((note) => comment(note, '# ')),
  ];
}

/** A carriage return alone ends a line of PowerShell. */
const comment = (text: string, prefix: string): string[] => text.split(/\r\n?|\n/).map((line) => `${prefix}${line}`.trimEnd());

/** How one client is set up, as text. */
export interface ClientSetup {
  id: string;
  title: string;
  install: string | undefined;
  /** A line that starts it once; undefined for libraries. */
  start: string | undefined;
  /** What `sluice env` prints. */
  setup: string;
}

/** All clients with their lines for a POSIX shell. */
export const listClientSetups = (target: Target): ClientSetup[] =>
  Object.entries(CLIENTS).map(([id, client]) => ({
    id,
    title: client.title,
    install: client.install,
    start: client.command === undefined ? undefined : formatPasteLine(client, target),
    setup: setupLines(client, target, 'bash').join('\n'),
  }));

/** A model for examples: the first of the configuration, else one of the first provider, else the demo model. */
export const chooseExampleModel = (models: readonly string[], providers: readonly { id: string; isDemo: boolean }[]): string => {
  const first = providers.find(({ isDemo }) => !isDemo);
  return models.find((name) => !name.includes('*')) ?? (first ? `${first.id}/MODEL` : DEMO_MODEL);
};

const listAssignments = ({ env }: Client, target: Target): string[] =>
  Object.entries(env?.(target) ?? {}).map(([name, value]) => `${name}=${quoteForShell(value)}`);

/** How a shell sets and removes variables. */
interface ShellSyntax {
  set(name: string, value: string): string;
  remove(names: readonly string[]): string[];
}

const POSIX: ShellSyntax = {
  set: (name, value) => `export ${name}=${quoteForShell(value)}`,
  remove: (names) => [`unset ${names.join(' ')}`],
};

/** The shells that `sluice env` writes lines for. All of them start comments with "#". */
export const SHELLS = {
  bash: POSIX,
  zsh: POSIX,
  fish: {
    // In single quotes, fish knows the escapes of the quote and of the backslash only.
    set: (name, value) => `set -gx ${name} '${value.replace(/['\\]/g, '\\$&')}'`,
    remove: (names) => [`set -e ${names.join(' ')}`],
  },
  powershell: {
    // PowerShell takes typographic quotes for quotes, too, and each is doubled.
    set: (name, value) => `$env:${name} = '${value.replace(/['\u2018-\u201b]/g, '$&$&')}'`,
    remove: (names) => names.map((name) => `Remove-Item Env:${name} -ErrorAction SilentlyContinue`),
  },
} as const satisfies Record<string, ShellSyntax>;

/** A shell that `sluice env` writes lines for. */
export type Shell = keyof typeof SHELLS;
