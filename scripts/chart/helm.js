/** Where Helm is. It is a Go program, whose source the Go module proxy has. */
import { execFileSync, spawnSync } from 'node:child_process';
import { existsSync, mkdirSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { ROOT } from '../build/packages.js';

const VERSION = '3.19.5';

/** Where the Helm is that was built here. */
const OWN = join(ROOT, `.cache/helm/${VERSION}/helm`);

/**
 * The Helm of the system, or the one that was built here; undefined without both.
 * @returns {string | undefined}
 */
export function findHelm() {
  if (existsSync(OWN)) return OWN;
  return spawnSync('helm', ['version', '--short'], { stdio: 'ignore' }).status === 0 ? 'helm' : undefined;
}

/**
 * Finds Helm, or builds it: 3.5 minutes of CPU, so this is for the night and for those who change the chart.
 * @returns {string}
 */
export function requireHelm() {
  const found = findHelm();
  if (found !== undefined) return found;
  console.log(`building Helm ${VERSION} with Go (some minutes) …`);
  mkdirSync(dirname(OWN), { recursive: true });
  const env = { ...process.env, GOBIN: dirname(OWN), GOFLAGS: '-buildvcs=false' };
  try {
    execFileSync('go', ['install', `helm.sh/helm/v3/cmd/helm@v${VERSION}`], { env, stdio: ['ignore', 'ignore', 'inherit'] });
  } catch (error) {
    throw new Error(`Helm cannot be built: ${error.message}; install Helm 3, or Go`);
  }
  return OWN;
}
