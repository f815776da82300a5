/** A ledger with a year of exchanges, written by the ledger itself. */
import { join } from 'node:path';
import { IdSource } from '../../packages/gateway/out/store/ids.js';
import { openStore } from '../../packages/gateway/out/store/index.js';
import {
  listAttempt,
  listAttemptSettlement,
  listExchangeSettlement,
  listOpening,
} from '../../packages/gateway/out/store/rows.js';
import { openWriter } from '../../packages/gateway/out/store/sqlite/database.js';
import { SqliteLedger } from '../../packages/gateway/out/store/sqlite/ledger.js';

const YEAR = 365 * 86_400_000;
const BATCH = 20_000;

/** Repeatable numbers: xorshift. */
let seed = 0x9e3779b9;
function random() {
  seed ^= seed << 13;
  seed ^= seed >>> 17;
  seed ^= seed << 5;
  return (seed >>> 0) / 2 ** 32;
}

/** Few are used much, many a little, as keys and models are. */
const pick = (list) => list[Math.floor(random() ** 2.5 * list.length)];

const KEYS = Array.from({ length: 50 }, (_, index) => ({ key: `key-${index}`, tags: [`team-${index % 20}`] }));
const MODELS = Array.from({ length: 16 }, (_, index) => ({ model: `model-${index}`, provider: `provider-${index % 5}` }));

/** Adds exchanges with their attempts and roll-ups, evenly over the year before `end`. `onRows` is called now and then. */
export async function fillLedger(folder, rows, { end = Date.now(), onRows = () => undefined } = {}) {
  await (await openStore({ folder, ballastBytes: 0 })).close();
  const db = openWriter(join(folder, 'sluice.db'));
  // Only here: nobody mourns this data after a power loss.
  db.exec('PRAGMA synchronous = OFF; PRAGMA cache_size = -200000');
  const ledger = new SqliteLedger(db, { boot: 'year', node: 'bench' });
  let ts = end - YEAR;
  const ids = new IdSource(() => ts);
  for (let made = 0; made < rows; made += BATCH) {
    const operations = [];
    for (let index = made; index < Math.min(rows, made + BATCH); index++) {
      ts = end - YEAR + Math.floor((index / rows) * YEAR);
      addExchange(operations, ids.next());
    }
    ledger.write(operations);
    if ((made / BATCH) % 25 === 0) onRows(made);
  }
  ledger.checkpoint();
  db.close();
}

function addExchange(operations, { id, ts }) {
  const { model, provider } = pick(MODELS);
  const input_tokens = Math.floor(random() * 20_000);
  const output_tokens = Math.floor(random() * 2000);
  const usage = {
    input_tokens,
    output_tokens,
    cache_read_tokens: Math.floor(input_tokens / 2),
    provenance: 'reported',
    cost_micros: input_tokens * 3 + output_tokens * 15,
    price_version: '0.1.8',
    ending: random() < 0.97 ? 'answered' : 'upstream_error',
    http_status: 200,
    first_token_ms: Math.floor(random() * 2000),
    total_ms: Math.floor(random() * 20_000),
  };
  const { key, tags } = pick(KEYS);
  const opening = {
    id,
    ts,
    key_id: key,
    key_name: key,
    tags,
    client_protocol: 'anthropic-messages',
    model_requested: model,
  };
  const attempt = { exchange_id: id, number: 1, ts, provider, model, upstream_protocol: 'openai-chat' };
  operations.push(
    {
      kind: 'openExchange',
      values: listOpening({ ...opening, session_id: `session-${Math.floor(ts / 600_000)}`, endpoint: 'conversation' }),
    },
    { kind: 'openAttempt', values: listAttempt(attempt) },
    { kind: 'settleAttempt', values: listAttemptSettlement({ exchange_id: id, number: 1, ...usage }) },
    { kind: 'settleExchange', values: listExchangeSettlement({ id, ts: ts + usage.total_ms, ...usage }) },
  );
}
