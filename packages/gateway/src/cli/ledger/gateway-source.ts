/** The ledger of a running gateway, through its admin API. */

import type { IncomingMessage } from 'node:http';
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
import { type AdminClient, ApiError, parseJson } from './admin-client.ts';
import type { LedgerSource, LogFilter, Notify, PageQuery } from './source.ts';

const RECONNECT_MS = 1000;

const MAX_KEY_NAMES = 200_000;

/** Reads from a gateway. */
export class GatewaySource implements LedgerSource {
  readonly name: string;
  readonly console: string;
  readonly #client: AdminClient;

  constructor(client: AdminClient) {
    this.name = client.name;
    this.console = client.url;
    this.#client = client;
  }

  async list({ filter, cursor, limit }: PageQuery): Promise<ExchangePage> {
    const body = readRecord(await this.#client.get('exchanges', { filter: filter.text, cursor, limit: String(limit) }));
    return { exchanges: readArray(body['exchanges']).map(readExchange), next: readText(body['next']) };
  }

  async get(id: string): Promise<ExchangeDetail | null> {
    try {
      const body = readRecord(await this.#client.get(`exchanges/${encodeURIComponent(id)}`, {}));
      const attempts = readArray(body['attempts']).map((value) => ({ ...readRow(value, ATTEMPT), exchange_id: id }));
      return { exchange: readExchange(body['exchange']), attempts };
    } catch (error) {
      if (error instanceof ApiError && error.status === 404) return null;
      throw error;
    }
  }

  async usage({ by, since, until, bucket }: UsageQuery): Promise<UsageRow[]> {
    const parameters = { by, since: formatTime(since), until: formatTime(until), bucket };
    return readArray(readRecord(await this.#client.get('usage', parameters))['usage']).map(readUsage);
  }

  async keyNames(): Promise<ReadonlyMap<string, string>> {
    const names = new Map<string, string>();
    let cursor: string | null = null;
    try {
      do {
        const body = readRecord(await this.#client.get('keys', { cursor, limit: '1000' }));
        for (const key of readArray(body['keys']).map(readRecord)) names.set(readName(key['id']), readName(key['name']));
        const next = readText(body['next']);
        cursor = next === cursor ? null : next;
      } while (cursor !== null && names.size < MAX_KEY_NAMES);
    } catch (error) {
      // A gateway of an earlier release has no keys with ids.
      if (!(error instanceof ApiError) || error.status !== 404) throw error;
    }
    return names;
  }

  /** Targets that are paused after failures. */
  async listPaused(): Promise<PausedModel[]> {
    const body = readRecord(await this.#client.get('providers', {}));
    return readArray(body['providers']).map(readRecord).flatMap(readPauses);
  }

  async follow(filter: LogFilter, signal: AbortSignal, onNotice: Notify): Promise<AsyncIterable<ExchangeRow>> {
    const live: LiveStream = { filter, signal, last: undefined };
    return this.#readLive(live, await this.#connect(live), onNotice);
  }

  #connect({ filter, signal, last }: LiveStream): Promise<IncomingMessage> {
    const headers = last === undefined ? {} : { 'last-event-id': last };
    return this.#client.fetch('exchanges/live', { filter: filter.text }, { headers, signal });
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

  async close(): Promise<void> {}
}

/** A target that is paused after failures. */
export interface PausedModel {
  readonly provider: string;
  readonly model: string;
  /** Which of several keys or addresses, such as `key 2`. */
  readonly endpoint: string | null;
  readonly remaining_ms: number;
}

const readPauses = ({ id, paused }: Readonly<Record<string, unknown>>): PausedModel[] =>
  readArray(paused)
    .map(readRecord)
    .map((entry) => ({
      provider: readName(id),
      model: readName(entry['model']),
      endpoint: readText(entry['endpoint']),
      remaining_ms: readCount(entry['remaining_ms']),
    }));

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

const formatTime = (ms: number | undefined): string | undefined => (ms === undefined ? undefined : new Date(ms).toISOString());

// ---- rows: JSON of any server becomes rows of the store, whatever it holds

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
  route_rule: readText,
  affinity: readText,
  cache_break: readText,
  notes_count: readCount,
  notes: (value) => readArray(value).map(readNote),
  note_codes: readTexts,
  rules: readTexts,
  attempts: readCount,
  assumed_micros: readCount,
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
