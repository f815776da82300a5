import type { CanonicalResponse, ContentBlock, ProtocolId, ToolUseBlock } from '@sluice/core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { expectRefused, expectWholeFrames } from './check.ts';
import { ANSWER, framesOf, readStream, wholeOf } from './dialects.ts';
import { Faultd } from './faultd.ts';
import { type Reply, whole } from './http.ts';
import { modelOf, modelsWithSpare, PAIRS, type Pair, providersAt, sparedModelOf, waysOf } from './pairs.ts';
import { good, streamOf } from './scripts.ts';
import { ask, type Started, startGateway } from './start.ts';

// docs/reliability.md, Limits: a response at a limit passes; one above it becomes an error in the protocol of the client.

let faultd: Faultd;
let spare: Faultd;
let gateway: Started;

const DEPTH = 5;
const BYTES = 1024;

beforeAll(async () => {
  faultd = await Faultd.start();
  spare = await Faultd.start();
  const limits = {
    choices: 2,
    tool_calls: 3,
    content_blocks: 4,
    argument_bytes: BYTES,
    argument_depth: DEPTH,
    upstream_keep_alive: '100ms',
    retries_per_provider: 0,
  };
  gateway = await startGateway({ config: { providers: providersAt(faultd, spare), models: modelsWithSpare(), limits } });
});

afterAll(async () => {
  await gateway.close();
  await faultd.stop();
  await spare.stop();
});

const call = (input: Record<string, unknown>, i = 0): ToolUseBlock => ({ type: 'tool_use', id: `call_${i}`, name: 'f', input });
const calls = (count: number): CanonicalResponse => ({
  ...ANSWER,
  content: Array.from({ length: count }, (_, i) => call({ i }, i)),
  stop_reason: 'tool_use',
});
const calling = (input: Record<string, unknown>): CanonicalResponse => ({
  ...ANSWER,
  content: [call(input)],
  stop_reason: 'tool_use',
});
/** Of two kinds in turn: texts that follow each other are one in some protocols. */
const blocks = (count: number): CanonicalResponse => ({
  ...ANSWER,
  content: Array.from(
    { length: count },
    (_, i): ContentBlock => (i % 2 === 0 ? { type: 'thinking', thinking: `t${i}` } : { type: 'text', text: `x${i}` }),
  ),
});
const choices = (count: number): CanonicalResponse => ({
  ...ANSWER,
  choices: Array.from({ length: count }, (_, index) => ({
    index,
    content: [{ type: 'text', text: `x${index}` }],
    stop_reason: 'end_turn',
  })),
});
const nested = (depth: number): Record<string, unknown> => (depth === 1 ? {} : { a: nested(depth - 1) });
/** So many bytes of JSON. Brackets in a text are no nesting, and two of its characters are escaped. */
const sized = (bytes: number): Record<string, unknown> => ({ a: '[{"\\'.padEnd(bytes - '{"a":""}'.length - 2, 'x') });

interface Row {
  what: string;
  most: CanonicalResponse;
  more: CanonicalResponse;
  message: RegExp;
  only?: readonly ProtocolId[];
}

const ROWS: readonly Row[] = [
  { what: 'tool calls', most: calls(3), more: calls(4), message: /more than 3 tool calls/ },
  {
    what: 'content blocks',
    most: blocks(4),
    more: blocks(5),
    message: /more than 4 content blocks/,
    // Chat has one text and one thought, however often they take turns.
    only: ['anthropic-messages', 'openai-responses'],
  },
  {
    what: 'choices',
    most: choices(2),
    more: choices(3),
    message: /more than 2 choices/,
    only: ['openai-chat', 'gemini'],
  },
  {
    what: 'bytes of arguments',
    most: calling(sized(BYTES)),
    more: calling(sized(BYTES + 1)),
    message: /more than 1024 bytes of arguments/,
  },
  {
    what: 'depth of arguments',
    most: calling(nested(DEPTH)),
    more: calling(nested(DEPTH + 1)),
    message: /nested more than 5 levels/,
  },
  { what: 'bottomless arguments', most: calling({}), more: calling(nested(100)), message: /nested more than 5 levels/ },
];

const play = ({ upstream }: Pair, stream: boolean, answer: CanonicalResponse): void =>
  faultd.play(stream ? streamOf(...framesOf(upstream, answer)) : [{ send: whole(200, wholeOf(upstream, answer)) }]);

const askPair = (pair: Pair, stream: boolean, model = modelOf(pair)): Promise<Reply> =>
  ask(gateway.url, { client: pair.client, model, stream });

describe.each(ROWS)('$what', ({ most, more, message, only }) => {
  const ways = waysOf(PAIRS.filter(({ upstream }) => !only || only.includes(upstream)));

  test.each(ways)('a response at the limit passes: $name', async ({ pair, stream }) => {
    play(pair, stream, most);
    const reply = await askPair(pair, stream);
    expect(reply).toMatchObject({ status: 200, isWhole: true });
    if (stream) expect(readStream(pair.client, reply.body)).toMatchObject({ complete: true, error: null });
  });

  test.each(ways)('a response above the limit is rejected: $name', async ({ pair, stream }) => {
    play(pair, stream, more);
    const reply = await askPair(pair, stream);
    if (!stream) {
      expectRefused(pair.client, reply, 502, message);
      return;
    }
    expect(reply).toMatchObject({ status: 200, isWhole: true });
    expectWholeFrames(reply.body);
    expect(readStream(pair.client, reply.body)).toMatchObject({ error: { message: expect.stringMatching(message) } });
    await faultd.served[0]?.closed;
  });
});

test.each(PAIRS)('a whole response above the limit falls back to another upstream: $name', async (pair) => {
  play(pair, false, calls(4));
  spare.play(good(pair, false));
  expect(await askPair(pair, false, sparedModelOf(pair))).toMatchObject({ status: 200, isWhole: true });
  expect(spare.served).toHaveLength(1);
});
