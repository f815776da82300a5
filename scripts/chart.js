/**
 * Writes deploy/kubernetes/sluice.yaml from the chart of deploy/helm: `npm run chart`. Uses the Helm of the system, or builds one with Go.
 */
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { ROOT } from './build/packages.js';
import { requireHelm } from './chart/helm.js';

const CHART = join(ROOT, 'deploy/helm');

/** The file that those without Helm use. */
export const MANIFEST = join(ROOT, 'deploy/kubernetes/sluice.yaml');

/** A digest of all files of the chart: the manifest names it, so that tests see without Helm whether it is up to date. */
export function digestChart() {
  const files = readdirSync(CHART, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile());
  const paths = files.map((entry) => join(entry.parentPath, entry.name)).sort();
  const hash = createHash('sha256');
  for (const path of paths) hash.update(`${relative(CHART, path)}\0${readFileSync(path, 'utf8')}\0`);
  return hash.digest('hex').slice(0, 16);
}

/**
 * The manifest, as the chart renders it.
 * @param {string} helm the program
 */
export function renderManifest(helm) {
  const args = ['template', 'sluice', CHART, '--kube-version', KUBERNETES];
  const text = execFileSync(helm, args, { encoding: 'utf8' });
  return `${writeHeader()}${text.replaceAll(/^# Source: .*\n/gm, '')}`;
}

/** The oldest version of Kubernetes that the chart is for. */
export const KUBERNETES = '1.27.0';

const writeHeader = () => `# Gateways in Kubernetes. PostgreSQL and Valkey are yours; docs/deploy.md has the steps.
# Written by "npm run chart" from deploy/helm with its defaults; chart ${digestChart()}.
`;

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  writeFileSync(MANIFEST, renderManifest(requireHelm()));
  console.log(`wrote ${relative(ROOT, MANIFEST)}`);
}
