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

/** A part of the page that a command has written, with its markers: it stays as it is. */
function written(name: string): string {
  const [begin, end] = [`<!-- ${name} -->`, `<!-- /${name} -->`];
  const [, text] = readFileSync(PAGE, 'utf8').split(new RegExp(`${begin}|${end}`));
  return `${begin}${text ?? '\n'}${end}`;
}

const RECOVERY = `## Recovery
The settings are in [config.md](config.md#recovery). Whatever they are, one client request causes at most \`limits.retries\` + 1 upstream requests.

| fault | what happens | with the setting |
|---|---|---|
| 429 with \`Retry-After\`, 500, 502, 503, 529, a reset before the response | the next target at once; without another target the same one is retried up to \`retries_per_provider\` times | \`retry_same_target: 3s\`: the same target once more if the wait is at most 3 s, then the next one |
| no response, or no first event in time | the next target; never the same one, because the request may be billed | \`hedge_after: 5s\`: the next target gets the request, too, after 5 s, and the first content wins |
| the upstream dies, stalls or sends an error after content | the stream ends with an error in the client's protocol | \`on_break: continue\`: the next target continues it |
| an event that is not JSON | the same, because its content is lost | \`on_break: continue\`, or \`on_malformed: skip\` of the provider |
| a stop reason, then silence | complete after 5 s | |
| the request is too long for the model | the next target, without a retry | |
| a content filter | an error, without a retry and without another target | |

### How a stream is continued
The next target gets the same request with what the client has received as a trailing assistant message (a prefill). Its text is sent from where the first upstream stopped: the message keeps its id, and blocks keep their indexes.

- A repetition of the end of the sent text is removed only if it has at least 16 characters and ends exactly at the cut.
- A target that does not accept a prefill (OpenAI's own models, Responses, Claude models that reject it, or one that responds with 400 or 422) gets the request without it. If its response begins with exactly what was sent, only the rest is sent.
  Otherwise the stream ends with the error of the first upstream.
- With a single target, the same target continues, after the usual pause.
- Text and completed tool calls are continued. Thinking, citations, logprobs, refusals, audio, structured output, several choices, tool calls that are not complete, requests that end with an assistant message, and responses of more than 1,048,576
  characters are not: they end with an error.
- Responses are decoded and encoded again, also where they would be passed through unchanged. Thinking of the continuing target before its text is not sent.
- The ledger has both attempts. The usage of the first is an estimate unless the upstream has reported it. The client gets the usage that the last upstream reports. The log and the note \`stream.continued\` name the target that continued.

A target that accepts a prefill is trusted to continue it: if it starts a different response instead, nothing shows that. Set \`profile: { prefill: false }\` for such a provider.

### How a slow stream is hedged
Only streams are hedged, once, and only before content. The request that loses is cancelled and recorded as \`hedge_lost\`, with an estimate of its prompt. The log has a line for each second request.

## Failover Bench
Sixteen faults of a scripted upstream, called the wall, whose response is a known text of 60 words. \`npm run bench:failover -- --write\` runs them in real time and writes the table; \`packages/gateway/test/failover/bench.test.ts\` runs them in CI by a test clock.

Pass: the whole text arrives exactly once (content filter: an error), and every point is met. Partial: whole, but a point is missed. Safe: a clean error. Fail: a hang, a cut or wrong response shown as success, or a bound exceeded.
The scores of other gateways are as published; they were not measured here. With the defaults, S16 is our choice: the response names the model that the client requested, and \`x-sluice-model\` the one that responded.

`;

const page = (): string => `# Reliability

What the gateway does when an upstream, a client or the configuration fails. Every row lists the tests that check it, with a scripted upstream or client on a raw socket. Unless its name shows otherwise, a test runs for nine pairs of protocols: each of the four passed through, each converted into
and out of, and one repaired. The page is generated from \`packages/gateway/test/gateway/map\`; a listed test that does not exist fails the build.

Run them with \`npx vitest run packages/gateway/test/gateway\`. Set \`SLUICE_SEED=7\` to kill processes at other points.

## Upstreams
${faultTable(UPSTREAM_FAULTS)}

${RECOVERY}${written('failover')}

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

${written('nightly:soak')}

### Reloads
10,000 requests and more run while the configuration file is replaced 1,000 times. Every valid version maps the same model name to another upstream and model; between them the file is empty, truncated, or has only comments.
A response is right if it comes from a version that was in force while the request ran. A request without a client key must get 401.

${written('nightly:reloads')}
`;

test('docs/reliability.md matches the map', () => expect(page()).toMatchFileSnapshot(PAGE));
