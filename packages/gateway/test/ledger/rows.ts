/** Rows and folders for the tests of `sluice usage` and `sluice log`. */
import {
  type AttemptRow,
  type ExchangeRow,
  type ExchangeSettlement,
  openStore,
  type Store,
  SUM_COLUMNS,
  type UsageRow,
} from '../../src/store/index.ts';
import { openWriter } from '../../src/store/sqlite/database.ts';
import { listFiles } from '../../src/store/sqlite/folder.ts';

const NO_TOKENS = {
  input_tokens: null,
  cache_read_tokens: null,
  cache_creation_tokens: null,
  output_tokens: null,
  reasoning_tokens: null,
  input_audio_tokens: null,
  output_audio_tokens: null,
};

const SETTLED = {
  ...NO_TOKENS,
  state: 'settled',
  boot_id: 'boot',
  provider: 'groq',
  upstream_protocol: 'openai-chat',
  model: 'llama',
  model_answered: null,
  provenance: 'reported',
  cost_micros: 12_345,
  price_version: 'prices-1',
  connect_ms: 10,
  first_byte_ms: 100,
  first_token_ms: 200,
  total_ms: 1000,
  http_status: 200,
  ending: 'answered',
  error_code: null,
  possibly_billed: false,
} as const;

/** Half past three in UTC, on the day before in New York. */
export const NIGHT = Date.UTC(2026, 10, 17, 3, 30);

export const createExchange = (row: Partial<ExchangeRow> = {}): ExchangeRow => ({
  ...SETTLED,
  id: '01a1e799-beaf-7000-afaf-a144084cc0df',
  ts: NIGHT,
  settled_ts: NIGHT + 1000,
  node_id: 'node',
  request_id: null,
  key_id: null,
  key_name: null,
  tags: [],
  session_id: null,
  route_rule: null,
  affinity: null,
  cache_break: null,
  client_protocol: 'anthropic-messages',
  client_name: null,
  user_agent: null,
  endpoint: 'chat',
  model_requested: 'fast',
  is_stream: true,
  queue_ms: null,
  notes_count: 0,
  notes: [],
  note_codes: [],
  rules: [],
  attempts: 1,
  assumed_micros: 0,
  input_tokens: 1234,
  output_tokens: 310,
  ...row,
});

export const createAttempt = (row: Partial<AttemptRow> = {}): AttemptRow => ({
  ...SETTLED,
  exchange_id: '01a1e799-beaf-7000-afaf-a144084cc0df',
  number: 1,
  ts: NIGHT,
  upstream_request_id: null,
  ...row,
});

export const createUsage = (row: Partial<UsageRow> = {}): UsageRow =>
  ({ ...Object.fromEntries(SUM_COLUMNS.map((column) => [column, 0])), group: 'm', ts: null, ...row }) as UsageRow;

/** What a test says of an exchange; the rest is usual. */
export interface Recorded extends Partial<ExchangeSettlement> {
  key?: string;
  tags?: string[];
  requested?: string;
  provider?: string;
  model?: string;
  /** Left open. */
  isRunning?: true;
  at?: number;
}

/** Records an exchange in a store as the gateway does, and returns its id. */
export async function record(store: Store, exchange: Recorded = {}): Promise<string> {
  const { id, ts: now } = store.createId();
  const { key, tags = [], requested = 'fast', provider = 'groq', model = 'llama', isRunning, at: ts = now, ...end } = exchange;
  const settlement = {
    input_tokens: 100,
    output_tokens: 20,
    cost_micros: 1000,
    ending: 'answered',
    http_status: 200,
    total_ms: 50,
    provenance: 'reported',
    ...end,
  } as const;
  await store.openExchange({ id, ts, key_id: key ?? null, tags, model_requested: requested, client_protocol: 'openai-chat' });
  await store.openAttempt({ exchange_id: id, number: 1, ts, provider, model, upstream_protocol: 'anthropic-messages' });
  if (isRunning) return id;
  await settle(store, id, settlement);
  return id;
}

/** Ends an exchange that was left open. */
export async function settle(store: Store, id: string, end: Partial<ExchangeSettlement> = {}): Promise<void> {
  const settlement = { ending: 'answered', http_status: 200, total_ms: 50, ...end };
  await store.settleAttempt({ exchange_id: id, number: 1, ...settlement });
  await store.settleExchange({ ts: Date.now(), ...settlement, id });
}

/** A store in a folder, filled and closed again. Returns the ids. */
export async function fill(folder: string, exchanges: readonly Recorded[]): Promise<string[]> {
  const store = await openStore({ folder, ballastBytes: 0 });
  const ids: string[] = [];
  for (const exchange of exchanges) ids.push(await record(store, exchange));
  await store.close();
  return ids;
}

/** Copies the only exchange of a folder many times, with ids that rise. */
export function multiply(folder: string, count: number): void {
  const db = openWriter(listFiles(folder).database);
  const columns = db
    .prepare('PRAGMA table_info(exchanges)')
    .all()
    .map(({ name }) => String(name))
    .filter((name) => name !== 'id');
  db.exec(`
    WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ${count - 1})
    INSERT INTO exchanges (id, ${columns.join(', ')})
    SELECT printf('ffffffff-0000-7000-8000-%012x', i), ${columns.join(', ')} FROM exchanges, n`);
  db.close();
}
