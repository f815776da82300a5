/** A gateway that records nothing: what the ledger costs is the difference to it. Arguments: configuration file, port. */
import { readFileSync } from 'node:fs';

const out = new URL('../../packages/gateway/out/', import.meta.url);
const load = (path) => import(new URL(path, out).href);
const [{ loadConfig }, { resolveConfig }, { SecretRegistry }, { createLog }, { createRedact }] = await Promise.all(
  ['config/load.js', 'config/resolve.js', 'config/secrets.js', 'observe/log.js', 'observe/redact.js'].map(load),
);
const [{ createDirectory }, { createServices }, { Gateway }, { DemoTransport }] = await Promise.all(
  ['server/directory.js', 'server/run.js', 'server/server.js', 'upstream/demo.js'].map(load),
);

const [, , file, port] = process.argv;
const secrets = new SecretRegistry();
const state = resolveConfig(loadConfig(file, readFileSync(file, 'utf8'), {}), { env: {}, secrets });
const directory = createDirectory(state, new DemoTransport());
const redact = createRedact(secrets);
const log = createLog(state.log.level, redact);
const services = createServices({ limits: state.limits, log, redact, directory: () => directory });
await new Gateway(services).listen({ host: '127.0.0.1', port: Number(port) });
