import type { Client, Target } from './clients.ts';

/** A value as a shell takes it for itself. */
export const shellWord = (text: string): string => (/^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`);

const assignments = ({ env }: Client, target: Target): string[] =>
  Object.entries(env?.(target) ?? {}).map(([name, value]) => `${name}=${shellWord(value)}`);

/** What to paste into a shell to start it once. */
export function pasteLine(client: Client, target: Target): string {
  if (client.snippet) return client.snippet(target);
  const command = client.command === undefined ? [] : [client.command, ...(client.args?.(target) ?? []).map(shellWord)];
  const note = client.note === undefined ? [] : [` # ${client.note}`];
  return [...assignments(client, target), ...command, ...note].join(' ');
}

/** What to paste to have it that way: lines that a shell can take as they are, or those of a program. A file stands there as comments. */
export function setupLines(client: Client, target: Target): string[] {
  const { file, snippet, note, unset = [] } = client;
  if (snippet) return [snippet(target)];
  return [
    ...(unset.length > 0 ? [`unset ${unset.join(' ')}`] : []),
    ...assignments(client, target).map((line) => `export ${line}`),
    ...(file
      ? [
          `# ${file.home}:`,
          ...file
            .text(target)
            .split('\n')
            .map((line) => `#   ${line}`),
        ]
      : []),
    ...(note === undefined ? [] : [`# ${note}`]),
  ];
}
