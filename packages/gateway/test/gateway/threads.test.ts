import Anthropic from '@anthropic-ai/sdk';
import { betaTool } from '@anthropic-ai/sdk/helpers/beta/json-schema';
import type { BetaMessage } from '@anthropic-ai/sdk/resources/beta/messages';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { PROTOCOLS, startUpstream, type Upstream } from '../responses/upstreams.ts';
import { type Started, startGateway } from './start.ts';

// Threads of Anthropic, whose earlier messages only Anthropic has. The official SDK is the judge.

const LIMITS = { model: 'up/m', max_tokens: 99 };

let upstream: Upstream;
let gateway: Started;
let client: Anthropic;

afterEach(async () => {
  await gateway.close();
  upstream.close();
});

async function start(protocol: (typeof PROTOCOLS)[number]): Promise<void> {
  upstream = await startUpstream(protocol);
  gateway = await startGateway({ config: { providers: { up: { protocol, base_url: upstream.url, api_key: 'k' } } } });
  client = new Anthropic({ baseURL: gateway.url, apiKey: 'none', maxRetries: 0 });
}

const textOf = ({ content }: BetaMessage): string => content.map((block) => (block.type === 'text' ? block.text : '')).join('');

describe.each(PROTOCOLS.filter((protocol) => protocol !== 'anthropic-messages'))('an upstream of %s', (protocol) => {
  beforeEach(() => start(protocol));

  test('toolRunner sends the whole conversation in every turn', async () => {
    const weather = betaTool({
      name: 'weather',
      description: 'The weather',
      inputSchema: { type: 'object', properties: {} },
      run: () => {
        if (upstream.got.length > 1) upstream.next = {};
        return `sunny ${upstream.got.length}`;
      },
    });
    upstream.next = { call: { name: 'weather', id: 'call_1' } };
    const messages = [{ role: 'user' as const, content: 'How is the weather?' }];
    const last = await client.beta.messages.toolRunner({ ...LIMITS, messages, tools: [weather] });
    expect(textOf(last)).toBe(`answer 3 of ${protocol}`);
    expect(upstream.got).toHaveLength(3);
    for (const text of ['How is the weather?', 'sunny 1', 'sunny 2']) expect(upstream.got[2]).toContain(text);
    expect(upstream.got[2]?.match(/"name":"weather"/g)?.length).toBeGreaterThan(2);
  });

  test.each(['error', 'continue_unthreaded'] as const)('a thread knows its history, unsupported: %s', async (behavior) => {
    const thread = client.beta.messages.thread({ ...LIMITS, unsupportedRequestBehavior: behavior });
    await thread.send({ role: 'user', content: 'My name is Ann.' });
    await thread.stream({ role: 'user', content: 'I live in Bern.' }).finalMessage();
    const reply = await thread.send({ role: 'user', content: 'What is my name?' });
    expect(textOf(reply)).toBe(`answer 3 of ${protocol}`);
    expect(upstream.got).toHaveLength(3);
    for (const text of ['My name is Ann.', `answer 1 of ${protocol}`, 'I live in Bern.', `answer 2 of ${protocol}`])
      expect(upstream.got[2]).toContain(text);
  });

  test('a continued thread is not found, with the code that the SDK reads', async () => {
    const thread = { type: 'continue' as const, previous_message_id: 'msg_1' };
    const failure = client.beta.messages.create({ ...LIMITS, thread, messages: [{ role: 'user', content: 'hi' }] });
    await expect(failure).rejects.toBeInstanceOf(Anthropic.NotFoundError);
    await expect(failure).rejects.toMatchObject({
      status: 404,
      error: { type: 'error', error: { type: 'not_found_error', details: { error_code: 'thread_not_found' } } },
    });
    expect(upstream.got).toEqual([]);
  });
});

test('an upstream of Anthropic gets threads as sent', async () => {
  await start('anthropic-messages');
  const thread = client.beta.messages.thread(LIMITS);
  const { id } = await thread.send({ role: 'user', content: 'My name is Ann.' });
  await thread.send({ role: 'user', content: 'What is my name?' });
  expect(JSON.parse(upstream.got[1] ?? '')).toMatchObject({ thread: { type: 'continue', previous_message_id: id } });
  expect(upstream.got[1]).not.toContain('Ann');
});
