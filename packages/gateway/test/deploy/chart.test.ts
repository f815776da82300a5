/** The chart of deploy/helm: the manifest that is written from it, and, with Helm, what it renders from other values. */
import { execFileSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import { findHelm } from '../../../../scripts/chart/helm.js';
import { digestChart, KUBERNETES, MANIFEST, renderManifest } from '../../../../scripts/chart.js';
import { needs } from '../../../../test/needs/needs.ts';
import { createTestFolder } from '../real-parts/programs.js';
import { load, readDeployment, SECRET } from './deployment.ts';
import { findDangling, findKind, type Manifest, readManifests, validateManifest } from './kubernetes.ts';

const CHART = fileURLToPath(new URL('../../../../deploy/helm', import.meta.url));

const manifest = readFileSync(MANIFEST, 'utf8');

describe('deploy/kubernetes/sluice.yaml', () => {
  test('was written from this chart; "npm run chart" writes it again', () => {
    expect(manifest).toContain(`chart ${digestChart()}.\n`);
  });

  test('is valid by the schemas of Kubernetes, and refers to nothing that is missing', () => {
    const manifests = readManifests(manifest);
    expect(manifests.map(({ kind }) => kind).sort()).toEqual(['ConfigMap', 'Deployment', 'PodDisruptionBudget', 'Service']);
    expect(manifests.flatMap(validateManifest)).toEqual([]);
    expect(findDangling(manifests)).toEqual([]);
  });
});

/** What the strictest of the Pod Security Standards of Kubernetes asks for, and what a pod that needs no API should not have. */
describe('a pod of deploy/kubernetes/sluice.yaml', () => {
  const { spec } = findKind(readManifests(manifest), 'Deployment').spec.template;
  const [container, ...others] = spec.containers;

  test('has one container, without privileges and with a file system that cannot be written', () => {
    expect(others).toEqual([]);
    expect(container?.securityContext).toEqual({
      allowPrivilegeEscalation: false,
      readOnlyRootFilesystem: true,
      capabilities: { drop: ['ALL'] },
    });
    expect(spec.securityContext).toEqual({
      runAsNonRoot: true,
      runAsUser: 1000,
      runAsGroup: 1000,
      fsGroup: 1000,
      seccompProfile: { type: 'RuntimeDefault' },
    });
  });

  test('shares nothing with its node, and has neither a token nor variables of other services', () => {
    expect(spec).toMatchObject({ automountServiceAccountToken: false, enableServiceLinks: false });
    for (const shared of ['hostNetwork', 'hostPID', 'hostIPC', 'hostUsers']) expect(spec).not.toHaveProperty(shared);
    expect(container?.ports.filter((port) => 'hostPort' in port)).toEqual([]);
    const sources = spec.volumes.map(({ name: _, ...source }) => Object.keys(source).join());
    expect(new Set(sources)).toEqual(new Set(['configMap', 'secret', 'emptyDir']));
  });

  test('has limits for its memory and for every folder that it may write', () => {
    expect(container?.resources).toMatchObject({ limits: { memory: '1Gi' }, requests: { memory: '256Mi' } });
    const written = spec.volumes.filter(({ emptyDir }) => emptyDir !== undefined);
    expect(written.map(({ name, emptyDir }) => [name, emptyDir?.sizeLimit])).toEqual([
      ['data', '4Gi'],
      ['tmp', '64Mi'],
    ]);
    const readOnly = container?.volumeMounts.filter((mount) => mount.readOnly).map(({ name }) => name);
    expect(readOnly).toEqual(['config', 'secrets']);
  });

  test('reads secrets from a Secret only, whose files others cannot read', () => {
    const variables = container?.env.map(({ valueFrom }) => Object.keys(valueFrom ?? {}).join());
    expect(new Set(variables)).toEqual(new Set(['secretKeyRef']));
    // As octal number, which it is for Kubernetes alone.
    expect(manifest).toMatch(/secret:\n +secretName: "sluice"\n +defaultMode: 0440\n/);
  });

  test('is reached by clients on one port, and believes no other address about them', () => {
    const { ports } = findKind(readManifests(manifest), 'Service').spec;
    expect(ports.map(({ targetPort }) => targetPort)).toEqual(['http']);
    const config = parse(findKind(readManifests(manifest), 'ConfigMap').data['sluice.yaml'] ?? '');
    expect(config).toMatchObject({ trusted_proxies: [], metrics: { listen: '0.0.0.0:9464' } });
    expect(config.admin.key).toMatch(/^file:/);
  });
});

describe('the check of manifests', () => {
  const find = (kind: string): Manifest => structuredClone(findKind(readManifests(manifest), kind));

  test.each<[string, (deployment: Manifest) => void, string]>([
    ['an unknown field', ({ spec }) => Object.assign(spec, { replica: 1 }), 'Deployment.spec.replica is unknown'],
    ['a wrong type', ({ spec }) => Object.assign(spec, { replicas: '2' }), 'Deployment.spec.replicas is not a whole number'],
    ['a missing field', ({ spec }) => Object.assign(spec, { selector: undefined }), 'Deployment.spec.selector is not an object'],
    ['another version', (deployment) => Object.assign(deployment, { apiVersion: 'v1' }), 'apiVersion is v1 instead of apps/v1'],
    [
      'a number in labels',
      ({ metadata }) => Object.assign(metadata.labels, { n: 1 }),
      'Deployment.metadata.labels.n is not a string',
    ],
  ])('finds %s', (_, change, problem) => {
    const deployment = find('Deployment');
    change(deployment);
    expect(validateManifest(deployment)).toContain(problem);
  });

  test('finds names that refer to nothing', () => {
    const deployment = find('Deployment');
    const { spec, metadata } = deployment.spec.template;
    spec.volumes = [];
    spec.containers[0]?.env.push({ name: 'SLUICE_STORE' });
    metadata.labels = {};
    const dangling = findDangling([deployment, find('Service')]);
    expect(dangling).toEqual(expect.arrayContaining(['volume config', 'variable SLUICE_STORE twice']));
    expect(dangling).toContain('label app.kubernetes.io/name of Service');
  });
});

/** Text that YAML, templates or shells could take for something else. */
const HOSTILE = ['a: b # c', '{{ .Values.image }}', `"q" 'q' \\`, 'yes', '1e3', 'two\nlines\n', '- x', '&a *a !t', 'ü ✓', ''];

describe('the chart', needs('helm'), () => {
  const helm = findHelm() ?? '';

  const render = (values: object, release = 'sluice'): Manifest[] => {
    const file = join(createTestFolder('chart'), 'values.yaml');
    writeFileSync(file, JSON.stringify(values));
    const args = ['template', release, CHART, '--kube-version', KUBERNETES, '--values', file];
    return readManifests(execFileSync(helm, args, { encoding: 'utf8', stdio: 'pipe' }));
  };

  test('has no complaint of helm lint', () => {
    const output = execFileSync(helm, ['lint', '--strict', '--kube-version', KUBERNETES, CHART], {
      encoding: 'utf8',
      stdio: 'pipe',
    });
    expect(output).toContain('0 chart(s) failed');
  });

  test('renders deploy/kubernetes/sluice.yaml', () => {
    expect(renderManifest(helm)).toBe(manifest);
  });

  const CREATED = { create: true, values: { 'admin-key': SECRET, store: 's', 'limits-store': 'l', pepper: 'p' } };
  const SETS: Record<string, { values: object; release?: string; kinds: string[]; persistent?: boolean }> = {
    'another name': { values: {}, release: 'team-a', kinds: ['ConfigMap', 'Deployment', 'PodDisruptionBudget', 'Service'] },
    'five replicas': { values: { replicas: 5 }, kinds: ['ConfigMap', 'Deployment', 'PodDisruptionBudget', 'Service'] },
    'one replica': { values: { replicas: 1 }, kinds: ['ConfigMap', 'Deployment', 'Service'] },
    'SQLite in a volume': {
      values: { replicas: 1, persistence: { enabled: true, storageClass: 'fast' } },
      kinds: ['ConfigMap', 'Deployment', 'PersistentVolumeClaim', 'Service'],
      persistent: true,
    },
    'SQLite in a volume that exists': {
      values: { replicas: 1, persistence: { enabled: true, existingClaim: 'mine' } },
      kinds: ['ConfigMap', 'Deployment', 'Service'],
      persistent: true,
    },
    everything: {
      values: {
        image: { repository: 'registry.example/sluice', digest: `sha256:${'ab'.repeat(32)}`, pullSecrets: [{ name: 'pull' }] },
        secrets: CREATED,
        serviceAccount: { create: true, annotations: { a: 'b' } },
        service: { type: 'LoadBalancer', port: 8080, annotations: { a: 1 } },
        ingress: {
          enabled: true,
          className: 'nginx',
          annotations: { 'nginx.ingress.kubernetes.io/proxy-read-timeout': 600 },
          hosts: ['llm.example'],
          tls: [{ hosts: ['llm.example'], secretName: 'tls' }],
        },
        extraEnv: [
          { name: 'A', value: 'b' },
          { name: 'POD', valueFrom: { fieldRef: { fieldPath: 'metadata.name' } } },
        ],
        nodeSelector: { disk: true },
        tolerations: [{ key: 'k', operator: 'Exists' }],
        affinity: { podAntiAffinity: {} },
        podAnnotations: { number: 1 },
        podLabels: { team: 'a' },
        pdb: { minAvailable: '50%' },
        resources: { limits: { memory: '2Gi' } },
        config: { models: { fast: 'openai/gpt-5' }, trusted_proxies: ['10.1.2.0/24'] },
      },
      kinds: ['ConfigMap', 'Deployment', 'Ingress', 'PodDisruptionBudget', 'Secret', 'Service', 'ServiceAccount'],
    },
  };

  test.each(Object.keys(SETS))('%s: valid, complete, and accepted by the gateway', (name) => {
    const { values, release = 'sluice', kinds, persistent = false } = SETS[name] ?? { values: {}, kinds: [] };
    const manifests = render(values, release);
    expect(manifests.map(({ kind }) => kind).sort()).toEqual(kinds);
    expect(manifests.flatMap(validateManifest)).toEqual([]);
    expect(findDangling(manifests)).toEqual([]);
    const deployment = readDeployment(manifests);
    const { store, limitsStore, adminKey, pepperFile } = load(deployment);
    expect(adminKey?.reveal()).toBe(SECRET);
    expect([store === undefined, limitsStore === undefined, pepperFile === undefined]).toEqual([
      persistent,
      persistent,
      persistent,
    ]);
    const { replicas, template } = findKind(manifests, 'Deployment').spec;
    if (!persistent) expect(limitsStore?.nodes).toBe(replicas);
    expect(template.spec.volumes.some(({ persistentVolumeClaim }) => persistentVolumeClaim)).toBe(persistent);
  });

  test.each(HOSTILE)('%j arrives as it is, wherever it is written', (text) => {
    const values = {
      secrets: { ...CREATED, values: { ...CREATED.values, keys: text } },
      extraEnv: [{ name: 'X', value: text }],
      podAnnotations: { note: text },
      nodeSelector: { label: text },
      config: { models: { [`m ${text}`]: text } },
    };
    const manifests = render(values);
    expect(manifests.flatMap(validateManifest)).toEqual([]);
    const { metadata, spec } = findKind(manifests, 'Deployment').spec.template;
    expect(findKind(manifests, 'Secret').stringData['keys']).toBe(text);
    expect(spec.containers[0]?.env.find(({ name }) => name === 'X')).toEqual({ name: 'X', value: text });
    expect([metadata.annotations?.['note'], spec.nodeSelector?.['label']]).toEqual([text, text]);
    expect(parse(findKind(manifests, 'ConfigMap').data['sluice.yaml'] ?? '').models).toEqual({ [`m ${text}`]: text });
  });

  test.each<[string, object, string]>([
    ['an unknown value', { replica: 3 }, "additional properties 'replica' not allowed"],
    ['no replicas', { replicas: 0 }, "at '/replicas': minimum: got 0, want 1"],
    ['a tag that YAML takes for a number', { image: { tag: 1.1 } }, "at '/image/tag': got number, want string"],
    ['no image', { image: { repository: null } }, 'image.repository: required'],
    ['no tag', { image: { tag: null } }, 'image.tag: required without image.digest'],
    ['a wrong digest', { image: { digest: 'sha256:1' } }, "at '/image/digest'"],
    ['several gateways with SQLite', { persistence: { enabled: true } }, 'replicas: must be 1 with persistence.enabled'],
    ['no database', { config: { store: null } }, 'config.store: required without persistence.enabled'],
    ['no limits store', { config: { limits_store: null } }, 'config.limits_store: required with more than one replica'],
    ['a secret without values', { secrets: { create: true } }, 'secrets.values.admin-key: required with secrets.create'],
    ['no host', { ingress: { enabled: true } }, 'ingress.hosts: name at least one host'],
    ['no proxy', { ingress: { enabled: true, hosts: ['a.example'] } }, 'config.trusted_proxies: name where the ingress'],
    ['no path', { ingress: { paths: ['v1'] } }, "at '/ingress/paths/0'"],
  ])('%s is an error with the name of the value', (_, values, message) => {
    expect(() => render(values)).toThrow(message);
  });
});
