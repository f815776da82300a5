import { oneLine } from '@sluice/lab/text';
import { createDefaultSource } from '../../config/load.ts';
import type { Problem } from '../../config/problems.ts';
import type { ConfiguredProvider } from '../../config/providers.ts';
import { resolveConfig } from '../../config/resolve.ts';
import { redactPatterns } from '../../config/secret-patterns.ts';
import { SecretRegistry } from '../../config/secrets.ts';
import { findRow } from '../../providers/lookup.ts';
import { EXIT, UsageError } from '../../terminal/errors.ts';
import { fileExists } from '../../terminal/inputs.ts';
import type { CliIo } from '../../terminal/io.ts';
import { chooseColors, formatColumns, formatJsonLine } from '../../terminal/text.ts';

interface Options {
  force: boolean;
  json: boolean;
}

/** `sluice init`: writes a configuration for the provider keys in the environment. */
export async function run({ options, words }: { options: Options; words: string[] }, io: CliIo): Promise<number> {
  const [file = DEFAULT_FILE, more] = words;
  if (more !== undefined) throw new UsageError(`only one file can be written; "${oneLine(more)}" is the second`);
  if (!options.force && (await fileExists(file, io)))
    throw new UsageError(`${oneLine(file)} exists; use --force to overwrite it, or name another FILE`);
  const { providers, warnings } = listProviders(io.env);
  const output = await io.createFile(file);
  await output.write(new TextEncoder().encode(formatConfig(providers)));
  await output.commit();
  for (const { message } of warnings) await io.stderr.write(`sluice: ${oneLine(redactPatterns(message))}\n`);
  const line = formatJsonLine({ file, providers: providers.map(({ id, variable }) => ({ id, variable: variable ?? null })) });
  await io.stdout.write(options.json ? (line?.join('') ?? '') : formatNextSteps(file, providers, io));
  return EXIT.ok;
}

const DEFAULT_FILE = 'sluice.yaml';

/** A provider of the environment. */
interface FoundProvider {
  id: string;
  title: string;
  /** The variable with its key; undefined for a local server. */
  variable: string | undefined;
  /** The settings that refer to variables. */
  settings: Record<string, string>;
}

/** The providers that the gateway finds in the environment by itself, one per vendor. */
function listProviders(env: CliIo['env']): { providers: FoundProvider[]; warnings: readonly Problem[] } {
  const { providers, warnings } = resolveConfig(createDefaultSource(), { env, secrets: new SecretRegistry() });
  return { providers: [...providers.values()].flatMap((provider) => describeProvider(provider, env) ?? []), warnings };
}

function describeProvider({ id, title, isDemo, keyFrom }: ConfiguredProvider, env: CliIo['env']): FoundProvider | undefined {
  const row = findRow(id);
  // Settings of a vendor apply to all its protocols.
  if (isDemo || !row || row.vendor !== undefined) return undefined;
  // A token is sent in another header than a key, so the gateway has to find it in the environment itself.
  const isKey = keyFrom !== undefined && row.key_env.includes(keyFrom);
  const address = row.local ? undefined : row.base_env?.find((name) => env[name]);
  const settings = isKey ? { api_key: `\${${keyFrom}}`, ...(address !== undefined && { base_url: `\${${address}}` }) } : {};
  return { id, title, variable: keyFrom, settings };
}

function formatConfig(providers: readonly FoundProvider[]): string {
  return `# Configuration of the Sluice gateway. docs/config.md describes every setting.
# Start it with: sluice serve

listen:
  host: 127.0.0.1 # any other address requires auth.keys
  port: 4141

# Keys that clients must send, 16 characters or more.
# auth:
#   keys: ["\${SLUICE_CLIENT_KEY}"]

# Providers are found by their keys in the environment; entries are needed for other settings only.
${providers.length === 0 ? NO_PROVIDERS : `providers:\n${providers.map(formatProvider).join('\n')}`}

# Names that clients may use. "provider/model" always works.
# models:
#   fast: ${providers[0]?.id ?? 'openai'}/MODEL
#   "claude-*": [anthropic/*, ${providers[0]?.id ?? 'openai'}/MODEL] # tried in order

log:
  level: info
`;
}

const NO_PROVIDERS = `# None was found, so the built-in demo model responds to every name.
# providers:
#   openai:
#     api_key: \${OPENAI_API_KEY}
#   local:
#     protocol: openai-chat
#     base_url: http://127.0.0.1:8000/v1`;

function formatProvider({ id, title, variable, settings }: FoundProvider): string {
  const lines = Object.entries(settings).map(([name, value]) => `    ${name}: ${value}`);
  const source = lines.length === 0 && variable !== undefined ? `; its token is in ${variable}` : '';
  return [`  ${id}: # ${title}${source}`, ...lines].join('\n');
}

function formatNextSteps(file: string, providers: readonly FoundProvider[], io: CliIo): string {
  const { bold, dim, green } = chooseColors(io.stdout, io.env);
  const isDefault = file === DEFAULT_FILE;
  const found = providers.map(({ id, variable }) => (variable === undefined ? id : `${id} (${variable})`));
  const summary = found.length === 0 ? 'no provider key was found in the environment' : found.join(', ');
  const steps = formatColumns(
    [
      [`sluice config check${isDefault ? '' : ` ${oneLine(file)}`}`, 'check the file after editing it'],
      [`sluice serve${isDefault ? '' : ` --config ${oneLine(file)}`}`, 'start the gateway on http://127.0.0.1:4141'],
      ['sluice run claude', 'start a client that uses it'],
    ],
    [bold, dim],
  );
  return [`${green('●')} Wrote ${bold(oneLine(file))}: ${summary}`, '', 'Next:', ...steps.map((line) => `  ${line}`), ''].join(
    '\n',
  );
}
