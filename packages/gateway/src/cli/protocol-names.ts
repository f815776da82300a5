import { PROTOCOL_ALIASES, PROTOCOLS } from '@sluice/core';
import { UsageError } from './arguments.ts';
import { oneLine } from './escape.ts';
import { didYouMean } from './suggest.ts';

/** The names a user may type, for the help. */
export const protocolList = (): string => Object.keys(PROTOCOLS).join(', ');

export function unknownProtocol(name: string): UsageError {
  const aliases = Object.entries(PROTOCOL_ALIASES);
  const list = Object.keys(PROTOCOLS).map((id) =>
    [id, ...aliases.flatMap(([alias, of]) => (of === id ? [alias] : []))].join(' or '),
  );
  const names = [...Object.keys(PROTOCOLS), ...Object.keys(PROTOCOL_ALIASES)];
  return new UsageError(`unknown protocol "${oneLine(name)}"${didYouMean(name, names)}\nKnown protocols: ${list.join(', ')}`);
}
