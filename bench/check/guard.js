/** Measures parts, judges them by recorded limits, and prints a line for each check. */
import { median } from '../method/statistics.js';
import { findLimit, formatValue, isAbove, judge } from './judge.js';
import { listChecks } from './parts.js';

const readMajor = (version) => version.replace(/^v/, '').split('.')[0];
/** `20.20` of `v20.20.2`: limits are recorded with it. */
const readMinor = (version) => version.replace(/^v/, '').split('.').slice(0, 2).join('.');

/**
 * Runs all checks of parts.
 *
 * @param {object} options
 * @param {readonly import('./parts.js').Part[]} options.parts
 * @param {{ node: string, recorded: Record<string, number> }} options.limits
 * @param {string} options.node the version that runs
 * @param {readonly string[]} [options.required] programs that may not be missing; `all` for each
 * @param {(line: string) => void} options.print
 * @returns {Promise<boolean>} whether nothing failed
 */
export async function runChecks({ parts, limits, node, required = [], print }) {
  const begun = performance.now();
  const isJudged = readMajor(node) === readMajor(limits.node);
  if (!isJudged)
    print(`The limits were recorded on Node ${limits.node}, and this is Node ${readMinor(node)}: nothing is judged.`);
  const width = Math.max(...listChecks(parts).map(({ name }) => name.length));
  const results = [];
  for (const part of parts) {
    for (const result of await runPart(part, { limits, isJudged, required })) {
      print(formatResult(result, width));
      results.push(result);
    }
  }
  for (const line of describeResults(results)) print(line);
  print(summarizeResults(results, (performance.now() - begun) / 1000));
  return !results.some(({ state }) => state === 'FAILED');
}

async function runPart(part, { limits: { recorded }, isJudged, required }) {
  const obstacle = part.findObstacle?.();
  if (obstacle !== undefined) {
    const isRequired = required.includes('all') || required.includes(part.needs);
    const note = isRequired ? `${obstacle}; SLUICE_REQUIRE is set, so this is a failure` : obstacle;
    return part.checks.map(({ name }) => ({ name, state: isRequired ? 'FAILED' : 'skipped', note }));
  }
  try {
    const first = await measure(part, part.checks);
    const above = isJudged ? part.checks.filter(({ name, kind }) => isAboveRecord(kind, recorded[name], first[name].value)) : [];
    const second = above.length > 0 ? await measure(part, above) : {};
    return part.checks.map(({ name, kind }) => {
      const limit = recorded[name] === undefined ? undefined : findLimit(kind, recorded[name]);
      const measured = [first[name], second[name]].filter((one) => one !== undefined);
      const verdict = isJudged ? judgeMeasured(kind, recorded[name], measured) : { state: 'not judged' };
      return { name, value: first[name].value, limit, ...verdict };
    });
  } catch (error) {
    return part.checks.map(({ name }) => ({ name, state: 'FAILED', note: `cannot be measured: ${error.message}` }));
  }
}

/** Doubtful values that are too high do not fail; those within their limit are ok. */
function judgeMeasured(kind, recorded, measured) {
  const values = measured.map(({ value }) => value);
  const verdict = judge(kind, recorded, values);
  const { doubt } = measured.find((one) => one.doubt !== undefined) ?? {};
  if (verdict.state !== 'FAILED' || recorded === undefined || doubt === undefined) return verdict;
  return { state: 'not judged', note: `${verdict.note}; the machine was too busy: ${doubt}` };
}

const isAboveRecord = (kind, recorded, value) => recorded !== undefined && isAbove(kind, recorded, value);

/** A second attempt when the first one fails: on a busy machine, a gateway may take too long to start. */
async function measure(part, checks) {
  try {
    return await part.measure(checks);
  } catch {
    return part.measure(checks);
  }
}

function formatResult({ name, value, limit, state, note }, width) {
  const cells = [value, limit].map((cell) => (cell === undefined ? '–' : formatValue(cell)).padStart(10));
  return `${name.padEnd(width)}  ${cells[0]}  limit ${cells[1]}  ${state}${note ? `: ${note}` : ''}`;
}

const COMMAND = 'npm run bench:check -- --write';

function describeResults(results) {
  const failed = results.filter(({ state, value }) => state === 'FAILED' && value !== undefined);
  const low = results.filter(({ isLow }) => isLow);
  return [
    ...(failed.length > 0
      ? [
          `Above the limit: find the change that causes it. If it is meant, run \`${COMMAND}\`, and give the reason in the commit message.`,
        ]
      : []),
    ...(low.length > 0
      ? [
          `More than 10 % below the record: ${low.map(({ name }) => name).join('; ')}. \`${COMMAND}\` lowers the limits, so that the gain is kept.`,
        ]
      : []),
  ];
}

function summarizeResults(results, seconds) {
  const states = ['ok', 'FAILED', 'skipped', 'not judged'].flatMap((state) => {
    const count = results.filter((result) => result.state === state).length;
    return count > 0 ? [`${count} ${state}`] : [];
  });
  return `bench:check: ${states.join(', ')} of ${results.length} checks in ${seconds.toFixed(0)} s; sizes of bundles are checked by \`npm run size\``;
}

/**
 * Measures parts several times, and returns limits with the medians. Checks that are not measured keep their record.
 *
 * @param {object} options
 * @param {readonly import('./parts.js').Part[]} options.parts those to measure
 * @param {readonly string[]} options.names of all checks, also of those that are not measured; other records are dropped
 * @param {{ node: string, recorded: Record<string, number> }} options.limits those to replace
 * @param {string} options.node the version that runs
 * @param {(limits: { node: string, recorded: Record<string, number> }) => void} [options.save] gets the limits after each part, because all
 *   take minutes
 * @param {(line: string) => void} options.print
 */
export async function recordLimits({ parts, names, limits, node, save = () => undefined, print }) {
  const isWhole = listChecks(parts).length === names.length;
  const isOther = readMajor(node) !== readMajor(limits.node);
  if (isOther && !isWhole)
    throw new Error(
      `the other limits were recorded on Node ${limits.node}, and this is Node ${readMinor(node)}: use --write without --only`,
    );
  const recorded = new Map(isOther ? [] : Object.entries(limits.recorded));
  const build = () => ({
    node: isWhole ? readMinor(node) : limits.node,
    recorded: Object.fromEntries(names.flatMap((name) => (recorded.has(name) ? [[name, recorded.get(name)]] : []))),
  });
  for (const part of parts) {
    for (const { name, value, line } of await recordPart(part, limits.recorded)) {
      if (value !== undefined) recorded.set(name, value);
      print(line);
    }
    save(build());
  }
  return build();
}

/** `[{ name, value, line }]`; no value where the part cannot be measured. */
async function recordPart(part, before) {
  const obstacle = part.findObstacle?.();
  if (obstacle !== undefined) return part.checks.map(({ name }) => ({ name, line: `${name}: not measured; ${obstacle}` }));
  const runs = [];
  while (runs.length < part.recordings) runs.push(await measure(part, part.checks));
  return part.checks.map(({ name }) => {
    const measured = runs.map((run) => run[name]);
    const value = roundValue(median(measured.map((one) => one.value)));
    return { name, value, line: describeRecord({ name, before: before[name], value, measured }) };
  });
}

function describeRecord({ name, before, value, measured }) {
  const was = before === undefined ? 'new' : `was ${formatValue(before)}`;
  const { doubt } = measured.find((one) => one.doubt !== undefined) ?? {};
  const warning = doubt === undefined ? '' : `; record it again on a less busy machine: ${doubt}`;
  return `${name}: ${formatValue(value)} (${was}; measured ${measured.map((one) => formatValue(one.value)).join(', ')})${warning}`;
}

const roundValue = (value) => (value >= 1000 ? Math.round(value) : Number(value.toFixed(3)));
