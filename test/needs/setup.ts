import { needs } from './needs.ts';
import { type Need, REASONS } from './reasons.ts';

/** What CI installs. */
const REQUIRED = ['postgres', 'redis', 'nginx', 'promtool', 'chromium', 'systemd'] as const satisfies readonly Need[];

/** What takes too long to be built for every commit. */
const NIGHTLY = ['helm'] as const satisfies readonly Need[];

/** Called once before all tests. `SLUICE_REQUIRE=postgres,helm` makes it an error that these are missing, `all` what CI installs. */
export default function setup(): void {
  const names = (process.env['SLUICE_REQUIRE'] ?? '').split(',');
  const required = [...REQUIRED, ...NIGHTLY].filter((name) => names.includes(name));
  const missing = (names.includes('all') ? [...REQUIRED, ...required] : required).filter((name) => needs(name).skip);
  if (missing.length > 0) throw new Error(missing.map((name) => `${REASONS[name].missing}: ${REASONS[name].enable}`).join('\n'));
}
