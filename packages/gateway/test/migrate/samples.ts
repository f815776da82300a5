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
    name: 'drained deployments, rates as weights, and strategies that use no weights',
    format: 'litellm',
    source: `
model_list:
  - { model_name: drained, litellm_params: { model: openai/a, api_key: os.environ/K, weight: 1 } }
  - { model_name: drained, litellm_params: { model: openai/b, api_key: os.environ/K, weight: 0 } }
  - { model_name: partly, litellm_params: { model: openai/a, api_key: os.environ/K, weight: 9 } }
  - { model_name: partly, litellm_params: { model: openai/b, api_key: os.environ/K, weight: 3 } }
  - { model_name: partly, litellm_params: { model: openai/c, api_key: os.environ/K } }
  - { model_name: rates, litellm_params: { model: openai/a, api_key: os.environ/K, rpm: 6000 } }
  - { model_name: rates, litellm_params: { model: openai/b, api_key: os.environ/K, rpm: 3000 } }
  - { model_name: zeros, litellm_params: { model: openai/a, api_key: os.environ/K, weight: 0 } }
  - { model_name: zeros, litellm_params: { model: openai/b, api_key: os.environ/K, weight: 0 } }
  - { model_name: tiers, litellm_params: { model: openai/a, api_key: os.environ/K, weight: 2, order: 1 } }
  - { model_name: tiers, litellm_params: { model: openai/b, api_key: os.environ/K, order: 2 } }
`,
    config: {
      providers: { openai: { api_key: 'env:K' } },
      models: {
        drained: 'openai/a',
        partly: {
          strategy: 'weighted',
          targets: [
            { target: 'openai/a', weight: 9 },
            { target: 'openai/b', weight: 3 },
          ],
        },
        rates: {
          strategy: 'weighted',
          targets: [
            { target: 'openai/a', weight: 1000 },
            { target: 'openai/b', weight: 500 },
          ],
        },
        zeros: { strategy: 'weighted', targets: ['openai/a', 'openai/b'] },
        tiers: ['openai/a', 'openai/b'],
      },
    },
    notes: [
      'changed model_list[5].litellm_params.rpm',
      'changed model_list[6].litellm_params.rpm',
      'dropped model_list[1].litellm_params.weight',
      'dropped model_list[4].litellm_params.weight',
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
    name: 'order, general fallbacks, settings of the router that win, merge keys and numbers of YAML 1.1',
    format: 'litellm',
    source: `
common: &common { api_key: os.environ/OPENAI_API_KEY, tpm: 20_000 }
model_list:
  - { model_name: a, litellm_params: { <<: *common, model: openai/gpt-5, order: 1 } }
  - { model_name: a, litellm_params: { model: groq/big, order: 2 }, model_info: { team_id: t, blocked: true } }
  - { model_name: a, litellm_params: { model: groq/small } }
  - { model_name: b, litellm_params: { model: xai/grok, client_secret: canary } }
  - { model_name: c, litellm_params: { model: dashscope/qwen3, api_key: "" } }
  - { model_name: "openai/*", litellm_params: { model: "openai/*" } }
credential_list:
  - { credential_name: unused, credential_values: { api_key: canary }, credential_info: { note: canary } }
  - { credential_name: broken }
router_settings:
  fallbacks: [{ b: [{ model: c, messages: [canary] }, { messages: [] }, 7] }, { "*": [b] }]
  default_fallbacks: [c]
  model_group_alias: { quick: { model: b, hidden: true } }
  num_retries: 2
  timeout: 30
litellm_settings:
  fallbacks: [{ a: [b] }]
  num_retries: 5
  request_timeout: 600
`,
    config: {
      limits: { retries_per_provider: 2, total_timeout: '30s' },
      providers: {
        openai: { api_key: 'env:OPENAI_API_KEY' },
        groq: { api_key: 'env:GROQ_API_KEY' },
        xai: { api_key: 'env:XAI_API_KEY' },
        alibaba: { base_url: 'https://dashscope.aliyuncs.com/compatible-mode/v1' },
      },
      models: {
        a: ['openai/gpt-5', 'groq/big', 'groq/small', 'alibaba/qwen3'],
        b: ['xai/grok', 'alibaba/qwen3'],
        c: 'alibaba/qwen3',
        'openai/*': ['openai/*', 'alibaba/qwen3'],
        quick: 'b',
      },
    },
    notes: [
      'dropped credential_list[0].credential_info',
      'dropped credential_list[1]',
      'changed model_list[0].litellm_params.tpm',
      'secret model_list[1].litellm_params.api_key',
      'dropped model_list[1].model_info.team_id',
      'dropped model_list[1].model_info.blocked',
      'secret model_list[3].litellm_params.api_key',
      'dropped model_list[3].litellm_params.client_secret',
      'dropped credential_list[0].credential_values.api_key',
      'dropped litellm_settings.fallbacks',
      'dropped router_settings.fallbacks[0].b[0].messages',
      'dropped router_settings.fallbacks[0].b[1]',
      'dropped router_settings.fallbacks[0].b[2]',
      'dropped router_settings.model_group_alias.quick.hidden',
      'dropped litellm_settings.num_retries',
      'dropped litellm_settings.request_timeout',
      'dropped common',
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
      'changed cache.mode',
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
    name: 'stored keys in models, inherited settings, unused targets and names that show little',
    format: 'portkey',
    source: {
      strategy: { mode: 'loadbalance', sticky: { enabled: true } },
      request_timeout: 9000,
      default_params: { top_p: 1 },
      targets: [
        { override_params: { model: '@openai-eu/gpt-5' }, weight: 2 },
        { override_params: { model: '@openai-us/gpt-5' }, request_timeout: 5000, cb_config: { failure_threshold: 3 } },
        { virtual_key: 'MY_GROQ_KEY', override_params: { model: 'llama' }, weight: 0 },
        { virtual_key: 'team-7', override_params: { model: 'claude-sonnet-4-5' } },
        { virtual_key: 'team-8', override_params: { model: 'unknown-1' } },
        { provider: '@bedrock-anthropic-1', override_params: { model: 'claude-sonnet-4-5' } },
        { provider: 'moonshot', api_key: KEYS.a, override_params: { model: 'kimi' } },
        {
          strategy: { mode: 'single' },
          targets: [{ provider: '@open-ai-1', override_params: { model: 'gpt-5' } }, { provider: 'x-ai' }],
        },
        { passthrough: true },
      ],
    },
    config: {
      providers: {
        openai: { api_key: 'env:OPENAI_EU_API_KEY', total_timeout: '9000ms' },
        'openai-2': { extends: 'openai', api_key: 'env:OPENAI_US_API_KEY', total_timeout: '5000ms' },
        anthropic: { api_key: 'env:TEAM_7_API_KEY', total_timeout: '9000ms' },
        moonshot: { base_url: 'https://api.moonshot.cn/v1', api_key: 'env:MOONSHOT_API_KEY', total_timeout: '9000ms' },
        'openai-3': { extends: 'openai', api_key: 'env:OPEN_AI_1_API_KEY', total_timeout: '9000ms' },
      },
      models: {
        'pool-1': {
          strategy: 'weighted',
          targets: [
            { target: 'openai/gpt-5', weight: 2 },
            'openai-2/gpt-5',
            'anthropic/claude-sonnet-4-5',
            'moonshot/kimi',
            'openai-3/gpt-5',
          ],
        },
        '*': 'pool-1',
      },
    },
    notes: [
      'secret targets[0].override_params',
      'secret targets[1].override_params',
      'dropped targets[1].cb_config',
      'dropped targets[2]',
      'secret targets[3].virtual_key',
      'dropped targets[4].virtual_key',
      'dropped targets[5].provider',
      'secret targets[6].api_key',
      'secret targets[7].targets[0].provider',
      'dropped targets[7].targets[1]',
      'dropped targets[8]',
      'dropped strategy.sticky',
      'dropped default_params',
    ],
  },
  {
    name: 'conditions: the first that matches wins, $or and $in, settings around them, targets without a name',
    format: 'portkey',
    source: {
      strategy: {
        mode: 'conditional',
        conditions: [
          // biome-ignore lint/suspicious/noThenProperty: the name in the format
          { query: { $or: [{ 'params.model': 'fast' }, { 'params.model': { $in: ['quick', 'small'] } }] }, then: 'g' },
          // biome-ignore lint/suspicious/noThenProperty: the name in the format
          { query: { 'params.model': { $eq: 'fast' } }, then: 'o' },
          // biome-ignore lint/suspicious/noThenProperty: the name in the format
          { query: { $or: [{ 'params.model': 'x' }, { 'metadata.a': 'b' }] }, then: 'o' },
          // biome-ignore lint/suspicious/noThenProperty: the name in the format
          { query: { 'params.model': { $eq: 'y' } }, then: 'gone' },
        ],
        default: 'o',
      },
      request_timeout: 7000,
      retry: { attempts: 2, use_retry_after_headers: true },
      targets: [
        { name: 'g', provider: 'groq', api_key: KEYS.a, override_params: { model: 'llama' } },
        { name: 'o', provider: 'azure-openai', azure_resource_name: 'corp', azure_deployment_id: 'd', azure_auth_mode: 'entra' },
        { provider: 'openai' },
      ],
    },
    config: {
      limits: { retries_per_provider: 2 },
      providers: {
        groq: { api_key: 'env:GROQ_API_KEY', total_timeout: '7000ms' },
        azure: { base_url: 'https://corp.openai.azure.com', api_key: 'env:AZURE_OPENAI_API_KEY', total_timeout: '7000ms' },
      },
      models: { fast: 'groq/llama', quick: 'groq/llama', small: 'groq/llama', '*': 'azure/d' },
    },
    notes: [
      'dropped retry.use_retry_after_headers',
      'secret targets[0].api_key',
      'secret targets[1].api_key',
      'dropped targets[1].azure_auth_mode',
      'dropped targets[2]',
      'dropped strategy.conditions[1].query',
      'dropped strategy.conditions[2].query',
      'dropped strategy.conditions[3].then',
    ],
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
          extends: 'ollama',
          api_key: 'env:OLLAMA_API_KEY',
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
    name: 'fallbacks of each route, protocols by transformer, logins, and names of other versions',
    format: 'claude-code-router',
    source: {
      HTTPS_PROXY: '$MY_PROXY',
      REWRITE_SYSTEM_PROMPT: '/home/canary.txt',
      Providers: [
        { name: 'azure', api_base_url: 'https://r.openai.azure.com/', api_key: '', models: ['m'] },
        { name: 'near', api_base_url: 'https://llm.example/anthropic', api_key: '$NEAR', transformer: { use: ['Anthropic'] } },
        { name: 'bare', api_base_url: 'https://bare.example/chat/completions', api_key: '$BARE' },
        { name: 'camel', baseUrl: 'https://camel.example/v1', apiKey: '$CAMEL', models: ['m'] },
        {
          NAME: 'upper',
          HOST: 'https://api.groq.com/openai/v1',
          APIKEY: '$UPPER',
          MODELS: ['m'],
          transformers: ['anthropic', 'mine'],
        },
        {
          name: 'cli',
          api_base_url: 'https://cloudcode.example/v1internal',
          api_key: KEYS.a,
          transformer: { use: ['gemini-cli'] },
        },
        { name: 'inside', api_base_url: 'https://$REGION.example/v1/messages', api_key: '$K' },
        {
          name: 'variable',
          // biome-ignore lint/suspicious/noTemplateCurlyInString: a reference of the source
          api_base_url: '${BASE}',
          api_key: '$K',
          transformer: { m: { use: [['reasoning', { enable: false }]], other: 1 } },
        },
      ],
      Router: { default: 'near,m', think: 'camel,m', image: 'upper,m', webSearch: '', background: 'cli,m', longContext: null },
      fallback: { default: ['upper,m', 7], think: ['near,m', 'camel,m'], image: [], webSearch: ['near,m'] },
    },
    config: {
      providers: {
        'azure-custom': { protocol: 'openai-chat', base_url: 'https://r.openai.azure.com', proxy: 'env:MY_PROXY' },
        near: {
          protocol: 'anthropic-messages',
          base_url: 'https://llm.example/anthropic',
          api_key: 'env:NEAR',
          proxy: 'env:MY_PROXY',
        },
        bare: { protocol: 'openai-chat', base_url: 'https://bare.example', api_key: 'env:BARE', proxy: 'env:MY_PROXY' },
        camel: { protocol: 'openai-chat', base_url: 'https://camel.example/v1', api_key: 'env:CAMEL', proxy: 'env:MY_PROXY' },
        upper: { extends: 'groq', api_key: 'env:UPPER', proxy: 'env:MY_PROXY' },
        variable: { protocol: 'openai-chat', base_url: 'env:BASE', api_key: 'env:K', proxy: 'env:MY_PROXY' },
      },
      models: { 'pool-1': ['camel/m', 'near/m'], '*': ['near/m', 'upper/m'] },
      rules: [
        { name: 'image', when: { images: true }, use: 'upper/m' },
        { name: 'think', when: { thinking: true }, use: 'pool-1' },
      ],
    },
    notes: [
      'changed Providers[0].api_base_url',
      'changed Providers[0].api_base_url',
      'changed Providers[1].api_base_url',
      'changed Providers[2].api_base_url',
      'dropped Providers[4].transformers',
      'dropped Providers[5]',
      'dropped Providers[6].api_base_url',
      'dropped Providers[7].transformer.m.other',
      'changed Providers[7].api_base_url',
      'dropped Providers[7].transformer.m',
      'dropped Router.background',
      'dropped fallback.default[1]',
      'dropped fallback.webSearch',
      'dropped REWRITE_SYSTEM_PROMPT',
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
