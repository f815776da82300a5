import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { InterfaceType, ProtocolId } from '@sluice/core';
import { findRoute } from '@sluice/core/engine';
import { describe, expect, test } from 'vitest';
import { IS_NEXT } from '../../../../test/sdk/openai.ts';
import { KNOWN_ENDPOINTS, readRow } from '../../src/exchange/endpoint-table.ts';
import { findEndpoint } from '../../src/exchange/known-endpoints.ts';

// The official SDKs say which endpoints their vendors document: each is answered by the gateway, known, or left out on purpose.

interface Documented {
  method: string;
  /** Below the version; `{}` stands for a parameter. Several where a parameter holds the name of the collection: one of them is meant. */
  paths: readonly string[];
}

/** The SDKs export neither their manifest nor their folders. */
const folderOf = (module: string): string =>
  fileURLToPath(new URL(`../../../../${module === 'openai-7' ? 'test/sdk-next/' : ''}node_modules/${module}`, import.meta.url));

function filesIn(folder: string): string[] {
  return readdirSync(folder, { withFileTypes: true, recursive: true })
    .filter((entry) => entry.isFile() && entry.name.endsWith('.mjs'))
    .map((entry) => join(entry.parentPath, entry.name));
}

const CALL = /_client\s*\.(get|post|put|patch|delete|getAPIList)\(\s*(?:path\s*)?(['`])([^'`]*)\2/g;

/** `getAPIList` is a GET unless its options name another method. */
function methodOf(name: string, text: string, at: number): string {
  if (name !== 'getAPIList') return name.toUpperCase();
  const call = text.slice(at, text.indexOf('_client', at + 20) < 0 ? undefined : text.indexOf('_client', at + 20));
  return /method: '(\w+)'/.exec(call)?.[1]?.toUpperCase() ?? 'GET';
}

/** The calls of an SDK that Stainless, or a generator like it, wrote. */
function callsOf(module: string): Documented[] {
  return filesIn(join(folderOf(module), 'resources')).flatMap((file) => {
    const text = readFileSync(file, 'utf8');
    return [...text.matchAll(CALL)].map(({ 1: name = '', 3: path = '', index }) => ({
      method: methodOf(name, text, index),
      paths: [
        path
          .replace(/\$\{[^}]*\}/g, '{}')
          .replace(/\?.*/, '')
          .replace(/^\/(v1\/)?/, ''),
      ],
    }));
  });
}

/** Paths of @google/genai whose first segments are in a parameter, and the resources that these name. */
const GOOGLE_RESOURCES: Readonly<Record<string, readonly string[]>> = {
  '{model}': ['models/{}'],
  '{name}': ['cachedContents/{}', 'fileSearchStores/{}', 'fileSearchStores/{}/documents/{}', 'tunedModels/{}'],
  '{file_search_store_name}': ['fileSearchStores/{}'],
  '{operationName}': ['operations/{}', 'fileSearchStores/{}/operations/{}', 'models/{}/operations/{}'],
  '{parent}': ['fileSearchStores/{}'],
  '{resourceName}': ['models/{}'],
  '{models_url}': ['models', 'tunedModels'],
};

function googleCalls(module: string): Documented[] {
  const text = readFileSync(join(folderOf(module), 'dist/node/index.mjs'), 'utf8');
  const found = [
    ...text.matchAll(/formatMap\('([^']+)'[\s\S]{0,900}?httpMethod: '(\w+)'/g),
    ...text.matchAll(/pathToFunc\("([^"]+)"[\s\S]{0,2500}?method: "(\w+)"/g),
    ...[...text.matchAll(/_client\.(get|post|patch|delete)\(path `([^`]+)`/g)].map(([all, verb, path]) => [all, path, verb]),
  ];
  return found.map(([, raw = '', method = '']) => {
    const path = raw.replace(/\?.*/, '').replace(/^\/?(upload\/)?(v1beta\/|\{api_version\}\/|\$\{api_version\}\/)?/, '');
    const [first = ''] = /^\{\w+\}/.exec(path) ?? [];
    const places = first === '' ? [path] : (GOOGLE_RESOURCES[first] ?? []).map((place) => place + path.slice(first.length));
    expect(places, path).not.toHaveLength(0);
    return { method: method.toUpperCase(), paths: places.map((place) => place.replace(/\$?\{[^}]*\}/g, '{}')) };
  });
}

/** Collections that are not passed on by default, and why. */
const LEFT_OUT: Readonly<Record<ProtocolId, readonly (readonly [prefix: string, reason: string])[]>> = {
  'openai-chat': [
    ['organization/', 'administration'],
    ['projects/', 'administration'],
    ['webhook_endpoints', 'administration'],
    ['webhook_event_types', 'administration'],
    ['safety/', 'administration'],
    ['fine_tuning/checkpoints/', 'administration: shares models with other projects'],
    ['vaults', 'credentials'],
    ['realtime/', 'issues credentials that work without the gateway'],
    ['live/', 'issues credentials that work without the gateway'],
    ['chatkit/', 'issues credentials that work without the gateway'],
  ],
  'openai-responses': [],
  'anthropic-messages': [
    ['organizations/', 'administration'],
    ['user_profiles', 'administration'],
    ['tunnels', 'credentials'],
    ['vaults', 'credentials'],
  ],
  gemini: [
    ['webhooks', 'administration'],
    ['credentials', 'credentials'],
    ['auth_tokens', 'issues credentials that work without the gateway'],
    ['batchPredictionJobs', 'Vertex AI'],
    ['tuningJobs', 'Vertex AI'],
    ['fileSearchStores/{}/tuningJobs', 'Vertex AI'],
    ['models/{}:fetchPredictOperation', 'Vertex AI'],
    ['{}:fetchPredictOperation', 'Vertex AI'],
  ],
};

/** The gateway answers with its own models, and these methods do not reach a provider. */
const OWN_MODELS: readonly string[] = ['DELETE models/{}', 'PATCH models/{}', 'GET chat/completions'];

const CONVERTED: ReadonlySet<InterfaceType> = new Set(['CHAT', 'COUNT_TOKENS', 'EMBEDDINGS', 'RERANK', 'MODELS', 'MODEL_INFO']);

const PREFIX = { 'openai-chat': '/v1/', 'openai-responses': '/v1/', 'anthropic-messages': '/v1/', gemini: '/v1beta/' } as const;
const HEADERS = {
  'openai-chat': {},
  'openai-responses': {},
  'anthropic-messages': { 'anthropic-version': '2023-06-01' },
  gemini: { 'x-goog-api-key': 'k' },
} as const satisfies Record<ProtocolId, Record<string, string>>;

function isConverted(protocol: ProtocolId, method: string, path: string): boolean {
  const { type } = findRoute(PREFIX[protocol] + path.replaceAll('{}', 'id1'), HEADERS[protocol]);
  return CONVERTED.has(type) && method === (type.startsWith('MODEL') ? 'GET' : 'POST');
}

const isLeftOut = (protocol: ProtocolId, method: string, path: string): boolean =>
  OWN_MODELS.includes(`${method} ${path}`) || LEFT_OUT[protocol].some(([prefix]) => path.startsWith(prefix));

const isKnown = (protocol: ProtocolId, method: string, path: string): boolean =>
  findEndpoint(protocol, method, path.replaceAll('{}', 'id1')) !== undefined;

const SDKS = [
  ['openai', 'openai-chat', callsOf, 150],
  ...(IS_NEXT ? ([['openai-7', 'openai-chat', callsOf, 150]] as const) : []),
  ['anthropic-0', 'anthropic-messages', callsOf, 60],
  ['@anthropic-ai/sdk', 'anthropic-messages', callsOf, 60],
  ['google-genai-1', 'gemini', googleCalls, 30],
  ['google-genai-2', 'gemini', googleCalls, 30],
] as const;

describe.each(SDKS)('%s', (module, protocol, read, least) => {
  const documented = read(module);

  test('every endpoint is converted, known, or listed as excluded', () => {
    expect(documented.length).toBeGreaterThan(least);
    const unclassified = documented.filter(
      ({ method, paths }) =>
        !paths.some((path) => [isConverted, isLeftOut, isKnown].some((holds) => holds(protocol, method, path))),
    );
    expect(unclassified.map(({ method, paths }) => `${method} ${paths.join(' or ')}`)).toEqual([]);
  });

  test('no excluded endpoint is known', () => {
    const isBoth = (method: string, path: string) => isLeftOut(protocol, method, path) && isKnown(protocol, method, path);
    expect(documented.filter(({ method, paths }) => paths.some((path) => isBoth(method, path)))).toEqual([]);
  });
});

describe('the kind of an endpoint', () => {
  const rows = Object.entries(KNOWN_ENDPOINTS).flatMap(([protocol, { stateless, stored }]) =>
    [...stateless.map((row) => ({ row, isStored: false })), ...stored.map((row) => ({ row, isStored: true }))].flatMap(
      ({ row, isStored }) => {
        const { path, methods } = readRow(row);
        return methods.map((method) => ({ protocol: protocol as ProtocolId, path, method, isStored }));
      },
    ),
  );
  const kindOf = ({ protocol, path, method }: (typeof rows)[number]) =>
    findEndpoint(protocol, method, path.replace(/\{\w+\}/g, 'id1'))?.kind;

  test('stateless endpoints have no object id', () =>
    expect(rows.filter((row) => !row.isStored && (row.path.includes('{id}') || kindOf(row) !== 'stateless'))).toEqual([]));

  test('endpoints that read, list or remove an object are stored; a POST without an id creates one', () => {
    for (const row of rows.filter(({ isStored }) => isStored)) {
      const expected = row.method === 'POST' && !row.path.includes('{id}') ? 'create' : 'stored';
      expect(kindOf(row), `${row.method} ${row.path}`).toBe(expected);
    }
  });
});
