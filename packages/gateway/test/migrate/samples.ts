import type { Format } from '../../src/migrate/import.ts';

/** A configuration of another gateway, and what becomes of it. */
interface Sample {
  name: string;
  format: Format;
  source: string | object;
  config: object;
  /** Kind and path of each note, in order. */
  notes: string[];
}

const KEYS = { a: 'sk-canary-a-0123456789', b: 'sk-canary-b-0123456789' };

export const SAMPLES: readonly Sample[] = [
  {
    name: 'providers, references and wildcards',
    format: 'litellm',
    source: `
model_list:
  - { model_name: gpt-5, litellm_params: { model: openai/gpt-5, api_key: os.environ/OPENAI_API_KEY } }
  - { model_name: sonnet, litellm_params: { model: claude-sonnet-4-5 } }
  - { model_name: "gemini/*", litellm_params: { model: "gemini/*", api_key: os.environ/GEMINI_API_KEY } }
  - { model_name: codex, litellm_params: { model: openai/responses/gpt-5-codex, api_key: os.environ/OPENAI_API_KEY } }
  - { model_name: local, litellm_params: { model: openai/qwen3, api_base: "http://10.0.0.5:8000/v1", api_key: none } }
  - { model_name: env, litellm_params: { model: openai/m, api_base: os.environ/MY_BASE, api_key: os.environ/MY_KEY } }
  - { model_name: az, litellm_params: { model: azure/dep, api_base: "https://r.openai.azure.com", api_version: 2024-10-21, api_key: os.environ/AZ } }
  - { model_name: claude, litellm_params: { model: bedrock/anthropic.claude } }
  - { model_name: "*", litellm_params: { model: "*" } }
`,
    config: {
      providers: {
        openai: { api_key: 'env:OPENAI_API_KEY' },
        anthropic: { api_key: 'env:ANTHROPIC_API_KEY' },
        google: { api_key: 'env:GEMINI_API_KEY' },
        'openai-responses': { api_key: 'env:OPENAI_API_KEY' },
        '10.0.0.5': { protocol: 'openai-chat', base_url: 'http://10.0.0.5:8000/v1', api_key: 'env:KEY_10_0_0_5_API_KEY' },
        my_base: { protocol: 'openai-chat', base_url: 'env:MY_BASE', api_key: 'env:MY_KEY' },
        azure: { base_url: 'https://r.openai.azure.com', api_key: 'env:AZ', api_version: '2024-10-21' },
      },
      models: {
        'gpt-5': 'openai/gpt-5',
        sonnet: 'anthropic/claude-sonnet-4-5',
        'gemini/*': 'google/*',
        codex: 'openai-responses/gpt-5-codex',
        local: '10.0.0.5/qwen3',
        env: 'my_base/m',
        az: 'azure/dep',
      },
    },
    notes: [
      'secret model_list[1].litellm_params.api_key',
      'secret model_list[4].litellm_params.api_key',
      'dropped model_list[7].litellm_params.model',
      'dropped model_list[8].litellm_params.model',
    ],
  },
  {
    name: 'deployments, fallbacks in a circle, aliases, prices and limits',
    format: 'litellm',
    source: {
      model_list: [
        { model_name: 'a', litellm_params: { model: 'openai/gpt-5', api_key: KEYS.a, rpm: 30, timeout: 300, temperature: 0.2 } },
        { model_name: 'a', litellm_params: { model: 'openai/gpt-5', api_key: KEYS.b, rpm: 10 }, model_info: { id: '1' } },
        {
          model_name: 'b',
          litellm_params: {
            model: 'groq/llama',
            litellm_credential_name: 'shared',
            input_cost_per_token: 0.0000005,
            output_cost_per_token: 0.000001,
            extra_headers: { 'x-team': 'canary-team' },
          },
        },
      ],
      credential_list: [{ credential_name: 'shared', credential_values: { api_key: 'os.environ/GROQ' } }],
      router_settings: {
        routing_strategy: 'least-busy',
        fallbacks: [{ a: ['b'] }, { b: ['a', 'gone'] }],
        model_group_alias: { fast: 'b', none: 'gone' },
        num_retries: 3,
        redis_password: 'canary',
      },
      litellm_settings: { request_timeout: 600, cache: true, cache_params: { type: 'redis', ttl: 60 }, drop_params: true },
      general_settings: { master_key: 'os.environ/MASTER', database_url: 'postgres://canary' },
      environment_variables: { X: 'canary' },
    },
    config: {
      limits: { retries_per_provider: 3, total_timeout: '600s' },
      cache: { ttl: '60s' },
      auth: { keys: [{ name: 'litellm-master', key: 'env:MASTER' }] },
      providers: {
        openai: { api_key: 'env:OPENAI_API_KEY', total_timeout: '300s' },
        'openai-2': { extends: 'openai', api_key: 'env:OPENAI_API_KEY_2' },
        groq: { api_key: 'env:GROQ', headers: { 'x-team': 'env:GROQ_X_TEAM' } },
      },
      models: {
        'pool-1': {
          strategy: 'least_busy',
          targets: [
            { target: 'openai/gpt-5', weight: 30 },
            { target: 'openai-2/gpt-5', weight: 10 },
          ],
        },
        a: ['pool-1', 'groq/llama'],
        b: ['groq/llama', 'pool-1'],
        fast: 'b',
      },
      prices: { 'groq/llama': { input: 0.5, output: 1 } },
    },
    notes: [
      'secret model_list[0].litellm_params.api_key',
      'changed model_list[0].litellm_params.rpm',
      'dropped model_list[0].litellm_params.temperature',
      'secret model_list[1].litellm_params.api_key',
      'changed model_list[1].litellm_params.rpm',
      'dropped model_list[1].model_info.id',
      'secret model_list[2].litellm_params.extra_headers.x-team',
      'dropped router_settings.fallbacks[1].b',
      'dropped router_settings.model_group_alias.none',
      'changed litellm_settings.cache',
      'dropped litellm_settings.cache_params.type',
      'dropped router_settings.redis_password',
      'dropped litellm_settings.drop_params',
      'changed general_settings.master_key',
      'dropped general_settings.database_url',
      'dropped environment_variables',
    ],
  },
  {
    name: 'hostile and wrong values',
    format: 'litellm',
    source: {
      model_list: [
        7,
        { model_name: 'ok', litellm_params: { model: 'openai/gpt-5' } },
        // biome-ignore lint/suspicious/noTemplateCurlyInString: a reference that the source does not mean
        { model_name: 'ref', litellm_params: { model: 'openai/${HOME}' } },
        { model_name: 'url', litellm_params: { model: 'openai/m', api_base: 'file:///etc/passwd' } },
        { model_name: 'user', litellm_params: { model: 'litellm_proxy/m', api_base: 'http://u:canary@h/v1' } },
        { model_name: '*-*', litellm_params: { model: 'openai/*' } },
        { model_name: 'none' },
        { model_name: 'empty', litellm_params: { model: 'openai/' } },
        { model_name: 'az', litellm_params: { model: 'azure/dep', input_cost_per_token: 7 } },
        { model_name: 'line\n# injected: true', litellm_params: { model: 'openai/x\ny: z' } },
      ],
      'odd\nkey': 1,
    },
    config: {
      providers: {
        openai: { api_key: 'env:OPENAI_API_KEY' },
        azure: { base_url: 'env:AZURE_OPENAI_ENDPOINT', api_key: 'env:AZURE_OPENAI_API_KEY' },
      },
      models: { ok: 'openai/gpt-5', url: 'openai/m', az: 'azure/dep', 'line\n# injected: true': 'openai/x\ny: z' },
    },
    notes: [
      'dropped model_list[0]',
      'secret model_list[1].litellm_params.api_key',
      'dropped model_list[2].litellm_params.model',
      'dropped model_list[3].litellm_params.api_base',
      'dropped model_list[4].litellm_params.api_base',
      'dropped model_list[4].litellm_params.model',
      'dropped model_list[5].litellm_params.model',
      'dropped model_list[6]',
      'dropped model_list[7].litellm_params.model',
      'secret model_list[8].litellm_params.api_key',
      'secret model_list[8].litellm_params.api_key',
      'dropped model_list[8].litellm_params.input_cost_per_token',
      'dropped odd\nkey',
    ],
  },
  {
    name: 'load balancing inside a fallback',
    format: 'portkey',
    source: {
      strategy: { mode: 'fallback', on_status_codes: [429, 503] },
      retry: { attempts: 4, on_status_codes: [429] },
      cache: { mode: 'simple', max_age: 3600 },
      targets: [
        {
          strategy: { mode: 'loadbalance' },
          targets: [
            { provider: 'openai', api_key: KEYS.a, weight: 0.7, override_params: { model: 'gpt-5', temperature: 1 } },
            {
              provider: 'azure-openai',
              api_key: KEYS.b,
              resource_name: 'corp',
              deployment_id: 'gpt5',
              api_version: '2024-10-21',
              weight: 0.3,
            },
          ],
        },
        { virtual_key: 'anthropic-prod-1a2b', request_timeout: 20000, input_guardrails: ['pii'] },
        { provider: '@groq-eu', override_params: { model: '@groq-eu/llama' } },
        { provider: 'bedrock', aws_access_key_id: 'canary' },
      ],
    },
    config: {
      limits: { retries_per_provider: 4 },
      cache: { ttl: '3600s' },
      providers: {
        openai: { api_key: 'env:OPENAI_API_KEY' },
        azure: { base_url: 'https://corp.openai.azure.com', api_key: 'env:AZURE_OPENAI_API_KEY', api_version: '2024-10-21' },
        anthropic: { api_key: 'env:ANTHROPIC_PROD_1A2B_API_KEY', total_timeout: '20000ms' },
        groq: { api_key: 'env:GROQ_EU_API_KEY' },
      },
      models: {
        'pool-1': {
          strategy: 'weighted',
          targets: [
            { target: 'openai/gpt-5', weight: 0.7 },
            { target: 'azure/gpt5', weight: 0.3 },
          ],
        },
        'pool-2/*': ['pool-1', 'anthropic/*', 'groq/llama'],
        '*': 'pool-2/*',
      },
    },
    notes: [
      'dropped retry.on_status_codes',
      'dropped targets[0].targets[0].override_params.temperature',
      'secret targets[0].targets[0].api_key',
      'secret targets[0].targets[1].api_key',
      'secret targets[1].virtual_key',
      'dropped targets[1].input_guardrails',
      'secret targets[2].provider',
      'dropped targets[3].provider',
      'dropped targets[3].aws_access_key_id',
      'dropped strategy.on_status_codes',
    ],
  },
  {
    name: 'conditions',
    format: 'portkey',
    source: {
      strategy: {
        mode: 'conditional',
        conditions: [
          // biome-ignore lint/suspicious/noThenProperty: the name in the format
          { query: { 'params.model': { $eq: 'fast' } }, then: 'g' },
          // biome-ignore lint/suspicious/noThenProperty: the name in the format
          { query: { 'metadata.plan': { $eq: 'paid' } }, then: 'g' },
        ],
        default: 'o',
      },
      targets: [
        { name: 'g', provider: 'groq', override_params: { model: 'llama' } },
        { name: 'o', provider: 'openai', custom_host: 'http://10.0.0.9/v1' },
      ],
    },
    config: {
      providers: { groq: { api_key: 'env:GROQ_API_KEY' }, openai: { base_url: 'http://10.0.0.9/v1' } },
      models: { fast: 'groq/llama', '*': 'openai/*' },
    },
    notes: ['secret targets[0].api_key', 'dropped strategy.conditions[1].query'],
  },
  {
    name: 'providers, routes and comments',
    format: 'claude-code-router',
    source: `// my router
{
  "APIKEY": "canary-client-key-0123456789", "HOST": "0.0.0.0", "PORT": 3456, "LOG": true, "API_TIMEOUT_MS": "600000",
  "PROXY_URL": "http://127.0.0.1:7890", /* a proxy */
  "Providers": [
    { "name": "openrouter", "api_base_url": "https://openrouter.ai/api/v1/chat/completions", "api_key": "$OPENROUTER_API_KEY",
      "models": ["anthropic/claude-sonnet-4"], "transformer": { "use": ["openrouter"] } },
    { "name": "my ollama", "api_base_url": "http://localhost:11434/v1/chat/completions", "api_key": "ollama", "models": ["qwen3"],
      "transformer": { "use": [["maxtoken", { "max_tokens": 100 }]], "qwen3": { "use": ["tooluse"] } } },
    { "name": "gem", "api_base_url": "https://generativelanguage.googleapis.com/v1beta/models/", "api_key": "\${GEM}", "models": [] },
    { "name": "broken" },
  ],
  "Router": { "default": "openrouter,anthropic/claude-sonnet-4", "background": "my ollama,qwen3", "think": "gone,x",
    "longContext": "gem,gemini-2.5-pro", "longContextThreshold": 100000, "webSearch": "gem,gemini-2.5-flash", "custom": "x" },
  "fallback": { "default": ["gem,gemini-2.5-pro"], "think": ["gem,x"] },
}`,
    config: {
      auth: { keys: [{ name: 'claude-code-router', key: 'env:SLUICE_CLIENT_KEY' }] },
      listen: { host: '0.0.0.0', port: 3456 },
      limits: { total_timeout: '600000ms' },
      providers: {
        openrouter: { api_key: 'env:OPENROUTER_API_KEY', proxy: 'http://127.0.0.1:7890' },
        'my-ollama': {
          protocol: 'openai-chat',
          base_url: 'http://localhost:11434/v1',
          api_key: 'env:MY_OLLAMA_API_KEY',
          proxy: 'http://127.0.0.1:7890',
        },
        gem: { extends: 'google', api_key: 'env:GEM', proxy: 'http://127.0.0.1:7890' },
      },
      models: { '*': ['openrouter/anthropic/claude-sonnet-4', 'gem/gemini-2.5-pro'] },
      rules: [
        { name: 'longContext', when: { input_tokens_above: 100000 }, use: 'gem/gemini-2.5-pro' },
        { name: 'background', when: { background: true }, use: 'my-ollama/qwen3' },
        { name: 'webSearch', when: { web_search: true }, use: 'gem/gemini-2.5-flash' },
      ],
    },
    notes: [
      'secret Providers[1].api_key',
      'dropped Providers[1].transformer.use',
      'dropped Providers[1].transformer.qwen3',
      'dropped Providers[3]',
      'dropped Router.think',
      'dropped Router.custom',
      'dropped fallback.think',
      'secret APIKEY',
      'dropped LOG',
    ],
  },
  {
    name: 'an open address without a key, and a proxy with a password',
    format: 'claude-code-router',
    source: {
      HOST: '0.0.0.0',
      PORT: 99999,
      PROXY_URL: 'http://user:canary@proxy:3128',
      Providers: [{ name: 'a', api_base_url: 'https://api.example.com/v1/messages', api_key: KEYS.a, models: [] }],
    },
    config: {
      providers: {
        a: {
          protocol: 'anthropic-messages',
          base_url: 'https://api.example.com/v1',
          api_key: 'env:A_API_KEY',
          proxy: 'env:SLUICE_PROXY',
        },
      },
    },
    notes: ['secret PROXY_URL', 'secret Providers[0].api_key', 'changed HOST'],
  },
];
