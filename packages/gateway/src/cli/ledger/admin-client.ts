/** Requests to the admin API of a running gateway. */

import { request as httpRequest, type IncomingMessage } from 'node:http';
import { request as httpsRequest } from 'node:https';

/** The gateway did not serve the request. */
export class ApiError extends Error {
  /** HTTP status; 0 without a response. */
  readonly status: number;
  /** What the gateway gave as the reason; null when it gave none. */
  readonly detail: string | null;

  constructor(status: number, message: string, detail: string | null = null) {
    super(message);
    this.status = status;
    this.detail = detail;
  }
}

const TIMEOUT_MS = 30_000;

/** A page of 1,000 rows has about 8 MB at most. */
const MAX_BODY_BYTES = 64 << 20;

/** Responses of a gateway that has no admin API, or does not permit its use. */
const REFUSALS: ReadonlySet<number> = new Set([401, 403, 404, 405, 501]);

/** The admin API of one gateway. */
export class AdminClient {
  /** For messages. */
  readonly name: string;
  /** Of the gateway. */
  readonly url: string;
  readonly #base: string;
  readonly #headers: Readonly<Record<string, string>>;

  constructor(url: string, key: string | undefined) {
    this.name = `the gateway at ${url}`;
    this.url = url;
    this.#base = `${url}/admin/v1`;
    this.#headers = key === undefined ? {} : { authorization: `Bearer ${key}` };
  }

  /** Why the admin API cannot be used; undefined when it can. */
  async findRefusal(): Promise<ApiError | undefined> {
    try {
      await this.get('exchanges', { limit: '1' });
      return undefined;
    } catch (error) {
      if (error instanceof ApiError && REFUSALS.has(error.status)) return error;
      throw error;
    }
  }

  /** The JSON of a response. */
  async get(path: string, parameters: QueryParameters = {}): Promise<unknown> {
    return readJson(await this.fetch(path, parameters, { signal: AbortSignal.timeout(TIMEOUT_MS) }));
  }

  /** The JSON of the response to a change. */
  async change(
    method: 'POST' | 'PATCH' | 'DELETE',
    path: string,
    { body, parameters = {} }: { body?: object; parameters?: QueryParameters } = {},
  ): Promise<unknown> {
    const text = body === undefined ? undefined : JSON.stringify(body);
    const signal = AbortSignal.timeout(TIMEOUT_MS);
    return readJson(await this.fetch(path, parameters, { method, signal, ...(text !== undefined && { body: text }) }));
  }

  /** A response with status 200; throws an `ApiError` for every other one. */
  async fetch(path: string, parameters: QueryParameters, init: RequestInit): Promise<IncomingMessage> {
    const query = new URLSearchParams(Object.entries(parameters).filter((entry): entry is [string, string] => Boolean(entry[1])));
    const url = new URL(`${this.#base}/${path}${query.size > 0 ? `?${query}` : ''}`);
    const response = await send(url, { ...init, headers: { ...this.#headers, ...init.headers } });
    const status = response.statusCode ?? 0;
    if (status === 200) return response;
    const detail = readDetail(await readBody(response));
    throw new ApiError(status, describeStatus(status, detail), detail);
  }
}

interface RequestInit {
  readonly method?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string;
  readonly signal: AbortSignal;
}

/**
 * Sends a request. Not `fetch`: node's adds the header `sec-fetch-mode`, by which the admin API knows browsers. Redirects are
 * not followed, because they would send the key elsewhere.
 */
const send = (url: URL, { body, ...init }: RequestInit): Promise<IncomingMessage> =>
  new Promise((resolve, reject) => {
    const request = url.protocol === 'https:' ? httpsRequest : httpRequest;
    const type =
      body === undefined ? {} : { 'content-type': 'application/json', 'content-length': String(Buffer.byteLength(body)) };
    request(url, { ...init, headers: { accept: '*/*', ...type, ...init.headers } }, resolve)
      .on('error', (error) => reject(new ApiError(0, `the gateway does not respond: ${error.message}`)))
      .end(body);
  });

/** Parameters of a query; those without a value are omitted. */
type QueryParameters = Readonly<Record<string, string | null | undefined>>;

async function readJson(response: IncomingMessage): Promise<unknown> {
  const body = parseJson(await readBody(response));
  if (body === undefined)
    throw new ApiError(response.statusCode ?? 0, 'the admin API sent no JSON; check the version of the gateway');
  return body;
}

function readDetail(body: string): string | null {
  const problem = parseJson(body);
  const detail = typeof problem === 'object' && problem !== null && 'detail' in problem ? problem.detail : undefined;
  return typeof detail === 'string' ? detail.slice(0, MAX_DETAIL) : null;
}

/** The status in words, with the detail that the gateway gave. */
function describeStatus(status: number, detail: string | null): string {
  const known = Object.hasOwn(STATUSES, status) ? STATUSES[status] : undefined;
  return `${known ?? 'the admin API failed'} (${status})${detail === null ? '' : `: ${detail}`}`;
}

const MAX_DETAIL = 300;

const STATUSES: Readonly<Record<number, string>> = {
  400: 'the admin API rejected the query',
  401: 'the admin API requires a key; set SLUICE_ADMIN_KEY or --key',
  403: 'the admin API refused access',
  404: 'the gateway has no admin API',
};

async function readBody(response: IncomingMessage): Promise<string> {
  const decoder = new TextDecoder();
  let text = '';
  let bytes = 0;
  for await (const chunk of response) {
    bytes += chunk.length;
    if (bytes > MAX_BODY_BYTES)
      throw new ApiError(response.statusCode ?? 0, `the admin API sent more than ${MAX_BODY_BYTES} bytes`);
    text += decoder.decode(chunk, { stream: true });
  }
  return text + decoder.decode();
}

/** The value of a JSON text; undefined when it is not JSON. */
export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
