/** The configurations of deploy/ are read by the gateway, with the variables and files that each deployment gives it. */
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';
import { parse, parseAllDocuments } from 'yaml';
import { COMMANDS } from '../../src/cli/commands.ts';
import { loadConfig } from '../../src/config/load.ts';
import { resolveConfig } from '../../src/config/resolve.ts';
import { SecretRegistry } from '../../src/config/secrets.ts';
import { createFolder } from '../store/ledger-fixture.ts';

const DEPLOY = fileURLToPath(new URL('../../../../deploy/', import.meta.url));

const read = (file: string): string => readFileSync(`${DEPLOY}${file}`, 'utf8');

/** What a deployment gives to a gateway. */
interface Deployment {
  config: string;
  /** Names of variables. */
  variables: readonly string[];
  /** Paths of files. */
  files: readonly string[];
  args: readonly string[];
}

interface Compose {
  services: Record<string, { environment: Record<string, string>; secrets: string[] }>;
}

function readCompose(): Deployment {
  const { services } = parse(read('compose.yaml'), { merge: true }) as Compose;
  const { environment = {}, secrets = [] } = services['sluice-1'] ?? {};
  return {
    config: read('sluice.yaml'),
    variables: Object.keys(environment),
    files: secrets.map((name) => `/run/secrets/${name}`),
    args: ['serve', '--host', '0.0.0.0', '--port', '4141'],
  };
}

interface Pod {
  containers: { args: string[]; env: { name: string }[]; volumeMounts: { name: string; mountPath: string }[] }[];
  volumes: { name: string; secret?: { items: { path: string }[] } }[];
}

function readKubernetes(): Deployment {
  const documents = parseAllDocuments(read('kubernetes/sluice.yaml')).map((document) => document.toJS());
  const { template } = documents.find(({ kind }) => kind === 'Deployment').spec;
  const { containers, volumes } = template.spec as Pod;
  const { args = [], env = [], volumeMounts = [] } = containers[0] ?? {};
  const files = volumeMounts.flatMap(({ name, mountPath }) =>
    (volumes.find((volume) => volume.name === name)?.secret?.items ?? []).map(({ path }) => `${mountPath}/${path}`),
  );
  const config: string = documents.find(({ kind }) => kind === 'ConfigMap').data['sluice.yaml'];
  return { config, variables: env.map(({ name }) => name), files, args };
}

/** The values that variables have in a test. */
const VALUES: Readonly<Record<string, string>> = {
  SLUICE_STORE: 'postgres://sluice:some-password@postgres/sluice',
  SLUICE_LIMITS_STORE: 'redis://valkey:6379/0',
};

const SECRET = '0123456789abcdef'.repeat(4);

/** Loads a configuration as a gateway of the deployment does. Its files are in a folder here. */
function load({ config, variables, files }: Deployment) {
  const root = createFolder();
  for (const file of files) {
    mkdirSync(dirname(join(root, file)), { recursive: true });
    writeFileSync(join(root, file), SECRET, { mode: 0o400 });
  }
  const env = Object.fromEntries(variables.map((name, at) => [name, VALUES[name] ?? `variable-${at}-0123456789`]));
  const source = loadConfig(join(root, 'sluice.yaml'), config.replaceAll('/run/secrets/', `${root}/run/secrets/`), env);
  return resolveConfig(source, { env, secrets: new SecretRegistry(), listen: {}, storedKeys: () => 'none' });
}

describe.each([
  { name: 'compose', deployment: readCompose() },
  { name: 'Kubernetes', deployment: readKubernetes() },
])('$name', ({ deployment }) => {
  test('the gateway accepts the configuration', () => {
    const { listen, store, limitsStore, adminKey, pepperFile, limits, providers } = load(deployment);
    expect(listen).toMatchObject({ host: '0.0.0.0', port: 4141 });
    expect(store?.place).toContain('sluice');
    expect(limitsStore).toMatchObject({ nodes: 2, prefix: 'sluice:' });
    expect(adminKey?.reveal()).toBe(SECRET);
    expect(deployment.files.some((file) => pepperFile?.endsWith(file))).toBe(true);
    expect(limits.drainDelayMs).toBeGreaterThan(0);
    expect([...providers.keys()]).toContain('openai');
  });

  test('no secret is written in the configuration', () => {
    const { literalSecrets } = loadConfig('sluice.yaml', deployment.config, VALUES);
    expect(literalSecrets).toEqual([]);
  });

  test('a variable or a file that is not given is an error', () => {
    expect(() => load({ ...deployment, variables: [] })).toThrow(/SLUICE_STORE/);
    expect(() => load({ ...deployment, files: [] })).toThrow(/admin.key/);
  });
});

const unit = read('systemd/sluice.service');

const UNIT_ARGS = /^ExecStart=\S+\/sluice (.+)$/m.exec(unit)?.[1]?.split(' ') ?? [];

test.each([
  { name: 'compose', args: readCompose().args },
  { name: 'Kubernetes', args: readKubernetes().args },
  { name: 'systemd', args: UNIT_ARGS },
])('$name: the command has only options that exist', ({ args: [command = '', ...args] }) => {
  const known = Object.keys(COMMANDS[command]?.options ?? {}).map((name) => `--${name}`);
  const used = args.filter((arg) => arg.startsWith('--'));
  expect(used.length).toBeGreaterThan(0);
  expect(used.filter((name) => !known.includes(name))).toEqual([]);
});

test('systemd: the data folder is the one that the unit may write', () => {
  expect(/^Environment=SLUICE_DATA=\/var\/lib\/(\w+)$/m.exec(unit)?.[1]).toBe(/^StateDirectory=(\w+)$/m.exec(unit)?.[1]);
});
