/** Manifests of Kubernetes: read, checked against the schemas of its API, and as what they give to a gateway. */
import { readFileSync } from 'node:fs';
import { parseAllDocuments } from 'yaml';

const { kinds, definitions } = JSON.parse(
  readFileSync(new URL('../../../../fixtures/kubernetes/schema.json', import.meta.url), 'utf8'),
) as { kinds: Record<string, string>; definitions: Record<string, Schema> };

interface Schema {
  type?: string;
  format?: string;
  $ref?: string;
  properties?: Record<string, Schema>;
  required?: string[];
  items?: Schema;
  additionalProperties?: Schema;
}

/** A manifest, as far as tests read it. */
export interface Manifest {
  apiVersion: string;
  kind: string;
  metadata: { name: string; labels: Record<string, string>; annotations?: Record<string, string> };
  data: Record<string, string>;
  stringData: Record<string, string>;
  spec: {
    replicas: number;
    minAvailable: number;
    ports: { targetPort: string }[];
    rules: { host: string }[];
    selector: { matchLabels: Record<string, string> } & Record<string, unknown>;
    template: { metadata: { labels: Record<string, string>; annotations?: Record<string, string> }; spec: PodSpec };
  };
}

interface PodSpec {
  terminationGracePeriodSeconds: number;
  nodeSelector?: Record<string, string>;
  securityContext: object;
  containers: Container[];
  volumes: {
    name: string;
    secret?: { items: { path: string }[] };
    emptyDir?: { sizeLimit?: string };
    persistentVolumeClaim?: { claimName: string };
  }[];
}

interface Container
  extends Record<'startupProbe' | 'livenessProbe' | 'readinessProbe', { httpGet: { path: string; port: string } }> {
  image: string;
  args: string[];
  ports: { name: string }[];
  env: { name: string; value?: string; valueFrom?: object }[];
  volumeMounts: { name: string; mountPath: string; readOnly?: boolean }[];
  securityContext: object;
  resources: object;
}

/** The manifests of a file. */
export function readManifests(text: string): Manifest[] {
  const documents = parseAllDocuments(text);
  const [error] = documents.flatMap(({ errors }) => errors);
  if (error) throw error;
  return documents.flatMap((document) => (document.toJS() === null ? [] : [document.toJS() as Manifest]));
}

/** The manifest of a kind. */
export function findKind(manifests: readonly Manifest[], kind: string): Manifest {
  const found = manifests.find((manifest) => manifest.kind === kind);
  if (!found) throw new Error(`there is no ${kind}`);
  return found;
}

/** What is wrong with a manifest by the schema of its kind: unknown and missing fields, and wrong types. */
export function validateManifest(manifest: Manifest): string[] {
  const name = kinds[manifest.kind];
  if (name === undefined) return [`unknown kind ${manifest.kind}`];
  const [, group = '', version = ''] = /^io\.k8s\.api\.(\w+)\.(\w+)\./.exec(name) ?? [];
  const suffix = group === 'networking' ? 'networking.k8s.io' : group;
  const apiVersion = group === 'core' ? version : `${suffix}/${version}`;
  const wrong = manifest.apiVersion === apiVersion ? [] : [`apiVersion is ${manifest.apiVersion} instead of ${apiVersion}`];
  return [...wrong, ...check({ $ref: `#/definitions/${name}` }, manifest, manifest.kind)];
}

function check(schema: Schema, value: unknown, path: string): string[] {
  if (schema.$ref !== undefined) return check(definitions[schema.$ref.replace('#/definitions/', '')] ?? {}, value, path);
  if (schema.format === 'int-or-string' && Number.isInteger(value)) return [];
  switch (schema.type) {
    case 'object':
      return checkObject(schema, value, path);
    case 'array':
      if (!Array.isArray(value)) return [`${path} is not a list`];
      return value.flatMap((item, at) => check(schema.items ?? {}, item, `${path}[${at}]`));
    case 'integer':
      return Number.isInteger(value) ? [] : [`${path} is not a whole number`];
    case 'string':
    case 'boolean':
    case 'number':
      return typeof value === schema.type ? [] : [`${path} is not a ${schema.type}`];
    default:
      return [];
  }
}

function checkObject({ properties, required = [], additionalProperties }: Schema, value: unknown, path: string): string[] {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return [`${path} is not an object`];
  const missing = required.filter((name) => !Object.hasOwn(value, name)).map((name) => `${path}.${name} is missing`);
  const wrong = Object.entries(value).flatMap(([name, field]) => {
    const schema = properties && Object.hasOwn(properties, name) ? properties[name] : additionalProperties;
    if (schema) return check(schema, field, `${path}.${name}`);
    return properties ? [`${path}.${name} is unknown`] : [];
  });
  return [...missing, ...wrong];
}

/** Names that refer to nothing: volumes, ports, labels; and variables that are set twice. */
export function findDangling(manifests: readonly Manifest[]): string[] {
  const { metadata, spec } = findKind(manifests, 'Deployment').spec.template;
  const [{ volumeMounts, env, ports, startupProbe, livenessProbe, readinessProbe } = {} as Container] = spec.containers;
  const volumes = new Set(spec.volumes.map(({ name }) => name));
  const portNames = new Set(ports.map(({ name }) => name));
  const usedPorts = [
    ...[startupProbe, livenessProbe, readinessProbe].map(({ httpGet }) => httpGet.port),
    ...findKind(manifests, 'Service').spec.ports.map(({ targetPort }) => targetPort),
  ];
  const selectors = manifests.flatMap(({ kind, spec: { selector } = {} as Manifest['spec'] }) =>
    selector === undefined
      ? []
      : [{ kind, labels: (kind === 'Service' ? selector : selector.matchLabels) as Record<string, string> }],
  );
  return [
    ...volumeMounts.filter(({ name }) => !volumes.has(name)).map(({ name }) => `volume ${name}`),
    ...usedPorts.filter((port) => !portNames.has(port)).map((port) => `port ${port}`),
    ...env
      .filter(({ name }, at) => env.findIndex((other) => other.name === name) !== at)
      .map(({ name }) => `variable ${name} twice`),
    ...selectors.flatMap(({ kind, labels }) =>
      Object.entries(labels).flatMap(([name, value]) => (metadata.labels[name] === value ? [] : [`label ${name} of ${kind}`])),
    ),
  ];
}
