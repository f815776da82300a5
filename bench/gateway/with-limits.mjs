/**
 * A gateway with a ledger whose only client has a key with every kind of limit, or with none: what limits cost is the difference.
 * Arguments: configuration file, port, data folder, and `on` or `off`. The ledger has no readers here, so it is not that of `sluice serve`.
 */
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

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

/** The same without limits. */
const UNLIMITED = { ...ROOMY, budgets: [], requestsPerMinute: null, tokensPerMinute: null, concurrency: null };

const [, program, file, port, folder, limits] = process.argv;
if (program === fileURLToPath(import.meta.url) && file) {
  const isLimited = limits === 'on';
  const caller = { id: 'k', name: 'k', tags: isLimited ? ['team=a'] : [], policy: isLimited ? ROOMY : UNLIMITED };
  await startLimited(file, Number(port), folder, caller);
}
