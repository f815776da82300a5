import { existsSync, statSync } from 'node:fs';
import { dirname } from 'node:path';
import { fileURLToPath } from 'node:url';
import { findNginx } from '../../packages/gateway/test/real-parts/nginx.js';
import { findPostgres } from '../../packages/gateway/test/real-parts/postgres.js';
import { findProgram } from '../../packages/gateway/test/real-parts/programs.js';
import { findRedis } from '../../packages/gateway/test/real-parts/redis.js';
import { findHelm } from '../../scripts/chart/helm.js';
import type { Need } from './reasons.ts';

/** Where Chromium is; undefined when there is none. Its shell without windows needs half of the time. */
export function findChromium(): string | undefined {
  const given = process.env['CHROMIUM'];
  return given && existsSync(given)
    ? given
    : findProgram('chromium-headless-shell', 'chromium', 'chromium-browser', 'google-chrome');
}

/** Whether all users may enter a folder. */
function isPublic(folder: string): boolean {
  if ((statSync(folder).mode & 0o001) === 0) return false;
  return dirname(folder) === folder || isPublic(dirname(folder));
}

/** Whether something is there. Tests that find out by doing it call `lacks`. */
const HAS = {
  postgres: () => findPostgres() !== undefined,
  redis: () => findRedis() !== undefined,
  nginx: () => findNginx() !== undefined,
  promtool: () => findProgram('promtool') !== undefined,
  chromium: () => findChromium() !== undefined,
  systemd: () => ['systemd-analyze', 'systemd-sysusers'].every((name) => findProgram(name) !== undefined),
  helm: () => findHelm() !== undefined,
  root: () => process.getuid?.() === 0 && isPublic(fileURLToPath(new URL('../..', import.meta.url))),
  bash: () => findProgram('bash') !== undefined,
  zsh: () => findProgram('zsh') !== undefined,
  fish: () => findProgram('fish') !== undefined,
  pwsh: () => findProgram('pwsh') !== undefined,
  python: () => findProgram('python3') !== undefined,
  script: () => findProgram('script') !== undefined,
  build: () => existsSync(new URL('../../packages/gateway/dist/cli/main.js', import.meta.url)),
  linux: () => process.platform === 'linux',
  posix: () => process.platform !== 'win32',
} as const satisfies Partial<Record<Need, () => boolean>>;

type Findable = keyof typeof HAS;

interface SkipOptions {
  skip?: true;
  meta?: { lacks: Need };
}

/** The options of a test or `describe` that is skipped where one of these is missing; the end of a run says why. */
export function needs(...all: readonly Findable[]): SkipOptions {
  const missing = all.find((need) => !HAS[need]());
  return missing === undefined ? {} : lacks(missing);
}

/** The options of a test that is skipped because this is missing. */
export const lacks = (need: Need): SkipOptions => ({ skip: true, meta: { lacks: need } });
