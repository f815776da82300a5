/** The endpoints of the vendors: paths and methods, and where requests and responses have models and ids of objects. */

import type { InterfaceType, ProtocolId } from '@sluice/core';

/** Methods of endpoints that are passed on. */
export type PassedMethod = 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';

/** Where requests and responses of an endpoint have models and ids. */
export interface EndpointFields {
  /**
   * Fields of a request that name objects of the provider, wherever they are in the body, a form or the query. `agent.id`
   * is the field `id` of a value of `agent`, and `.agent` a field of the whole request. After a colon comes how ids begin
   * where the vendor has names of its own in the same field.
   */
  readonly names?: readonly string[];
  /**
   * Where a response has ids of objects that belong to the key from then on; entries of lists are meant as well. By
   * default that is the id of the new object for a POST to a path without an `{id}`, and nothing for others.
   */
  readonly makes?: readonly string[];
  /**
   * Where a request names the models that run: in the body, in the path, or somewhere else, such as in an object that the
   * vendor keeps. `none` runs no model. By default, stateless endpoints have it in the body, or for Gemini in the path,
   * and requests that change stored objects have it elsewhere.
   */
  readonly model?: ModelPlace;
}

/** Where a request names the models that run. */
export type ModelPlace = 'body' | 'path' | 'none' | 'elsewhere';

/**
 * A path below the version, and the methods that the vendor documents for it. `{id}` stands for one stored object,
 * `{model}` for a model, and `:verb` for Gemini's custom methods.
 */
type Row =
  | readonly [path: string, ...methods: PassedMethod[]]
  | readonly [path: string, ...methods: PassedMethod[], fields: EndpointFields];

/** What is known of a path. */
export interface KnownEndpoint {
  readonly path: string;
  readonly methods: readonly PassedMethod[];
  readonly fields: EndpointFields;
}

/** Reads a row of the table. */
export function readRow([path, ...rest]: Row): KnownEndpoint {
  const cells: readonly (PassedMethod | EndpointFields)[] = rest;
  const last = cells.at(-1);
  return {
    path,
    methods: cells.filter((cell) => typeof cell === 'string'),
    fields: typeof last === 'object' ? last : {},
  };
}

/** The endpoints of a vendor. */
export interface Endpoints {
  /** Nothing is read or kept beyond the request. */
  readonly stateless: readonly Row[];
  /** Objects that the provider keeps under the operator's key. A POST without an `{id}` only creates one. */
  readonly stored: readonly Row[];
  /** Fields that have JSON of the client or of a tool, which the vendor does not search for ids, or only repeats. */
  readonly opaque: readonly string[];
  /** Objects of these types are results that the vendor wrote: it does not look up the ids in them again. */
  readonly results: readonly string[];
  /** Fields whose id is that of the new object, in the response to a POST that creates one. */
  readonly made: readonly string[];
}

const FILES = ['file_id', 'file_ids'] as const;

/** Requests with tools of OpenAI: file search, code interpreter, shell. */
const TOOLS = [...FILES, 'vector_store_ids', 'container', 'container_id', 'skill_id:skill_', 'tunnel_id'] as const;

/** What a request of OpenAI Responses continues. */
const CONTEXT = ['previous_response_id', 'conversation', 'conversation.id'] as const;

/** `source` has a file by its id: `{ type: 'file_id', id }`. */
const EVAL = [...TOOLS, 'source.id', 'response_id', 'previous_response_id'] as const;

const VIDEO = [...FILES, 'video.id', 'characters.id'] as const;

const AGENT = [
  ...TOOLS,
  'agent',
  'agent.id',
  'agent_id',
  'environment_id',
  'environment.id',
  'environment_template_id',
  'session_id',
  'template_id',
  'credential_id',
  'vault_ids',
] as const;

const BATCH = ['id', 'output_file_id', 'error_file_id'] as const;

/**
 * Not here, and so only passed with `passthrough: all`: administration (organizations, projects, webhooks), credentials
 * (vaults, tunnels), and endpoints that hand out credentials for the vendor itself (realtime, live, chatkit,
 * auth_tokens).
 */
const OPENAI: Endpoints = {
  stateless: [
    ['audio/speech', 'POST', { names: ['voice.id'] }],
    ['audio/transcriptions', 'POST'],
    ['audio/translations', 'POST'],
    ['images/edits', 'POST', { names: FILES }],
    ['images/generations', 'POST'],
    ['images/variations', 'POST', { names: FILES }],
    ['completions', 'POST'],
    ['content_provenance_checks', 'POST'],
    ['decisions', 'POST'],
    ['fine_tuning/alpha/graders/run', 'POST', { model: 'elsewhere', names: FILES }],
    ['fine_tuning/alpha/graders/validate', 'POST', { model: 'elsewhere', names: FILES }],
    ['moderations', 'POST'],
    ['responses/compact', 'POST', { names: [...TOOLS, ...CONTEXT] }],
    // Compatible servers: Mistral, xAI, vLLM, llama.cpp.
    ['chat/classifications', 'POST'],
    ['chat/moderations', 'POST'],
    ['classifications', 'POST'],
    ['classify', 'POST'],
    ['detokenize', 'POST'],
    ['fim/completions', 'POST'],
    ['infill', 'POST'],
    ['ocr', 'POST', { names: FILES }],
    ['pooling', 'POST'],
    ['score', 'POST'],
    ['tokenize', 'POST'],
    ['tokenize-text', 'POST'],
  ],
  stored: [
    ['agents', 'GET', 'POST', { names: AGENT }],
    ['agents/{id}', 'GET', 'POST', 'DELETE', { names: AGENT }],
    ['agents/automations', 'GET', 'POST', { names: AGENT }],
    ['agents/automations/{id}', 'GET', 'POST', 'DELETE', { names: AGENT }],
    ['agents/automations/{id}/invocations', 'GET', 'POST', { names: AGENT, makes: ['session_id'] }],
    ['agents/automations/{id}/invocations/{id}', 'GET'],
    ['agents/automations/{id}/pause', 'POST'],
    ['agents/automations/{id}/resume', 'POST'],
    ['agents/environments', 'GET', 'POST', { names: AGENT }],
    ['agents/environments/{id}', 'GET'],
    ['agents/environments/{id}/files', 'GET', 'POST', { names: AGENT }],
    ['agents/environments/templates', 'GET', 'POST', { names: AGENT }],
    ['agents/environments/templates/{id}', 'GET', 'POST', 'DELETE', { names: AGENT }],
    ['agents/sessions', 'GET', 'POST', { names: AGENT }],
    ['agents/sessions/{id}', 'GET', 'POST', 'DELETE', { names: AGENT }],
    ['agents/sessions/{id}/artifacts', 'GET'],
    ['agents/sessions/{id}/artifacts/{id}', 'GET', 'DELETE'],
    ['agents/sessions/{id}/artifacts/{id}/content', 'GET'],
    ['agents/sessions/{id}/events', 'GET', 'POST', { names: AGENT }],
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
    ['assistants', 'GET', 'POST', { model: 'body', names: TOOLS }],
    ['assistants/{id}', 'GET', 'POST', 'DELETE', { model: 'body', names: TOOLS }],
    ['audio/voice_consents', 'GET', 'POST', { model: 'none' }],
    ['audio/voice_consents/{id}', 'GET', 'POST', 'DELETE', { model: 'none' }],
    ['audio/voices', 'POST', { model: 'none', names: ['consent'] }],
    ['audio/voices/{id}', 'DELETE'],
    ['batches', 'GET', 'POST', { names: ['input_file_id'], makes: BATCH }],
    ['batches/{id}', 'GET', { makes: BATCH }],
    ['batches/{id}/cancel', 'POST', { model: 'none', makes: BATCH }],
    ['chat/completions/{id}', 'GET', 'POST', 'DELETE', { model: 'none' }],
    ['chat/completions/{id}/messages', 'GET'],
    ['containers', 'GET', 'POST', { model: 'none', names: TOOLS }],
    ['containers/{id}', 'GET', 'DELETE'],
    ['containers/{id}/files', 'GET', 'POST', { model: 'none', names: FILES }],
    ['containers/{id}/files/{id}', 'GET', 'DELETE'],
    ['containers/{id}/files/{id}/content', 'GET'],
    ['conversations', 'POST', { model: 'none', names: TOOLS }],
    ['conversations/{id}', 'GET', 'POST', 'DELETE', { model: 'none' }],
    ['conversations/{id}/items', 'GET', 'POST', { model: 'none', names: TOOLS }],
    ['conversations/{id}/items/{id}', 'GET', 'DELETE'],
    ['evals', 'GET', 'POST', { names: EVAL }],
    ['evals/{id}', 'GET', 'POST', 'DELETE'],
    ['evals/{id}/runs', 'GET', 'POST', { names: EVAL }],
    ['evals/{id}/runs/{id}', 'GET', 'POST', 'DELETE'],
    ['evals/{id}/runs/{id}/cancel', 'POST', { model: 'none' }],
    ['evals/{id}/runs/{id}/output_items', 'GET'],
    ['evals/{id}/runs/{id}/output_items/{id}', 'GET'],
    ['files', 'GET', 'POST', { model: 'none' }],
    ['files/{id}', 'GET', 'DELETE'],
    ['files/{id}/content', 'GET'],
    ['fine_tuning/jobs', 'GET', 'POST', { names: ['training_file', 'validation_file'], makes: ['id', 'result_files'] }],
    ['fine_tuning/jobs/{id}', 'GET', { makes: ['result_files'] }],
    ['fine_tuning/jobs/{id}/cancel', 'POST', { model: 'none', makes: ['result_files'] }],
    ['fine_tuning/jobs/{id}/checkpoints', 'GET'],
    ['fine_tuning/jobs/{id}/events', 'GET'],
    ['fine_tuning/jobs/{id}/pause', 'POST', { model: 'none' }],
    ['fine_tuning/jobs/{id}/resume', 'POST'],
    ['responses/{id}', 'GET', 'DELETE'],
    ['responses/{id}/cancel', 'POST', { model: 'none' }],
    ['responses/{id}/input_items', 'GET'],
    ['skills', 'GET', 'POST', { model: 'none' }],
    ['skills/{id}', 'GET', 'POST', 'DELETE', { model: 'none' }],
    ['skills/{id}/content', 'GET'],
    ['skills/{id}/versions', 'GET', 'POST', { model: 'none' }],
    ['skills/{id}/versions/{id}', 'GET', 'DELETE'],
    ['skills/{id}/versions/{id}/content', 'GET'],
    ['threads', 'POST', { model: 'none', names: TOOLS }],
    ['threads/runs', 'POST', { model: 'body', names: [...TOOLS, 'assistant_id'], makes: ['id', 'thread_id'] }],
    ['threads/{id}', 'GET', 'POST', 'DELETE', { model: 'none', names: TOOLS }],
    ['threads/{id}/messages', 'GET', 'POST', { model: 'none', names: FILES }],
    ['threads/{id}/messages/{id}', 'GET', 'POST', 'DELETE', { model: 'none' }],
    ['threads/{id}/runs', 'GET', 'POST', { model: 'body', names: [...TOOLS, 'assistant_id'] }],
    ['threads/{id}/runs/{id}', 'GET', 'POST', { model: 'none' }],
    ['threads/{id}/runs/{id}/cancel', 'POST', { model: 'none' }],
    ['threads/{id}/runs/{id}/steps', 'GET'],
    ['threads/{id}/runs/{id}/steps/{id}', 'GET'],
    ['threads/{id}/runs/{id}/submit_tool_outputs', 'POST', { model: 'none' }],
    ['uploads', 'POST', { model: 'none' }],
    ['uploads/{id}/cancel', 'POST', { model: 'none' }],
    ['uploads/{id}/complete', 'POST', { model: 'none', makes: ['file.id'] }],
    ['uploads/{id}/parts', 'POST', { model: 'none' }],
    ['vector_stores', 'GET', 'POST', { model: 'none', names: FILES }],
    ['vector_stores/{id}', 'GET', 'POST', 'DELETE', { model: 'none' }],
    ['vector_stores/{id}/file_batches', 'POST', { model: 'none', names: FILES }],
    ['vector_stores/{id}/file_batches/{id}', 'GET'],
    ['vector_stores/{id}/file_batches/{id}/cancel', 'POST', { model: 'none' }],
    ['vector_stores/{id}/file_batches/{id}/files', 'GET'],
    ['vector_stores/{id}/files', 'GET', 'POST', { model: 'none', names: FILES }],
    ['vector_stores/{id}/files/{id}', 'GET', 'POST', 'DELETE', { model: 'none' }],
    ['vector_stores/{id}/files/{id}/content', 'GET'],
    ['vector_stores/{id}/search', 'POST', { model: 'none' }],
    ['videos', 'GET', 'POST', { model: 'body', names: VIDEO }],
    ['videos/characters', 'POST', { model: 'none', names: VIDEO }],
    ['videos/characters/{id}', 'GET'],
    ['videos/edits', 'POST', { names: VIDEO }],
    ['videos/extensions', 'POST', { names: VIDEO }],
    ['videos/{id}', 'GET', 'DELETE'],
    ['videos/{id}/content', 'GET'],
    ['videos/{id}/remix', 'POST', { names: VIDEO, makes: ['id'] }],
  ],
  opaque: [
    'metadata',
    'parameters',
    'schema',
    'arguments',
    'annotations',
    'results',
    'logprobs',
    'attributes',
    'item',
    'item_schema',
  ],
  results: [],
  made: ['id'],
};

const MESSAGE = ['file_id', 'container', 'container.id', 'skill_id:skill_'] as const;

/** Agents, their sessions and deployments, and what they work on. */
const MANAGED = [
  ...FILES,
  'skill_id:skill_',
  'agent',
  'agent.id',
  'agents',
  'agents.id',
  'predefined_agents',
  'predefined_agents.id',
  'environment_id',
  'memory_store_id',
  'session_ids',
  'vault_ids',
] as const;

const DREAM = ['id', 'outputs.memory_store_id'] as const;

const ANTHROPIC: Endpoints = {
  stateless: [['complete', 'POST']],
  stored: [
    ['agents', 'GET', 'POST', { names: MANAGED }],
    ['agents/{id}', 'GET', 'POST', { names: MANAGED }],
    ['agents/{id}/archive', 'POST'],
    ['agents/{id}/versions', 'GET'],
    ['deployment_runs', 'GET'],
    ['deployment_runs/{id}', 'GET', { makes: ['session_id'] }],
    ['deployments', 'GET', 'POST', { names: MANAGED }],
    ['deployments/{id}', 'GET', 'POST', { names: MANAGED }],
    ['deployments/{id}/archive', 'POST'],
    ['deployments/{id}/pause', 'POST'],
    ['deployments/{id}/run', 'POST', { names: MANAGED, makes: ['id', 'session_id'] }],
    ['deployments/{id}/unpause', 'POST'],
    ['dreams', 'GET', 'POST', { names: MANAGED, makes: DREAM }],
    ['dreams/{id}', 'GET', { makes: DREAM }],
    ['dreams/{id}/archive', 'POST'],
    ['dreams/{id}/cancel', 'POST'],
    ['environments', 'GET', 'POST', { model: 'none' }],
    ['environments/{id}', 'GET', 'POST', 'DELETE', { model: 'none' }],
    ['environments/{id}/archive', 'POST', { model: 'none' }],
    ['environments/{id}/work', 'GET'],
    ['environments/{id}/work/{id}', 'GET', 'POST'],
    ['environments/{id}/work/{id}/ack', 'POST'],
    ['environments/{id}/work/{id}/heartbeat', 'POST'],
    ['environments/{id}/work/{id}/stop', 'POST'],
    ['files', 'GET', 'POST', { model: 'none' }],
    ['files/{id}', 'GET', 'DELETE'],
    ['files/{id}/content', 'GET'],
    ['memory_stores', 'GET', 'POST', { model: 'none' }],
    ['memory_stores/{id}', 'GET', 'POST', 'DELETE', { model: 'none' }],
    ['memory_stores/{id}/archive', 'POST', { model: 'none' }],
    ['memory_stores/{id}/memories', 'GET', 'POST', { model: 'none' }],
    ['memory_stores/{id}/memories/{id}', 'GET', 'POST', 'DELETE', { model: 'none' }],
    ['memory_stores/{id}/memory_versions', 'GET'],
    ['memory_stores/{id}/memory_versions/{id}', 'GET'],
    ['memory_stores/{id}/memory_versions/{id}/redact', 'POST', { model: 'none' }],
    ['messages/batches', 'GET', 'POST', { model: 'body', names: MESSAGE }],
    ['messages/batches/{id}', 'GET', 'DELETE'],
    ['messages/batches/{id}/cancel', 'POST', { model: 'none' }],
    ['messages/batches/{id}/results', 'GET'],
    ['sessions', 'GET', 'POST', { names: MANAGED }],
    ['sessions/{id}', 'GET', 'POST', 'DELETE', { names: MANAGED }],
    ['sessions/{id}/archive', 'POST'],
    ['sessions/{id}/events', 'GET', 'POST', { names: MANAGED }],
    ['sessions/{id}/events/stream', 'GET'],
    ['sessions/{id}/resources', 'GET', 'POST', { names: MANAGED }],
    ['sessions/{id}/resources/{id}', 'GET', 'POST', 'DELETE', { names: MANAGED }],
    ['sessions/{id}/threads', 'GET'],
    ['sessions/{id}/threads/{id}', 'GET'],
    ['sessions/{id}/threads/{id}/archive', 'POST'],
    ['sessions/{id}/threads/{id}/events', 'GET'],
    ['sessions/{id}/threads/{id}/stream', 'GET'],
    ['skills', 'GET', 'POST', { model: 'none' }],
    ['skills/{id}', 'GET', 'DELETE'],
    ['skills/{id}/versions', 'GET', 'POST', { model: 'none' }],
    ['skills/{id}/versions/{id}', 'GET', 'DELETE'],
    ['skills/{id}/versions/{id}/content', 'GET'],
  ],
  opaque: ['metadata', 'input', 'input_schema', 'schema', 'citations'],
  results: ['code_execution_output', 'bash_code_execution_output'],
  made: ['id'],
};

/** Names of both spellings are found: `fileUri` and `file_uri`. */
const GENERATE = ['fileUri', 'fileSearchStoreNames', 'cachedContent'] as const;

const INTERACTION = [
  ...GENERATE,
  'uri',
  'previousInteractionId',
  '.environment',
  'environmentId',
  'baseEnvironment',
  'fromEnvironment',
  'agent:agents/',
  'baseAgent:agents/',
] as const;

const GEMINI_BATCH = [
  'name',
  'response.responsesFile',
  'metadata.output.responsesFile',
  'output.responsesFile',
  'dest.fileName',
] as const;

/** Long-running operations: videos are files. */
const OPERATION = [
  'response.generateVideoResponse.generatedSamples.video.uri',
  'response.generatedVideos.video.uri',
  'response.generatedSamples.video.uri',
] as const;

const GEMINI: Endpoints = {
  stateless: [
    ['models/{model}:computeTokens', 'POST', { names: GENERATE }],
    ['models/{model}:predict', 'POST', { names: GENERATE }],
  ],
  stored: [
    ['agents', 'GET', 'POST', { names: INTERACTION }],
    ['agents/{id}', 'GET', 'DELETE'],
    ['batches', 'GET'],
    ['batches/{id}', 'GET', 'DELETE', { makes: GEMINI_BATCH }],
    ['batches/{id}:cancel', 'POST', { model: 'none' }],
    ['cachedContents', 'GET', 'POST', { model: 'body', names: GENERATE }],
    ['cachedContents/{id}', 'GET', 'PATCH', 'DELETE', { model: 'none' }],
    ['environments', 'GET', 'POST', { model: 'none', names: INTERACTION }],
    ['environments/{id}', 'GET', 'DELETE'],
    ['environments/{id}/files/{id}', 'GET', 'PUT', { model: 'none' }],
    ['fileSearchStores', 'GET', 'POST', { model: 'none' }],
    ['fileSearchStores/{id}', 'GET', 'DELETE'],
    ['fileSearchStores/{id}/documents', 'GET'],
    ['fileSearchStores/{id}/documents/{id}', 'GET', 'DELETE'],
    ['fileSearchStores/{id}/operations/{id}', 'GET'],
    ['fileSearchStores/{id}/upload/operations/{id}', 'GET'],
    ['fileSearchStores/{id}:importFile', 'POST', { model: 'none', names: ['fileName'] }],
    ['fileSearchStores/{id}:uploadToFileSearchStore', 'POST', { model: 'none' }],
    ['files', 'GET', 'POST', { model: 'none' }],
    ['files:register', 'POST', { model: 'none', makes: ['files.name', 'files.uri'] }],
    ['files/{id}', 'GET', 'DELETE'],
    ['files/{id}:download', 'GET'],
    [
      'interactions',
      'POST',
      { model: 'body', names: INTERACTION, makes: ['id', 'interaction.id', 'environment_id', 'interaction.environment_id'] },
    ],
    ['interactions/{id}', 'GET', 'DELETE', { makes: ['environment_id'] }],
    ['interactions/{id}/cancel', 'POST', { model: 'none' }],
    ['models/{model}:asyncBatchEmbedContent', 'POST', { names: [...GENERATE, 'fileName'], makes: GEMINI_BATCH }],
    ['models/{model}:batchGenerateContent', 'POST', { names: [...GENERATE, 'fileName'], makes: GEMINI_BATCH }],
    ['models/{model}:predictLongRunning', 'POST', { model: 'path', names: GENERATE }],
    ['models/{model}/operations/{id}', 'GET', { makes: OPERATION }],
    ['operations', 'GET'],
    ['operations/{id}', 'GET', 'DELETE', { makes: OPERATION }],
    ['operations/{id}:cancel', 'POST', { model: 'none' }],
    ['triggers', 'GET', 'POST', { names: INTERACTION }],
    ['triggers/{id}', 'GET', 'PATCH', 'DELETE', { names: INTERACTION }],
    ['triggers/{id}/executions', 'GET', 'POST', { names: INTERACTION, makes: ['interaction_id'] }],
    ['tunedModels', 'GET', 'POST', { names: ['tunedModel', 'baseModel:tunedModels/'], makes: ['name', 'metadata.tunedModel'] }],
    ['tunedModels/{id}', 'GET', 'PATCH', 'DELETE'],
    ['tunedModels/{id}/operations/{id}', 'GET'],
    ['tunedModels/{id}:cancel', 'POST', { model: 'none' }],
    ['tunedModels/{id}:transferOwnership', 'POST', { model: 'none' }],
    ['voices', 'GET', 'POST', { model: 'none' }],
    ['voices/{id}', 'GET', 'DELETE'],
  ],
  opaque: [
    'args',
    'arguments',
    'response',
    'result',
    'metadata',
    'parameters',
    'parametersJsonSchema',
    'responseSchema',
    'responseJsonSchema',
    'responseParametersJsonSchema',
    'schema',
  ],
  results: [],
  made: ['name', 'file.name', 'id'],
};

/** Endpoints that the vendors document and that the gateway passes on; a test compares them with the official SDKs. */
export const KNOWN_ENDPOINTS = {
  'openai-chat': OPENAI,
  'openai-responses': OPENAI,
  'anthropic-messages': ANTHROPIC,
  gemini: GEMINI,
} as const satisfies Readonly<Record<ProtocolId, Endpoints>>;

/** The fields of requests that are converted, by the protocol of the client. */
export const CONVERTED_FIELDS: Readonly<Record<ProtocolId, Partial<Record<InterfaceType, EndpointFields>>>> = {
  'openai-chat': { CHAT: { names: [...FILES, 'voice.id'] } },
  'openai-responses': {
    // What a response continues, and references to its items, are looked up by the state of the request.
    CHAT: {
      names: [...TOOLS, 'comparison_response_id'],
      makes: ['output.container_id', 'output.environment.container_id', 'output.content.annotations.container_id'],
    },
    COUNT_TOKENS: { names: [...TOOLS, ...CONTEXT] },
  },
  'anthropic-messages': {
    CHAT: {
      names: MESSAGE,
      makes: [
        'container.id',
        'message.container.id',
        'delta.container.id',
        'content.content.content.file_id',
        'content_block.content.content.file_id',
      ],
    },
    COUNT_TOKENS: { names: MESSAGE },
  },
  gemini: { CHAT: { names: GENERATE }, COUNT_TOKENS: { names: GENERATE }, EMBEDDINGS: { names: GENERATE } },
};
