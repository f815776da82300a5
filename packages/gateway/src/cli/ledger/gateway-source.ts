/** The ledger of a running gateway, through its admin API. */

import { request as httpRequest, type IncomingMessage } from 'node:http';
import { request as httpsRequest } from 'node:https';
import { setTimeout as sleep } from 'node:timers/promises';
import { createSseDecoder } from '@sluice/core/sse';
import {
  type AttemptRow,
  type ExchangeDetail,
  type ExchangePage,
  type ExchangeRow,
  matchesFilter,
  type NoteRow,
  SUM_COLUMNS,
  type UsageQuery,
  type UsageRow,
} from '../../store/index.ts';
import type { LedgerSource, LogFilter, Notify, PageQuery } from './source.ts';

/** The gateway did not serve the request. */
export class ApiError extends Error {
  /** HTTP status; 0 without a response. */
  readonly status: number;

  constructor(status: number, message: string) {
    super(message);
    this.status = status;
  }
}

const TIMEOUT_MS = 30_000;

/** A page of 1,000 rows has about 8 MB at most. */
const MAX_BODY_BYTES = 64 << 20;

const RECONNECT_MS = 1000;

/** Responses of a gateway that has no admin API, or does not permit its use. */
const REFUSALS: ReadonlySet<number> = new Set([401, 403, 404, 405, 501]);

/** Reads from a gateway. */
export class GatewaySource implements LedgerSource {
  readonly name: string;
  readonly #base: string;
  readonly #headers: Readonly<Record<string, string>>;

  constructor(url: string, key: string | undefined) {
    this.name = `the gateway at ${url}`;
    this.#base = `${url}/admin/v1`;
    this.#headers = key === undefined ? {} : { authorization: `Bearer ${key}` };
  }

  /** Why the admin API cannot be used; undefined when it can. */
  async findRefusal(): Promise<string | undefined> {
    try {
      await this.#get('exchanges', { limit: '1' });
      return undefined;
    } catch (error) {
      if (error instanceof ApiError && REFUSALS.has(error.status)) return `${this.name}: ${error.message}`;
      throw error;
    }
  }

  async list({ filter, cursor, limit }: PageQuery): Promise<ExchangePage> {
    const body = readRecord(await this.#get('exchanges', { filter: filter.text, cursor, limit: String(limit) }));
    return { exchanges: readArray(body['exchanges']).map(readExchange), next: readText(body['next']) };
  }

  async get(id: string): Promise<ExchangeDetail | null> {
    try {
      const body = readRecord(await this.#get(`exchanges/${encodeURIComponent(id)}`, {}));
      const attempts = readArray(body['attempts']).map((value) => ({ ...readRow(value, ATTEMPT), exchange_id: id }));
      return { exchange: readExchange(body['exchange']), attempts };
    } catch (error) {
      if (error instanceof ApiError && error.status === 404) return null;
      throw error;
    }
  }

  async usage({ by, since, until, bucket }: UsageQuery): Promise<UsageRow[]> {
    const parameters = { by, since: formatTime(since), until: formatTime(until), bucket };
    return readArray(readRecord(await this.#get('usage', parameters))['usage']).map(readUsage);
  }

  async follow(filter: LogFilter, signal: AbortSignal, onNotice: Notify): Promise<AsyncIterable<ExchangeRow>> {
    const live: LiveStream = { filter, signal, last: undefined };
    return this.#readLive(live, await this.#connect(live), onNotice);
  }

  #connect({ filter, signal, last }: LiveStream): Promise<IncomingMessage> {
    const headers = last === undefined ? {} : { 'last-event-id': last };
    return this.#fetch('exchanges/live', { filter: filter.text }, { headers, signal });
  }

  /** Connects again when the connection is lost, and continues after the last event. */
  async *#readLive(live: LiveStream, first: IncomingMessage, onNotice: Notify): AsyncGenerator<ExchangeRow, void, undefined> {
    let response: IncomingMessage | undefined = first;
    let isNoticed = false;
    while (!live.signal.aborted) {
      try {
        response ??= await this.#connect(live);
        isNoticed = false;
        for await (const row of readEvents(response, live)) {
          if (row === 'gap') await onNotice('exchanges that ended meanwhile may be missing here; "sluice log" lists them');
          else if (row.state !== 'open' && matchesFilter(live.filter.parsed, row)) yield row;
        }
      } catch (error) {
        if (error instanceof ApiError && error.status > 0 && error.status < 500) throw error;
      }
      response = undefined;
      if (live.signal.aborted) return;
      if (!isNoticed) await onNotice('the connection to the gateway was lost; connecting again');
      isNoticed = true;
      await sleep(RECONNECT_MS, undefined, { signal: live.signal }).catch(() => undefined);
    }
  }

  async #get(path: string, parameters: Parameters): Promise<unknown> {
    const response = await this.#fetch(path, parameters, { signal: AbortSignal.timeout(TIMEOUT_MS) });
    const body = parseJson(await readBody(response));
    if (body === undefined)
      throw new ApiError(response.statusCode ?? 0, 'the admin API sent no JSON; check the version of the gateway');
    return body;
  }

  async #fetch(path: string, parameters: Parameters, init: RequestInit): Promise<IncomingMessage> {
    const query = new URLSearchParams(Object.entries(parameters).filter((entry): entry is [string, string] => Boolean(entry[1])));
    const url = new URL(`${this.#base}/${path}${query.size > 0 ? `?${query}` : ''}`);
    const response = await send(url, { ...init, headers: { ...this.#headers, ...init.headers } });
    const status = response.statusCode ?? 0;
    if (status === 200) return response;
    throw new ApiError(status, describeStatus(status, await readBody(response)));
  }

  async close(): Promise<void> {}
}

/** A stream of rows that outlives its connections. */
interface LiveStream {
  readonly filter: LogFilter;
  readonly signal: AbortSignal;
  /** The id of the last event. */
  last: string | undefined;
}

async function* readEvents(response: IncomingMessage, live: LiveStream): AsyncGenerator<ExchangeRow | 'gap', void, undefined> {
  const wasConnected = live.last !== undefined;
  const decoder = createSseDecoder();
  for await (const chunk of response) {
    for (const { id, event, data } of decoder.push(chunk)) {
      if (id !== undefined) live.last = id;
      const value = readRecord(parseJson(data));
      if (typeof value['id'] === 'string') yield readExchange(value);
      else if (event === 'ready' && wasConnected && value['resumed'] === false) yield 'gap';
    }
  }
}

interface RequestInit {
  readonly headers?: Readonly<Record<string, string>>;
  readonly signal: AbortSignal;
}

/**
 * Sends a GET request. Not `fetch`: node's adds the header `sec-fetch-mode`, by which the admin API knows browsers. Redirects are
 * not followed, because they would send the key elsewhere.
 */
const send = (url: URL, init: RequestInit): Promise<IncomingMessage> =>
  new Promise((resolve, reject) => {
    const request = url.protocol === 'https:' ? httpsRequest : httpRequest;
    request(url, { ...init, headers: { accept: '*/*', ...init.headers } }, resolve)
      .on('error', (error) => reject(new ApiError(0, `the gateway does not respond: ${error.message}`)))
      .end();
  });

type Parameters = Readonly<Record<string, string | null | undefined>>;

const formatTime = (ms: number | undefined): string | undefined => (ms === undefined ? undefined : new Date(ms).toISOString());

/** The status in words, with the detail that the gateway gave. */
function describeStatus(status: number, body: string): string {
  const known = Object.hasOwn(STATUSES, status) ? STATUSES[status] : undefined;
  const detail = readText(readRecord(parseJson(body))['detail']);
  return `${known ?? 'the admin API failed'} (${status})${detail === null ? '' : `: ${detail.slice(0, MAX_DETAIL)}`}`;
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

// ---- rows: JSON of any server becomes rows of the store, whatever it holds

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

type Read<Value> = (value: unknown) => Value;

const readRecord: Read<Record<string, unknown>> = (value) =>
  typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : {};

const readArray: Read<unknown[]> = (value) => (Array.isArray(value) ? value : []);

const readText: Read<string | null> = (value) => (typeof value === 'string' ? value : null);

const readName: Read<string> = (value) => readText(value) ?? '';

const readTexts: Read<string[]> = (value) => readArray(value).map(readName);

const readNumber: Read<number | null> = (value) => (typeof value === 'number' && Number.isFinite(value) ? value : null);

const readCount: Read<number> = (value) => readNumber(value) ?? 0;

const readFlag: Read<boolean> = (value) => value === true;

/** A time in the form of RFC 3339, as milliseconds. */
const readTime: Read<number | null> = (value) => (typeof value === 'string' ? readNumber(Date.parse(value)) : null);

const readRequiredTime: Read<number> = (value) => readTime(value) ?? 0;

const readWord =
  <const Word extends string>(...words: Word[]): Read<Word | null> =>
  (value) =>
    words.find((word) => word === value) ?? null;

const readState: Read<ExchangeRow['state']> = (value) => readWord('open', 'crashed')(value) ?? 'settled';

function readNote(value: unknown): NoteRow {
  const { code, path, feature, message } = readRecord(value);
  const texts = Object.entries({ path, feature, message }).filter(([, text]) => typeof text === 'string');
  return { code: readName(code), ...Object.fromEntries(texts) };
}

/** A reader for each column, so that a new one cannot be forgotten. */
type Readers<Row> = { readonly [Column in keyof Row]: Read<Row[Column]> };

const COMMON = {
  ts: readRequiredTime,
  state: readState,
  boot_id: readName,
  provider: readText,
  upstream_protocol: readText,
  model: readText,
  model_answered: readText,
  provenance: readWord('reported', 'derived', 'estimated', 'uncertain'),
  cost_micros: readNumber,
  price_version: readText,
  connect_ms: readNumber,
  first_byte_ms: readNumber,
  first_token_ms: readNumber,
  total_ms: readNumber,
  http_status: readNumber,
  ending: readText,
  error_code: readText,
  possibly_billed: readFlag,
  input_tokens: readNumber,
  cache_read_tokens: readNumber,
  cache_creation_tokens: readNumber,
  output_tokens: readNumber,
  reasoning_tokens: readNumber,
  input_audio_tokens: readNumber,
  output_audio_tokens: readNumber,
} as const;

const EXCHANGE: Readers<ExchangeRow> = {
  ...COMMON,
  id: readName,
  settled_ts: readTime,
  node_id: readName,
  request_id: readText,
  key_id: readText,
  key_name: readText,
  tags: readTexts,
  session_id: readText,
  client_protocol: readText,
  client_name: readText,
  user_agent: readText,
  endpoint: readText,
  model_requested: readText,
  is_stream: readFlag,
  queue_ms: readNumber,
  notes_count: readCount,
  notes: (value) => readArray(value).map(readNote),
  note_codes: readTexts,
  rules: readTexts,
  attempts: readCount,
};

const ATTEMPT: Readers<AttemptRow> = { ...COMMON, exchange_id: readName, number: readCount, upstream_request_id: readText };

/** Names of times in the API where they differ from those of the store. */
const API_NAMES: Readonly<Record<string, string>> = { ts: 'created_at', settled_ts: 'settled_at' };

function readRow<Row>(value: unknown, readers: Readers<Row>): Row {
  const fields = readRecord(value);
  const entries = Object.entries<Read<unknown>>(readers).map(([column, read]) => [
    column,
    read(fields[column] ?? fields[API_NAMES[column] ?? '']),
  ]);
  return Object.fromEntries(entries) as Row; // a reader for each column, by the type
}

function readExchange(value: unknown): ExchangeRow {
  const row = readRow(value, EXCHANGE);
  // The API need not repeat the codes of the notes; filters look at them.
  return row.note_codes.length > 0 ? row : { ...row, note_codes: row.notes.map(({ code }) => code.toLowerCase()) };
}

function readUsage(value: unknown): UsageRow {
  const fields = readRecord(value);
  const sums = SUM_COLUMNS.map((column) => [column, readCount(fields[column])]);
  return {
    group: readText(fields['group']),
    ts: readTime(fields['ts'] ?? fields['bucket_at']),
    ...Object.fromEntries(sums),
  } as UsageRow;
}
