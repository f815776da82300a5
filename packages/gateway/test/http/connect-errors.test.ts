import { once } from 'node:events';
import { connect, createServer } from 'node:net';
import pg from 'pg';
import { describe, expect, test } from 'vitest';
import { RedisDriver } from '../../src/admission/redis/driver.ts';
import { explainConnectError, isUntrusted } from '../../src/http/connect-errors.ts';
import { describeError } from '../../src/store/postgres/connection.ts';

const fail = (code: string, fields: object = {}, message = code): Error => Object.assign(new Error(message), { code, ...fields });

/** An error, and what is said about it: the fact with the code, and what to do. */
const ROWS: [error: unknown, text: string | undefined][] = [
  [
    fail('ECONNREFUSED', { address: '127.0.0.1', port: 9 }),
    'nothing listens at 127.0.0.1:9 (ECONNREFUSED); start the server, or correct --url',
  ],
  [
    fail('ECONNREFUSED', { address: '::1', port: 9 }),
    'nothing listens at [::1]:9 (ECONNREFUSED); start the server, or correct --url',
  ],
  [
    new AggregateError([
      fail('ECONNREFUSED', { address: '::1', port: 9 }),
      fail('ECONNREFUSED', { address: '127.0.0.1', port: 9 }),
    ]),
    'nothing listens at [::1]:9 (ECONNREFUSED); start the server, or correct --url',
  ],
  [
    new TypeError('fetch failed', { cause: fail('ENOTFOUND', { hostname: 'no.invalid' }) }),
    'the host name of "no.invalid" cannot be resolved (ENOTFOUND); correct --url, or check the DNS of this machine',
  ],
  [
    fail('EAI_AGAIN', { hostname: 'x' }),
    'the host name of "x" cannot be resolved (EAI_AGAIN); correct --url, or check the DNS of this machine',
  ],
  [
    fail('EHOSTUNREACH', { address: '10.9.9.9', port: 1 }),
    'no network leads to 10.9.9.9:1 (EHOSTUNREACH); check the network of this machine, or correct --url',
  ],
  [
    fail('UND_ERR_CONNECT_TIMEOUT'),
    'this address did not respond in time (UND_ERR_CONNECT_TIMEOUT); check that the server runs and that no firewall is between, or correct --url',
  ],
  [
    new DOMException('late', 'TimeoutError'),
    'this address did not respond in time (TimeoutError); check that the server runs and that no firewall is between, or correct --url',
  ],
  [
    fail('ECONNRESET'),
    'the server at this address closed the connection (ECONNRESET); check its log, and in --url the port and whether it needs TLS',
  ],
  [
    fail('SELF_SIGNED_CERT_IN_CHAIN'),
    'the certificate of this address is not trusted (SELF_SIGNED_CERT_IN_CHAIN); name the file of its authority in NODE_EXTRA_CA_CERTS',
  ],
  [
    fail('CERT_HAS_EXPIRED'),
    'the certificate of this address is not valid now (CERT_HAS_EXPIRED); renew it, or check the clock of this machine',
  ],
  [
    fail('ERR_TLS_CERT_ALTNAME_INVALID'),
    'the certificate of this address is for another host (ERR_TLS_CERT_ALTNAME_INVALID); use a name that it has in --url',
  ],
  [
    fail('ERR_SSL_WRONG_VERSION_NUMBER'),
    'the server at this address does not use TLS (ERR_SSL_WRONG_VERSION_NUMBER); write http:// instead of https:// in --url',
  ],
  [
    fail('HPE_INVALID_CONSTANT'),
    'the server at this address does not respond with HTTP (HPE_INVALID_CONSTANT); correct the port in --url, or write https:// if it uses TLS',
  ],
  [fail('ENOENT'), undefined],
  [new Error('other'), undefined],
  ['text', undefined],
];

describe('a server that cannot be reached', () => {
  test.each(ROWS)('%s', (error, text) => expect(explainConnectError(error, { setting: '--url' })).toBe(text));

  test('errors of an endless chain of causes end', () => {
    const error = new Error('loop');
    error.cause = error;
    expect(explainConnectError(error, { setting: '--url' })).toBeUndefined();
  });

  test('the place that is given replaces that of the error', async () => {
    const [error] = await once(
      connect(1, '127.0.0.1').on('connect', () => undefined),
      'close',
    ).then(
      () => [],
      (caught: unknown) => [caught],
    );
    expect(explainConnectError(error, { place: 'db.internal', setting: 'store' })).toBe(
      'nothing listens at db.internal (ECONNREFUSED); start the server, or correct store',
    );
  });

  test.each([
    'DEPTH_ZERO_SELF_SIGNED_CERT',
    'CERT_HAS_EXPIRED',
    'ERR_TLS_CERT_ALTNAME_INVALID',
    'UNABLE_TO_VERIFY_LEAF_SIGNATURE',
  ])('%s is a certificate without trust', (code) =>
    expect([isUntrusted(fail(code)), isUntrusted(fail('ECONNREFUSED'))]).toEqual([true, false]),
  );
});

describe('an error of PostgreSQL', () => {
  const refuse = (state: string, message: string): Error =>
    Object.assign(new pg.DatabaseError(message, 0, 'error'), { code: state });

  test.each([
    [
      refuse('28P01', 'password authentication failed for user "u"'),
      'password authentication failed for user "u" (28P01); check the user and the password in its address',
    ],
    [
      refuse('3D000', 'database "x" does not exist'),
      'database "x" does not exist (3D000); create the database, or correct its name in the address',
    ],
    [
      refuse('57P03', 'the database system is starting up'),
      'the database system is starting up (57P03); try again when the server has started',
    ],
    [refuse('22003', 'out of range'), 'out of range (22003)'],
    [new Error('timeout expired'), 'timeout expired; check that the server runs and that no firewall is between'],
    [
      fail('ECONNREFUSED', { address: '10.0.0.1', port: 5432 }),
      'nothing listens at 10.0.0.1:5432 (ECONNREFUSED); start the server, or correct its address',
    ],
    [new Error('something'), 'something'],
  ])('%s', (error, text) => expect(describeError(error)).toBe(text));
});

describe('an error of Redis', () => {
  const PASSWORD = 'hunter2-secret';

  /** The first error of a driver at a port. */
  const findError = (port: number): Promise<string> =>
    new Promise((resolve) => {
      const events = {
        onReady: () => undefined,
        onLost: () => undefined,
        onError: (reason: string) => {
          driver.close();
          resolve(reason);
        },
      };
      const driver = new RedisDriver(
        { url: `redis://:${PASSWORD}@127.0.0.1:${port}`, prefix: 'x', connectTimeoutMs: 1000 },
        events,
      );
      driver.connect();
    });

  test('nothing listens', async () => {
    expect(await findError(1)).toBe('nothing listens at 127.0.0.1:1 (ECONNREFUSED); start the server, or correct limits_store');
  });

  test.each([
    ['WRONGPASS invalid username-password pair or user is disabled.', 'Check the user and the password in limits_store.'],
    ['NOAUTH Authentication required.', 'Check that limits_store has a password: redis://:PASSWORD@host.'],
  ])('%s', async (message, advice) => {
    const server = createServer((socket) => {
      // One reply for each command.
      socket.on('error', () => undefined);
      socket.on('data', (bytes) => socket.write(`-${message}\r\n`.repeat(String(bytes).match(/^\*\d/gm)?.length ?? 0)));
    });
    await once(server.listen(0, '127.0.0.1'), 'listening');
    const address = server.address();
    const reason = await findError(typeof address === 'object' && address ? address.port : 0);
    server.close();
    expect(reason).toBe(`${message} ${advice}`);
    expect(reason).not.toContain(PASSWORD);
  });
});
