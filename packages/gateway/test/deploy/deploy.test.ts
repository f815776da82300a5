/** The files of deploy/: metrics exist, rules are valid, and grace periods are long enough to drain. */
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import { needs } from '../../../../test/needs/needs.ts';
import { readDuration } from '../../src/config/schema-values.ts';
import { Metrics } from '../../src/observe/metrics.ts';
import { OWN_PAGES } from '../../src/server/server.ts';
import { NginxServer } from '../real-parts/nginx.js';
import { findKind, type Manifest, readManifests } from './kubernetes.ts';

const DEPLOY = fileURLToPath(new URL('../../../../deploy/', import.meta.url));

const read = (file: string): string => readFileSync(`${DEPLOY}${file}`, 'utf8');

/** Names of all metrics of a gateway. */
async function listMetrics(): Promise<Set<string>> {
  const metrics = new Metrics();
  metrics.watchLimitsStore(() => true);
  metrics.watchReservations(() => ({ requests: 0, micros: 0 }));
  const text = await metrics.text();
  return new Set([...text.matchAll(/^# TYPE (\w+) /gm)].map(([, name]) => name ?? ''));
}

const listNames = (expressions: string): string[] =>
  [...expressions.matchAll(/\bsluice_\w+/g)].map(([name]) => name.replace(/_(bucket|sum|count)$/, ''));

interface Dashboard {
  uid: string;
  panels: { id: number; title: string; targets: { expr: string }[] }[];
}

interface Rules {
  groups: { rules: { alert: string; expr: string; annotations: { summary: string } }[] }[];
}

const dashboard = JSON.parse(read('grafana/sluice.json')) as Dashboard;
const rules = (parse(read('prometheus/alerts.yaml')) as Rules).groups.flatMap((group) => group.rules);

const EXPRESSIONS = [
  ...dashboard.panels.flatMap(({ title, targets }) => targets.map(({ expr }) => ({ name: `panel ${title}`, expr }))),
  ...rules.map(({ alert, expr }) => ({ name: `alert ${alert}`, expr })),
];

test.each(EXPRESSIONS)('$name uses metrics that exist', async ({ expr }) => {
  const names = listNames(expr);
  expect(names.length).toBeGreaterThan(0);
  const known = await listMetrics();
  expect(names.filter((name) => !known.has(name))).toEqual([]);
});

test('panels have distinct ids, and alerts distinct names', () => {
  expect(new Set(dashboard.panels.map(({ id }) => id)).size).toBe(dashboard.panels.length);
  expect(new Set(rules.map(({ alert }) => alert)).size).toBe(rules.length);
});

test('nginx accepts its configuration', needs('nginx'), () => {
  expect(NginxServer.check()).toContain('test is successful');
});

describe('promtool', needs('promtool'), () => {
  test.each([
    ['check', 'alerts.yaml'],
    ['test', 'alerts.test.yaml'],
  ])('%s rules %s', (command, file) => {
    const output = execFileSync('promtool', [command, 'rules', file], { cwd: `${DEPLOY}prometheus`, encoding: 'utf8' });
    expect(output).toContain('SUCCESS');
  });
});

interface Limits {
  limits: { drain_delay: string; drain: string };
}

/** The time that a gateway needs to stop, in seconds. */
const readStopTime = (config: string): number => {
  const { drain_delay, drain } = (parse(config) as Limits).limits;
  return ((readDuration(drain_delay) ?? 0) + (readDuration(drain) ?? 0)) / 1000;
};

describe('kubernetes', () => {
  const manifests = readManifests(read('kubernetes/sluice.yaml'));
  const find = (kind: string): Manifest => findKind(manifests, kind);
  const pod = find('Deployment').spec.template.spec;

  test('the grace period is longer than the drain, by at least the 5 s that closing takes', () => {
    const needed = readStopTime(find('ConfigMap').data['sluice.yaml'] ?? '') + 5;
    expect(pod.terminationGracePeriodSeconds).toBeGreaterThanOrEqual(needed);
    expect(pod.terminationGracePeriodSeconds).toBeLessThanOrEqual(needed + 10);
  });

  test.each(['startupProbe', 'livenessProbe', 'readinessProbe'] as const)('%s requests a page that is public', (probe) => {
    expect(OWN_PAGES.get(pod.containers[0]?.[probe].httpGet.path ?? '')?.isPublic).toBe(true);
  });

  test('the disruption budget selects the pods, and lets one of them go', () => {
    const { minAvailable, selector } = find('PodDisruptionBudget').spec;
    expect(selector.matchLabels).toEqual(find('Deployment').spec.template.metadata.labels);
    expect(minAvailable).toBeLessThan(find('Deployment').spec.replicas);
  });
});

interface Compose {
  services: Record<
    string,
    { image: string; volumes?: string[]; read_only?: boolean; tmpfs?: string[]; stop_grace_period?: string }
  >;
  volumes: Record<string, object>;
}

const readCompose = (file: string): Compose => parse(read(file), { merge: true }) as Compose;

describe.each([
  { file: '../compose.yaml', gateways: ['sluice'] },
  { file: 'compose.yaml', gateways: ['sluice-1', 'sluice-2'] },
])('$file', ({ file, gateways }) => {
  const { services, volumes } = readCompose(file);

  test.each(gateways)('%s has a volume of its own for its data, and a place for temporary files', (name) => {
    const { read_only, tmpfs = [], volumes: mounted = [] } = services[name] ?? {};
    const [volume = ''] = mounted.flatMap((text) => /^([\w-]+):\/data$/.exec(text)?.[1] ?? []);
    expect(Object.keys(volumes)).toContain(volume);
    expect(read_only && tmpfs.some((text) => text.startsWith('/tmp:'))).toBe(true);
    const shared = Object.entries(services).filter(([, service]) =>
      service.volumes?.some((text) => text.startsWith(`${volume}:`)),
    );
    expect(shared.map(([owner]) => owner)).toEqual([name]);
  });

  test('images of others have a digest, or at least a minor version', () => {
    const images = Object.values(services).flatMap(({ image }) => (image === 'sluice' ? [] : [image]));
    for (const image of images) expect(image).toMatch(/^[\w./-]+:\d+\.\d+[\w.-]*(@sha256:[0-9a-f]{64})?$/);
    expect(images.filter((image) => !image.includes('@')).map((image) => image.split(':')[0])).toEqual(
      images.length === 0 ? [] : ['valkey/valkey'],
    );
  });
});

test('compose: the grace period is longer than the drain, and the gateways differ in their volume alone', () => {
  const { services } = readCompose('compose.yaml');
  const { stop_grace_period: grace = '' } = services['sluice-1'] ?? {};
  expect((readDuration(grace) ?? 0) / 1000).toBeGreaterThanOrEqual(readStopTime(read('sluice.yaml')) + 5);
  expect(JSON.stringify(services['sluice-2'])).toBe(
    JSON.stringify(services['sluice-1']).replace('sluice-1:/data', 'sluice-2:/data'),
  );
});

test('systemd: the unit waits longer than the default drain of 115 s', () => {
  expect(Number(/^TimeoutStopSec=(\d+)$/m.exec(read('systemd/sluice.service'))?.[1])).toBeGreaterThanOrEqual(120);
});
