import type { ProtocolId } from '@sluice/core';
import { eventually } from '../../../../test/wait.ts';
import type { LimitBackend } from '../../src/admission/backend.ts';
import { loadConfig } from '../../src/config/load.ts';
import { resolveConfig } from '../../src/config/resolve.ts';
import { SecretRegistry } from '../../src/config/secrets.ts';
import type { Services } from '../../src/exchange/types.ts';
import { type Clock, REAL_CLOCK } from '../../src/http/clock.ts';
import { readTlsPair, type TlsFiles } from '../../src/http/tls.ts';
import type { KeyBook } from '../../src/keys/key-book.ts';
import { createLog } from '../../src/observe/log.ts';
import { createRedact } from '../../src/observe/redact.ts';
import { createResponseState } from '../../src/responses/open.ts';
import type { ResponseStore } from '../../src/responses/store.ts';
import { createDirectory } from '../../src/server/directory.ts';
import { createServices } from '../../src/server/run.ts';
import { Gateway } from '../../src/server/server.ts';
import type { Store } from '../../src/store/index.ts';
import { Breakers } from '../../src/upstream/breaker.ts';
import { DemoTransport } from '../../src/upstream/demo.ts';
import { TestAuthority } from './certificates.ts';
import { questionOf } from './dialects.ts';
import type { Reply } from './http.ts';
import { countOpenRows, expectNothingHeld, WatchedClock } from './leaks.ts';
import { RawClient, requestText } from './raw-client.ts';
import { TestClock } from './test-clock.ts';

export { eventually };

type LogLine = Record<string, unknown>;

export interface StartOptions {
  config: object;
  env?: Record<string, string>;
  /** Whether upstreams that failed rest; else tests would see the failures of those before them. */
  hasBreakers?: boolean;
  /** A `TestClock` for tests that wait: without one, time is real. */
  clock?: Clock;
  /** Client keys of a store. */
  book?: KeyBook;
  /** Where exchanges are recorded; without it, they are not. */
  store?: Store;
  /** Where limits are kept; in memory by default. */
  limitBackend?: LimitBackend | undefined;
  /** Milliseconds since 1970, for budgets. */
  wallClock?: () => number;
  /** Parts that are not as usual. */
  services?: (services: Services) => Services;
  /** Why requests may hold something when the gateway has closed; by default they must not. */
  leavesOpen?: string;
  /** A certificate of this process with `https`; by default as SLUICE_TEST_SCHEME says, so that any test can be run over TLS. */
  scheme?: 'http' | 'https';
}

let shared: TlsFiles | undefined;

/** One certificate for all gateways of a test file. */
function issueShared(): TlsFiles {
  if (shared) return shared;
  const authority = new TestAuthority();
  process.once('exit', () => authority.remove());
  shared = authority.issue('gateway', '127.0.0.1', 'localhost');
  return shared;
}

export interface Started {
  url: string;
  services: Services;
  /** What is kept of responses. */
  kept: ResponseStore | undefined;
  /** Everything that was logged, as it left. */
  lines: string[];
  log(): LogLine[];
  /** The line of one request, when it has ended. */
  ended(id: string | undefined): Promise<LogLine>;
  /** Without a deadline, what is under way ends now, also by a clock that stands still. */
  close(deadlineMs?: number, delayMs?: number): Promise<void>;
}

/** The gateway in this process, on a port of the system's choice. Every limit of the configuration may be short. */
export async function startGateway(options: StartOptions): Promise<Started> {
  const { config, env = {}, hasBreakers = false, clock: given = REAL_CLOCK, book, services: change = (same) => same } = options;
  const { store, wallClock, limitBackend } = options;
  const clock = new WatchedClock(given);
  const secrets = new SecretRegistry();
  const listen = { host: '127.0.0.1', port: 0 };
  const source = loadConfig('sluice.json', JSON.stringify({ listen, ...config }), env);
  const state = resolveConfig(source, { env, secrets });
  const directory = createDirectory(state, new DemoTransport(0), book);
  const lines: string[] = [];
  const redact = createRedact(secrets);
  const log = createLog('debug', redact, (line) => void lines.push(line));
  const kept = createResponseState({ options: state.responses, clock });
  const made = createServices({
    limits: state.limits,
    log,
    redact,
    directory: () => directory,
    clock,
    timeZone: state.timeZone,
    ...(store && { store }),
    ...(wallClock && { wallClock }),
    limitBackend,
    idempotency: state.idempotency,
    cache: state.cache,
    state: kept,
  });
  const services = change(hasBreakers ? made : { ...made, breakers: new NoBreakers(() => 0) });
  const { scheme = process.env['SLUICE_TEST_SCHEME'] ?? 'http' } = options;
  const tls = scheme === 'https' ? await readTlsPair(issueShared()) : undefined;
  const gateway = new Gateway(services, undefined, tls);
  const url = await gateway.listen(state.listen);
  const rowsBefore = await countOpenRows(services);
  const parsed = (): LogLine[] => lines.map((line) => JSON.parse(line));
  return {
    url,
    services,
    kept: kept.store,
    lines,
    log: parsed,
    ended: (id) => eventually(() => parsed().find((line) => line['request_id'] === id && line['msg'] === 'answered')),
    close: async (deadlineMs, delayMs) => {
      services.gate.close();
      const closed = gateway.close(deadlineMs ?? 0, delayMs);
      await (deadlineMs === undefined && given instanceof TestClock ? given.until(closed) : closed);
      if (options.leavesOpen === undefined) await expectNothingHeld(services, clock, rowsBefore);
    },
  };
}

/** Never pause a target. */
class NoBreakers extends Breakers {
  override failed(): void {}
  override rest(): void {}
}

export interface Asking {
  client: ProtocolId;
  model: string;
  stream: boolean;
  headers?: Record<string, string>;
  body?: object;
}

export function askText({ client, model, stream, headers = {}, body = {} }: Asking): string {
  const question = questionOf(client, model, stream);
  return requestText('POST', question.path, { ...question.headers, ...headers }, JSON.stringify({ ...question.body, ...body }));
}

/** Asks on a connection of its own, and reads the answer to its end. */
export async function ask(url: string, asking: Asking): Promise<Reply> {
  const client = await RawClient.open(url);
  try {
    return await client.send(askText(asking)).reply();
  } finally {
    client.leave();
  }
}
