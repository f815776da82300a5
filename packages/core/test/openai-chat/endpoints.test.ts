import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { InterfaceType } from '../../src/canonical/request.ts';
import type { HeaderBag, Provider, Target } from '../../src/codec/protocol.ts';
import {
  buildHeaders,
  buildUrl,
  detectInterface,
  readModelFromPath,
  supports,
} from '../../src/protocols/openai-chat/endpoints.ts';
import { paramOf } from './bare-context.ts';

const PATHS: [name: string, path: string, type: InterfaceType, model?: string][] = [
  ['seed 2.1 chat', '/v1/chat/completions', 'CHAT'],
  ['seed 2.1 models', '/v1/models', 'MODELS'],
  ['seed 2.1 model', '/v1/models/gpt-4o', 'MODEL_INFO', 'gpt-4o'],
  ['seed 2.1 embeddings', '/v1/embeddings', 'EMBEDDINGS'],
  ['seed 2.1 rerank, #4', '/v1/rerank', 'RERANK'],
  ['seed 2.2 anything else', '/v1/files', 'PASSTHROUGH'],
  ['#1 P124 id with a slash', '/v1/models/org/model', 'MODEL_INFO', 'org/model'],
  ['#1 P124 id with an escaped slash', '/v1/models/org%2Fmodel', 'MODEL_INFO', 'org/model'],
  ['#1 id with a colon', '/v1/models/llama3:8b', 'MODEL_INFO', 'llama3:8b'],
  ['#1 id with an escaped colon', '/v1/models/llama3%3A8b', 'MODEL_INFO', 'llama3:8b'],
  ['#1 id of a fine-tuned model', '/v1/models/ft:gpt-4o:org::abc', 'MODEL_INFO', 'ft:gpt-4o:org::abc'],
  ['#1 id that is no URL text', '/v1/models/100%', 'MODEL_INFO', '100%'],
  ['#1 id that looks like an endpoint', '/v1/models/cohere/rerank', 'MODEL_INFO', 'cohere/rerank'],
  ['#1 id with a version', '/v1/models/acme/v2', 'MODEL_INFO', 'acme/v2'],
  ['#1 id models', '/v1/models/models', 'MODEL_INFO', 'models'],
  ['#1 query', '/v1/models?limit=5', 'MODELS'],
  ['#1 query of a model', '/v1/models/gpt-4o?x=/models', 'MODEL_INFO', 'gpt-4o'],
  ['#1 fragment', '/v1/chat/completions#x', 'CHAT'],
  ['#1 trailing slash', '/v1/chat/completions/', 'CHAT'],
  ['#1 trailing slash of a model', '/v1/models/gpt-4o/', 'MODEL_INFO', 'gpt-4o'],
  ['#1 doubled slash', '//v1//chat/completions', 'CHAT'],
  ['#1 no prefix', '/chat/completions', 'CHAT'],
  ['#1 no prefix, models', '/models', 'MODELS'],
  ['#1 prefix of OpenRouter', '/api/v1/chat/completions', 'CHAT'],
  ['#1 prefix of Groq', '/openai/v1/models/qwen/qwen3-32b', 'MODEL_INFO', 'qwen/qwen3-32b'],
  ['#1 prefix of Z.ai', '/api/paas/v4/chat/completions', 'CHAT'],
  ['#1 prefix of Google', '/v1beta/openai/embeddings', 'EMBEDDINGS'],
  ['#1 prefix of DashScope', '/compatible-mode/v1/models', 'MODELS'],
  ['Azure chat', '/openai/deployments/gpt-4o/chat/completions?api-version=2024-10-21', 'CHAT', 'gpt-4o'],
  ['Azure embeddings', '/openai/deployments/my%20embed/embeddings', 'EMBEDDINGS', 'my embed'],
  ['Azure audio', '/openai/deployments/whisper/audio/transcriptions', 'AUDIO', 'whisper'],
  ['Azure deployment called models', '/openai/deployments/models/chat/completions', 'CHAT', 'models'],
  ['Azure list', '/openai/models?api-version=2024-10-21', 'MODELS'],
  ['Azure deployment alone', '/openai/deployments/gpt-4o', 'PASSTHROUGH'],
  ['Azure Foundry chat', '/models/chat/completions?api-version=2024-05-01-preview', 'CHAT'],
  ['Azure Foundry embeddings', '/models/embeddings', 'EMBEDDINGS'],
  ['Hugging Face chat', '/models/org/model/v1/chat/completions', 'CHAT'],
  ['Hugging Face embeddings', '/models/org/model/v1/embeddings', 'EMBEDDINGS'],
  ['rerank of Cohere', '/v2/rerank', 'RERANK'],
  ['rerank without version', '/rerank', 'RERANK'],
  ['#2 speech', '/v1/audio/speech', 'AUDIO'],
  ['#2 transcriptions', '/v1/audio/transcriptions', 'AUDIO'],
  ['#2 translations', '/v1/audio/translations', 'AUDIO'],
  ['#2 image generations', '/v1/images/generations', 'IMAGES'],
  ['#2 image edits', '/v1/images/edits', 'IMAGES'],
  ['#2 image variations', '/v1/images/variations', 'IMAGES'],
  ['#2 other audio', '/v1/audio/voices', 'PASSTHROUGH'],
  ['stored completion', '/v1/chat/completions/chatcmpl-1', 'PASSTHROUGH'],
  ['messages of a stored completion', '/v1/chat/completions/chatcmpl-1/messages', 'PASSTHROUGH'],
  ['legacy completions', '/v1/completions', 'PASSTHROUGH'],
  ['Responses', '/v1/responses', 'PASSTHROUGH'],
  ['Anthropic', '/v1/messages?beta=true', 'PASSTHROUGH'],
  ['Gemini', '/v1beta/models/gemini-2.5-pro:streamGenerateContent?alt=sse', 'PASSTHROUGH'],
  ['Gemini, model with a slash', '/v1beta/models/openai/gpt-5:generateContent', 'PASSTHROUGH'],
  ['root', '/', 'PASSTHROUGH'],
  ['nothing', '', 'PASSTHROUGH'],
  ['name of a method of objects', '/v1/constructor', 'PASSTHROUGH'],
];

/** Ids that are read as something else: verbs of Gemini, endpoints of Azure Foundry. */
const NO_ID = /:\w+(Content|Contents|Tokens)$|^(embeddings|rerank)$/;

describe('detectInterface and modelOf', () => {
  test.each(PATHS)('%s: %s', (_, path, type, model) => {
    expect(detectInterface(path)).toBe(type);
    expect(readModelFromPath(path)).toBe(model);
  });

  const HEADERS: [name: string, path: string, headers: HeaderBag, type: InterfaceType][] = [
    ['P123 anthropic-version', '/v1/models', { 'anthropic-version': '2023-06-01' }, 'PASSTHROUGH'],
    ['P123 x-api-key', '/v1/models/claude-opus-4-5', { 'x-api-key': 'k' }, 'PASSTHROUGH'],
    ['P123 bearer', '/v1/models', { authorization: 'Bearer k' }, 'MODELS'],
    ['Google key', '/v1/models', { 'x-goog-api-key': 'k' }, 'PASSTHROUGH'],
    ['chat with any key is chat', '/v1/chat/completions', { 'x-api-key': 'k' }, 'CHAT'],
  ];
  test.each(HEADERS)('%s', (_, path, headers, type) => expect(detectInterface(path, headers)).toBe(type));

  test('any text is a path', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary' }), (path) => {
        expect(typeof detectInterface(path)).toBe('string');
        readModelFromPath(path);
      }),
    );
  });

  test('the id of a model survives a path', () => {
    const id = fc.string({ unit: 'grapheme', minLength: 1 }).filter((text) => !NO_ID.test(text));
    fc.assert(
      fc.property(id, (model) => {
        expect(readModelFromPath(`/v1/models/${encodeURIComponent(model)}`)).toBe(model);
      }),
    );
  });
});

test('seed 2.3, #2: supports', () => {
  const types: InterfaceType[] = [
    'CHAT',
    'MODELS',
    'MODEL_INFO',
    'EMBEDDINGS',
    'RERANK',
    'AUDIO',
    'IMAGES',
    'COUNT_TOKENS',
    'PASSTHROUGH',
  ];
  expect(types.filter(supports)).toEqual(types.slice(0, 7));
});

const provider = (base_url: string, adapter_config?: Provider['adapter_config'], api_key?: string): Provider => ({
  id: 'p',
  protocol: 'openai-chat',
  base_url,
  ...(adapter_config && { adapter_config }),
  ...(api_key !== undefined && { api_key }),
});

const target = (base_url: string, adapter_config?: Provider['adapter_config'], model = 'gpt-4o'): Target => ({
  provider: provider(base_url, adapter_config),
  model,
  stream: false,
});

const AZURE = 'https://res.openai.azure.com';

const DATED = { api_version: '2024-10-21' };

const URLS: [name: string, type: InterfaceType, target: Target, url: string, modelId?: string | undefined, path?: string][] = [
  ['seed 2.4 chat', 'CHAT', target('https://api.openai.com'), 'https://api.openai.com/v1/chat/completions'],
  ['seed 2.4 models', 'MODELS', target('https://api.openai.com'), 'https://api.openai.com/v1/models'],
  ['seed 2.4 embeddings', 'EMBEDDINGS', target('https://api.openai.com/'), 'https://api.openai.com/v1/embeddings'],
  ['seed 2.4 rerank', 'RERANK', target('https://api.jina.ai/v1'), 'https://api.jina.ai/v1/rerank'],
  ['#3 the model is in the URL', 'MODEL_INFO', target('https://api.openai.com/v1/'), 'https://api.openai.com/v1/models/gpt-4o'],
  ['#3 the asked model', 'MODEL_INFO', target('https://h/v1'), 'https://h/v1/models/org%2Fmodel%3A8b', 'org/model:8b'],
  ['#3 odd characters', 'MODEL_INFO', target('https://h/v1'), 'https://h/v1/models/a%3Fb%23c%20%25', 'a?b#c %'],
  ['base with /v1', 'CHAT', target('http://localhost:8000/v1'), 'http://localhost:8000/v1/chat/completions'],
  ['base with a path of its own', 'CHAT', target('https://g/v1beta/openai/'), 'https://g/v1beta/openai/chat/completions'],
  ['base with another version', 'CHAT', target('https://api.z.ai/api/paas/v4'), 'https://api.z.ai/api/paas/v4/chat/completions'],
  ['rerank of Cohere', 'RERANK', target('https://api.cohere.com/v2'), 'https://api.cohere.com/v2/rerank'],
  ['no version at all', 'CHAT', target('https://api.perplexity.ai', { path: '' }), 'https://api.perplexity.ai/chat/completions'],
  ['a path from the configuration', 'CHAT', target('https://h', { path: 'api/v2/' }), 'https://h/api/v2/chat/completions'],
  ['a query in the base', 'CHAT', target('https://h/v1?tenant=7'), 'https://h/v1/chat/completions?tenant=7'],
  ['Azure chat', 'CHAT', target(AZURE, DATED), `${AZURE}/openai/deployments/gpt-4o/chat/completions?api-version=2024-10-21`],
  [
    'Azure base with /openai',
    'EMBEDDINGS',
    target(`${AZURE}/openai/`, DATED),
    `${AZURE}/openai/deployments/gpt-4o/embeddings?api-version=2024-10-21`,
  ],
  [
    'Azure base with the deployment',
    'CHAT',
    target(`${AZURE}/openai/deployments/d`, DATED),
    `${AZURE}/openai/deployments/d/chat/completions?api-version=2024-10-21`,
  ],
  ['Azure models', 'MODELS', target(`${AZURE}/openai/deployments/d`, DATED), `${AZURE}/openai/models?api-version=2024-10-21`],
  ['Azure model', 'MODEL_INFO', target(AZURE, DATED), `${AZURE}/openai/models/gpt-4o?api-version=2024-10-21`],
  [
    'Azure odd deployment',
    'CHAT',
    target(AZURE, DATED, 'a b/c'),
    `${AZURE}/openai/deployments/a%20b%2Fc/chat/completions?api-version=2024-10-21`,
  ],
  ['Azure v1', 'CHAT', target(`${AZURE}/openai/v1/`), `${AZURE}/openai/v1/chat/completions`],
  [
    'Azure v1 preview',
    'CHAT',
    target(`${AZURE}/openai/v1`, { api_version: 'preview' }),
    `${AZURE}/openai/v1/chat/completions?api-version=preview`,
  ],
  [
    'Azure Foundry',
    'CHAT',
    target('https://r.services.ai.azure.com/models', DATED),
    'https://r.services.ai.azure.com/models/chat/completions?api-version=2024-10-21',
  ],
  [
    '#2 audio',
    'AUDIO',
    target('https://api.openai.com'),
    'https://api.openai.com/v1/audio/speech',
    undefined,
    '/v1/audio/speech',
  ],
  [
    '#2 images to Azure',
    'IMAGES',
    target(AZURE, DATED, 'img'),
    `${AZURE}/openai/deployments/img/images/edits?api-version=2024-10-21`,
    undefined,
    '/v1/images/edits?api-version=1',
  ],
  [
    'seed 2.4 passthrough',
    'PASSTHROUGH',
    target('https://h/api/v1'),
    'https://h/api/v1/files/f-1?limit=2',
    undefined,
    '/v1/files/f-1?limit=2&key=secret#x',
  ],
  ['passthrough without version', 'PASSTHROUGH', target('https://h'), 'https://h/v1/batches', undefined, '/batches'],
  [
    'passthrough from Azure',
    'PASSTHROUGH',
    target('https://h'),
    'https://h/v1/completions',
    undefined,
    '/openai/deployments/d/completions',
  ],
];

describe('buildUrl', () => {
  // The api-version of the provider replaces the client's own.
  test.each(URLS)('%s', (_, type, to, url, modelId, path) => {
    const built = new URL(buildUrl(type, to, modelId, path));
    const version = to.provider.adapter_config?.api_version;
    expect(built.href).toBe(url);
    if (version) expect(built.searchParams.getAll('api-version')).toEqual([version]);
  });

  const REFUSED: [name: string, param: string, run: () => string][] = [
    ['two dots as a model', 'model', () => buildUrl('MODEL_INFO', target('https://h/v1'), '..')],
    ['one dot as a model', 'model', () => buildUrl('MODEL_INFO', target('https://h/v1'), '.')],
    ['no model', 'model', () => buildUrl('MODEL_INFO', target('https://h/v1'), '')],
    ['half a character', 'model', () => buildUrl('MODEL_INFO', target('https://h/v1'), '\ud800')],
    ['two dots as a deployment', 'model', () => buildUrl('CHAT', target(AZURE, DATED, '..'))],
    ['two dots in a path', 'path', () => buildUrl('PASSTHROUGH', target('https://h/v1'), undefined, '/v1/files/../../admin')],
    ['escaped dots in a path', 'path', () => buildUrl('PASSTHROUGH', target('https://h/v1'), undefined, '/v1/files/%2e%2E/x')],
    ['a backslash in a path', 'path', () => buildUrl('PASSTHROUGH', target('https://h/v1'), undefined, '/v1/files/\\..\\x')],
    ['passthrough without a path', 'path', () => buildUrl('PASSTHROUGH', target('https://h/v1'))],
    ['audio without a path', 'path', () => buildUrl('AUDIO', target('https://h/v1'))],
    ['audio with another path', 'path', () => buildUrl('AUDIO', target('https://h/v1'), undefined, '/v1/files')],
    ['counting tokens', 'UNSUPPORTED_INTERFACE', () => buildUrl('COUNT_TOKENS', target('https://h/v1'))],
    ['no URL', 'provider.base_url', () => buildUrl('CHAT', target('not a url'))],
    ['not http', 'provider.base_url', () => buildUrl('CHAT', target('file:///etc'))],
  ];
  test.each(REFUSED)('refuses %s', (_, param, run) => expect(paramOf(run)).toBe(param));

  test('stays below the base whatever the model is called', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary' }), (model) => {
        paramOf(() => {
          const { origin, pathname } = new URL(buildUrl('MODEL_INFO', target('https://h/a/v1'), model));
          expect(origin).toBe('https://h');
          expect(pathname).toMatch(/^\/a\/v1\/models\/[^/]+$/);
        });
      }),
    );
  });
});

const JSON_TYPE = { 'content-type': 'application/json', accept: 'application/json' };

const HEADERS: [name: string, provider: Provider, headers: HeaderBag, stream?: boolean][] = [
  ['seed 3.1 bearer', provider('https://h', undefined, 'sk'), { ...JSON_TYPE, authorization: 'Bearer sk' }],
  [
    'seed 3.1 organization',
    provider('https://h', { organization: 'org' }, 'sk'),
    { ...JSON_TYPE, authorization: 'Bearer sk', 'openai-organization': 'org' },
  ],
  [
    '#5 project',
    provider('https://h', { project: 'pr' }, 'sk'),
    { ...JSON_TYPE, authorization: 'Bearer sk', 'openai-project': 'pr' },
  ],
  ['#5 Azure key', provider('https://h', { auth: 'api-key' }, 'sk'), { ...JSON_TYPE, 'api-key': 'sk' }],
  ['#5 Azure key by its version', provider('https://h', DATED, 'sk'), { ...JSON_TYPE, 'api-key': 'sk' }],
  ['#5 Entra token', provider('https://h', { ...DATED, auth: 'bearer' }, 'tok'), { ...JSON_TYPE, authorization: 'Bearer tok' }],
  [
    'stream',
    provider('https://h', undefined, 'sk'),
    { ...JSON_TYPE, accept: 'text/event-stream', authorization: 'Bearer sk' },
    true,
  ],
  ['no key, no authorization', provider('http://localhost:11434'), JSON_TYPE],
  ['empty key', provider('http://localhost:11434', undefined, ''), JSON_TYPE],
  ['a key with the end of its line', provider('https://h', undefined, 'sk\n'), { ...JSON_TYPE, authorization: 'Bearer sk' }],
  [
    'the operator has the last word',
    provider('https://h', { headers: { 'HTTP-Referer': 'x', Authorization: 'Own k' } }, 'sk'),
    { ...JSON_TYPE, authorization: 'Own k', 'http-referer': 'x' },
  ],
];

test.each(HEADERS)('buildHeaders: %s', (_, from, headers, stream) => expect(buildHeaders(from, stream)).toEqual(headers));
