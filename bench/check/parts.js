/**
 * What is checked: counts of streams, requests and starts, and ratios. Sizes of bundles are not among them: `npm run size` checks those.
 *
 * @typedef {{ name: string, kind: string }} Check
 *   One value: the name is that of limits.json, and the kind is one of judge.js. Some have what `measure` of their part needs beside.
 * @typedef {{ value: number, doubt?: string }} Measured `doubt`: why the value may be too high.
 * @typedef {object} Part Checks that are measured together.
 * @property {readonly Check[]} checks
 * @property {(checks: readonly Check[]) => Promise<Record<string, Measured>>} measure the value of each of these checks, by its name
 * @property {number} recordings how many measurements a recorded value is the median of
 * @property {() => string | undefined} [findObstacle] why the part cannot be measured on this machine
 * @property {string} [needs] the program that it lacks then
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
const HELD_KINDS = ['objects', 'closures', 'arrays', 'strings', 'heap'];

/** `{ [name]: { value, doubt } }` of checks whose value is `read(check)`. */
const collect = (checks, read, doubt) => Object.fromEntries(checks.map((check) => [check.name, { value: read(check), doubt }]));

/** Both ways at once: each gateway uses one core, and nothing depends on the clock. */
async function measureWays(checks, measureWay) {
  const ways = [...new Set(checks.map(({ way }) => way))];
  const found = await Promise.all(ways.map(measureWay));
  return Object.fromEntries(ways.map((way, i) => [way, found[i]]));
}

const buildHeldPart = (upstream) => ({
  checks: WAY_NAMES.flatMap((way) => HELD_KINDS.map((kind) => ({ name: `held stream, ${way}: ${kind}`, kind, way }))),
  recordings: COUNT_RECORDINGS,
  measure: async (checks) => {
    const found = await measureWays(checks, (way) => countHeld(upstream, way));
    return collect(checks, ({ way, kind }) => found[way][kind]);
  },
});

const buildAllocationPart = (upstream, tier) => ({
  checks: WAY_NAMES.map((way) => ({ name: `request, ${way}: bytes allocated, ${tier}`, kind: `bytes, ${tier}`, way })),
  recordings: COUNT_RECORDINGS,
  measure: async (checks) => {
    const found = await measureWays(checks, (way) => measureAllocations(upstream, way, tier));
    return collect(checks, ({ way }) => found[way]);
  },
});

/** The requests take 2 s. The ledger commits by the clock: with 10 s, there are 10 % more calls. */
const LONGEST_TRACE = 5;

const buildSystemCallPart = (upstream, way) => ({
  checks: CALL_KINDS.map((kind) => ({ name: `request, ${way}: system calls, ${kind}`, kind })),
  recordings: COUNT_RECORDINGS,
  needs: 'strace',
  findObstacle,
  measure: async (checks) => {
    const { counts, seconds } = await countSystemCalls(upstream, way);
    const doubt = seconds > LONGEST_TRACE ? `the requests took ${seconds.toFixed(0)} s` : undefined;
    return collect(checks, ({ kind }) => counts[kind], doubt);
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

/**
 * With eight processes to a core, ratios are up to 20 % too high: each time that the process runs, its data is no longer in the caches. They are
 * right with up to three.
 */
const LEAST_SHARE = 0.3;

const buildRatioPart = (id) => ({
  checks: [{ name: `ratio, ${id}`, kind: 'ratio' }],
  recordings: RATIO_RECORDINGS,
  measure: async (checks) => {
    const { ratio, share } = await measureRatio(id);
    const doubt = share < LEAST_SHARE ? `its process had ${Math.round(share * 100)} % of a core` : undefined;
    return collect(checks, () => ratio, doubt);
  },
});

/**
 * All parts.
 *
 * @param {{ port: number }} upstream that of upstream.js; its port is read when a part is measured
 * @returns {Part[]}
 */
export function buildParts(upstream) {
  return [
    buildHeldPart(upstream),
    ...Object.keys(TIERS).map((tier) => buildAllocationPart(upstream, tier)),
    ...WAY_NAMES.map((way) => buildSystemCallPart(upstream, way)),
    ...PROGRAM_NAMES.map(buildModulePart),
    ...Object.keys(GUARDED).map(buildRatioPart),
  ];
}

/** @type {(parts: readonly Part[]) => Check[]} */
export const listChecks = (parts) => parts.flatMap(({ checks }) => checks);

/**
 * The parts with the checks whose names contain a text, without parts that have none.
 *
 * @param {readonly Part[]} parts
 * @returns {Part[]}
 */
export function selectParts(parts, text = '') {
  return parts
    .map((part) => ({ ...part, checks: part.checks.filter(({ name }) => name.includes(text)) }))
    .filter(({ checks }) => checks.length > 0);
}
