import { createDefaultSource, loadConfig } from '../../src/config/load.ts';
import { type GatewayState, resolveConfig } from '../../src/config/resolve.ts';
import { type Env, SecretRegistry } from '../../src/config/secrets.ts';

interface World {
  /** Absent: no file. */
  yaml?: string | undefined;
  env?: Env | undefined;
  listen?: { host?: string; port?: number } | undefined;
  secrets?: SecretRegistry;
}

/** The state of a gateway in a world of its own. */
export function stateOf({ yaml, env = {}, listen, secrets = new SecretRegistry() }: World): GatewayState {
  const source = yaml === undefined ? createDefaultSource() : loadConfig('sluice.yaml', yaml, env);
  return resolveConfig(source, { env, secrets, ...(listen && { listen }) });
}

/** `provider/model` of those who answer, in order. */
export const answering = (state: GatewayState, ...name: Parameters<GatewayState['resolveModel']>): string[] | undefined =>
  state.resolveModel(...name)?.map(({ provider, model }) => `${provider.id}/${model}`);
