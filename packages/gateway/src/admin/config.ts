/** The configuration in the admin API: every setting with its origin, the last reloads, versions, and the check of a pasted file. */

import { z } from 'zod';
import { CheckError, checkConfig } from '../config/check.ts';
import { type listSettings, ORIGINS } from '../config/effective.ts';
import { RELOAD_CAUSES, type Reload } from '../config/reloads.ts';
import type { GatewayState } from '../config/resolve.ts';
import { MAX_VALIDATED_LENGTH, type Validation } from '../config/validate.ts';
import type { ConfigVersion, ConfigVersions } from '../store/index.ts';
import { Problem } from './problem.ts';

/** Where the configuration in force comes from. */
export interface ConfigFacts {
  settings(): ReturnType<typeof listSettings>;
  reloads(): readonly Reload[];
  /** The version of the database that this node uses; undefined when it has a file. */
  version(): number | undefined;
}

const text = z.string().nullable();

const place = z.int().min(1).nullable();

/** The settings in force. */
export const SETTINGS = z.strictObject({
  settings: z.array(
    z.strictObject({
      path: z.string().describe('As in the file: `limits.streams`, `models.fast[1]`.'),
      value: text.describe('As text; null when it is or may be a secret.'),
      reference: text.describe('What the file refers to, as written: `env:NAME`, `file:/path`; null without a reference.'),
      origin: z.enum(ORIGINS),
      line: place.describe('The line of the file, or of the configuration in the database.'),
    }),
  ),
  omitted: z.int().min(0).describe('Settings beyond the first 2,000.'),
});

/** The settings in force. */
export const viewSettings = ({ settings }: ConfigFacts): z.infer<typeof SETTINGS> => {
  const found = settings();
  return { settings: found.settings.map((setting) => ({ ...setting })), omitted: found.omitted };
};

/** The last reloads. */
export const RELOADS = z.strictObject({
  reloads: z.array(
    z.strictObject({
      at: z.iso.datetime(),
      by: z
        .enum(RELOAD_CAUSES)
        .describe('The start of the gateway, a change of the file, SIGHUP, or a new version in the database.'),
      version: z.int().nullable().describe('The version of the configuration in the database; null for a file.'),
      ok: z.boolean().describe('Whether the configuration was put in force; if not, the previous one was kept.'),
      reason: text.describe('Why it was rejected.'),
      restart: z.array(z.string()).describe('Changed sections that take effect after a restart.'),
      warnings: z.int().min(0),
    }),
  ),
});

/** The last reloads, newest first. */
export const viewReloads = ({ reloads }: ConfigFacts): z.infer<typeof RELOADS> => ({
  reloads: reloads().map(({ at, by, version, reason, restart, warnings }) => ({
    at: new Date(at).toISOString(),
    by,
    version: version ?? null,
    ok: reason === undefined,
    reason: reason ?? null,
    restart: [...restart],
    warnings,
  })),
});

/** Versions of the configuration in the database. */
export const VERSIONS = z.strictObject({
  used: z.int().nullable().describe('The version that this node uses; null when its configuration is a file.'),
  versions: z.array(
    z.strictObject({
      version: z.int().min(1),
      at: z.iso.datetime(),
      author: z.string().describe('The user and the host of the command.'),
      comment: z.string(),
      digest: z.string().describe('SHA-256 of the text, in hex.'),
      rollback_of: z.int().nullable().describe('The version whose text this one repeats.'),
    }),
  ),
});

/** The last versions, newest first. The first one is in force. */
export async function viewVersions(
  { version }: ConfigFacts,
  configs: ConfigVersions | undefined,
  limit: number,
): Promise<z.infer<typeof VERSIONS>> {
  const versions = (await configs?.list(limit)) ?? [];
  return { used: version() ?? null, versions: versions.map(viewVersion) };
}

/** A version, for programs. */
export const viewVersion = ({ ts, ...row }: ConfigVersion): z.infer<typeof VERSIONS>['versions'][number] => ({
  version: row.version,
  at: new Date(ts).toISOString(),
  author: row.author,
  comment: row.comment,
  digest: row.digest,
  rollback_of: row.rollback_of,
});

/** A configuration to check. */
export const PASTED = z.strictObject({
  text: z
    .string()
    .min(1)
    .max(MAX_VALIDATED_LENGTH, { error: `must have at most ${MAX_VALIDATED_LENGTH} characters; use "sluice config check"` })
    .describe('The file: YAML or JSON.'),
});

/** The text as JSON, whose escapes make it longer. */
export const MAX_VALIDATED_BODY = 4 * MAX_VALIDATED_LENGTH;

/** What is wrong with a configuration. */
export const VALIDATION = z.strictObject({
  valid: z.boolean(),
  problems: z.array(
    z.strictObject({
      severity: z.enum(['error', 'warning']),
      path: z.string(),
      line: place,
      column: place,
      message: z.string(),
    }),
  ),
  omitted: z.int().min(0).describe('Problems beyond the first 100.'),
  unchecked: z.array(z.string()).describe('Settings that refer to a variable and could not be checked without it.'),
  providers: z.array(z.string()),
  models: z.array(z.string()),
}) satisfies z.ZodType<Validation>;

/** Checks a configuration. Variables that providers have their keys from count as set, by name alone. */
export async function checkPasted(pasted: string, { providers }: GatewayState): Promise<z.infer<typeof VALIDATION>> {
  const variables = [...providers.values()].flatMap(({ keyFrom }) =>
    keyFrom === undefined || keyFrom === 'file' ? [] : [keyFrom],
  );
  try {
    // The result has crossed a thread, so it is plain data.
    return (await checkConfig({ text: pasted, variables })) as z.infer<typeof VALIDATION>;
  } catch (error) {
    throw error instanceof CheckError ? new Problem(503, error.message, { headers: { 'retry-after': '5' } }) : error;
  }
}
