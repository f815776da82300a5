/** Endpoints that are forwarded without conversion, as the vendors document them. */

import type { ProtocolId } from '@sluice/core';
import { suggest } from '@sluice/lab/text';

/**
 * Finds a known endpoint; undefined for one that the vendor does not document. `path` starts after the version, as it
 * is sent.
 */
export function findEndpoint(protocol: ProtocolId, method: string, path: string): EndpointKind | undefined {
  // HEAD is allowed wherever GET is.
  const allowed = method === 'HEAD' ? 'GET' : method;
  return findBranch(protocol, path)?.methods.get(allowed as PassedMethod); // any other text is not in the map
}

/** The methods that the vendor documents for a path; none for an unknown one. */
export const listMethods = (protocol: ProtocolId, path: string): readonly string[] => [
  ...(findBranch(protocol, path)?.methods.keys() ?? []),
];

function findBranch(protocol: ProtocolId, path: string): Branch | undefined {
  const isGemini = protocol === 'gemini';
  const pattern = isGemini ? GEMINI_ID : ID;
  let branch: Branch | undefined = ENDPOINT_TREES[protocol];
  for (const segment of isGemini ? splitPath(path) : path.split('/'))
    branch = branch?.literals.get(segment) ?? (isId(segment, pattern) ? branch?.any : undefined);
  return branch;
}

/**
 * The path that was probably meant by one that no protocol has: `/v1/chat/completions` for `/v1/chat/completion`, and
 * the verb of a Gemini path. The rest of the path is the client's.
 */
export function suggestPath(path: string): string | undefined {
  const [, start = '', verb] = /^(\/v\d[\w]*\/models\/[^:]{1,512}:)(\w+)$/.exec(path) ?? [];
  if (verb !== undefined) return prefix(start, suggest(verb, GEMINI_VERBS));
  const version = /^\/v\d\w*\//i.exec(path)?.[0] ?? '/';
  const isGemini = /^\/v1(alpha|beta)/i.test(version);
  return prefix(isGemini ? '/v1beta/' : '/v1/', suggest(path.slice(version.length), isGemini ? GEMINI_PATHS : PATHS));
}

const prefix = (start: string, rest: string | undefined): string | undefined => (rest === undefined ? undefined : start + rest);

/**
 * The stored object that a request is about: its id, or none for a request that creates one. Undefined for requests
 * about no single object.
 */
export function findObject(protocol: ProtocolId, method: string, path: string): { id: string | undefined } | undefined {
  const plain = path.replace(/^(?:\/upload)?\/v\d+(?:(?:alpha|beta)\d*)?\//, '');
  const kind = findEndpoint(protocol, method, plain);
  if (kind !== 'stored' && kind !== 'create') return undefined;
  const isGemini = protocol === 'gemini';
  let branch: Branch | undefined = ENDPOINT_TREES[protocol];
  for (const segment of isGemini ? splitPath(plain) : plain.split('/')) {
    const literal: Branch | undefined = branch?.literals.get(segment);
    // A model is no stored object.
    if (!literal && branch !== ENDPOINT_TREES[protocol].literals.get('models')) return { id: decodeURIComponent(segment) };
    branch = literal ?? branch?.any;
  }
  return kind === 'create' ? { id: undefined } : undefined;
}

/** `stored` reads, changes or deletes an object that the provider keeps; `create` makes a new one. */
export type EndpointKind = 'stateless' | 'create' | 'stored';

/** Gemini's `:verb` counts as a segment of its own; a colon elsewhere is part of an id (`ft:gpt-4o:org::id`). */
function splitPath(path: string): string[] {
  const segments = path.split('/');
  const last = segments.at(-1) ?? '';
  const colon = last.lastIndexOf(':');
  return colon > 0 && /^:[a-zA-Z]+$/.test(last.slice(colon))
    ? [...segments.slice(0, -1), last.slice(0, colon), last.slice(colon)]
    : segments;
}

/** Ids and model names, without characters that a server could read as a separator after unescaping. */
const ID = /^[\w.~@+-][\w.~@+:-]{0,511}$/;

/** A remaining colon in a Gemini path could be read as another verb. */
const GEMINI_ID = /^[\w.~@+-]{1,512}$/;

function isId(segment: string, pattern: RegExp): boolean {
  try {
    const id = decodeURIComponent(segment);
    return pattern.test(id) && id !== '.' && id !== '..';
  } catch {
    return false;
  }
}

/** Whether a provider of one protocol has the endpoints of the other: OpenAI's two protocols are parts of one API. */
export const sharesEndpoints = (one: ProtocolId, other: ProtocolId): boolean => KNOWN_ENDPOINTS[one] === KNOWN_ENDPOINTS[other];

type PassedMethod = 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';

/**
 * A path below the version, and the methods that the vendor documents for it. `{id}` stands for one stored object,
 * `{model}` for a model, and `:verb` for Gemini's custom methods.
 */
type Row = readonly [path: string, ...methods: PassedMethod[]];

interface Endpoints {
  /** Nothing is read or kept beyond the request. */
  stateless: readonly Row[];
  /** Objects that the provider keeps under the operator's key. A POST without an `{id}` only creates one. */
  stored: readonly Row[];
}

/**
 * Not here, and so only passed with `passthrough: all`: administration (organizations, projects, webhooks), credentials
 * (vaults, tunnels), and endpoints that hand out credentials for the vendor itself (realtime, live, chatkit,
 * auth_tokens).
 */
const OPENAI: Endpoints = {
  stateless: [
    ['audio/speech', 'POST'],
    ['audio/transcriptions', 'POST'],
    ['audio/translations', 'POST'],
    ['images/edits', 'POST'],
    ['images/generations', 'POST'],
    ['images/variations', 'POST'],
    ['completions', 'POST'],
    ['content_provenance_checks', 'POST'],
    ['decisions', 'POST'],
    ['fine_tuning/alpha/graders/run', 'POST'],
    ['fine_tuning/alpha/graders/validate', 'POST'],
    ['moderations', 'POST'],
    ['responses/compact', 'POST'],
    // Compatible servers: Mistral, xAI, vLLM, llama.cpp.
    ['chat/classifications', 'POST'],
    ['chat/moderations', 'POST'],
    ['classifications', 'POST'],
    ['classify', 'POST'],
    ['detokenize', 'POST'],
    ['fim/completions', 'POST'],
    ['infill', 'POST'],
    ['ocr', 'POST'],
    ['pooling', 'POST'],
    ['score', 'POST'],
    ['tokenize', 'POST'],
    ['tokenize-text', 'POST'],
  ],
  stored: [
    ['agents', 'GET', 'POST'],
    ['agents/{id}', 'GET', 'POST', 'DELETE'],
    ['agents/automations', 'GET', 'POST'],
    ['agents/automations/{id}', 'GET', 'POST', 'DELETE'],
    ['agents/automations/{id}/invocations', 'GET', 'POST'],
    ['agents/automations/{id}/invocations/{id}', 'GET'],
    ['agents/automations/{id}/pause', 'POST'],
    ['agents/automations/{id}/resume', 'POST'],
    ['agents/environments', 'GET', 'POST'],
    ['agents/environments/{id}', 'GET'],
    ['agents/environments/{id}/files', 'GET', 'POST'],
    ['agents/environments/templates', 'GET', 'POST'],
    ['agents/environments/templates/{id}', 'GET', 'POST', 'DELETE'],
    ['agents/sessions', 'GET', 'POST'],
    ['agents/sessions/{id}', 'GET', 'POST', 'DELETE'],
    ['agents/sessions/{id}/artifacts', 'GET'],
    ['agents/sessions/{id}/artifacts/{id}', 'GET', 'DELETE'],
    ['agents/sessions/{id}/artifacts/{id}/content', 'GET'],
    ['agents/sessions/{id}/events', 'GET', 'POST'],
    ['agents/sessions/{id}/items', 'GET'],
    ['agents/sessions/{id}/subagents', 'GET'],
    ['agents/sessions/{id}/subagents/{id}', 'GET'],
    ['agents/sessions/{id}/subagents/{id}/items', 'GET'],
    ['agents/sessions/{id}/subagents/{id}/turns', 'GET'],
    ['agents/sessions/{id}/subagents/{id}/turns/{id}', 'GET'],
    ['agents/sessions/{id}/subagents/{id}/turns/{id}/items', 'GET'],
    ['agents/sessions/{id}/traces', 'GET'],
    ['agents/sessions/{id}/turns', 'GET'],
    ['agents/sessions/{id}/turns/{id}', 'GET'],
    ['agents/sessions/{id}/turns/{id}/items', 'GET'],
    ['assistants', 'GET', 'POST'],
    ['assistants/{id}', 'GET', 'POST', 'DELETE'],
    ['audio/voice_consents', 'GET', 'POST'],
    ['audio/voice_consents/{id}', 'GET', 'POST', 'DELETE'],
    ['audio/voices', 'POST'],
    ['audio/voices/{id}', 'DELETE'],
    ['batches', 'GET', 'POST'],
    ['batches/{id}', 'GET'],
    ['batches/{id}/cancel', 'POST'],
    ['chat/completions/{id}', 'GET', 'POST', 'DELETE'],
    ['chat/completions/{id}/messages', 'GET'],
    ['containers', 'GET', 'POST'],
    ['containers/{id}', 'GET', 'DELETE'],
    ['containers/{id}/files', 'GET', 'POST'],
    ['containers/{id}/files/{id}', 'GET', 'DELETE'],
    ['containers/{id}/files/{id}/content', 'GET'],
    ['conversations', 'POST'],
    ['conversations/{id}', 'GET', 'POST', 'DELETE'],
    ['conversations/{id}/items', 'GET', 'POST'],
    ['conversations/{id}/items/{id}', 'GET', 'DELETE'],
    ['evals', 'GET', 'POST'],
    ['evals/{id}', 'GET', 'POST', 'DELETE'],
    ['evals/{id}/runs', 'GET', 'POST'],
    ['evals/{id}/runs/{id}', 'GET', 'POST', 'DELETE'],
    ['evals/{id}/runs/{id}/cancel', 'POST'],
    ['evals/{id}/runs/{id}/output_items', 'GET'],
    ['evals/{id}/runs/{id}/output_items/{id}', 'GET'],
    ['files', 'GET', 'POST'],
    ['files/{id}', 'GET', 'DELETE'],
    ['files/{id}/content', 'GET'],
    ['fine_tuning/jobs', 'GET', 'POST'],
    ['fine_tuning/jobs/{id}', 'GET'],
    ['fine_tuning/jobs/{id}/cancel', 'POST'],
    ['fine_tuning/jobs/{id}/checkpoints', 'GET'],
    ['fine_tuning/jobs/{id}/events', 'GET'],
    ['fine_tuning/jobs/{id}/pause', 'POST'],
    ['fine_tuning/jobs/{id}/resume', 'POST'],
    ['responses/{id}', 'GET', 'DELETE'],
    ['responses/{id}/cancel', 'POST'],
    ['responses/{id}/input_items', 'GET'],
    ['skills', 'GET', 'POST'],
    ['skills/{id}', 'GET', 'POST', 'DELETE'],
    ['skills/{id}/content', 'GET'],
    ['skills/{id}/versions', 'GET', 'POST'],
    ['skills/{id}/versions/{id}', 'GET', 'DELETE'],
    ['skills/{id}/versions/{id}/content', 'GET'],
    ['threads', 'POST'],
    ['threads/runs', 'POST'],
    ['threads/{id}', 'GET', 'POST', 'DELETE'],
    ['threads/{id}/messages', 'GET', 'POST'],
    ['threads/{id}/messages/{id}', 'GET', 'POST', 'DELETE'],
    ['threads/{id}/runs', 'GET', 'POST'],
    ['threads/{id}/runs/{id}', 'GET', 'POST'],
    ['threads/{id}/runs/{id}/cancel', 'POST'],
    ['threads/{id}/runs/{id}/steps', 'GET'],
    ['threads/{id}/runs/{id}/steps/{id}', 'GET'],
    ['threads/{id}/runs/{id}/submit_tool_outputs', 'POST'],
    ['uploads', 'POST'],
    ['uploads/{id}/cancel', 'POST'],
    ['uploads/{id}/complete', 'POST'],
    ['uploads/{id}/parts', 'POST'],
    ['vector_stores', 'GET', 'POST'],
    ['vector_stores/{id}', 'GET', 'POST', 'DELETE'],
    ['vector_stores/{id}/file_batches', 'POST'],
    ['vector_stores/{id}/file_batches/{id}', 'GET'],
    ['vector_stores/{id}/file_batches/{id}/cancel', 'POST'],
    ['vector_stores/{id}/file_batches/{id}/files', 'GET'],
    ['vector_stores/{id}/files', 'GET', 'POST'],
    ['vector_stores/{id}/files/{id}', 'GET', 'POST', 'DELETE'],
    ['vector_stores/{id}/files/{id}/content', 'GET'],
    ['vector_stores/{id}/search', 'POST'],
    ['videos', 'GET', 'POST'],
    ['videos/characters', 'POST'],
    ['videos/characters/{id}', 'GET'],
    ['videos/edits', 'POST'],
    ['videos/extensions', 'POST'],
    ['videos/{id}', 'GET', 'DELETE'],
    ['videos/{id}/content', 'GET'],
    ['videos/{id}/remix', 'POST'],
  ],
};

const ANTHROPIC: Endpoints = {
  stateless: [['complete', 'POST']],
  stored: [
    ['agents', 'GET', 'POST'],
    ['agents/{id}', 'GET', 'POST'],
    ['agents/{id}/archive', 'POST'],
    ['agents/{id}/versions', 'GET'],
    ['deployment_runs', 'GET'],
    ['deployment_runs/{id}', 'GET'],
    ['deployments', 'GET', 'POST'],
    ['deployments/{id}', 'GET', 'POST'],
    ['deployments/{id}/archive', 'POST'],
    ['deployments/{id}/pause', 'POST'],
    ['deployments/{id}/run', 'POST'],
    ['deployments/{id}/unpause', 'POST'],
    ['dreams', 'GET', 'POST'],
    ['dreams/{id}', 'GET'],
    ['dreams/{id}/archive', 'POST'],
    ['dreams/{id}/cancel', 'POST'],
    ['environments', 'GET', 'POST'],
    ['environments/{id}', 'GET', 'POST', 'DELETE'],
    ['environments/{id}/archive', 'POST'],
    ['environments/{id}/work', 'GET'],
    ['environments/{id}/work/{id}', 'GET', 'POST'],
    ['environments/{id}/work/{id}/ack', 'POST'],
    ['environments/{id}/work/{id}/heartbeat', 'POST'],
    ['environments/{id}/work/{id}/stop', 'POST'],
    ['files', 'GET', 'POST'],
    ['files/{id}', 'GET', 'DELETE'],
    ['files/{id}/content', 'GET'],
    ['memory_stores', 'GET', 'POST'],
    ['memory_stores/{id}', 'GET', 'POST', 'DELETE'],
    ['memory_stores/{id}/archive', 'POST'],
    ['memory_stores/{id}/memories', 'GET', 'POST'],
    ['memory_stores/{id}/memories/{id}', 'GET', 'POST', 'DELETE'],
    ['memory_stores/{id}/memory_versions', 'GET'],
    ['memory_stores/{id}/memory_versions/{id}', 'GET'],
    ['memory_stores/{id}/memory_versions/{id}/redact', 'POST'],
    ['messages/batches', 'GET', 'POST'],
    ['messages/batches/{id}', 'GET', 'DELETE'],
    ['messages/batches/{id}/cancel', 'POST'],
    ['messages/batches/{id}/results', 'GET'],
    ['sessions', 'GET', 'POST'],
    ['sessions/{id}', 'GET', 'POST', 'DELETE'],
    ['sessions/{id}/archive', 'POST'],
    ['sessions/{id}/events', 'GET', 'POST'],
    ['sessions/{id}/events/stream', 'GET'],
    ['sessions/{id}/resources', 'GET', 'POST'],
    ['sessions/{id}/resources/{id}', 'GET', 'POST', 'DELETE'],
    ['sessions/{id}/threads', 'GET'],
    ['sessions/{id}/threads/{id}', 'GET'],
    ['sessions/{id}/threads/{id}/archive', 'POST'],
    ['sessions/{id}/threads/{id}/events', 'GET'],
    ['sessions/{id}/threads/{id}/stream', 'GET'],
    ['skills', 'GET', 'POST'],
    ['skills/{id}', 'GET', 'DELETE'],
    ['skills/{id}/versions', 'GET', 'POST'],
    ['skills/{id}/versions/{id}', 'GET', 'DELETE'],
    ['skills/{id}/versions/{id}/content', 'GET'],
  ],
};

const GEMINI: Endpoints = {
  stateless: [
    ['models/{model}:computeTokens', 'POST'],
    ['models/{model}:predict', 'POST'],
  ],
  stored: [
    ['agents', 'GET', 'POST'],
    ['agents/{id}', 'GET', 'DELETE'],
    ['batches', 'GET'],
    ['batches/{id}', 'GET', 'DELETE'],
    ['batches/{id}:cancel', 'POST'],
    ['cachedContents', 'GET', 'POST'],
    ['cachedContents/{id}', 'GET', 'PATCH', 'DELETE'],
    ['environments', 'GET', 'POST'],
    ['environments/{id}', 'GET', 'DELETE'],
    ['environments/{id}/files/{id}', 'GET', 'PUT'],
    ['fileSearchStores', 'GET', 'POST'],
    ['fileSearchStores/{id}', 'GET', 'DELETE'],
    ['fileSearchStores/{id}/documents', 'GET'],
    ['fileSearchStores/{id}/documents/{id}', 'GET', 'DELETE'],
    ['fileSearchStores/{id}/operations/{id}', 'GET'],
    ['fileSearchStores/{id}/upload/operations/{id}', 'GET'],
    ['fileSearchStores/{id}:importFile', 'POST'],
    ['fileSearchStores/{id}:uploadToFileSearchStore', 'POST'],
    ['files', 'GET', 'POST'],
    ['files:register', 'POST'],
    ['files/{id}', 'GET', 'DELETE'],
    ['files/{id}:download', 'GET'],
    ['interactions', 'POST'],
    ['interactions/{id}', 'GET', 'DELETE'],
    ['interactions/{id}/cancel', 'POST'],
    ['models/{model}:asyncBatchEmbedContent', 'POST'],
    ['models/{model}:batchGenerateContent', 'POST'],
    ['models/{model}:predictLongRunning', 'POST'],
    ['models/{model}/operations/{id}', 'GET'],
    ['operations', 'GET'],
    ['operations/{id}', 'GET', 'DELETE'],
    ['operations/{id}:cancel', 'POST'],
    ['triggers', 'GET', 'POST'],
    ['triggers/{id}', 'GET', 'PATCH', 'DELETE'],
    ['triggers/{id}/executions', 'GET', 'POST'],
    ['tunedModels', 'GET', 'POST'],
    ['tunedModels/{id}', 'GET', 'PATCH', 'DELETE'],
    ['tunedModels/{id}/operations/{id}', 'GET'],
    ['tunedModels/{id}:cancel', 'POST'],
    ['tunedModels/{id}:transferOwnership', 'POST'],
    ['voices', 'GET', 'POST'],
    ['voices/{id}', 'GET', 'DELETE'],
  ],
};

/** Endpoints that the vendors document and that the gateway passes on; a test compares them with the official SDKs. */
export const KNOWN_ENDPOINTS = {
  'openai-chat': OPENAI,
  'openai-responses': OPENAI,
  'anthropic-messages': ANTHROPIC,
  gemini: GEMINI,
} as const satisfies Record<ProtocolId, Endpoints>;

/** Paths of converted endpoints, before those that are passed on: of two that are as near, the first is suggested. */
const CONVERTED: readonly string[] = [
  'chat/completions',
  'messages',
  'responses',
  'models',
  'embeddings',
  'rerank',
  'messages/count_tokens',
];

const listPaths = ({ stateless, stored }: Endpoints): string[] =>
  [...stateless, ...stored].map(([path]) => path).filter((path) => !path.includes('{'));

const PATHS: readonly string[] = [...CONVERTED, ...listPaths(OPENAI), ...listPaths(ANTHROPIC)];

const GEMINI_PATHS: readonly string[] = ['models', ...listPaths(GEMINI)];

const GEMINI_VERBS: readonly string[] = [
  'generateContent',
  'streamGenerateContent',
  'countTokens',
  'embedContent',
  'batchEmbedContents',
  ...[...GEMINI.stateless, ...GEMINI.stored].flatMap(([path]) => /^models\/\{model\}:(\w+)$/.exec(path)?.[1] ?? []),
];

/** Known endpoints as a tree of path segments: a lookup takes one step per segment. */
interface Branch {
  readonly literals: Map<string, Branch>;
  any?: Branch;
  readonly methods: Map<PassedMethod, EndpointKind>;
}

const createBranch = (): Branch => ({ literals: new Map(), methods: new Map() });

const ENDPOINT_TREES: Readonly<Record<ProtocolId, Branch>> = {
  'openai-chat': buildTree('openai-chat'),
  'openai-responses': buildTree('openai-responses'),
  'anthropic-messages': buildTree('anthropic-messages'),
  gemini: buildTree('gemini'),
};

function buildTree(protocol: ProtocolId): Branch {
  const root = createBranch();
  const { stateless, stored } = KNOWN_ENDPOINTS[protocol];
  for (const [path, ...methods] of stateless) for (const method of methods) growPath(root, path).methods.set(method, 'stateless');
  for (const [path, ...methods] of stored)
    for (const method of methods)
      growPath(root, path).methods.set(method, method === 'POST' && !path.includes('{id}') ? 'create' : 'stored');
  return root;
}

function growPath(root: Branch, path: string): Branch {
  let branch = root;
  for (const segment of splitPath(path)) branch = segment.startsWith('{') ? growAny(branch) : growLiteral(branch, segment);
  return branch;
}

function growAny(branch: Branch): Branch {
  branch.any ??= createBranch();
  return branch.any;
}

function growLiteral({ literals }: Branch, segment: string): Branch {
  const known = literals.get(segment);
  if (known) return known;
  const grown = createBranch();
  literals.set(segment, grown);
  return grown;
}
