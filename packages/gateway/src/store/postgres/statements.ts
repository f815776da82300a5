/**
 * The statements of the ledger. Each writes any number of operations of one kind, given as one JSON array of arrays of values: the
 * text of a statement is always the same, and a batch takes as many round trips as it has kinds.
 */
import type { OperationKind } from '../operations.ts';
import { SUMMED_COLUMNS } from '../operations.ts';
import { ROLLUP_KEY, SHARED_COLUMNS, SUM_COLUMNS } from '../rollups.ts';
import {
  ATTEMPT_COLUMNS,
  ATTEMPT_SETTLEMENT_COLUMNS,
  EXCHANGE_SETTLEMENT_COLUMNS,
  OPENING_COLUMNS,
  PROGRESS_COLUMNS,
  TOKEN_COLUMNS,
  UPSTREAM_COLUMNS,
} from '../rows.ts';

const INTEGERS: ReadonlySet<string> = new Set([
  ...['number', 'is_stream', 'http_status', 'possibly_billed', 'attempts', 'notes_count', 'rollup'],
]);

const BIG_INTEGERS: ReadonlySet<string> = new Set([...SUM_COLUMNS, 'ts', 'bucket']);

const typeOf = (column: string): string =>
  INTEGERS.has(column) ? 'integer' : BIG_INTEGERS.has(column) || /_(ms|ts|micros|tokens)$/.test(column) ? 'bigint' : 'text';

/** The value at a place of an operation, as its column has it. */
const value = (column: string, index: number, type = typeOf(column)): string => `(r->>${index})::${type}`;

const values = (columns: readonly string[]): string => columns.map((column, index) => value(column, index)).join(', ');

const replace = (column: string, index: number): string =>
  UPSTREAM_COLUMNS.includes(column) ? `coalesce(${value(column, index)}, t.${column})` : value(column, index);

const assign = (columns: readonly string[]): string =>
  columns.map((column, index) => `${column} = ${replace(column, index)}`).join(', ');

const FROM = 'FROM jsonb_array_elements($1::jsonb) AS r';

/** The ids of a batch are of few days. Their bounds let the planner leave out the partitions of all others. */
const within = (column: string): string => `${column} >= $2 AND ${column} <= $3`;

/** Where the id of the exchange is among the values of an operation. */
export const ID_INDEX: Readonly<Record<OperationKind, number>> = {
  openExchange: 0,
  openAttempt: 0,
  reportProgress: PROGRESS_COLUMNS.length,
  settleAttempt: ATTEMPT_SETTLEMENT_COLUMNS.length,
  settleExchange: EXCHANGE_SETTLEMENT_COLUMNS.length,
};

/** An attempt that is still open, as an operation names it. */
const openAttempt = (kind: 'reportProgress' | 'settleAttempt'): string =>
  `t.exchange_id = r->>${ID_INDEX[kind]} AND t.number = ${value('number', ID_INDEX[kind] + 1)} AND t.state = 'open'
    AND ${within('t.exchange_id')}`;

const ATTEMPT_LIST = ATTEMPT_COLUMNS.join(', ');

/**
 * $1 the operations, $2 the least and $3 the greatest id of an exchange in them, $4 the boot; `openExchange`: $2 the boot, $3 the node.
 * A statement gets at most one operation of an exchange. Until it is settled, its last attempt names its upstream.
 */
export const STATEMENTS: Readonly<Record<OperationKind, string>> = {
  openExchange: `INSERT INTO exchanges (${OPENING_COLUMNS.join(', ')}, boot_id, node_id)
    SELECT ${values(OPENING_COLUMNS)}, $2, $3 ${FROM} ON CONFLICT (id) DO NOTHING`,
  openAttempt: `WITH opened AS (
      INSERT INTO attempts (${ATTEMPT_LIST}, boot_id) SELECT ${values(ATTEMPT_COLUMNS)}, $4 ${FROM}
      ON CONFLICT (exchange_id, number) DO NOTHING RETURNING ${ATTEMPT_LIST})
    UPDATE exchanges AS t SET provider = opened.provider, upstream_protocol = opened.upstream_protocol, model = opened.model,
      attempts = opened.number
    FROM opened WHERE t.id = opened.exchange_id AND t.state = 'open' AND t.attempts < opened.number AND ${within('t.id')}`,
  reportProgress: `UPDATE attempts AS t
    SET ${PROGRESS_COLUMNS.map((column, index) => `${column} = greatest(t.${column}, ${value(column, index)})`).join(', ')}
    ${FROM} WHERE ${openAttempt('reportProgress')}`,
  settleAttempt: `UPDATE attempts AS t SET state = 'settled', ${assign(ATTEMPT_SETTLEMENT_COLUMNS)}
    ${FROM} WHERE ${openAttempt('settleAttempt')}`,
  settleExchange: `UPDATE exchanges AS t SET state = 'settled', ${assign(EXCHANGE_SETTLEMENT_COLUMNS)}
    ${FROM} WHERE t.id = r->>${ID_INDEX.settleExchange} AND t.state = 'open' AND ${within('t.id')}
    RETURNING ${SUMMED_COLUMNS.map((column) => `t.${column}`).join(', ')}`,
};

/** $1 exchanges, $2 the least and $3 the greatest id of them. What their attempts have used, and where. */
export const READ_SHARES = `SELECT exchange_id, model, provider, ${SHARED_COLUMNS.join(', ')} FROM attempts
  WHERE exchange_id = ANY ($1) AND ${within('exchange_id')} ORDER BY exchange_id, number`;

const ROLLUP_COLUMNS: readonly string[] = [...ROLLUP_KEY, ...SUM_COLUMNS];

const ROLLUP_TARGET = `(${[...ROLLUP_KEY, 'shard'].join(', ')})
  DO UPDATE SET ${SUM_COLUMNS.map((column) => `${column} = usage_rollups.${column} + excluded.${column}`).join(', ')}`;

/** $1 the rows, $2 the boot. Each run of a gateway adds to rows of its own, so that no node waits for another. */
export const ADD_TO_ROLLUPS = `INSERT INTO usage_rollups (${ROLLUP_COLUMNS.join(', ')}, shard)
  SELECT ${values(ROLLUP_COLUMNS)}, $2 ${FROM} ON CONFLICT ${ROLLUP_TARGET}`;

/** $1 a boot that has ended, $2 how many rows. Readers see the rows before or after, never a part. */
export const FOLD_ROLLUPS = `WITH moved AS (
    DELETE FROM usage_rollups WHERE ctid = ANY (ARRAY(SELECT ctid FROM usage_rollups WHERE shard = $1 LIMIT $2))
    RETURNING ${ROLLUP_COLUMNS.join(', ')})
  INSERT INTO usage_rollups (${ROLLUP_COLUMNS.join(', ')}, shard)
  SELECT ${ROLLUP_COLUMNS.join(', ')}, '' FROM moved ON CONFLICT ${ROLLUP_TARGET}`;

/** An exchange or attempt whose gateway does not run any more. One statement: a run is registered before its first row. */
const isAbandoned = (table: string): string =>
  `${table}.state = 'open' AND NOT EXISTS (SELECT FROM boots WHERE boots.id = ${table}.boot_id AND boots.ended_ts IS NULL)`;

const CRASH_SUMS = [...TOKEN_COLUMNS, 'cost_micros'];

/** $1 the time, $2 how many. What was sent to an upstream may be charged. The usage is what the attempts had reported. */
export const CLOSE_EXCHANGES = `WITH dead AS (
    SELECT e.id FROM exchanges AS e WHERE ${isAbandoned('e')} ORDER BY e.id LIMIT $2 FOR UPDATE OF e SKIP LOCKED),
  sums AS (
    SELECT exchange_id, ${CRASH_SUMS.map((column) => `sum(${column})::bigint AS ${column}`).join(', ')}
    FROM attempts WHERE exchange_id IN (SELECT id FROM dead) GROUP BY exchange_id)
  UPDATE exchanges AS t SET state = 'crashed', ending = 'crashed', provenance = 'uncertain', settled_ts = $1,
    possibly_billed = CASE WHEN t.attempts > 0 THEN 1 ELSE 0 END,
    ${CRASH_SUMS.map((column) => `${column} = sums.${column}`).join(', ')}
  FROM dead LEFT JOIN sums ON sums.exchange_id = dead.id WHERE t.id = dead.id
  RETURNING ${SUMMED_COLUMNS.map((column) => `t.${column}`).join(', ')}`;

/** What they had reported stays: `CLOSE_EXCHANGES` sums it. */
export const CLOSE_ATTEMPTS = `UPDATE attempts AS t
  SET state = 'crashed', ending = 'crashed', provenance = 'uncertain', possibly_billed = 1 WHERE ${isAbandoned('t')}`;
