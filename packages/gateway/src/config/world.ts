import type { Source } from './load.ts';
import type { Problem } from './problems.ts';
import type { Env } from './secrets.ts';

/** What a configuration is resolved against, and where its problems are collected. */
export interface ResolveContext {
  readonly source: Source;
  readonly env: Env;
  /** The address of the gateway itself. */
  readonly listen: { readonly host: string; readonly port: number };
  /** Errors that make the configuration unusable. */
  readonly problems: Problem[];
  /** Warnings for the operator. */
  readonly warnings: Problem[];
}

/** Adds a warning about the environment once, even if several rows of a vendor cause it. */
export function warn({ warnings }: ResolveContext, message: string): void {
  if (!warnings.some((warning) => warning.message === message)) warnings.push({ message, path: [] });
}

/** The warning for a variable that points a provider at the gateway itself. */
export const describeOwnAddress = (from: string): string =>
  `${from} points to the gateway itself and is ignored as an upstream address`;
