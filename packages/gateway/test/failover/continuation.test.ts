import type { ProtocolId } from '@sluice/core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { expectWholeFrames } from '../gateway/check.ts';
import { ANSWER, framesOf, readStream } from '../gateway/dialects.ts';
import type { Reply } from '../gateway/http.ts';
import { ask, type Started, startGateway } from '../gateway/start.ts';
import { TestClock } from '../gateway/test-clock.ts';
import { createHeldKeeping, HeldLedger } from '../ledger/held-ledger.ts';
import { Continuer, type Manner } from './continuer.ts';
import { MAX_ATTEMPTS } from './scenarios.ts';

// recovery.on_break: continue, through real sockets. splice.test.ts has every byte; this has some. SLUICE_EVERY_BYTE=1 (nightly) has more.

const EVERY_BYTE = process.env['SLUICE_EVERY_BYTE'] === '1';
const STEP = EVERY_BYTE ? 13 : 211;
const TEXT = 'Zwölf Boxkämpfer jagen Viktor quer über\n\n  den 🐫 großen Sylter Deich.';
const PROTOCOLS: readonly ProtocolId[] = ['openai-chat', 'anthropic-messages', 'openai-responses', 'gemini'];

let first: Continuer;
let second: Continuer;
let gateway: Started;

const modelOf = (upstream: ProtocolId, fallback: ProtocolId): string => `${upstream}-then-${fallback}`;

const configOf = (recovery: object): object => ({
  providers: Object.fromEntries(
    PROTOCOLS.flatMap((protocol) => [
      [`first-${protocol}`, { protocol, base_url: first.urlOf(protocol), api_key: 'k' }],
      [`second-${protocol}`, { protocol, base_url: second.urlOf(protocol), api_key: 'k' }],
    ]),
  ),
  models: Object.fromEntries([
    ...PROTOCOLS.flatMap((upstream) =>
      PROTOCOLS.map((fallback) => [modelOf(upstream, fallback), [`first-${upstream}/m`, `second-${fallback}/m`]]),
    ),
    ['alone', 'first-openai-chat/m'],
  ]),
  recovery,
});

beforeAll(async () => {
  first = await Continuer.start();
  second = await Continuer.start();
  gateway = await startGateway({ config: configOf({ on_break: 'continue' }) });
});

afterAll(async () => {
  await gateway.close();
  await first.stop();
  await second.stop();
});

const lengthOf = (upstream: ProtocolId): number => Buffer.byteLength(framesOf(upstream, answer()).join(''));

const answer = (): typeof ANSWER => ({ ...ANSWER, content: [{ type: 'text', text: TEXT }] });

/** Asks, and checks that no more requests were sent than allowed. */
async function request(client: ProtocolId, model: string, url = gateway.url): Promise<Reply> {
  first.asked = [];
  second.asked = [];
  const reply = await ask(url, { client, model, stream: true });
  expect(first.asked.length + second.asked.length).toBeLessThanOrEqual(MAX_ATTEMPTS);
  return reply;
}

function expectWhole(client: ProtocolId, reply: Reply, at: string): void {
  expectWholeFrames(reply.body);
  const read = readStream(client, reply.body);
  expect({ at, text: read.text, error: read.error, complete: read.complete }).toEqual({
    at,
    text: TEXT,
    error: null,
    complete: true,
  });
}

/** Every client with every upstream; fallbacks differ from the upstream, too. */
const PAIRS = PROTOCOLS.flatMap((client, i) =>
  PROTOCOLS.flatMap((upstream, j) => {
    const fallbacks = EVERY_BYTE ? PROTOCOLS : PROTOCOLS.filter((_, k) => k === (i + j) % PROTOCOLS.length);
    return fallbacks.map((fallback) => ({ client, upstream, fallback }));
  }),
);

describe('a stream that is cut anywhere arrives whole and once', () => {
  test.each(PAIRS)(
    '$client <- $upstream, then $fallback',
    async ({ client, upstream, fallback }) => {
      const manners: Manner[] = ['continue', 'repeat', 'refuse'];
      for (let at = 0, turn = 0; at < lengthOf(upstream); at += STEP, turn++) {
        const manner = manners[turn % manners.length] ?? 'continue';
        first.plan = { text: TEXT, manner, cutAt: at };
        second.plan = { text: TEXT, manner };
        // What ignores a prefill is only recognised by an overlap of 16 characters.
        expectWholeOrShort(client, await request(client, modelOf(upstream, fallback)), `${manner} ${at}`, manner);
      }
    },
    600_000,
  );
});

/** A target that ignores a prefill repeats less than 16 characters: they cannot be told from a real continuation. */
function expectWholeOrShort(client: ProtocolId, reply: Reply, at: string, manner: Manner): void {
  const [{ prefill = '' } = {}] = second.asked;
  if (manner === 'repeat' && prefill !== '' && prefill.trimEnd().length < 16)
    expect(readStream(client, reply.body).text.endsWith(TEXT)).toBe(true);
  else expectWhole(client, reply, at);
}

/** The middle of the frame that ends with this share of the text. */
const middleOf = (upstream: ProtocolId): number => Math.floor(lengthOf(upstream) * 0.6);

describe('a stream that cannot be continued ends in its own error', () => {
  test.each(PAIRS)('when the fallback has another response: $client <- $upstream, then $fallback', async (pair) => {
    const { client, upstream, fallback } = pair;
    first.plan = { text: TEXT, manner: 'refuse', cutAt: middleOf(upstream) };
    // A target that continues whatever it is given cannot be caught; one that starts again can.
    second.plan = { text: `Well, ${TEXT}`, manner: 'refuse' };
    const reply = await request(client, modelOf(upstream, fallback));
    const read = readStream(client, reply.body);
    expect(TEXT.startsWith(read.text)).toBe(true);
    expect(read.error?.message).toMatch(/first-/);
    expect(reply.body.toString()).not.toContain('prefill is not supported');
    expectWholeFrames(reply.body);
  });

  test('structured output is not continued', async () => {
    first.plan = { text: TEXT, manner: 'continue', cutAt: middleOf('openai-chat') };
    second.plan = { text: TEXT, manner: 'continue' };
    second.asked = [];
    const body = { response_format: { type: 'json_object' } };
    const model = modelOf('openai-chat', 'openai-chat');
    const reply = await ask(gateway.url, { client: 'openai-chat', model, stream: true, body });
    expect(readStream('openai-chat', reply.body).error?.message).toMatch(/first-openai-chat/);
    expect(second.asked).toEqual([]);
  });
});

test('the only target continues its own response', async () => {
  first.plan = { text: TEXT, manner: 'continue', cutAt: middleOf('openai-chat'), cuts: 1 };
  expectWhole('anthropic-messages', await request('anthropic-messages', 'alone'), 'alone');
  expect(first.asked).toHaveLength(2);
});

describe('a stream that stalls', () => {
  test.each(PROTOCOLS)('is continued after idle_timeout, with one message id and one block: %s', async (client) => {
    const clock = new TestClock();
    const stalling = await startGateway({ clock, config: configOf({ on_break: 'continue' }) });
    const model = modelOf('anthropic-messages', 'openai-chat');
    first.plan = { text: TEXT, manner: 'continue', stallAt: middleOf('anthropic-messages') };
    second.plan = { text: TEXT, manner: 'continue' };
    const reply = await clock.until(request(client, model, stalling.url));
    expectWhole(client, reply, 'stall');
    const text = reply.body.toString();
    if (client === 'anthropic-messages') {
      expect(text.match(/"type":"message_start"/g)).toHaveLength(1);
      expect(text.match(/"type":"content_block_start"/g)).toHaveLength(1);
      expect(text).not.toMatch(/"index":[1-9]/);
    }
    if (client === 'openai-chat') expect(new Set(text.match(/"id":"[^"]+"/g)).size).toBe(1);
    expect(stalling.log().some(({ msg }) => msg === 'stream truncated; continuing at another target')).toBe(true);
    await stalling.close();
  });
});

test('the ledger has both attempts with their usage, and the exchange their sum', async () => {
  const ledger = new HeldLedger();
  const kept = await startGateway({
    config: configOf({ on_break: 'continue' }),
    services: (made) => ({ ...made, keeping: createHeldKeeping(ledger) }),
  });
  first.plan = { text: TEXT, manner: 'continue', cutAt: middleOf('openai-chat') };
  second.plan = { text: TEXT, manner: 'continue' };
  expectWhole('openai-chat', await request('openai-chat', modelOf('openai-chat', 'anthropic-messages'), kept.url), 'ledger');
  const attempts = ledger.written.filter(({ write }) => write === 'settleAttempt').map(({ row }) => row);
  expect(attempts).toMatchObject([
    { number: 1, ending: 'upstream_error', provenance: 'estimated', possibly_billed: true },
    { number: 2, ending: 'answered', provenance: 'reported', input_tokens: 11, output_tokens: 5 },
  ]);
  const [exchange] = ledger.ended;
  const sum = attempts.reduce((total, row) => total + (row as { input_tokens: number }).input_tokens, 0);
  expect(exchange).toMatchObject({
    ending: 'answered',
    input_tokens: sum,
    notes: expect.arrayContaining([expect.objectContaining({ feature: 'stream.continued' })]),
  });
  await kept.close();
});

test('without the setting a broken stream ends in its error, and there is no other request', async () => {
  const plain = await startGateway({ config: configOf({}) });
  first.plan = { text: TEXT, manner: 'continue', cutAt: middleOf('openai-chat') };
  second.plan = { text: TEXT, manner: 'continue' };
  const reply = await request('openai-chat', modelOf('openai-chat', 'openai-chat'), plain.url);
  expect(readStream('openai-chat', reply.body).error?.message).toMatch(/first-openai-chat/);
  expect(second.asked).toEqual([]);
  await plain.close();
});
