/** The configurations of deploy/ are read by the gateway, with the variables and files that each deployment gives it. */
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import { COMMANDS } from '../../src/cli/commands.ts';
import { loadConfig } from '../../src/config/load.ts';
import { type Deployment, load, readDeployment, SECRET, VALUES } from './deployment.ts';
import { readManifests } from './kubernetes.ts';

const DEPLOY = fileURLToPath(new URL('../../../../deploy/', import.meta.url));

const read = (file: string): string => readFileSync(`${DEPLOY}${file}`, 'utf8');

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

const readKubernetes = (): Deployment => readDeployment(readManifests(read('kubernetes/sluice.yaml')));

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
