/** What a deployment gives to a gateway, and the gateway's configuration from that. */
import { mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { loadConfig } from '../../src/config/load.ts';
import { type GatewayState, resolveConfig } from '../../src/config/resolve.ts';
import { SecretRegistry } from '../../src/config/secrets.ts';
import { createFolder } from '../store/ledger-fixture.ts';
import { findKind, type Manifest } from './kubernetes.ts';

/** What a deployment gives to a gateway. */
export interface Deployment {
  config: string;
  /** Names of variables. */
  variables: readonly string[];
  /** Paths of files. */
  files: readonly string[];
  args: readonly string[];
}

/** What manifests of Kubernetes give to a gateway. */
export function readDeployment(manifests: readonly Manifest[]): Deployment {
  const { containers, volumes } = findKind(manifests, 'Deployment').spec.template.spec;
  const { args = [], env = [], volumeMounts = [] } = containers[0] ?? {};
  const files = volumeMounts.flatMap(({ name, mountPath }) =>
    (volumes.find((volume) => volume.name === name)?.secret?.items ?? []).map(({ path }) => `${mountPath}/${path}`),
  );
  return {
    config: findKind(manifests, 'ConfigMap').data['sluice.yaml'] ?? '',
    variables: env.map(({ name }) => name),
    files,
    args,
  };
}

/** The values that variables have in a test. */
export const VALUES: Readonly<Record<string, string>> = {
  SLUICE_STORE: 'postgres://sluice:some-password@postgres/sluice',
  SLUICE_LIMITS_STORE: 'redis://valkey:6379/0',
};

/** The content of every file. */
export const SECRET: string = '0123456789abcdef'.repeat(4);

/** Loads a configuration as a gateway of the deployment does. Its files are in a folder here. */
export function load({ config, variables, files }: Deployment): GatewayState {
  const root = createFolder();
  for (const file of files) {
    mkdirSync(dirname(join(root, file)), { recursive: true });
    writeFileSync(join(root, file), SECRET, { mode: 0o400 });
  }
  const env = Object.fromEntries(variables.map((name, at) => [name, VALUES[name] ?? `variable-${at}-0123456789`]));
  const source = loadConfig(join(root, 'sluice.yaml'), config.replaceAll('/run/secrets/', `${root}/run/secrets/`), env);
  return resolveConfig(source, { env, secrets: new SecretRegistry(), listen: {}, storedKeys: () => 'none' });
}
