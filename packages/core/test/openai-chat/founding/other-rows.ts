import type { ErrorCode } from '../../../src/canonical/notes.ts';
import type { InterfaceType } from '../../../src/canonical/request.ts';
import { codec, context, type Deviation, type Json, type Row, valueAt, wire } from './row.ts';

/** What a codec has, or the test fails at once: all parts of 7 are there. */
function part<T>(value: T | undefined): T {
  if (value === undefined) throw new Error('the codec lacks an interface of section 7');
  return value;
}

const models = part(codec.models);
const modelInfo = part(codec.modelInfo);
const embeddings = part(codec.embeddings);
const rerank = part(codec.rerank);

const row = (at: string, says: string, actual: () => unknown, wanted: unknown, deviation?: Deviation): Row => ({
  at,
  says,
  actual,
  wanted,
  deviation,
});

const MODEL = { id: 'gpt-4o', object: 'model', created: 5, owned_by: 'openai' };
const list = () => models.decode({ object: 'list', data: [MODEL] }, context());
const listed = (model: Json) => models.encode({ models: [{ id: 'gpt-4o', ...model }] }, context());
const shown = (model: Json) => modelInfo.encode({ id: 'gpt-4o', ...model }, context());

const MODELS: Row[] = [
  row('7.1', 'the list exists', () => codec.supports('MODELS'), true),
  row('7.1', 'a single model exists', () => codec.supports('MODEL_INFO'), true),
  row('7.1', 'data becomes models', () => list().models.length, 1),
  row('7.1', 'the id of a model', () => list().models[0]?.id, 'gpt-4o'),
  row('7.1', 'its name is its id', () => list().models[0]?.name, 'gpt-4o'),
  row('7.1', 'its time', () => list().models[0]?.created, 5),
  row('7.1', 'its owner', () => list().models[0]?.owned_by, 'openai'),
  row('7.1', 'the list is an object list', () => valueAt(listed({}), 'object'), 'list'),
  row('7.1', 'an entry has its id', () => valueAt(listed({}), 'data.0.id'), 'gpt-4o'),
  row('7.1', 'an entry is an object model', () => valueAt(listed({}), 'data.0.object'), 'model'),
  row('7.1', 'an entry has its time', () => valueAt(listed({ created: 5 }), 'data.0.created'), 5),
  row('7.1', 'an entry without time has 0', () => valueAt(listed({}), 'data.0.created'), 0),
  row('7.1', 'an entry has its owner', () => valueAt(listed({ owned_by: 'openai' }), 'data.0.owned_by'), 'openai'),
  row('7.1', 'an entry without owner has "unknown"', () => valueAt(listed({}), 'data.0.owned_by'), 'unknown'),
  row('7.1', 'a single model has its id', () => modelInfo.decode(MODEL, context()).id, 'gpt-4o'),
  row('7.1', 'its time, alone', () => modelInfo.decode(MODEL, context()).created, 5),
  row('7.1', 'its owner, alone', () => modelInfo.decode(MODEL, context()).owned_by, 'openai'),
  row('7.1', 'its name is its id, alone', () => modelInfo.decode(MODEL, context()).name, 'gpt-4o'),
  row('7.1', 'a single model is written as an object model', () => valueAt(shown({ created: 5, owned_by: 'openai' }), ''), MODEL),
  row('7.1', 'a single model without time and owner', () => valueAt(shown({}), ''), {
    ...MODEL,
    created: 0,
    owned_by: 'unknown',
  }),
];

const embedded = (body: Json) =>
  embeddings.request.decode(wire({ model: 'm', input: 'a', ...body }, '/v1/embeddings'), context());
const toEmbed = (request: Json) =>
  embeddings.request.encode({ model: 'm', input: ['a'], single: true, ...request }, context()).body;
const VECTORS = {
  object: 'list',
  data: [{ object: 'embedding', index: 0, embedding: [0.5] }],
  model: 'm',
  usage: { prompt_tokens: 2, total_tokens: 2 },
};
const vectors = () => embeddings.response.decode(VECTORS, context());

const EMBEDDINGS: Row[] = [
  row('7.2', 'embeddings exist', () => codec.supports('EMBEDDINGS'), true),
  row(
    '7.2',
    'they are at /v1/embeddings',
    () => embeddings.request.encode({ model: 'm', input: ['a'] }, context()).path,
    '/v1/embeddings',
  ),
  row('7.2', 'the model', () => embedded({}).model, 'm'),
  row('7.2', 'the input', () => embedded({ input: ['a', 'b'] }).input, ['a', 'b']),
  row('7.2', 'a text as input', () => embedded({}).input, 'a', {
    actual: ['a'],
    reason: 'It is always a list that remembers that it was a text (#77).',
  }),
  row('7.2', 'encoding_format', () => embedded({ encoding_format: 'base64' }).encoding_format, 'base64'),
  row('7.2', 'dimensions', () => embedded({ dimensions: 8 }).dimensions, 8),
  row('7.2', "the provider's name of the model is sent", () => valueAt(toEmbed({}), 'model'), 'upstream-model'),
  row('7.2', 'the input is sent as it came', () => valueAt(toEmbed({}), 'input'), 'a'),
  row('7.2', 'encoding_format is sent', () => valueAt(toEmbed({ encoding_format: 'base64' }), 'encoding_format'), 'base64'),
  row('7.2', 'no encoding_format: none', () => valueAt(toEmbed({}), 'encoding_format'), undefined),
  row('7.2', 'dimensions are sent', () => valueAt(toEmbed({ dimensions: 8 }), 'dimensions'), 8),
  row('7.2', 'no dimensions: none', () => valueAt(toEmbed({}), 'dimensions'), undefined),
  row('7.2', 'the vectors', () => vectors().data[0]?.embedding, [0.5]),
  row('7.2', 'the model of the response', () => vectors().model, 'm'),
  row(
    '7.2',
    'its usage',
    () => valueAt(vectors(), 'usage'),
    { prompt_tokens: 2, total_tokens: 2 },
    { actual: { input_tokens: 2 }, reason: 'One count, under the canonical name (#77).' },
  ),
  row(
    '7.2',
    'a response is written as an object list',
    () => valueAt(embeddings.response.encode(vectors(), context()), ''),
    VECTORS,
  ),
];

const QUESTION = { model: 'm', query: 'q', documents: ['a', 'b'], top_n: 1 };
const RERANK: Row[] = [
  row('7.3', 'rerank exists', () => codec.supports('RERANK'), true),
  row('7.3', 'it is at /v1/rerank', () => rerank.request.encode(QUESTION, context()).path, '/v1/rerank'),
  row('7.3', 'a request is read', () => rerank.request.decode(wire(QUESTION, '/v1/rerank'), context()), QUESTION),
  row('7.3', 'a request is written', () => rerank.request.encode(QUESTION, context()).body, {
    ...QUESTION,
    model: 'upstream-model',
  }),
  row(
    '7.3',
    'a response is read',
    () => rerank.response.decode({ results: [{ index: 1, relevance_score: 0.5 }] }, context()).results,
    [{ index: 1, relevance_score: 0.5 }],
  ),
  row(
    '7.3',
    'a response is written',
    () =>
      valueAt(
        rerank.response.encode({ results: [{ index: 1, relevance_score: 0.5 }] }, context({ rerank: QUESTION })),
        'results',
      ),
    [{ index: 1, relevance_score: 0.5 }],
  ),
];

const error = (code: ErrorCode, more: Json = {}) => codec.error.encode({ code, message: 'M', ...more }, context());
const field = (code: ErrorCode, path: string, more: Json = {}): unknown => valueAt(error(code, more).body, `error.${path}`);
const type = (code: ErrorCode, wanted: string, deviation?: Deviation): Row =>
  row('8.2', `${code} is ${wanted}`, () => field(code, 'type'), wanted, deviation);
const KNOWN = 'Every canonical code has a row; clients choose what to do by it (#79).';
const LIVE = 'The live API says invalid_request_error for 401 and 403.';

const ERRORS: Row[] = [
  row(
    '8.1',
    'the body is {error: {message, type, param, code}}',
    () => Object.keys((error('INVALID_INPUT').body as { error: Json }).error),
    ['message', 'type', 'param', 'code'],
  ),
  row('8.1', 'the message', () => field('INVALID_INPUT', 'message'), 'M'),
  row('8.1', 'no param is null', () => field('INVALID_INPUT', 'param'), null),
  row('8.2', 'the param', () => field('INVALID_INPUT', 'param', { param: 'messages' }), 'messages'),
  row('8.2', 'code is the canonical code', () => field('INVALID_INPUT', 'code'), 'INVALID_INPUT', {
    actual: 'invalid_value',
    reason: "Clients switch on OpenAI's own words (#78).",
  }),
  type('INVALID_INPUT', 'invalid_request_error'),
  type('MISSING_REQUIRED_FIELD', 'invalid_request_error'),
  type('INCOMPATIBLE_FEATURE', 'invalid_request_error'),
  type('TOOL_CALL_PARSE_ERROR', 'invalid_request_error'),
  type('JSON_PARSE_ERROR', 'invalid_request_error'),
  type('RATE_LIMIT', 'rate_limit_error'),
  type('AUTHENTICATION', 'authentication_error', { actual: 'invalid_request_error', reason: LIVE }),
  type('PERMISSION', 'server_error', { actual: 'invalid_request_error', reason: LIVE }),
  type('INTERNAL', 'server_error'),
  type('UPSTREAM_ERROR', 'server_error'),
  type('OVERLOADED', 'server_error'),
  type('TIMEOUT', 'server_error'),
  type('NOT_FOUND', 'server_error', { actual: 'invalid_request_error', reason: KNOWN }),
  type('CONTEXT_LENGTH', 'server_error', { actual: 'invalid_request_error', reason: KNOWN }),
  ...(
    [
      ['INVALID_INPUT', 400],
      ['AUTHENTICATION', 401],
      ['PERMISSION', 403],
      ['UNSUPPORTED_INTERFACE', 404],
      ['RATE_LIMIT', 429],
      ['INTERNAL', 500],
      ['OVERLOADED', 503],
    ] as const
  ).map(([code, wanted]) => row('8.3', `${wanted}: ${code}`, () => error(code).status, wanted)),
];

/** The check list repeats the sections; what it alone says is that nothing is left undecided. */
const NATIVE: Record<InterfaceType, string> = {
  CHAT: '/v1/chat/completions',
  MODELS: '/v1/models',
  MODEL_INFO: '/v1/models/m',
  EMBEDDINGS: '/v1/embeddings',
  RERANK: '/v1/rerank',
  AUDIO: '/v1/audio/speech',
  IMAGES: '/v1/images/edits',
  COUNT_TOKENS: '/v1/x',
  PASSTHROUGH: '/v1/x',
};
const INTERFACES = Object.keys(NATIVE) as InterfaceType[]; // the keys of a closed table
const target = { provider: { id: 'openai', protocol: 'openai-chat', base_url: 'https://h' }, model: 'm', stream: false } as const;
const CHECKS: Row[] = [
  ...INTERFACES.map((name) => row('9', `support of ${name} is decided`, () => typeof codec.supports(name), 'boolean')),
  ...INTERFACES.filter((name) => codec.supports(name)).map((name) =>
    row('9', `${name} has a URL`, () => codec.buildUrl(name, target, 'm', NATIVE[name]).startsWith('https://h/'), true),
  ),
];

export const OTHER_ROWS: readonly Row[] = [...MODELS, ...EMBEDDINGS, ...RERANK, ...ERRORS, ...CHECKS];
