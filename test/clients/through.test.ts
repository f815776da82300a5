import { readFileSync } from 'node:fs';
import type { ProtocolId } from '@sluice/core';
import { listMutations } from '@sluice/lab/mutate';
import { beforeAll, expect, test } from 'vitest';
import { IS_NIGHT } from '../night.ts';
import { NEWEST } from '../sdk/newest.ts';
import { compare, isRight, type Outcome, VERDICTS, type Verdict } from './through/compare.ts';
import { DIFFERENCES } from './through/differences.ts';
import { FEATURES, type Feature } from './through/requests.ts';
import { OLDER, SDKS, type Sdk, type Way } from './through/sdks.ts';
import { Stage } from './through/stage.ts';

// Do no harm, from the client's side: each request of each SDK, sent directly to the demo model and through the gateway, whose
// provider has the same protocol and the default settings.

/** No fault. */
const NONE = 'none';

/** Faults besides the violations of a stream; `unheard-of` is rejected by the model. */
const FAULTS = [
  ...['cut=0', 'cut=700', 'reset=0', 'reset=700', 'slow=2', 'page=200', 'page=502', 'unheard-of'],
  ...['status=400', 'status=401', 'status=429', 'status=503', 'status=503,times=1'],
];

/** Takes seconds, so it is tried with one feature, and at night. */
const SLOW = 'reads/bytes';

/** All that a response can consist of. Other features are requested without a fault only. */
const WITH_FAULTS: readonly Feature[] = ['text', 'reasoning and call'];

interface Cell {
  sdk: Sdk;
  way: Way;
  feature: Feature;
  fault: string;
}

const nameModel = (fault: string): string => `hello!${fault}`;

function listFaults(protocol: ProtocolId, way: Way): string[] {
  const mutations = way === 'events' || way === 'assembled' ? listMutations(protocol).map(({ id }) => id) : [];
  return [NONE, ...FAULTS, ...mutations];
}

/** Counts and embeddings are the same for all features. */
function listFeatures(way: Way): Feature[] {
  const all = Object.keys(FEATURES) as Feature[]; // the keys of a closed table
  return way === 'count' || way === 'embed' ? all.slice(0, 1) : all;
}

function isRun({ way, feature, fault }: Cell): boolean {
  if (fault === NONE) return true;
  if (fault === SLOW) return IS_NIGHT && feature === 'text';
  if (way === 'assembled' && !IS_NIGHT) return false;
  return way === 'events' || way === 'assembled' ? WITH_FAULTS.includes(feature) : feature === 'text';
}

function listCells(protocol: ProtocolId): Cell[] {
  const sdks = [...SDKS, ...(IS_NIGHT ? OLDER : [])].filter((sdk) => sdk.protocol === protocol);
  const cells = sdks.flatMap((sdk) =>
    (Object.keys(sdk.ways) as Way[]).flatMap((way) =>
      listFeatures(way).flatMap((feature) => listFaults(protocol, way).map((fault) => ({ sdk, way, feature, fault }))),
    ),
  );
  return cells.filter(isRun);
}

interface Result extends Cell {
  verdict: Verdict;
  /** As a failure shows it. */
  shown: string;
}

async function runCells(protocol: ProtocolId): Promise<Result[]> {
  const stage = await Stage.set(protocol, listFaults(protocol, 'events').map(nameModel));
  const clean = new Map<string, Outcome>();
  try {
    const results: Result[] = [];
    for (const cell of listCells(protocol)) results.push(await runCell(stage, cell, clean));
    return results;
  } finally {
    await stage.close();
  }
}

/** `cleans`: what the requests get without a fault, which is the first one of each. */
async function runCell(stage: Stage, cell: Cell, cleans: Map<string, Outcome>): Promise<Result> {
  const { sdk, way, feature, fault } = cell;
  const sending = { sdk, way, feature, model: nameModel(fault) };
  const direct = await stage.direct(sending);
  const request = `${sdk.name}, ${sdk.protocol}, ${way}, ${feature}`;
  const clean = cleans.get(request) ?? direct;
  if (clean.error) throw new Error(`${request}: ${clean.error.message}`);
  cleans.set(request, clean);
  const through = await stage.through(sending, direct.isEarly && isRight(sdk.protocol, way, direct, clean));
  const verdict = compare(sdk.protocol, way, { direct, through, clean });
  return { ...cell, verdict, shown: `${request}, ${fault}: ${verdict}` };
}

const PROTOCOLS = SDKS.map(({ protocol }) => protocol);

let results: Result[] = [];
beforeAll(async () => {
  results = (await Promise.all(PROTOCOLS.map(runCells))).flat();
}, 1_800_000);

/** One entry of a row. */
const nameEntry = (verdict: Verdict, way: Way, protocol: ProtocolId, fault: string): string =>
  `${verdict} ${way} ${protocol} ${fault}`;

const listEntries = (rows: typeof DIFFERENCES): string[] =>
  rows.flatMap(({ verdict, ways, faults }) =>
    PROTOCOLS.flatMap((protocol) =>
      (faults[protocol]?.trim().split(/\s+/) ?? []).flatMap((fault) =>
        ways.map((way) => nameEntry(verdict, way, protocol, fault)),
      ),
    ),
  );

const LISTED = new Set(listEntries(DIFFERENCES));

const entryOf = ({ verdict, way, sdk, fault }: Result): string => nameEntry(verdict, way, sdk.protocol, fault);

test.each(PROTOCOLS)('%s: what the SDK returns is equal, or the difference is listed', (protocol) => {
  const own = results.filter(({ sdk }) => sdk.protocol === protocol);
  const others = own.filter((result) => result.verdict !== 'equal' && !LISTED.has(entryOf(result)));
  expect(others.map(({ shown }) => shown)).toEqual([]);
  expect(own.filter(({ verdict }) => verdict === 'equal').length).toBeGreaterThan(60);
});

test('without a fault, everything is equal', () => {
  const clean = results.filter(({ fault }) => fault === NONE);
  expect(clean.filter(({ verdict }) => verdict !== 'equal').map(({ shown }) => shown)).toEqual([]);
  expect(clean.length).toBeGreaterThan(70);
});

test('every listed difference occurs', () => {
  const seen = new Set(results.map(entryOf));
  const isExpected = (only: (typeof DIFFERENCES)[number]['only']): boolean =>
    NEWEST ? only === 'newest' : !only || (IS_NIGHT && only === 'older');
  const expected = listEntries(DIFFERENCES.filter(({ only }) => isExpected(only)));
  const tried = expected.filter((entry) => IS_NIGHT || !entry.includes(' assembled '));
  expect(tried.length).toBeGreaterThan(NEWEST ? 0 : 250);
  expect(tried.filter((entry) => !seen.has(entry))).toEqual([]);
});

test('the figures are those of docs/gateway.md', () => {
  const counts = VERDICTS.map((verdict) => `${verdict} ${results.filter((result) => result.verdict === verdict).length}`);
  const figures = `${results.length} cells: ${counts.join(', ')}`;
  console.log(figures);
  // The short form has fewer cells, and the page is about the SDKs of the workspace.
  if (!IS_NIGHT || NEWEST) return expect(results.length).toBeGreaterThan(500);
  const page = readFileSync(new URL('../../docs/gateway.md', import.meta.url), 'utf8');
  return expect(page).toContain(figures);
});
