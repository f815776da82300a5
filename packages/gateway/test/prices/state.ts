import { readFileSync } from 'node:fs';
import { loadConfig } from '../../src/config/load.ts';
import { type GatewayState, resolveConfig } from '../../src/config/resolve.ts';
import { SecretRegistry } from '../../src/config/secrets.ts';

/** The state of a configuration. */
export const stateWith = (yaml: string, env: Record<string, string> = {}): GatewayState =>
  resolveConfig(loadConfig('sluice.yaml', yaml, env), { env, secrets: new SecretRegistry() });

/** The version of the package that is installed here. */
export const SNAPSHOT_VERSION: string = JSON.parse(
  readFileSync(new URL('../../../../node_modules/@pydantic/genai-prices/package.json', import.meta.url), 'utf8'),
).version;
