/**
 * Writes fixtures/kubernetes/schema.json: the schemas of what the chart renders, from the OpenAPI document of Kubernetes, whose source the Go module proxy
 * has: `node scripts/chart/schema.js`. Descriptions are left out.
 */
import { execFileSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { ROOT } from '../build/packages.js';

const VERSION = '1.34.2';

/** Kinds of the chart, with the names of their schemas. */
const KINDS = {
  ConfigMap: 'io.k8s.api.core.v1.ConfigMap',
  Deployment: 'io.k8s.api.apps.v1.Deployment',
  Ingress: 'io.k8s.api.networking.v1.Ingress',
  PersistentVolumeClaim: 'io.k8s.api.core.v1.PersistentVolumeClaim',
  PodDisruptionBudget: 'io.k8s.api.policy.v1.PodDisruptionBudget',
  Secret: 'io.k8s.api.core.v1.Secret',
  Service: 'io.k8s.api.core.v1.Service',
  ServiceAccount: 'io.k8s.api.core.v1.ServiceAccount',
};

const download = execFileSync('go', ['mod', 'download', '-json', `k8s.io/kubernetes@v${VERSION}`], {
  cwd: tmpdir(),
  encoding: 'utf8',
});
const all = JSON.parse(readFileSync(join(JSON.parse(download).Dir, 'api/openapi-spec/swagger.json'), 'utf8')).definitions;
const definitions = {};
for (const name of Object.values(KINDS)) add(name);
const source = `Kubernetes ${VERSION}, api/openapi-spec/swagger.json, Apache License 2.0; reduced by scripts/chart/schema.js`;
const sorted = Object.fromEntries(Object.entries(definitions).sort(([a], [b]) => (a < b ? -1 : 1)));
writeFileSync(
  join(ROOT, 'fixtures/kubernetes/schema.json'),
  `${JSON.stringify({ source, kinds: KINDS, definitions: sorted })}\n`,
);

/** Adds a definition and all that it refers to. */
function add(name) {
  if (Object.hasOwn(definitions, name)) return;
  definitions[name] = strip(all[name]);
  for (const [, other] of JSON.stringify(definitions[name]).matchAll(/"#\/definitions\/([^"]+)"/g)) add(other);
}

/** A schema without what no check reads. Fields may have these names, too. */
function strip({ description: _, properties, items, additionalProperties, ...rest }) {
  return {
    ...Object.fromEntries(Object.entries(rest).filter(([name]) => !name.startsWith('x-'))),
    ...(properties && {
      properties: Object.fromEntries(Object.entries(properties).map(([name, schema]) => [name, strip(schema)])),
    }),
    ...(items && { items: strip(items) }),
    ...(additionalProperties && { additionalProperties: strip(additionalProperties) }),
  };
}
