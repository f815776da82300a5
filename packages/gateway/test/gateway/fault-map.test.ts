import { existsSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';
import { LIMITS } from '../../src/config/options.ts';
import { CLIENT_FAULTS } from './map/client-faults.ts';
import type { Fault } from './map/fault.ts';
import { LIMIT_TESTS, PROMISES } from './map/limits.ts';
import { UPSTREAM_FAULTS } from './map/upstream-faults.ts';

// docs/reliability.md says which test holds what: the tests exist, and the page is what the map says. After a change: vitest run <this file> -u

const fileOf = (name: string): string => fileURLToPath(new URL(`./${name}.test.ts`, import.meta.url));

/** A title stands in its file as a whole text. */
function isTest(named: string): boolean {
  const at = named.indexOf(' › ');
  const file = fileOf(named.slice(0, at));
  const title = named.slice(at + ' › '.length);
  return existsSync(file) && readFileSync(file, 'utf8').includes(`'${title}'`);
}

const ALL_FAULTS = [...UPSTREAM_FAULTS, ...CLIENT_FAULTS];

describe('every listed test exists', () => {
  test.each(ALL_FAULTS)('$fault', ({ stream, whole }) => {
    expect(stream.length).toBeGreaterThan(0);
    expect(whole.length).toBeGreaterThan(0);
    const named = [...stream, ...(typeof whole === 'string' ? [] : whole)];
    expect(named.filter((name) => !isTest(name))).toEqual([]);
  });

  test('for limits', () =>
    expect(
      Object.values(LIMIT_TESTS)
        .flat()
        .filter((name) => !isTest(name)),
    ).toEqual([]));

  test('for promises', () =>
    expect(
      Object.values(PROMISES)
        .flat()
        .filter((name) => !isTest(name)),
    ).toEqual([]));
});

const code = (names: readonly string[]): string => names.map((name) => `\`${name}\``).join('<br>');

const faultTable = (faults: readonly Fault[]): string =>
  [
    '| fault | expected behaviour | tests for streams | tests for whole responses |',
    '|---|---|---|---|',
    ...faults.map(
      ({ fault, right, stream, whole }) =>
        `| ${fault} | ${right} | ${code(stream)} | ${typeof whole === 'string' ? whole : code(whole)} |`,
    ),
  ].join('\n');

const limitTable = (): string =>
  [
    '| limit | default | tests |',
    '|---|---|---|',
    ...Object.entries(LIMIT_TESTS).map(([key, names]) => {
      const { name, preset } = LIMITS[key as keyof typeof LIMITS]; // the map is closed over the limits
      return `| \`${name}\` | ${preset} | ${code(names)} |`;
    }),
  ].join('\n');

const PAGE = fileURLToPath(new URL('../../../../docs/reliability.md', import.meta.url));

/** Figures that `npm run nightly` wrote into the page, with their markers: they stay as they are. */
function nightlyFigures(name: string): string {
  const [begin, end] = [`<!-- nightly:${name} -->`, `<!-- /nightly:${name} -->`];
  const [, figures] = readFileSync(PAGE, 'utf8').split(new RegExp(`${begin}|${end}`));
  return `${begin}${figures ?? '\n'}${end}`;
}

const page = (): string => `# Reliability

What the gateway does when an upstream, a client or the configuration fails. Every row lists the tests that check it, with a scripted upstream or client on a raw socket. Unless its name shows otherwise, a test runs for nine pairs of protocols: each of the four passed through, each converted into
and out of, and one repaired. The page is generated from \`packages/gateway/test/gateway/map\`; a listed test that does not exist fails the build.

Run them with \`npx vitest run packages/gateway/test/gateway\`. Set \`SLUICE_SEED=7\` to kill processes at other points.

## Upstreams
${faultTable(UPSTREAM_FAULTS)}

## Clients
${faultTable(CLIENT_FAULTS)}

The gateway cannot detect one case itself: if a client vanishes while bytes are in flight, the kernel reports it after its last retransmission (\`net.ipv4.tcp_retries2\`), unless the buffers fill up first.

## Limits
A request or response at a limit passes; above it, the client gets an error in its own protocol. [The configuration](config.md#limits) describes each limit.

${limitTable()}

## Promises
${Object.entries(PROMISES)
  .map(([promise, names]) => `- ${promise}<br>${code(names)}`)
  .join('\n')}

## Long runs
\`npm run nightly\` runs tests that take too long for every commit and writes their results here.

### Soak
200,000 requests go through one gateway: every client protocol with every upstream protocol, streams and whole responses, converted, repaired and passed through. At least 2 % of the clients disconnect at random points: in
their request, before the response, in the middle of it. Every other response is compared with what the upstream sent. After each tenth of the run, idle connections are closed and the gateway is measured after a
garbage collection. The run fails when a response differs, when the heap at the end is more than 5 MB above that at 20 %, or when there are more than 8 more file descriptors, sockets, or timers that keep the process alive.

${nightlyFigures('soak')}

### Reloads
10,000 requests and more run while the configuration file is replaced 1,000 times. Every valid version maps the same model name to another upstream and model; between them the file is empty, truncated, or has only comments.
A response is right if it comes from a version that was in force while the request ran. A request without a client key must get 401.

${nightlyFigures('reloads')}
`;

test('docs/reliability.md matches the map', () => expect(page()).toMatchFileSnapshot(PAGE));
