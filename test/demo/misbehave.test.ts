import { convertRequest, type ProtocolId } from '@sluice/core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { readStream } from '../../packages/gateway/test/gateway/dialects.ts';
import { ask, type Started, startGateway } from '../../packages/gateway/test/gateway/start.ts';
import { chooseProtocol, DEMO_MODELS } from '../../packages/lab/src/demo/brain.ts';

// The demo speaks badly when its name says so, and the gateway mends it for every client.
let gateway: Started;

beforeAll(async () => {
  gateway = await startGateway({ config: {} });
});

afterAll(() => gateway.close());

const CLIENTS: readonly ProtocolId[] = ['openai-chat', 'anthropic-messages', 'openai-responses', 'gemini'];

const ENDS_EARLY = ['error-mid-stream', 'cut'];

/** A request that makes the demo call a tool, in the client's protocol. */
const questionOf = (client: ProtocolId) =>
  convertRequest(
    {
      model: 'm',
      messages: [{ role: 'user', content: 'demo: call get_weather' }],
      tools: [
        {
          type: 'function',
          function: {
            name: 'get_weather',
            parameters: { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] },
          },
        },
      ],
    },
    { from: 'openai-chat', to: client },
  ).body as object; // a request of any protocol is one

async function told(client: ProtocolId, model: string) {
  const { model: _, ...body } = { model: '', ...questionOf(client) };
  const reply = await ask(gateway.url, { client, model: `demo/${model}`, stream: true, body });
  return { reply, ...readStream(client, reply.body) };
}

/** Without the id: a server that sends none is given one. */
const callOf = ({ id: _, ...call }: { id: string }) => call;

describe.each(CLIENTS)('%s', (client) => {
  test.each(DEMO_MODELS.filter((model) => !ENDS_EARLY.includes(model)))('demo/%s is repaired', async (model) => {
    const [plain, mended] = [await told(client, 'hello'), await told(client, model)];
    expect(plain.tool_calls).toMatchObject([{ name: 'get_weather', arguments: '{"city":"sluice-demo-sample"}' }]);
    expect(mended.text).toBe(plain.text);
    expect(mended.tool_calls.map(callOf)).toEqual(plain.tool_calls.map(callOf));
    expect(mended).toMatchObject({ complete: true, error: null });
  });

  test.each(ENDS_EARLY)('demo/%s is reported', async (model) => {
    const { reply, complete, error } = await told(client, model);
    expect(complete && error === null && reply.status === 200).toBe(false);
  });
});

test('every listed name except the first is a dialect', () => {
  for (const name of DEMO_MODELS.slice(1))
    expect(CLIENTS.some((client) => chooseProtocol(name, client) !== client) || ENDS_EARLY.includes(name), name).toBe(true);
});

test('a dialect of one protocol uses that protocol, any other name the protocol of the client', () => {
  expect(chooseProtocol('no-index', 'gemini')).toBe('openai-chat');
  expect(chooseProtocol('gemini/snake-case', 'openai-chat')).toBe('gemini');
  expect(chooseProtocol('sse/crlf', 'gemini')).toBe('gemini');
  expect(chooseProtocol('anything', 'anthropic-messages')).toBe('anthropic-messages');
});

test('the model list contains the names', async () => {
  const list = (await (await fetch(`${gateway.url}/v1/models`)).json()) as { data: { id: string }[] };
  expect(list.data.map(({ id }) => id)).toEqual(DEMO_MODELS.map((name) => `demo/${name}`));
});
