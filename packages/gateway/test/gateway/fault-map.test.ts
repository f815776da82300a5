import { existsSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';
import { CLIENT_FAULTS } from './map/client-faults.ts';
import type { Fault } from './map/fault.ts';
import { LIMIT_TESTS, PROMISES } from './map/limits.ts';
import { UPSTREAM_FAULTS } from './map/upstream-faults.ts';

// docs/reliability.md is written from the map of faults, whose tests exist. After a change: vitest run <this file> -u

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

const faultTable = (title: string, faults: readonly Fault[]): string =>
  [`| ${title} | what happens |`, '|---|---|', ...faults.map(({ fault, right }) => `| ${fault} | ${right} |`)].join('\n');

const PAGE = fileURLToPath(new URL('../../../../docs/reliability.md', import.meta.url));

/** A part of the page that a command has written, with its markers: it stays as it is. */
function written(name: string): string {
  const [begin, end] = [`<!-- ${name} -->`, `<!-- /${name} -->`];
  const [, text] = readFileSync(PAGE, 'utf8').split(new RegExp(`${begin}|${end}`));
  return `${begin}${text ?? '\n'}${end}`;
}

const page = (): string => `# When something fails

A request that fails before its first content goes to the next target of its model; after that, the client gets an error in its own protocol, never half a response that looks complete. That needs no settings but a second target:

\`\`\`yaml
models:
  smart: [anthropic/claude-sonnet-5, openai/gpt-5] # in order: the second if the first fails
recovery:
  retry_same_target: 3s # wait for a short Retry-After before the next target is used
  on_break: continue    # the next target continues a stream that stops in the middle
  hedge_after: 5s       # a stream without content after 5 s is requested from the next target, too
limits:
  retries: 4            # for one client request, at all targets together
\`\`\`

- A target that keeps failing is paused: other targets are used, and one probe at a time checks whether it works again. \`sluice_upstream_up\` and the console show it.
- Headers of the response name what happened: \`x-sluice-provider\`, \`x-sluice-model\`, \`x-sluice-attempts\`. \`sluice log ID\` lists the attempts with their errors.
- Deadlines of a provider are \`connect_timeout\`, \`response_timeout\`, \`first_event_timeout\`, \`idle_timeout\` and \`total_timeout\` ([limits](config.md#limits)).
- Metrics and alerts: [deploy](deploy.md).

## Recovery
[config.md](config.md#recovery) has the settings. Whatever they are, one client request causes at most \`limits.retries\` + 1 upstream requests.

| fault | what happens | with the setting |
|---|---|---|
| 429 with \`Retry-After\`, 500, 502, 503, 529, a reset before the response | the next target at once; without another target the same one is retried up to \`retries_per_provider\` times | \`retry_same_target: 3s\`: the same target once more if the wait is at most 3 s, then the next one |
| no response, or no first event in time | the next target; never the same one, because the request may be billed | \`hedge_after: 5s\`: the next target gets the request, too, after 5 s, and the first content wins |
| the upstream dies, stalls or sends an error after content | the stream ends with an error in the client's protocol | \`on_break: continue\`: the next target continues it |
| an event that is not JSON | the same, because its content is lost | \`on_break: continue\`, or \`on_malformed: skip\` of the provider |
| a stop reason, then silence | complete after 5 s | |
| a response with status 200 that cannot be used: empty, invalid, not of the protocol | the next target; never the same one, because the request was billed | |
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
- A response in the client's own protocol is passed through until it breaks, and from there on decoded and encoded, as all others are from their start. The end of a text waits until it is known whether something follows it. Thinking of the continuing target before its text is not sent.
- The ledger has both attempts. The usage of the first is an estimate unless the upstream has reported it. The client gets the usage that the last upstream reports. The log and the note \`stream.continued\` name the target that continued.

A target that accepts a prefill is trusted to continue it: if it starts a different response instead, nothing shows that. Set \`profile: { prefill: false }\` for such a provider.

### How a slow stream is hedged
Only streams are hedged, once, and only before content. The first content decides: at that moment the other request is cancelled, or does not leave any more if it waits for a retry, a reservation or the ledger. It is recorded as \`hedge_lost\`, with an estimate of its prompt if it was sent. The log has a line for each second request.

The exchange in the ledger has the provider and model that responded. If that stream is truncated, the target that lost may continue it, after the pause that it required.

## What upstreams do
"Falls back" means that the next target gets the request; without another target, the client gets the error. "May be billed" marks requests that the provider may charge although no response arrived.

${faultTable('the upstream', UPSTREAM_FAULTS)}

## What clients do
${faultTable('the client', CLIENT_FAULTS)}

The gateway cannot detect one case itself: if a client vanishes while bytes are in flight, the kernel reports it after its last retransmission (\`net.ipv4.tcp_retries2\`), unless the buffers fill up first.

A request or response at a [limit](config.md#limits) passes; above it, the client gets an error in its own protocol.

## What always holds
${Object.keys(PROMISES)
  .map((promise) => `- ${promise}`)
  .join('\n')}

## Failover Bench
Sixteen faults of a scripted upstream, called the wall, whose response is a known text of 60 words. \`npm run bench:failover -- --write\` runs them in real time and writes the table; \`packages/gateway/test/failover/bench.test.ts\` runs them in CI by a test clock.

Pass: the whole text arrives exactly once (content filter: an error), and every point is met. Partial: whole, but a point is missed. Safe: a clean error. Fail: a hang, a cut or wrong response shown as success, or a bound exceeded.
The scores of other gateways are as published; they were not measured here. With the defaults, S16 is our choice: the response names the model that the client requested, and \`x-sluice-model\` the one that responded.

${written('failover')}

## How it is tested
\`packages/gateway/test/gateway/map\` names the tests of every line above; a test that does not exist fails the build. They use scripted upstreams and clients on raw sockets, most of them for nine pairs of protocols.

**Schedules.** \`packages/gateway/test/exchange\` has a model of the life of an exchange: what it takes and when that is given back (slot, place at the gate, money, row, capture, idempotency key, request to an upstream), who may write to the client, and what client,
upstreams and ledger must agree on in the end. Random schedules are played against a gateway with real sockets and a real store: clients send, send ahead, repeat, stop reading, reset, close and half-close; upstreams are slow, late, cut, broken, refuse, or respond twice; streams are
hedged, retried and continued, and run in the background; limits are in memory or in a server some way off; the key is revoked, the configuration reloaded, the store slow, failing or full, the limits away, the gateway stopped or killed. After each schedule nothing is held, rows, budgets and roll-ups have exactly what the upstreams served, and every request had one
response, with the text of one upstream. A failing schedule is shrunk and printed in words, with the command that plays it again. The suite plays a few, \`npm run nightly -- --only schedules\` 100,000.

\`npm run nightly\` adds two more long runs:

**Soak.** 200,000 requests go through one gateway: every client protocol with every upstream protocol, streams and whole responses, converted, repaired and passed through. At least 2 % of the clients disconnect at random points: in
their request, before the response, in the middle of it. Every other response is compared with what the upstream sent. After each tenth of the run, idle connections are closed and the gateway is measured after a
garbage collection. The run fails when a response differs, when the heap at the end is more than 5 MB above that at 20 %, or when there are more than 8 more file descriptors, sockets, or timers that keep the process alive. \`responses.max_bytes_per_key\` is 4MiB, so that stored responses reach their limit in the first fifth.

${written('nightly:soak')}

**Reloads.** 10,000 requests and more run while the configuration file is replaced 1,000 times. Every valid version maps the same model name to another upstream and model; between them the file is empty, truncated, or has only comments.
A response is right if it comes from a version that was in force while the request ran. A request without a client key must get 401.

${written('nightly:reloads')}
`;

test('docs/reliability.md matches the map', () => expect(page()).toMatchFileSnapshot(PAGE));
