import Anthropic1 from '@anthropic-ai/sdk';
import Anthropic0 from 'anthropic-0';
import { GoogleGenAI as GoogleGenAI1 } from 'google-genai-1';
import { GoogleGenAI as GoogleGenAI2 } from 'google-genai-2';
import type OpenAI from 'openai';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type Started, startGateway } from '../../packages/gateway/test/gateway/start.ts';
import { OPENAI_SDKS } from '../sdk/openai.ts';

// Base URLs that people write, with the clients that they write them for. The demo model answers in every protocol, and to this name only.

const MODEL = 'demo/hello';
const PROMPT = 'hi there';
const KEY = { apiKey: 'any', maxRetries: 0 };

let gateway: Started;
beforeAll(async () => {
  gateway = await startGateway({ config: { models: { [MODEL]: MODEL } } });
});
afterAll(() => gateway.close());

// The majors are alike in all that is used here, but their overloads cannot be called as a union.
const asAnthropic1 = (client: Anthropic0): Anthropic1 => client as unknown as Anthropic1;

/** What a client can ask for. */
interface Client {
  whole(): Promise<string | null | undefined>;
  stream(): Promise<string>;
  models(): Promise<(string | undefined)[]>;
  count?(): Promise<number | undefined>;
  embed?(): Promise<number | undefined>;
}

const messages = [{ role: 'user' as const, content: PROMPT }];

function openai(client: OpenAI): Client {
  return {
    whole: async () => (await client.chat.completions.create({ model: MODEL, messages })).choices[0]?.message.content,
    stream: async () => {
      let text = '';
      for await (const { choices } of await client.chat.completions.create({ model: MODEL, messages, stream: true }))
        text += choices[0]?.delta.content ?? '';
      return text;
    },
    models: async () => (await client.models.list()).data.map(({ id }) => id),
    embed: async () => (await client.embeddings.create({ model: MODEL, input: PROMPT })).data[0]?.embedding.length,
  };
}

function responses(client: OpenAI): Client {
  return {
    ...openai(client),
    whole: async () => (await client.responses.create({ model: MODEL, input: PROMPT })).output_text,
    stream: async () => {
      let text = '';
      for await (const event of await client.responses.create({ model: MODEL, input: PROMPT, stream: true }))
        if (event.type === 'response.output_text.delta') text += event.delta;
      return text;
    },
    count: async () => (await client.responses.inputTokens.count({ model: MODEL, input: PROMPT })).input_tokens,
  };
}

function anthropic(client: Anthropic1): Client {
  const question = { model: MODEL, max_tokens: 99, messages };
  return {
    whole: async () => {
      const [block] = (await client.messages.create(question)).content;
      return block?.type === 'text' ? block.text : undefined;
    },
    stream: () => client.messages.stream(question).finalText(),
    models: async () => (await client.models.list()).data.map(({ id }) => id),
    count: async () => (await client.messages.countTokens({ model: MODEL, messages })).input_tokens,
  };
}

function google(client: GoogleGenAI1 | GoogleGenAI2): Client {
  const question = { model: MODEL, contents: PROMPT };
  return {
    whole: async () => (await client.models.generateContent(question)).text,
    stream: async () => {
      let text = '';
      for await (const chunk of await client.models.generateContentStream(question)) text += chunk.text ?? '';
      return text;
    },
    models: async () => (await client.models.list()).page.map(({ name }) => name?.replace('models/', '')),
    count: async () => (await client.models.countTokens(question)).totalTokens,
    embed: async () => (await client.models.embedContent(question)).embeddings?.[0]?.values?.length,
  };
}

type Make = (base: string) => Client;

const deployed = (endpoint: string) => ({ ...KEY, endpoint, apiVersion: '2024-10-21', deployment: MODEL });

const OPENAI: readonly (readonly [string, Make])[] = OPENAI_SDKS.flatMap(({ major, OpenAI }) => [
  [`${major}, chat`, (baseURL) => openai(new OpenAI({ ...KEY, baseURL }))],
  [`${major}, responses`, (baseURL) => responses(new OpenAI({ ...KEY, baseURL }))],
]);
const AZURE: readonly (readonly [string, Make])[] = OPENAI_SDKS.flatMap(({ major, AzureOpenAI }) => [
  [`${major}, Azure`, (endpoint) => openai(new AzureOpenAI({ ...KEY, endpoint, apiVersion: '2024-10-21' }))],
  [`${major}, Azure, one deployment`, (endpoint) => openai(new AzureOpenAI(deployed(endpoint)))],
  [`${major}, Azure, responses`, (endpoint) => responses(new AzureOpenAI({ ...KEY, endpoint, apiVersion: 'preview' }))],
]);
const ANTHROPIC: readonly (readonly [string, Make])[] = [
  ['anthropic 0', (baseURL) => anthropic(asAnthropic1(new Anthropic0({ ...KEY, baseURL })))],
  ['anthropic 1', (baseURL) => anthropic(new Anthropic1({ ...KEY, baseURL }))],
];
const GOOGLE: readonly (readonly [string, Make])[] = [
  ['google-genai 1', (baseUrl) => google(new GoogleGenAI1({ ...KEY, httpOptions: { baseUrl } }))],
  ['google-genai 2', (baseUrl) => google(new GoogleGenAI2({ ...KEY, httpOptions: { baseUrl } }))],
];

const ROWS = [
  ...['', '/v1', '/v1/v1', '/openai', '/openai/v1', '/openai/v1/v1', '/v1/'].map((base) => [base, OPENAI] as const),
  ...['', '/'].map((base) => [base, AZURE] as const),
  ...['', '/v1', '/v1/v1', '/anthropic', '/anthropic/v1', '/anthropic/v1/v1'].map((base) => [base, ANTHROPIC] as const),
  ...['', '/v1beta', '/v1beta/v1beta', '/v1', '/genai', '/genai/v1beta', '/genai/v1beta/v1beta'].map(
    (base) => [base, GOOGLE] as const,
  ),
].flatMap(([base, clients]) => clients.map(([name, make]) => ({ base, name, make })));

describe.each(ROWS)('$name at "$base"', ({ base, make }) => {
  const open = (): Client => make(gateway.url + base);

  test('chat, whole and as a stream', async () => {
    expect(await open().whole()).toContain(`You wrote: "${PROMPT}"`);
    expect(await open().stream()).toContain(`You wrote: "${PROMPT}"`);
  });

  test('models', async () => expect(await open().models()).toContain(MODEL));

  test('counts and embeddings, where the protocol has them', async () => {
    const { count = () => 1, embed = () => 1 } = open();
    expect(await count()).toBeGreaterThan(0);
    expect(await embed()).toBeGreaterThan(0);
  });
});
