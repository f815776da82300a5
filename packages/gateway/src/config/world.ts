import type { Problem } from './document.ts';
import type { Source } from './load.ts';
import type { Env } from './secrets.ts';

/** What a configuration is resolved in, and where what is found wrong goes. */
export interface World {
  readonly source: Source;
  readonly env: Env;
  /** Where the gateway itself will be. */
  readonly listen: { readonly host: string; readonly port: number };
  /** What makes the configuration unusable. */
  readonly problems: Problem[];
  /** What the operator should know. */
  readonly warnings: Problem[];
}

/** A warning about the environment. Two rows of one vendor have the same to complain about: once is enough. */
export function warn({ warnings }: World, message: string): void {
  if (!warnings.some((warning) => warning.message === message)) warnings.push({ message, path: [] });
}

export const isOurs = (from: string): string =>
  `${from} is the address of the gateway itself, as clients need it; upstreams are not looked for there`;
