import { didYouMean, oneLine } from '@sluice/lab/text';
import { UsageError } from './command.ts';

/** Where a client is to be pointed. `model`: undefined leaves the client its own. */
export interface Target {
  /** The gateway, without a path. */
  url: string;
  key: string;
  model?: string | undefined;
}

/** A file that a client reads its settings from. */
interface SettingsFile {
  /** Where it usually is. */
  home: string;
  text(target: Target): string;
  /** For one run only: where the file stands in a folder of its own, and how the client is told of that folder. */
  apart?: { name: string; args?(folder: string): string[]; env?(folder: string): Record<string, string> };
}

/** Something that asks a model, and how it is told to ask the gateway. */
export interface Client {
  title: string;
  /** What it is started as; undefined for a library, which is part of a program. */
  command?: string;
  /** Where it comes from. */
  install?: string;
  env?(target: Target): Record<string, string>;
  /** Variables that would make it ask somebody else. */
  unset?: readonly string[];
  /** Stand before what the user adds. */
  args?(target: Target): string[];
  file?: SettingsFile;
  /** A few lines of a program, or of a shell. */
  snippet?(target: Target): string;
  /** It has no model of its own to ask for. */
  needsModel?: true;
  /** What is to be known beside. */
  note?: string;
  /** It is on the screen when the gateway starts. */
  isWelcomed?: true;
}

/** What is asked for when a client needs a name and none was given: it is always there. */
export const DEMO_MODEL = 'demo/hello';

const modelOf = ({ model = DEMO_MODEL }: Target): string => model;

const json = (value: unknown): string => JSON.stringify(value, null, 2);

/** TOML's basic strings are written as those of JSON. */
const quoted = (text: string): string => JSON.stringify(text);

const openai = ({ url, key }: Target): Record<string, string> => ({ OPENAI_BASE_URL: `${url}/v1`, OPENAI_API_KEY: key });

const anthropic = ({ url, key }: Target): Record<string, string> => ({ ANTHROPIC_BASE_URL: url, ANTHROPIC_API_KEY: key });

const google = ({ url, key }: Target): Record<string, string> => ({ GOOGLE_GEMINI_BASE_URL: url, GEMINI_API_KEY: key });

/** The SDK and the CLI of Google take these for a wish to ask Vertex or another key. */
const GOOGLE_RIVALS = ['GOOGLE_API_KEY', 'GOOGLE_GENAI_USE_VERTEXAI', 'GOOGLE_GENAI_USE_GCA'] as const;

const codexProvider = ({ url }: Target): string =>
  `{ name = "Sluice", base_url = ${quoted(`${url}/v1`)}, env_key = "SLUICE_KEY", wire_api = "responses", supports_websockets = false }`;

const opencodeConfig = (target: Target): unknown => ({
  model: `sluice/${modelOf(target)}`,
  small_model: `sluice/${modelOf(target)}`,
  provider: {
    sluice: {
      npm: '@ai-sdk/openai-compatible',
      name: 'Sluice',
      options: { baseURL: `${target.url}/v1`, apiKey: target.key },
      models: { [modelOf(target)]: { name: modelOf(target), tool_call: true } },
    },
  },
});

const piModels = (target: Target): unknown => ({
  providers: {
    sluice: {
      baseUrl: `${target.url}/v1`,
      api: 'openai-completions',
      apiKey: target.key,
      models: [{ id: modelOf(target), name: modelOf(target), reasoning: false, input: ['text', 'image'] }],
    },
  },
});

const clineProviders = (target: Target): unknown => ({
  version: 1,
  lastUsedProvider: 'openai-compatible',
  modes: {},
  providers: {
    'openai-compatible': {
      settings: { provider: 'openai-compatible', apiKey: target.key, model: modelOf(target), baseUrl: `${target.url}/v1` },
      updatedAt: '2026-01-01T00:00:00.000Z', // any time will do, but none will not
      tokenSource: 'manual',
    },
  },
});

const kimiConfig = (target: Target): string => `default_model = "sluice"

[providers.sluice]
type = "openai"
base_url = ${quoted(`${target.url}/v1`)}
api_key = ${quoted(target.key)}

[models.sluice]
provider = "sluice"
model = ${quoted(modelOf(target))}
max_context_size = 128000`;

const continueConfig = (target: Target): string => `name: sluice
version: 0.0.1
schema: v1
models:
  - name: sluice
    provider: openai
    model: ${quoted(modelOf(target))}
    apiBase: ${quoted(`${target.url}/v1/`)}
    apiKey: ${quoted(target.key)}
    roles: [chat, edit, apply]
    capabilities: [tool_use]`;

const aiSdk = (target: Target): string => `import { createOpenAICompatible } from '@ai-sdk/openai-compatible';

const sluice = createOpenAICompatible({ name: 'sluice', baseURL: '${target.url}/v1', apiKey: '${target.key}', includeUsage: true });
const model = sluice('${modelOf(target)}');
// or createOpenAI and createAnthropic with baseURL '${target.url}/v1', createGoogleGenerativeAI with '${target.url}/v1beta'`;

const langchain = (target: Target): string => `import { ChatOpenAI } from '@langchain/openai';

const model = new ChatOpenAI({ model: '${modelOf(target)}', apiKey: '${target.key}', configuration: { baseURL: '${target.url}/v1' } });
// or ChatAnthropic with anthropicApiUrl '${target.url}', ChatGoogleGenerativeAI with baseUrl '${target.url}'`;

const agentsSdk = (target: Target): string => `import { setDefaultOpenAIClient, setTracingDisabled } from '@openai/agents';
import OpenAI from 'openai';

setTracingDisabled(true); // traces would go to OpenAI
setDefaultOpenAIClient(new OpenAI({ baseURL: '${target.url}/v1', apiKey: '${target.key}' }));`;

const curl = (
  target: Target,
): string => `curl -N ${target.url}/v1/chat/completions -H 'authorization: Bearer ${target.key}' -H 'content-type: application/json' \\
  -d '{"model":"${modelOf(target)}","stream":true,"messages":[{"role":"user","content":"Hello"}]}'`;

/** The table of clients: `sluice env`, `sluice run`, the first screen and the documentation are made of it. */
export const CLIENTS: Readonly<Record<string, Client>> = {
  curl: { title: 'curl', snippet: curl, isWelcomed: true },
  claude: {
    title: 'Claude Code',
    command: 'claude',
    install: 'npm install -g @anthropic-ai/claude-code',
    env: ({ url, key, model }) => ({
      ANTHROPIC_BASE_URL: url,
      // The token, not the key: Claude Code asks whether it may use a key that it finds.
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
          ...(target.model === undefined ? [] : [`model = ${quoted(target.model)}`]),
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
    env: (target) => ({ ...google(target), ...(target.model !== undefined && { GEMINI_MODEL: target.model }) }),
    unset: GOOGLE_RIVALS,
    // Without this, it takes the address of a gateway for a way to sign in, and then does not know it.
    file: {
      home: '~/.gemini/settings.json',
      text: () => json({ security: { auth: { selectedType: 'gemini-api-key' } } }),
      apart: { name: '.gemini/settings.json', env: (folder) => ({ GEMINI_CLI_HOME: folder }) },
    },
    note: 'if it asks how to sign in: with a Gemini API key',
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
    args: (target) => ['--provider', 'sluice', '--model', modelOf(target)],
    file: {
      home: '~/.pi/agent/models.json',
      text: (target) => json(piModels(target)),
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
      text: (target) => json(clineProviders(target)),
      apart: { name: 'settings/providers.json', args: (folder) => ['--data-dir', folder] },
    },
    needsModel: true,
  },
  qwen: {
    title: 'Qwen Code',
    command: 'qwen',
    install: 'npm install -g @qwen-code/qwen-code',
    env: (target) => ({ ...openai(target), OPENAI_MODEL: modelOf(target) }),
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
    env: (target) => ({ GROK_BASE_URL: `${target.url}/v1`, GROK_API_KEY: target.key, GROK_MODEL: modelOf(target) }),
    needsModel: true,
  },
  openai: { title: 'OpenAI SDKs', env: openai, isWelcomed: true },
  anthropic: { title: 'Anthropic SDKs', env: anthropic, unset: ['ANTHROPIC_AUTH_TOKEN'], isWelcomed: true },
  google: { title: 'Google Gen AI SDKs', env: google, unset: GOOGLE_RIVALS, isWelcomed: true },
  'ai-sdk': { title: 'AI SDK', snippet: aiSdk },
  langchain: { title: 'LangChain', snippet: langchain },
  agents: { title: 'OpenAI Agents SDK', snippet: agentsSdk },
};

/** Where the gateway is when nobody says otherwise. */
const USUAL_URL = 'http://127.0.0.1:4141';

/** Options of the commands that set a client up. */
export const TARGET_OPTIONS = {
  url: { type: 'string', value: 'URL', summary: `where the gateway is (${USUAL_URL})` },
  model: {
    type: 'string',
    value: 'M',
    summary: `the model to ask for; the client's own when left out, ${DEMO_MODEL} where it has none`,
  },
  key: {
    type: 'string',
    value: 'K',
    summary: 'the key that the gateway wants (SLUICE_KEY of the environment; "any" where it wants none)',
  },
} as const;

/** The row of the table that is meant. */
export function chooseClient(name: string | undefined): { id: string; client: Client } {
  const list = Object.keys(CLIENTS).join(', ');
  if (name === undefined) throw new UsageError(`say which client: ${list}`);
  const client = Object.hasOwn(CLIENTS, name) ? CLIENTS[name] : undefined;
  if (client) return { id: name, client };
  throw new UsageError(`unknown client "${oneLine(name)}"${didYouMean(name, Object.keys(CLIENTS))}\nKnown are: ${list}`);
}

export const chooseModel = ({ needsModel }: Client, model: string | undefined): Pick<Target, 'model'> => {
  const chosen = model ?? (needsModel ? DEMO_MODEL : undefined);
  return chosen === undefined ? {} : { model: chosen };
};

/** The address of a gateway. Each client adds the path it needs: one that was given along is taken off. */
export function chooseUrl(text: string = USUAL_URL): string {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  const isUsable = url !== undefined && /^https?:$/.test(url.protocol) && url.search === '' && url.username === '';
  if (!isUsable) throw new UsageError(`--url must be an address such as ${USUAL_URL}, not "${oneLine(text.slice(0, 200))}"`);
  return url.origin + url.pathname.replace(/\/+(v1(beta)?)?\/*$/, '');
}

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
