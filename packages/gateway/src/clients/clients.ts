/** The table of clients, and how each is pointed at the gateway: variables, arguments, settings files or code. */

import { didYouMean, oneLine } from '@sluice/lab/text';
import { UsageError } from '../terminal/errors.ts';

/** A client, and how it is set up to use the gateway. */
export interface Client {
  title: string;
  /** The program to start; undefined for a library. */
  command?: string;
  /** The command that installs it. */
  install?: string;
  env?(target: Target): Record<string, string>;
  /** Variables that would point it elsewhere. */
  unset?: readonly string[];
  /** Arguments that come before the user's. */
  args?(target: Target): string[];
  file?: SettingsFile;
  /** A few lines of code, or of shell. */
  snippet?(target: Target): string;
  /** It has no default model. */
  needsModel?: true;
  /** A hint for the user. */
  note?: string;
  /** Listed in the welcome text of the gateway. */
  isWelcomed?: true;
}

/** What a client is pointed at. Without a `model`, the client keeps its own. */
export interface Target {
  /** Origin of the gateway, without a path. */
  url: string;
  key: string;
  model?: string | undefined;
  /** Whether the gateway serves WebSocket; by default it does, and clients use HTTP when it does not. */
  hasWebSocket?: boolean;
}

/** A settings file of a client. */
interface SettingsFile {
  /** Its usual path. */
  home: string;
  text(target: Target): string;
  /** For one run only: its path in a temporary folder, and how the client is pointed at that folder. */
  apart?: { name: string; args?(folder: string): string[]; env?(folder: string): Record<string, string> };
}

/** The model for clients that need one when none is given; the gateway always has it. */
const DEMO_MODEL = 'demo/hello';

/** Finds a client by its id. Throws a usage error for an unknown one. */
export function chooseClient(name: string | undefined): { id: string; client: Client } {
  const list = Object.keys(CLIENTS).join(', ');
  if (name === undefined) throw new UsageError(`name a client: ${list}`);
  const client = Object.hasOwn(CLIENTS, name) ? CLIENTS[name] : undefined;
  if (client) return { id: name, client };
  throw new UsageError(`unknown client "${oneLine(name)}"${didYouMean(name, Object.keys(CLIENTS))}\nKnown clients: ${list}`);
}

/** The model to set up: the given one, or the demo model for clients that need one. */
export const chooseModel = ({ needsModel }: Client, model: string | undefined): Pick<Target, 'model'> => {
  const chosen = model ?? (needsModel ? DEMO_MODEL : undefined);
  return chosen === undefined ? {} : { model: chosen };
};

/** A line to paste into a shell that starts the client once. */
export function formatPasteLine(client: Client, target: Target): string {
  if (client.snippet) return client.snippet(target);
  const command = client.command === undefined ? [] : [client.command, ...(client.args?.(target) ?? []).map(quoteForShell)];
  const note = client.note === undefined ? [] : [` # ${client.note}`];
  return [...listAssignments(client, target), ...command, ...note].join(' ');
}

/** Lines for a shell to evaluate, or code, with the content of settings files as comments. */
export function setupLines(client: Client, target: Target, shell: Shell): string[] {
  const { env, file, snippet, note, unset = [] } = client;
  const { set, remove } = SHELLS[shell];
  if (snippet) return [snippet(target)];
  return [
    ...(unset.length > 0 ? remove(unset) : []),
    ...Object.entries(env?.(target) ?? {}).map(([name, value]) => set(name, value)),
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

/** Quotes a value for a POSIX shell where necessary. */
export const quoteForShell = (text: string): string =>
  /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`;

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

const chooseModelName = ({ model = DEMO_MODEL }: Target): string => model;

const formatJson = (value: unknown): string => JSON.stringify(value, null, 2);

/** Quotes a string for TOML and YAML, which accept the strings of JSON. */
const quote = (text: string): string => JSON.stringify(text);

const openaiEnv = ({ url, key }: Target): Record<string, string> => ({ OPENAI_BASE_URL: `${url}/v1`, OPENAI_API_KEY: key });

const anthropicEnv = ({ url, key }: Target): Record<string, string> => ({ ANTHROPIC_BASE_URL: url, ANTHROPIC_API_KEY: key });

const googleEnv = ({ url, key }: Target): Record<string, string> => ({ GOOGLE_GEMINI_BASE_URL: url, GEMINI_API_KEY: key });

/** Variables that make Google's SDK and CLI use Vertex AI or another key. */
const GOOGLE_OVERRIDES = ['GOOGLE_API_KEY', 'GOOGLE_GENAI_USE_VERTEXAI', 'GOOGLE_GENAI_USE_GCA'] as const;

const codexProvider = ({ url, hasWebSocket = true }: Target): string =>
  `{ name = "Sluice", base_url = ${quote(`${url}/v1`)}, env_key = "SLUICE_KEY", wire_api = "responses", supports_websockets = ${hasWebSocket} }`;

const opencodeConfig = (target: Target): unknown => ({
  model: `sluice/${chooseModelName(target)}`,
  small_model: `sluice/${chooseModelName(target)}`,
  provider: {
    sluice: {
      npm: '@ai-sdk/openai-compatible',
      name: 'Sluice',
      options: { baseURL: `${target.url}/v1`, apiKey: target.key },
      models: { [chooseModelName(target)]: { name: chooseModelName(target), tool_call: true } },
    },
  },
});

const piModels = (target: Target): unknown => ({
  providers: {
    sluice: {
      baseUrl: `${target.url}/v1`,
      api: 'openai-completions',
      apiKey: target.key,
      models: [{ id: chooseModelName(target), name: chooseModelName(target), reasoning: false, input: ['text', 'image'] }],
    },
  },
});

const clineProviders = (target: Target): unknown => ({
  version: 1,
  lastUsedProvider: 'openai-compatible',
  modes: {},
  providers: {
    'openai-compatible': {
      settings: {
        provider: 'openai-compatible',
        apiKey: target.key,
        model: chooseModelName(target),
        baseUrl: `${target.url}/v1`,
      },
      updatedAt: '2026-01-01T00:00:00.000Z', // required, but its value does not matter
      tokenSource: 'manual',
    },
  },
});

const kimiConfig = (target: Target): string => `default_model = "sluice"

[providers.sluice]
type = "openai"
base_url = ${quote(`${target.url}/v1`)}
api_key = ${quote(target.key)}

[models.sluice]
provider = "sluice"
model = ${quote(chooseModelName(target))}
max_context_size = 128000`;

const continueConfig = (target: Target): string => `name: sluice
version: 0.0.1
schema: v1
models:
  - name: sluice
    provider: openai
    model: ${quote(chooseModelName(target))}
    apiBase: ${quote(`${target.url}/v1/`)}
    apiKey: ${quote(target.key)}
    roles: [chat, edit, apply]
    capabilities: [tool_use]`;

const aiSdkSnippet = (target: Target): string => `import { createOpenAICompatible } from '@ai-sdk/openai-compatible';

const sluice = createOpenAICompatible({ name: 'sluice', baseURL: '${target.url}/v1', apiKey: '${target.key}', includeUsage: true });
const model = sluice('${chooseModelName(target)}');
// or createOpenAI and createAnthropic with baseURL '${target.url}/v1', createGoogleGenerativeAI with '${target.url}/v1beta'`;

const langchainSnippet = (target: Target): string => `import { ChatOpenAI } from '@langchain/openai';

const model = new ChatOpenAI({ model: '${chooseModelName(target)}', apiKey: '${target.key}', configuration: { baseURL: '${target.url}/v1' } });
// or ChatAnthropic with anthropicApiUrl '${target.url}', ChatGoogleGenerativeAI with baseUrl '${target.url}'`;

const agentsSdkSnippet = (target: Target): string => `import { setDefaultOpenAIClient, setTracingDisabled } from '@openai/agents';
import OpenAI from 'openai';

setTracingDisabled(true); // traces would go to OpenAI
setDefaultOpenAIClient(new OpenAI({ baseURL: '${target.url}/v1', apiKey: '${target.key}' }));`;

const curlSnippet = (
  target: Target,
): string => `curl -N ${target.url}/v1/chat/completions -H 'authorization: Bearer ${target.key}' -H 'content-type: application/json' \\
  -d '{"model":"${chooseModelName(target)}","stream":true,"messages":[{"role":"user","content":"Hello"}]}'`;

/** All clients by id. `sluice env`, `sluice run`, the welcome text and the documentation are built from it. */
export const CLIENTS: Readonly<Record<string, Client>> = {
  curl: { title: 'curl', snippet: curlSnippet, isWelcomed: true },
  claude: {
    title: 'Claude Code',
    command: 'claude',
    install: 'npm install -g @anthropic-ai/claude-code',
    env: ({ url, key, model }) => ({
      ANTHROPIC_BASE_URL: url,
      // The token variable, because Claude Code prompts for permission to use a key that it finds.
      ANTHROPIC_AUTH_TOKEN: key,
      ...(model !== undefined && { ANTHROPIC_MODEL: model, ANTHROPIC_DEFAULT_HAIKU_MODEL: model }),
    }),
    unset: ['ANTHROPIC_API_KEY'],
    isWelcomed: true,
  },
  codex: {
    title: 'Codex',
    command: 'codex',
    install: 'npm install -g @openai/codex',
    env: ({ key }) => ({ SLUICE_KEY: key }),
    args: (target) => [
      ...(target.model === undefined ? [] : ['-m', target.model]),
      ...['-c', 'model_provider="sluice"', '-c', `model_providers.sluice=${codexProvider(target)}`],
    ],
    file: {
      home: '~/.codex/config.toml',
      text: (target) =>
        [
          ...(target.model === undefined ? [] : [`model = ${quote(target.model)}`]),
          'model_provider = "sluice"',
          `model_providers.sluice = ${codexProvider(target)}`,
        ].join('\n'),
    },
    isWelcomed: true,
  },
  gemini: {
    title: 'Gemini CLI',
    command: 'gemini',
    install: 'npm install -g @google/gemini-cli',
    env: (target) => ({ ...googleEnv(target), ...(target.model !== undefined && { GEMINI_MODEL: target.model }) }),
    unset: GOOGLE_OVERRIDES,
    // Without this, it derives an authentication type from the base URL and then rejects it as unknown.
    file: {
      home: '~/.gemini/settings.json',
      text: () => formatJson({ security: { auth: { selectedType: 'gemini-api-key' } } }),
      apart: { name: '.gemini/settings.json', env: (folder) => ({ GEMINI_CLI_HOME: folder }) },
    },
    note: 'to sign in, choose: Gemini API key',
    isWelcomed: true,
  },
  opencode: {
    title: 'opencode',
    command: 'opencode',
    install: 'npm install -g opencode-ai',
    env: (target) => ({ OPENCODE_CONFIG_CONTENT: JSON.stringify(opencodeConfig(target)) }),
    needsModel: true,
  },
  pi: {
    title: 'pi',
    command: 'pi',
    install: 'npm install -g @mariozechner/pi-coding-agent',
    args: (target) => ['--provider', 'sluice', '--model', chooseModelName(target)],
    file: {
      home: '~/.pi/agent/models.json',
      text: (target) => formatJson(piModels(target)),
      apart: { name: 'models.json', env: (folder) => ({ PI_CODING_AGENT_DIR: folder }) },
    },
    needsModel: true,
  },
  cline: {
    title: 'Cline',
    command: 'cline',
    install: 'npm install -g cline',
    file: {
      home: '~/.cline/data/settings/providers.json',
      text: (target) => formatJson(clineProviders(target)),
      apart: { name: 'settings/providers.json', args: (folder) => ['--data-dir', folder] },
    },
    needsModel: true,
  },
  qwen: {
    title: 'Qwen Code',
    command: 'qwen',
    install: 'npm install -g @qwen-code/qwen-code',
    env: (target) => ({ ...openaiEnv(target), OPENAI_MODEL: chooseModelName(target) }),
    args: () => ['--auth-type', 'openai'],
    needsModel: true,
  },
  kimi: {
    title: 'Kimi Code',
    command: 'kimi',
    install: 'npm install -g @moonshot-ai/kimi-code',
    file: {
      home: '~/.kimi-code/config.toml',
      text: kimiConfig,
      apart: { name: 'config.toml', env: (folder) => ({ KIMI_CODE_HOME: folder }) },
    },
    needsModel: true,
  },
  continue: {
    title: 'Continue CLI',
    command: 'cn',
    install: 'npm install -g @continuedev/cli',
    file: {
      home: '~/.continue/config.yaml',
      text: continueConfig,
      apart: { name: 'config.yaml', args: (folder) => ['--config', `${folder}/config.yaml`] },
    },
    needsModel: true,
  },
  grok: {
    title: 'Grok CLI',
    command: 'grok',
    install: 'npm install -g @vibe-kit/grok-cli',
    env: (target) => ({ GROK_BASE_URL: `${target.url}/v1`, GROK_API_KEY: target.key, GROK_MODEL: chooseModelName(target) }),
    needsModel: true,
  },
  openai: { title: 'OpenAI SDKs', env: openaiEnv, isWelcomed: true },
  anthropic: { title: 'Anthropic SDKs', env: anthropicEnv, unset: ['ANTHROPIC_AUTH_TOKEN'], isWelcomed: true },
  google: { title: 'Google Gen AI SDKs', env: googleEnv, unset: GOOGLE_OVERRIDES, isWelcomed: true },
  'ai-sdk': { title: 'AI SDK', snippet: aiSdkSnippet },
  langchain: { title: 'LangChain', snippet: langchainSnippet },
  agents: { title: 'OpenAI Agents SDK', snippet: agentsSdkSnippet },
};
