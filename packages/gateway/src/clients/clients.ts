/** The table of clients, and how each is pointed at the gateway: variables, arguments, settings files, code, or steps in its settings. */

/** The groups in which clients are listed, in this order. */
export const GROUPS = {
  agent: 'Agents',
  editor: 'Editors',
  app: 'Chat applications',
  library: 'Libraries',
  other: 'Other clients',
} as const;

/** A client, and how it is set up to use the gateway. */
export interface Client {
  title: string;
  group: keyof typeof GROUPS;
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
  snippet?: { language: 'js' | 'python' | 'sh'; text(target: Target): string };
  /** What to enter where, for a client whose settings are neither variables nor a file. */
  steps?(target: Target): readonly string[];
  /** It has no default model. */
  needsModel?: true;
  /** What to know before it works, and what it cannot do. */
  notes?: readonly string[];
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
export const DEMO_MODEL = 'demo/hello';

/** Quotes a value for a POSIX shell where necessary. */
export const quoteForShell = (text: string): string =>
  /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`;

const chooseModelName = ({ model = DEMO_MODEL }: Target): string => model;

/** JSON with short objects and lists in one line. */
function formatJson(value: unknown, indent = ''): string {
  // Line breaks in strings are escaped.
  const flat = JSON.stringify(value, null, 1).replace(/\n\s*/g, ' ');
  if (typeof value !== 'object' || value === null || indent.length + flat.length <= 120) return flat;
  const inner = `${indent}  `;
  const lines = Array.isArray(value)
    ? value.map((item) => inner + formatJson(item, inner))
    : Object.entries(value).map(([name, item]) => `${inner}${JSON.stringify(name)}: ${formatJson(item, inner)}`);
  const [open, close] = Array.isArray(value) ? '[]' : '{}';
  return `${open}\n${lines.join(',\n')}\n${indent}${close}`;
}

/** Quotes a string for TOML and YAML, which accept the strings of JSON. */
const quote = (text: string): string => JSON.stringify(text);

/** Quotes a string for JavaScript and Python: in single quotes where nothing has to be escaped. */
const quoteForCode = (text: string): string => (/^[^'\\\p{Cc}\u2028\u2029]*$/u.test(text) ? `'${text}'` : JSON.stringify(text));

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

const vscodeModels = (target: Target): unknown => [
  {
    name: 'Sluice',
    vendor: 'customendpoint',
    apiKey: target.key,
    apiType: 'chat-completions',
    models: [
      {
        id: chooseModelName(target),
        name: chooseModelName(target),
        url: `${target.url}/v1/chat/completions`,
        toolCalling: true,
        vision: true,
        maxInputTokens: 128_000,
        maxOutputTokens: 16_000,
      },
    ],
  },
];

const zedSettings = (target: Target): unknown => ({
  language_models: {
    openai_compatible: {
      sluice: {
        api_url: `${target.url}/v1`,
        available_models: [{ name: chooseModelName(target), max_tokens: 128_000, capabilities: { tools: true, images: true } }],
      },
    },
  },
});

const libreChatConfig = (target: Target): string => `endpoints:
  custom:
    - name: Sluice
      apiKey: ${quote(target.key)}
      baseURL: ${quote(`${target.url}/v1`)}
      models:
        default: [${quote(chooseModelName(target))}]
        fetch: true`;

const cursorSteps = (target: Target): string[] => [
  'Cursor Settings > Models > API Keys:',
  `  OpenAI API Key            ${target.key}`,
  `  Override OpenAI Base URL  ${target.url}/v1`,
  `Add a custom model with the name ${chooseModelName(target)} and select it in the chat.`,
];

function otherSteps({ url, key, model = DEMO_MODEL }: Target): string[] {
  const rows = [
    ['protocol', 'base URL', 'header of the key'],
    ['OpenAI Chat, Responses', `${url}/v1`, `authorization: Bearer ${key}`],
    ['Anthropic Messages', url, `x-api-key: ${key}`],
    ['Gemini', url, `x-goog-api-key: ${key}`],
  ] as const;
  return [...rows.map(([name, base, header]) => `${name.padEnd(24)}${base.padEnd(url.length + 5)}${header}`), `model: ${model}`];
}

const pythonSnippet = (target: Target): string => `from openai import OpenAI

client = OpenAI(base_url=${quoteForCode(`${target.url}/v1`)}, api_key=${quoteForCode(target.key)})

from anthropic import Anthropic

client = Anthropic(base_url=${quoteForCode(target.url)}, api_key=${quoteForCode(target.key)})

from google import genai

client = genai.Client(api_key=${quoteForCode(target.key)}, http_options=genai.types.HttpOptions(base_url=${quoteForCode(target.url)}))`;

const aiSdkSnippet = (target: Target): string => `import { createOpenAICompatible } from '@ai-sdk/openai-compatible';

const sluice = createOpenAICompatible({ name: 'sluice', baseURL: ${quoteForCode(`${target.url}/v1`)}, apiKey: ${quoteForCode(target.key)}, includeUsage: true });
const model = sluice(${quoteForCode(chooseModelName(target))});
// or createOpenAI and createAnthropic with baseURL '${target.url}/v1', createGoogleGenerativeAI with '${target.url}/v1beta'`;

const langchainSnippet = (target: Target): string => `import { ChatOpenAI } from '@langchain/openai';

const model = new ChatOpenAI({ model: ${quoteForCode(chooseModelName(target))}, apiKey: ${quoteForCode(target.key)}, configuration: { baseURL: ${quoteForCode(`${target.url}/v1`)} } });
// or ChatAnthropic with anthropicApiUrl '${target.url}', ChatGoogleGenerativeAI with baseUrl '${target.url}'`;

const agentsSdkSnippet = (target: Target): string => `import { setDefaultOpenAIClient, setTracingDisabled } from '@openai/agents';
import OpenAI from 'openai';

setTracingDisabled(true); // traces would go to OpenAI
setDefaultOpenAIClient(new OpenAI({ baseURL: ${quoteForCode(`${target.url}/v1`)}, apiKey: ${quoteForCode(target.key)} }));`;

function curlSnippet(target: Target): string {
  const body = JSON.stringify({ model: chooseModelName(target), stream: true, messages: [{ role: 'user', content: 'Hello' }] });
  const key = quoteForShell(`authorization: Bearer ${target.key}`);
  return `curl -N ${quoteForShell(`${target.url}/v1/chat/completions`)} -H ${key} -H 'content-type: application/json' \\
  -d ${quoteForShell(body)}`;
}

/** All clients by id. `sluice env`, `sluice run`, the welcome text and the documentation are built from it. */
export const CLIENTS: Readonly<Record<string, Client>> = {
  curl: { title: 'curl', group: 'other', snippet: { language: 'sh', text: curlSnippet }, isWelcomed: true },
  claude: {
    title: 'Claude Code',
    group: 'agent',
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
    group: 'agent',
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
    group: 'agent',
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
    notes: ['to sign in, choose: Gemini API key'],
    isWelcomed: true,
  },
  opencode: {
    title: 'opencode',
    group: 'agent',
    command: 'opencode',
    install: 'npm install -g opencode-ai',
    env: (target) => ({ OPENCODE_CONFIG_CONTENT: JSON.stringify(opencodeConfig(target)) }),
    needsModel: true,
  },
  pi: {
    title: 'pi',
    group: 'agent',
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
    group: 'agent',
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
    group: 'agent',
    command: 'qwen',
    install: 'npm install -g @qwen-code/qwen-code',
    env: (target) => ({ ...openaiEnv(target), OPENAI_MODEL: chooseModelName(target) }),
    args: () => ['--auth-type', 'openai'],
    needsModel: true,
  },
  kimi: {
    title: 'Kimi Code',
    group: 'agent',
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
    group: 'agent',
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
    group: 'agent',
    command: 'grok',
    install: 'npm install -g @vibe-kit/grok-cli',
    env: (target) => ({ GROK_BASE_URL: `${target.url}/v1`, GROK_API_KEY: target.key, GROK_MODEL: chooseModelName(target) }),
    needsModel: true,
  },
  aider: {
    title: 'Aider',
    group: 'agent',
    command: 'aider',
    install: 'python -m pip install aider-install && aider-install',
    env: (target) => ({
      OPENAI_API_BASE: `${target.url}/v1`,
      OPENAI_API_KEY: target.key,
      // The first part selects the protocol, the rest is the model.
      AIDER_MODEL: `openai/${chooseModelName(target)}`,
    }),
    needsModel: true,
    notes: ['it warns that context size and costs of the model are unknown, and works nevertheless'],
  },
  goose: {
    title: 'Goose',
    group: 'agent',
    command: 'goose',
    install: 'brew install block-goose-cli',
    env: (target) => ({
      GOOSE_PROVIDER: 'openai',
      GOOSE_MODEL: chooseModelName(target),
      OPENAI_HOST: target.url,
      OPENAI_API_KEY: target.key,
    }),
    unset: ['OPENAI_BASE_PATH'],
    needsModel: true,
    notes: ['for small tasks it requests gpt-4o-mini; give that name to a model in sluice.yaml'],
  },
  cursor: {
    title: 'Cursor',
    group: 'editor',
    steps: cursorSteps,
    needsModel: true,
    notes: [
      'Cursor sends requests from its own servers: the gateway needs a public https address and client keys; localhost and private networks cannot be reached',
      'chat only: Tab completion always uses models of Cursor, and some versions do not use own keys in agent mode',
      'the address applies to all OpenAI models of Cursor while it is on',
    ],
  },
  vscode: {
    title: 'VS Code (Copilot Chat)',
    group: 'editor',
    file: { home: 'chatLanguageModels.json', text: (target) => formatJson(vscodeModels(target)) },
    needsModel: true,
    notes: [
      'VS Code 1.122 or newer: run "Chat: Manage Language Models", then Add Models > Custom Endpoint, which opens this file',
      'chat and agents only: inline suggestions and semantic search need a GitHub account and do not use it',
      'set maxInputTokens and maxOutputTokens to those of your model; each model is a row of its own',
    ],
  },
  zed: {
    title: 'Zed',
    group: 'editor',
    env: ({ key }) => ({ SLUICE_API_KEY: key }),
    file: { home: '~/.config/zed/settings.json', text: (target) => formatJson(zedSettings(target)) },
    needsModel: true,
    notes: [
      'start Zed from this shell, or enter the key under "agent: open settings" > LLM Providers; it does not belong in settings.json',
      'for the agent and the inline assistant: edit predictions and external agents have settings of their own',
      'set max_tokens to the context size of your model; each model is a row of its own',
    ],
  },
  openwebui: {
    title: 'Open WebUI',
    group: 'app',
    command: 'open-webui',
    install: 'pip install open-webui',
    env: ({ url, key }) => ({ OPENAI_API_BASE_URL: `${url}/v1`, OPENAI_API_KEY: key }),
    args: () => ['serve'],
    notes: [
      'these variables count at the first start only; later, change Admin Settings > Connections',
      'in a container, 127.0.0.1 is the container itself: use an address that it can reach, such as host.docker.internal',
    ],
  },
  librechat: {
    title: 'LibreChat',
    group: 'app',
    file: { home: 'librechat.yaml', text: libreChatConfig },
    needsModel: true,
    notes: [
      'restart LibreChat; with Docker, mount the file at /app/librechat.yaml',
      'in a container, 127.0.0.1 is the container itself: use an address that it can reach, such as host.docker.internal',
    ],
  },
  openai: { title: 'OpenAI SDKs', group: 'library', env: openaiEnv, isWelcomed: true },
  anthropic: {
    title: 'Anthropic SDKs',
    group: 'library',
    env: anthropicEnv,
    unset: ['ANTHROPIC_AUTH_TOKEN'],
    isWelcomed: true,
  },
  google: { title: 'Google Gen AI SDKs', group: 'library', env: googleEnv, unset: GOOGLE_OVERRIDES, isWelcomed: true },
  python: { title: 'Python SDKs', group: 'library', snippet: { language: 'python', text: pythonSnippet } },
  'ai-sdk': { title: 'AI SDK', group: 'library', snippet: { language: 'js', text: aiSdkSnippet } },
  langchain: { title: 'LangChain', group: 'library', snippet: { language: 'js', text: langchainSnippet } },
  agents: { title: 'OpenAI Agents SDK', group: 'library', snippet: { language: 'js', text: agentsSdkSnippet } },
  other: {
    title: 'Any other client',
    group: 'other',
    steps: otherSteps,
    notes: [
      'all of them also accept the key as authorization: Bearer',
      'a client that has only one field for an OpenAI-compatible server takes the first base URL',
    ],
  },
};
