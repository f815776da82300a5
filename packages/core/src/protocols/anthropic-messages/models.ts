import { CodecError } from '../../canonical/notes.ts';
import type {
  CanonicalCountTokensResponse,
  CanonicalModel,
  CanonicalModelList,
  CanonicalRequest,
} from '../../canonical/request.ts';
import { expectResponse, malformedResponse } from '../../codec/answers.ts';
import type { CodecContext, WireCodec, WireRequest } from '../../codec/protocol.ts';
import { textOrEmpty, toCount, unknownFields } from '../../codec/read.ts';
import { noteDropped } from '../../codec/report.ts';
import { isObject, type JsonObject } from '../../json/json.ts';
import { decodeErrorBody, formatTime, parseTime } from './outcome.ts';
import { decodeRequest } from './request-decode.ts';
import { encodeCountBody, encodeHeaders } from './request-encode.ts';
import { readExtensions, toExtensions } from './wire.ts';

/** `POST /v1/messages/count_tokens`: a request without the fields that concern the response. */
export const countTokensRequest: WireCodec<WireRequest, CanonicalRequest> = {
  decode: decodeRequest,
  encode: (request, context) => ({
    method: 'POST',
    path: '/v1/messages/count_tokens',
    headers: encodeHeaders(request, context),
    body: dropResponseFields(encodeCountBody(request, context)),
  }),
};

/** The response of `count_tokens`. */
export const countTokensResponse: WireCodec<unknown, CanonicalCountTokensResponse> = {
  decode: (wire) => {
    const count = isObject(wire) ? toCount(wire['input_tokens']) : undefined;
    if (count === undefined) throw new CodecError(decodeErrorBody(wire));
    return { input_tokens: count };
  },
  encode: ({ input_tokens }) => ({ input_tokens }),
};

/** `GET /v1/models`. */
export const models: WireCodec<unknown, CanonicalModelList> = { decode: decodeModels, encode: encodeModels };

/** `GET /v1/models/{id}`. */
export const modelInfo: WireCodec<unknown, CanonicalModel> = { decode: decodeModelInfo, encode: encodeModel };

/** Fields that `count_tokens` rejects. */
const RESPONSE_ONLY_FIELDS: ReadonlySet<string> = new Set(['container', 'inference_geo', 'fallbacks', 'diagnostics']);

const dropResponseFields = (body: JsonObject): JsonObject =>
  Object.fromEntries(Object.entries(body).filter(([name]) => !RESPONSE_ONLY_FIELDS.has(name)));

const LIST_FIELDS: ReadonlySet<string> = new Set(['data', 'has_more', 'first_id', 'last_id']);

function decodeModels(wire: unknown, context: CodecContext): CanonicalModelList {
  const body = expectBody(wire);
  const entries = body['data'];
  if (!Array.isArray(entries)) throw malformedResponse('data', 'must be a list of models');
  const found = entries.flatMap((entry, i) => {
    const model = decodeModel(entry);
    if (!model) noteDropped(context, { path: `/data/${i}`, feature: 'models.entry', message: 'a model without an id' });
    return model ?? [];
  });
  const hasMore = body['has_more'] === true;
  return {
    models: found,
    ...(typeof body['has_more'] === 'boolean' && { has_more: hasMore }),
    ...(hasMore && textOrEmpty(body['last_id']) !== '' && { next_page: textOrEmpty(body['last_id']) }),
    ...toExtensions(unknownFields(body, LIST_FIELDS)),
  };
}

function decodeModelInfo(wire: unknown): CanonicalModel {
  const model = decodeModel(expectBody(wire));
  if (!model) throw malformedResponse('id', 'must be a model name');
  return model;
}

const MODEL_FIELDS: ReadonlySet<string> = new Set(['id', 'type', 'display_name', 'max_input_tokens', 'max_tokens']);

/** Returns undefined if the entry has no id. Unknown fields are kept as extensions. */
function decodeModel(entry: unknown): CanonicalModel | undefined {
  if (!isObject(entry) || textOrEmpty(entry['id']) === '') return undefined;
  const id = textOrEmpty(entry['id']);
  const created = parseTime(textOrEmpty(entry['created_at']));
  const input = toCount(entry['max_input_tokens']);
  const output = toCount(entry['max_tokens']);
  const capabilities = decodeCapabilities(entry['capabilities']);
  return {
    id,
    name: textOrEmpty(entry['display_name']) || id,
    ...(created !== undefined && { created }),
    ...(input !== undefined && { max_input_tokens: input }),
    ...(output !== undefined && { max_output_tokens: output }),
    ...(capabilities && { capabilities }),
    ...toExtensions(unknownFields(entry, MODEL_FIELDS)),
  };
}

/** Each capability has a `supported` flag and details, which are ignored. */
function decodeCapabilities(value: unknown): Record<string, boolean> | undefined {
  if (!isObject(value)) return undefined;
  const flags = Object.entries(value).flatMap(([name, entry]): [string, boolean][] =>
    isObject(entry) && typeof entry['supported'] === 'boolean' ? [[name, entry['supported']]] : [],
  );
  return Object.fromEntries(flags);
}

const expectBody = (wire: unknown): JsonObject =>
  expectResponse(wire, ({ type, error }) => type === 'error' || Boolean(error), decodeErrorBody);

/** Pages are addressed by a model id (`after_id`), so the page token of another protocol cannot be expressed. */
function encodeModels(list: CanonicalModelList, context: CodecContext): JsonObject {
  const { models: entries, next_page: next, has_more: more } = list;
  const last = entries.at(-1)?.id;
  const isLost = next !== undefined && next !== last;
  if (isLost)
    noteDropped(context, {
      path: '/next_page',
      feature: 'models.next_page',
      message: 'pagination by model id is not supported by the target; dropped',
    });
  return {
    ...readExtensions(list),
    data: entries.map(encodeModel),
    has_more: !isLost && (more ?? next !== undefined),
    first_id: entries[0]?.id ?? null,
    last_id: last ?? null,
  };
}

/** Defaults of the fields that the official type requires; an unknown creation time becomes 1970. */
const REQUIRED: JsonObject = {
  capabilities: null,
  deprecated_at: null,
  lifecycle: 'active',
  line: null,
  retires_at: null,
};

function encodeModel(model: CanonicalModel): JsonObject {
  const { id, name, created = 0, max_input_tokens: input = null, max_output_tokens: output = null } = model;
  const { created_at: original, ...rest } = readExtensions(model);
  return {
    ...REQUIRED,
    ...rest,
    type: 'model',
    id,
    display_name: name ?? id,
    created_at: typeof original === 'string' && parseTime(original) === created ? original : formatTime(created),
    max_input_tokens: input,
    max_tokens: output,
  };
}
