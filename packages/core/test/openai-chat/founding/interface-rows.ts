import type { InterfaceType } from '../../../src/canonical/request.ts';
import { findProtocol } from '../../../src/protocols/index.ts';
import { codec, type Deviation, PROVIDER, type Row } from './row.ts';

const headers = (adapter_config = {}) => codec.buildHeaders({ ...PROVIDER, adapter_config });

const BASICS: Row[] = [
  {
    at: '1',
    says: 'the protocol is called "openai"',
    actual: () => findProtocol('openai')?.id,
    wanted: 'openai',
    deviation: { actual: 'openai-chat', reason: '`openai` is an alias: OpenAI has two protocols.' },
  },
  {
    at: '1',
    says: 'no header names a version',
    actual: () => Object.keys(headers()).filter((name) => name.includes('version')),
    wanted: [],
  },
  { at: '1', says: 'the base URL is https://api.openai.com', actual: () => url('CHAT').origin, wanted: 'https://api.openai.com' },
  { at: '1', says: 'a key is sent as Authorization: Bearer', actual: () => headers()['authorization'], wanted: 'Bearer sk-test' },
];

const detects = (at: string, path: string, wanted: InterfaceType, deviation?: Deviation): Row => ({
  at,
  says: `${path} is ${wanted}`,
  actual: () => codec.detectInterface(path),
  wanted,
  deviation,
});

const SLASH = 'Ids of models have slashes (#1).';
const ENDPOINT = 'AUDIO and IMAGES are supported by 2.3, so some path must yield them (#2).';

const PATHS: Row[] = [
  detects('2.1', '/v1/chat/completions', 'CHAT'),
  detects('2.1', '/v1/models', 'MODELS'),
  detects('2.1', '/v1/models/gpt-4o', 'MODEL_INFO'),
  detects('2.1', '/v1/embeddings', 'EMBEDDINGS'),
  detects('2.1', '/v1/rerank', 'RERANK'),
  detects('2.2', '/v1/models/ft:gpt-4o:org::id', 'MODEL_INFO'),
  detects('2.2', '/v1/models/org/model', 'PASSTHROUGH', { actual: 'MODEL_INFO', reason: SLASH }),
  detects('2.2', '/v1/completions', 'PASSTHROUGH'),
  detects('2.2', '/v1/files', 'PASSTHROUGH'),
  detects('2.2', '/v1/moderations', 'PASSTHROUGH'),
  detects('2.2', '/', 'PASSTHROUGH'),
  detects('2.2', '/v1/chat/completions?x=1', 'PASSTHROUGH', {
    actual: 'CHAT',
    reason: 'A query is no part of the endpoint (#1).',
  }),
  detects('2.2', '/chat/completions', 'PASSTHROUGH', { actual: 'CHAT', reason: 'Base URLs come with and without /v1 (#1).' }),
  detects('2.2', '/v1/audio/speech', 'PASSTHROUGH', { actual: 'AUDIO', reason: ENDPOINT }),
  detects('2.2', '/v1/images/generations', 'PASSTHROUGH', { actual: 'IMAGES', reason: ENDPOINT }),
];

const supports = (type: InterfaceType, wanted: boolean): Row => ({
  at: '2.3',
  says: `${type} is ${wanted ? '' : 'not '}supported`,
  actual: () => codec.supports(type),
  wanted,
});

const SUPPORTED: Row[] = [
  supports('CHAT', true),
  supports('MODELS', true),
  supports('MODEL_INFO', true),
  supports('EMBEDDINGS', true),
  supports('RERANK', true),
  supports('AUDIO', true),
  supports('IMAGES', true),
  supports('COUNT_TOKENS', false),
  supports('PASSTHROUGH', false),
];

const url = (type: InterfaceType, nativePath?: string): URL =>
  new URL(codec.buildUrl(type, { provider: PROVIDER, model: 'gpt-4o', stream: false }, 'gpt-4o', nativePath));

const built = (type: InterfaceType, wanted: string, nativePath?: string, deviation?: Deviation): Row => ({
  at: '2.4',
  says: `${type}${nativePath ? ` of ${nativePath}` : ''} goes to ${wanted}`,
  actual: () => decodeURI(url(type, nativePath).pathname),
  wanted,
  deviation,
});

const URLS: Row[] = [
  built('CHAT', '/v1/chat/completions'),
  built('MODELS', '/v1/models'),
  built('MODEL_INFO', '/v1/models/{modelId}', undefined, {
    actual: '/v1/models/gpt-4o',
    reason: 'The placeholder is filled in (#3).',
  }),
  built('EMBEDDINGS', '/v1/embeddings'),
  built('RERANK', '/v1/rerank'),
  built('PASSTHROUGH', '/v1/files', '/v1/files'),
  built('AUDIO', '/v1/audio/speech', '/v1/audio/speech'),
  built('IMAGES', '/v1/images/edits', '/v1/images/edits'),
];

const HEADERS: Row[] = [
  {
    at: '3.1',
    says: 'Authorization holds the key of the provider',
    actual: () => headers()['authorization'],
    wanted: 'Bearer sk-test',
  },
  {
    at: '3.1',
    says: 'OpenAI-Organization is the organization of the provider',
    actual: () => headers({ organization: 'org-1' })['openai-organization'],
    wanted: 'org-1',
  },
  { at: '3.1', says: 'no organization: no such header', actual: () => 'openai-organization' in headers(), wanted: false },
  { at: '3.1', says: 'Content-Type is application/json', actual: () => headers()['content-type'], wanted: 'application/json' },
  { at: '3.2', says: 'organization is optional', actual: () => headers({}) !== undefined, wanted: true },
  { at: '3.2', says: 'organization has no default', actual: () => headers()['openai-organization'], wanted: undefined },
  {
    at: '3.2',
    says: 'organization is the only setting',
    actual: () => headers({ project: 'proj-1' })['openai-project'],
    wanted: undefined,
    deviation: { actual: 'proj-1', reason: 'Keys of a project, Azure and own headers need settings too (#5).' },
  },
];

export const INTERFACE_ROWS: readonly Row[] = [...BASICS, ...PATHS, ...SUPPORTED, ...URLS, ...HEADERS];
