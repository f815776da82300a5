/** Connections to PostgreSQL: bounded in number and time, and without state of a session, so that a pooler may stand between. */
import { Kysely, PostgresDialect } from 'kysely';
import pg, { type Pool, type PoolClient } from 'pg';
import { explainConnectError } from '../../http/connect-errors.ts';
import { StoreError } from '../errors.ts';
import type { Tables } from '../schema.ts';
import { readAddress } from './address.ts';

/** How long the database may take. Each is also a limit of the driver, because a frozen server answers nothing. */
export interface Patience {
  readonly connectMs: number;
  /** For one statement. */
  readonly statementMs: number;
  /** For a lock of another transaction. */
  readonly lockMs: number;
}

/** What a gateway waits for. */
export const PATIENCE: Patience = { connectMs: 5000, statementMs: 30_000, lockMs: 10_000 };

/** How much longer than the server the driver waits: the server's answer says why. */
const DRIVER_MARGIN_MS = 1000;

/** How long an unused connection is kept. */
const IDLE_MS = 30_000;

/** Integers of 64 bits and sums of them. All of ours are exact as a number. */
const INT8 = 20;
const NUMERIC = 1700;

const TYPES: pg.CustomTypesConfig = {
  getTypeParser: (oid, format) => (oid === INT8 || oid === NUMERIC ? Number : pg.types.getTypeParser(oid, format)),
};

/** Opens a pool. Connections are made when they are needed. */
export function createPool(address: string, size: number, patience: Patience = PATIENCE): Pool {
  const pool = new pg.Pool({
    ...readAddress(address),
    max: size,
    idleTimeoutMillis: IDLE_MS,
    connectionTimeoutMillis: patience.connectMs,
    query_timeout: patience.statementMs + DRIVER_MARGIN_MS,
    keepAlive: true,
    types: TYPES,
  });
  // Connections end when the server stops. Whoever uses one is told by its query; without listeners, the process would end.
  pool.on('error', () => undefined);
  pool.on('connect', (client) => client.on('error', () => undefined));
  return pool;
}

/** Kysely on a pool. */
export const createKysely = (pool: Pool): Kysely<Tables> => new Kysely<Tables>({ dialect: new PostgresDialect({ pool }) });

/** The limits of one transaction. Not of the session: a pooler would give them to the next one. */
const beginWith = ({ statementMs, lockMs }: Patience): string =>
  `BEGIN; SET LOCAL statement_timeout = ${statementMs}; SET LOCAL lock_timeout = ${lockMs}`;

/** Runs one transaction. A connection whose state is unknown is not used again. */
export async function transact<Result>(
  pool: Pool,
  patience: Patience,
  work: (client: PoolClient) => Promise<Result>,
): Promise<Result> {
  const client = await pool.connect();
  let isLost = true;
  try {
    await client.query(beginWith(patience));
    const result = await work(client);
    await client.query('COMMIT');
    isLost = false;
    return result;
  } catch (error) {
    isLost = !(await rollBack(client, error));
    throw error;
  } finally {
    client.release(isLost);
  }
}

/** Whether the connection can be used again: the server has answered, and nothing is left of the transaction. */
async function rollBack(client: PoolClient, error: unknown): Promise<boolean> {
  if (readState(error) === undefined) return false;
  try {
    await client.query('ROLLBACK');
    return true;
  } catch {
    return false;
  }
}

/** The SQLSTATE of an error of the server; undefined for errors of the connection. */
export function readState(error: unknown): string | undefined {
  return error instanceof pg.DatabaseError ? error.code : undefined;
}

/** The database rejects the values themselves, and would do so again: wrong data, or a violated constraint. */
export const isRejection = (error: unknown): boolean => /^2[23]/.test(readState(error) ?? '');

/** Another row has the same unique value. */
export const UNIQUE_VIOLATION = '23505';

/** An error for callers: worth a retry, unless it says something else. Its message has the reason and what to do. */
export const toStoreError = (error: unknown): StoreError =>
  error instanceof StoreError ? error : new StoreError('unavailable', `PostgreSQL: ${describeError(error)}`, error);

/** An error of the server or of the connection, with what to check. */
export function describeError(error: unknown): string {
  const state = readState(error);
  const text = error instanceof Error ? error.message || readCode(error) : String(error);
  if (state !== undefined) return `${text} (${state})${ADVICE[state] ?? ''}`;
  const fault = DRIVER_ERRORS.find(([pattern]) => pattern.test(text));
  return fault ? `${text}; ${fault[1]}` : (explainConnectError(error, { setting: 'its address' }) ?? text);
}

/** What to do about an error of the server, by its SQLSTATE. */
const ADVICE: Readonly<Record<string, string>> = {
  '28P01': '; check the user and the password in its address',
  '28000': '; check the user in its address, and pg_hba.conf of the server',
  '3D000': '; create the database, or correct its name in the address',
  '42501': '; grant the user of the address the right to create and use tables in this database',
  '53300': '; raise max_connections of the server, or close other connections',
  '57P03': '; try again when the server has started',
};

/** Errors of the driver that have a text only. */
const DRIVER_ERRORS: readonly (readonly [text: RegExp, advice: string])[] = [
  [/^timeout expired|connection timeout/, 'check that the server runs and that no firewall is between'],
  [/does not support SSL/, 'omit sslmode in its address, or enable TLS on the server'],
  [/^Connection terminated/, 'check the log of the server, and that a PostgreSQL server listens at its address'],
  [/password must be a string/, 'the server requires a password; add one to its address'],
];

/** An error of several addresses of a host has no message of its own. */
const readCode = (error: Error): string => ('code' in error ? String(error.code) : error.name);
