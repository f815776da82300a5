/** `fetch` for SDKs: responses of servers that violate their protocol are repaired before the SDK reads them. */

import type { RepairCodec } from '../codec/protocol.ts';
import { isObject, parseJson } from '../json/json.ts';
import type { PrepareRequest } from '../repair/requests.ts';
import { RepairStream } from '../repair/stream.ts';
import { repairResponse, repairResponseToStream, repairStreamToResponse } from '../repair/whole.ts';
import { describeRule } from '../rules/diagnostics.ts';
import type { RuleId } from '../rules/index.ts';

/** The part of `fetch` that SDKs use. */
export type Fetch = (input: string | URL | Request, init?: RequestInit) => Promise<Response>;

/** Options of `createRepairFetchFor`. */
export interface RepairOptions {
  /** By default the runtime's `fetch`. */
  fetch?: Fetch | undefined;
  /** Called with every violation that is met, once for each rule and response. */
  onFinding?: ((finding: RepairFinding) => void) | undefined;
  /** Also prepares requests: what `prepareRequests` returns. */
  requests?: PrepareRequest | undefined;
  /** Whether responses of the vendors' own hosts are repaired, too. */
  officialHosts?: boolean | undefined;
  /** Also removes what only readers that validate every event fail on: unknown events of Anthropic streams; providers of the AI SDK do. */
  strict?: boolean | undefined;
  /** Longest body that is not a stream, in bytes; longer ones are passed on unread. 32 MiB when absent. */
  maxBytes?: number | undefined;
}

/** A violation of a response. */
export interface RepairFinding {
  rule: RuleId;
  /** The title of the rule, and what Sluice does about it. */
  message: string;
  url: string;
}

/**
 * Creates a `fetch` that repairs responses of these protocols, so that a bundle does not contain the others. Bytes are
 * unchanged when nothing is wrong; requests and responses that are not of these protocols are passed on as they are.
 *
 * ```ts
 * import { openaiChatRepair } from '@sluice/core/openai-chat/repair';
 * const client = new OpenAI({ baseURL, fetch: createRepairFetchFor([openaiChatRepair]) });
 * ```
 */
export function createRepairFetchFor(codecs: readonly RepairCodec[], options: RepairOptions = {}): Fetch {
  const send: Fetch = options.fetch ?? ((input, init) => globalThis.fetch(input, init));
  return async (input, init) => {
    const url = input instanceof Request ? input.url : String(input);
    const codec = options.officialHosts || !isOfficial(url) ? findCodec(codecs, url) : undefined;
    if (!codec) return send(input, init);
    const body = await readBody(input, init, codec, options);
    const prepared = isObject(body) ? options.requests?.(body, { protocol: codec.id, path: readPath(url) }) : undefined;
    const response = await (prepared === undefined ? send(input, init) : send(...withBody(input, init, prepared)));
    return repair(response, { codec, url, isStream: isStreamRequest(codec, url, body), options });
  };
}

interface RepairContext {
  codec: RepairCodec;
  url: string;
  /** Undefined when the request could not be read: then the response shows what was requested. */
  isStream: boolean | undefined;
  options: RepairOptions;
}

// ---- requests

/** The JSON of a request; undefined for any other, and when nothing depends on it. */
async function readBody(
  input: string | URL | Request,
  init: RequestInit | undefined,
  { streamPathEnd }: RepairCodec,
  { requests }: RepairOptions,
): Promise<unknown> {
  if (streamPathEnd && !requests) return undefined;
  const given = init?.body ?? undefined;
  const isOwn = given === undefined && input instanceof Request;
  const text = isOwn ? await readRequest(input) : await readText(given);
  return text === undefined ? undefined : parseJson(text);
}

/** The body of a `Request`, which is still to be sent. One that is not text would only be held in memory. */
async function readRequest(request: Request): Promise<string | undefined> {
  const type = request.headers.get('content-type') ?? '';
  if (!request.body || request.bodyUsed || !/^$|\bjson\b|^text\/plain\b/i.test(type)) return undefined;
  return request.clone().text();
}

/** A body as text; undefined for streams, which can be read only once, and for forms. */
async function readText(body: RequestInit['body']): Promise<string | undefined> {
  if (typeof body === 'string') return body;
  if (body instanceof ArrayBuffer || ArrayBuffer.isView(body)) return decoder.decode(body);
  return body instanceof Blob ? body.text() : undefined;
}

/** The same request with another body, whose length the runtime declares. */
function withBody(input: string | URL | Request, init: RequestInit | undefined, body: string): Parameters<Fetch> {
  const isOwn = input instanceof Request;
  const headers = new Headers(init?.headers ?? (isOwn ? input.headers : undefined));
  const isDeclared = headers.has('content-length');
  headers.delete('content-length');
  const changed = { ...init, body, ...(isDeclared && { headers }) };
  return isOwn ? [new Request(input, changed)] : [input, changed];
}

/** Whether a stream was requested: by the body, or by the path. */
function isStreamRequest({ streamPathEnd }: RepairCodec, url: string, body: unknown): boolean | undefined {
  if (streamPathEnd) return streamPathEnd.test(readPath(url));
  return isObject(body) ? body['stream'] === true : undefined;
}

// ---- responses

async function repair(response: Response, context: RepairContext): Promise<Response> {
  if (!response.ok || !response.body) return response;
  const type = response.headers.get('content-type') ?? '';
  const isEvents = /\btext\/event-stream\b/i.test(type);
  const isJson = /\bjson\b/i.test(type);
  if (context.isStream === false) return isEvents || isJson ? repairWhole(response, context) : response;
  if (isEvents || (context.isStream && type === '')) return repairEvents(response, response.body, context);
  if (!isJson) return response;
  return context.isStream ? repairDocument(response, context) : repairWhole(response, context);
}

/** A stream, as it is read. */
function repairEvents(response: Response, body: ReadableStream<Uint8Array>, context: RepairContext): Response {
  const { codec, options } = context;
  const stage = new RepairStream({ codec, strict: options.strict, onFinding: createReporter(context) });
  const reader = body.getReader();
  let failure: { error: unknown } | undefined;
  /** The next bytes; after a failure, first those that the stage still holds. */
  const read = async (): Promise<{ done: boolean; whole: Uint8Array | undefined }> => {
    if (failure) throw failure.error;
    const next = await readNext(reader).catch((error: unknown) => {
      failure = { error };
      return undefined;
    });
    if (!next) return { done: false, whole: joinAll([...stage.release()]) };
    const { done, value } = next;
    // One chunk for one chunk: a reader spends more on every chunk than it costs to join them.
    return { done, whole: joinAll([...(done ? stage.end() : stage.push(value))]) };
  };
  const repaired = new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        for (;;) {
          const { done, whole } = await read();
          if (whole) controller.enqueue(whole);
          if (done) controller.close();
          if (done || whole) return;
        }
      },
      cancel: (reason) => reader.cancel(reason),
    },
    { highWaterMark: 0 },
  );
  return replaceBody(response, repaired);
}

/** A whole response where one was requested. */
async function repairWhole(response: Response, context: RepairContext): Promise<Response> {
  const bytes = await readBytes(response, context.options.maxBytes);
  if (!(bytes instanceof Uint8Array)) return bytes;
  const { codec } = context;
  const onFinding = createReporter(context);
  const body = parseJson(decoder.decode(bytes));
  const repaired =
    body === undefined ? repairStreamToResponse(bytes, { codec }) : repairResponse(bytes, body, { codec, onFinding });
  if (!repaired) return replaceBody(response, bytes);
  const { status } = repaired;
  return replaceBody(response, JSON.stringify(repaired.body), { type: 'application/json', ...(status !== 200 && { status }) });
}

/** A whole response where a stream was requested. */
async function repairDocument(response: Response, context: RepairContext): Promise<Response> {
  const bytes = await readBytes(response, context.options.maxBytes);
  if (!(bytes instanceof Uint8Array)) return bytes;
  const text = decoder.decode(bytes);
  const body = parseJson(text);
  const repaired = body === undefined || isArrayOfGemini(body, context) ? undefined : repairResponseToStream(body, context, text);
  if (!repaired) return replaceBody(response, bytes);
  createReporter(context)('sse/json-body-instead-of-stream');
  const { status } = repaired;
  return repaired.body instanceof Uint8Array
    ? replaceBody(response, repaired.body.slice(), { type: 'text/event-stream' })
    : replaceBody(response, JSON.stringify(repaired.body), { type: 'application/json', status });
}

/** Google streams a JSON array to clients that do not request SSE. */
const isArrayOfGemini = (body: unknown, { codec }: RepairContext): boolean => codec.id === 'gemini' && Array.isArray(body);

const decoder = /* @__PURE__ */ new TextDecoder();

function createReporter({ codec, options: { onFinding }, url }: RepairContext): (rule: RuleId) => void {
  if (!onFinding) return () => undefined;
  return (rule) => onFinding({ rule, message: describeRule(rule, codec.rules), url });
}

/** The whole body; the response itself, unread as far as possible, when it is too long. */
async function readBytes(response: Response, maxBytes = MAX_BYTES): Promise<Uint8Array<ArrayBuffer> | Response> {
  const declared = Number(response.headers.get('content-length') ?? 0);
  if (declared > maxBytes || !response.body) return response;
  const reader = response.body.getReader();
  const chunks: Uint8Array[] = [];
  let length = 0;
  for (let read = await readNext(reader); !read.done; read = await readNext(reader)) {
    chunks.push(read.value);
    length += read.value.length;
    if (length > maxBytes) return replaceBody(response, resume(chunks, reader));
  }
  return join(chunks, length);
}

const MAX_BYTES = 32 * 1024 * 1024;

type Reader = ReadableStreamDefaultReader<Uint8Array>;

/** Reads a chunk. A connection that ended is "terminated" in Node and "network error" in browsers, which SDKs show as they are. */
async function readNext(reader: Reader): Promise<Awaited<ReturnType<Reader['read']>>> {
  try {
    return await reader.read();
  } catch (error) {
    throw isCut(error)
      ? new TypeError('the server closed the connection in the middle of the response', { cause: error })
      : error;
  }
}

/** Not a timeout, an abort or bytes that cannot be decompressed. */
function isCut(error: unknown): boolean {
  if (!(error instanceof TypeError)) return false;
  const cause = isObject(error.cause) ? error.cause['code'] : error.cause;
  return cause === undefined || CUT_CODES.has(cause);
}

const CUT_CODES: ReadonlySet<unknown> = /* @__PURE__ */ new Set([
  'UND_ERR_SOCKET',
  'UND_ERR_RES_CONTENT_LENGTH_MISMATCH',
  'ECONNRESET',
  'EPIPE',
]);

/** A stream of what was read, and then of the rest. */
function resume(chunks: Uint8Array[], reader: Reader): ReadableStream<Uint8Array> {
  return new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        const read = chunks.shift();
        if (read) {
          controller.enqueue(read);
          return;
        }
        const { done, value } = await readNext(reader);
        if (done) controller.close();
        else controller.enqueue(value);
      },
      cancel: (reason) => reader.cancel(reason),
    },
    { highWaterMark: 0 },
  );
}

function joinAll(chunks: readonly Uint8Array[]): Uint8Array | undefined {
  const [first, second] = chunks;
  if (!second) return first;
  return join(
    chunks,
    chunks.reduce((length, chunk) => length + chunk.length, 0),
  );
}

function join(chunks: readonly Uint8Array[], length: number): Uint8Array<ArrayBuffer> {
  const whole = new Uint8Array(length);
  let at = 0;
  for (const chunk of chunks) {
    whole.set(chunk, at);
    at += chunk.length;
  }
  return whole;
}

interface Replacement {
  type?: string;
  status?: number;
}

/** The same response with another body. `url` and the like cannot be given to a constructor, so they are defined. */
function replaceBody(original: Response, body: BodyInit, { type, status }: Replacement = {}): Response {
  const headers = new Headers(original.headers);
  // The body is decoded, and only one that stayed as it came has the same length.
  const isSame = body instanceof Uint8Array && type === undefined && !headers.has('content-encoding');
  if (!isSame) headers.delete('content-length');
  headers.delete('content-encoding');
  if (type !== undefined) headers.set('content-type', type);
  const { statusText } = original;
  const response = new Response(body, {
    status: status ?? original.status,
    statusText: status === undefined ? statusText : '',
    headers,
  });
  return withOrigin(response, original);
}

function withOrigin(response: Response, { url, redirected, type }: Response): Response {
  const fields = { url, redirected, type };
  for (const [name, value] of Object.entries(fields)) Object.defineProperty(response, name, { value, configurable: true });
  const clone = response.clone.bind(response);
  Object.defineProperty(response, 'clone', { value: () => withOrigin(clone(), response), configurable: true });
  return response;
}

// ---- protocols

/** Vendors whose responses are the standard. */
const OFFICIAL_HOSTS = /^(api\.openai\.com|api\.anthropic\.com|generativelanguage\.googleapis\.com|[\w-]+\.openai\.azure\.com)$/;

function isOfficial(url: string): boolean {
  return URL.canParse(url) && OFFICIAL_HOSTS.test(new URL(url).hostname);
}

/** The protocol of a URL, by the end of its path. */
function findCodec(codecs: readonly RepairCodec[], url: string): RepairCodec | undefined {
  const path = readPath(url);
  return codecs.find(({ pathEnd }) => pathEnd.test(path));
}

const readPath = (url: string): string => url.replace(/[?#].*$/s, '');
