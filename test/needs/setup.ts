import { needs } from './needs.ts';
import { type Need, REASONS } from './reasons.ts';

const REQUIRED = ['postgres', 'redis', 'nginx', 'promtool', 'chromium', 'systemd'] as const satisfies readonly Need[];

/** Called once before all tests. `SLUICE_REQUIRE=postgres,redis` makes it an error that these are missing, `all` what CI installs. */
export default function setup(): void {
  const names = (process.env['SLUICE_REQUIRE'] ?? '').split(',');
  const missing = REQUIRED.filter((name) => (names.includes(name) || names.includes('all')) && needs(name).skip);
  if (missing.length > 0) throw new Error(missing.map((name) => `${REASONS[name].missing}: ${REASONS[name].enable}`).join('\n'));
}
