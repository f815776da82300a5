/** Helm for `npm run chart`: a Go program, which the Go module proxy has in source. */
import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { ROOT } from '../build/packages.js';

const VERSION = '3.19.5';

/** Where Helm is after `buildHelm`. */
export const OWN_HELM = join(ROOT, `.cache/helm/${VERSION}/helm`);

/** Builds Helm, unless it is there. Takes 3.5 minutes of CPU, so that it is for the night, and for those who change the chart. */
export function buildHelm() {
  if (existsSync(OWN_HELM)) return;
  const folder = dirname(OWN_HELM);
  mkdirSync(folder, { recursive: true });
  console.log(`building Helm ${VERSION} …`);
  try {
    execFileSync('go', ['install', `helm.sh/helm/v3/cmd/helm@v${VERSION}`], {
      env: { ...process.env, GOBIN: folder, GOFLAGS: '-buildvcs=false' },
      stdio: ['ignore', 'ignore', 'inherit'],
    });
  } catch (error) {
    throw new Error(`Helm could not be built: ${error.message}; install Helm or Go`);
  }
}
