/**
 * A gateway with a ledger whose only client has a key with every kind of limit: what limits cost is the difference to the ledger alone.
 * Arguments: configuration file, port, data folder. `callers` for other programs: which caller each key has.
 */
import { readFileSync } from 'node:fs';

const out = new URL('../../packages/gateway/out/', import.meta.url);
const load = (path) => import(new URL(path, out).href);
const [{ loadConfig }, { resolveConfig }, { SecretRegistry }, { createLog }, { createRedact }] = await Promise.all(
  ['config/load.js', 'config/resolve.js', 'config/secrets.js', 'observe/log.js', 'observe/redact.js'].map(load),
);
const [{ createDirectory }, { createServices }, { Gateway }, { DemoTransport }, { openStore }] = await Promise.all(
  ['server/directory.js', 'server/run.js', 'server/server.js', 'upstream/demo.js', 'store/index.js'].map(load),
);

/** Limits that are checked and never reached. */
export const ROOMY = {
  models: [],
  budgets: ['day', 'month', 'total'].map((period) => ({ micros: 1e15, period })),
  requestsPerMinute: 1e9,
  tokensPerMinute: 1e12,
  concurrency: 1e6,
  expiresAt: null,
  addresses: [],
};

/** Starts a gateway whose every client is this caller. `folder`: null keeps the ledger in memory. */
export async function startLimited(file, port, folder, caller) {
  const secrets = new SecretRegistry();
  const state = resolveConfig(loadConfig(file, readFileSync(file, 'utf8'), {}), { env: {}, secrets });
  const gatekeeper = { isOpen: false, admit: () => ({ admitted: true, caller }) };
  const directory = { ...createDirectory(state, new DemoTransport()), gatekeeper };
  const redact = createRedact(secrets);
  const log = createLog(state.log.level, redact);
  const store = await openStore({ folder });
  const services = createServices({
    limits: state.limits,
    log,
    redact,
    directory: () => directory,
    store,
    timeZone: state.timeZone,
  });
  const gateway = new Gateway(services);
  const url = await gateway.listen({ host: '127.0.0.1', port });
  return { url, gateway, services, store };
}

const [, program, file, port, folder] = process.argv;
if (program === new URL(import.meta.url).pathname && file)
  await startLimited(file, Number(port), folder, { id: 'k', name: 'k', tags: ['team=a'], policy: ROOMY });
