/**
 * What is checked. A part is measured at once, and has several checks; a check has one value.
 *
 * - `checks`: `[{ name, kind, key }]`, where the kind is one of judge.js. Names are those of limits.json.
 * - `measure(checks)`: resolves with the value of each of these checks, by its name. May measure fewer things when some are not wanted.
 * - `findObstacle()`: why the part cannot be measured on this machine, `needs`: the program that it lacks then.
 * - `recordings`: how many measurements a recorded value is the median of.
 *
 * Sizes of bundles are not among them: `npm run size` checks those.
 */
import { measureAllocations, TIERS } from './allocations.js';
import { WAYS } from './client.js';
import { countHeld } from './held.js';
import { countModules, PROGRAM_NAMES } from './modules.js';
import { GUARDED, measureRatio } from './ratios.js';
import { CALL_KINDS } from './strace.js';
import { countSystemCalls, findObstacle } from './syscalls.js';

const COUNT_RECORDINGS = 3;
const RATIO_RECORDINGS = 7;
const WAY_NAMES = Object.keys(WAYS);

/** `{ [name]: value }` of checks whose value is `read(check)`. */
const collect = (checks, read) => Object.fromEntries(checks.map((check) => [check.name, read(check)]));

const buildHeldPart = (upstream) => ({
  checks: WAY_NAMES.flatMap((way) =>
    ['objects', 'closures', 'arrays', 'strings', 'heap'].map((kind) => ({ name: `held stream, ${way}: ${kind}`, kind, way })),
  ),
  recordings: COUNT_RECORDINGS,
  // Always both: a way is measured on top of the one before.
  measure: async (checks) => {
    const counts = await countHeld(upstream, WAY_NAMES);
    return collect(checks, ({ way, kind }) => counts[way][kind]);
  },
});

/** Both ways at once: each gateway uses one core, and nothing depends on the clock. */
const buildAllocationPart = (upstream, tier) => ({
  checks: WAY_NAMES.map((way) => ({ name: `request, ${way}: bytes allocated, ${tier}`, kind: `bytes, ${tier}`, way })),
  recordings: COUNT_RECORDINGS,
  measure: async (checks) => {
    const found = await Promise.all(checks.map(({ way }) => measureAllocations(upstream, way, tier)));
    return collect(checks, (check) => found[checks.indexOf(check)]);
  },
});

const buildSystemCallPart = (upstream, way) => ({
  checks: CALL_KINDS.map((kind) => ({ name: `request, ${way}: system calls, ${kind}`, kind })),
  recordings: COUNT_RECORDINGS,
  needs: 'strace',
  findObstacle,
  measure: async (checks) => {
    const counts = await countSystemCalls(upstream, way);
    return collect(checks, ({ kind }) => counts[kind]);
  },
});

const buildModulePart = (program) => ({
  checks: [
    { name: `start, ${program}: files`, kind: 'files', key: 'files' },
    { name: `start, ${program}: bytes`, kind: 'bytes of files', key: 'bytes' },
  ],
  recordings: 1,
  measure: async (checks) => {
    const counts = await countModules(program);
    return collect(checks, ({ key }) => counts[key]);
  },
});

const buildRatioPart = (id) => ({
  checks: [{ name: `ratio, ${id}`, kind: 'ratio' }],
  recordings: RATIO_RECORDINGS,
  measure: async (checks) => {
    const ratio = await measureRatio(id);
    return collect(checks, () => ratio);
  },
});

/** `upstream`: of upstream.js; only its port is read, when a part is measured. */
export function buildParts(upstream) {
  return [
    buildHeldPart(upstream),
    ...Object.keys(TIERS).map((tier) => buildAllocationPart(upstream, tier)),
    ...WAY_NAMES.map((way) => buildSystemCallPart(upstream, way)),
    ...PROGRAM_NAMES.map(buildModulePart),
    ...Object.keys(GUARDED).map(buildRatioPart),
  ];
}

export const listChecks = (parts) => parts.flatMap(({ checks }) => checks);

/** The parts with the checks whose names contain a text; parts without one are left out. */
export function selectParts(parts, text = '') {
  return parts
    .map((part) => ({ ...part, checks: part.checks.filter(({ name }) => name.includes(text)) }))
    .filter(({ checks }) => checks.length > 0);
}
