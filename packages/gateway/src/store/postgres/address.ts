/** The address of a PostgreSQL database: what its URL says, as settings of the driver. */
import { readFileSync } from 'node:fs';
import type { PoolConfig } from 'pg';
import { StoreError } from '../errors.ts';

/** How a connection is encrypted, as `sslmode` of the URL says: the words of libpq. */
const SSL_MODES = {
  disable: () => false,
  /** Encrypted, whoever answers. */
  require: (ca) => ({ ...ca, rejectUnauthorized: ca !== undefined }),
  /** The certificate must be of a known authority, for any name. */
  'verify-ca': (ca) => ({ ...ca, rejectUnauthorized: true, checkServerIdentity: () => undefined }),
  'verify-full': (ca) => ({ ...ca, rejectUnauthorized: true }),
} as const satisfies Record<string, (ca: { ca: string } | undefined) => PoolConfig['ssl']>;

const PARAMETERS: ReadonlySet<string> = new Set(['sslmode', 'sslrootcert', 'application_name']);

/** Reads a URL such as `postgres://user:password@host/database?sslmode=verify-full`. No message repeats the URL, which has a password. */
export function readAddress(text: string): PoolConfig {
  const url = parseUrl(text);
  for (const name of url.searchParams.keys())
    if (!PARAMETERS.has(name))
      throw fail(`does not know the parameter "${name.slice(0, 40)}"; known: ${[...PARAMETERS].join(', ')}`);
  const database = decode(url.pathname.slice(1));
  if (database === '') throw fail('names no database; write postgres://user@host/database');
  const { username, password, port } = url;
  return {
    host: decode(url.hostname).replace(/^\[|\]$/g, '') || 'localhost',
    port: port === '' ? 5432 : Number(port),
    database,
    ...(username !== '' && { user: decode(username) }),
    ...(password !== '' && { password: decode(password) }),
    application_name: url.searchParams.get('application_name') ?? 'sluice',
    ssl: readSsl(url.searchParams),
  };
}

/** Where a database is, for logs: without user and password. */
export function describeAddress(text: string): string {
  const { host, port, database } = readAddress(text);
  return `${host}:${port}/${database}`;
}

/** Whether a text is the address of a PostgreSQL database. */
export const isPostgres = (text: string): boolean => /^postgres(ql)?:\/\//i.test(text);

function parseUrl(text: string): URL {
  if (!isPostgres(text)) throw fail('must begin with postgres://');
  try {
    return new URL(text);
  } catch {
    throw fail('is not a URL; write postgres://user:password@host:5432/database, with special characters as %XX');
  }
}

function readSsl(parameters: URLSearchParams): PoolConfig['ssl'] {
  const mode = parameters.get('sslmode') ?? 'disable';
  if (!Object.hasOwn(SSL_MODES, mode))
    throw fail(`has the sslmode "${mode.slice(0, 40)}"; known: ${Object.keys(SSL_MODES).join(', ')}`);
  const file = parameters.get('sslrootcert');
  // The name was checked above.
  return SSL_MODES[mode as keyof typeof SSL_MODES](file === null ? undefined : { ca: readAuthority(file) });
}

function readAuthority(file: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch {
    throw fail(`names the file "${file}" as sslrootcert, which cannot be read`);
  }
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    throw fail('has a % that is not followed by two hexadecimal digits; write % itself as %25');
  }
}

const fail = (reason: string): StoreError => new StoreError('query', `the address of the database ${reason}`);
