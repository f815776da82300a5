import Anthropic from '@anthropic-ai/sdk';
import type { ProtocolId } from '@sluice/core';
import Anthropic0 from 'anthropic-0';
import { GoogleGenAI as GoogleGenAI1 } from 'google-genai-1';
import { GoogleGenAI as GoogleGenAI2 } from 'google-genai-2';
import { NEWEST } from '../../sdk/newest.ts';
import { OPENAI_SDKS, type OpenAISdk } from '../../sdk/openai.ts';
import type { Json } from './facts.ts';

/** One request of an SDK; `onEvent` is called with everything it hands out. */
interface Sending {
  url: string;
  body: Json;
  signal: AbortSignal;
  onEvent(event: unknown): void;
}

/** `events`: each event of a stream; `assembled`: the message that the helper of the SDK makes of one; `count`, `embed`: other endpoints. */
export type Way = 'whole' | 'events' | 'assembled' | 'count' | 'embed';

export interface Sdk {
  name: string;
  protocol: ProtocolId;
  ways: Partial<Record<Way, (sending: Sending) => Promise<unknown>>>;
}

const KEY = 'any';

async function drain(stream: Promise<AsyncIterable<unknown>>, onEvent: Sending['onEvent']): Promise<void> {
  for await (const event of await stream) onEvent(event);
}

// A converted body is a request of its protocol, which no type of an SDK can know.
const typed = (body: Json, more: Json = {}): never => ({ ...body, ...more }) as never;

const openai = ({ OpenAI }: OpenAISdk, url: string) =>
  new OpenAI({ baseURL: `${url}/v1`, apiKey: KEY, maxRetries: 0, logLevel: 'off' });

function chat(sdk: OpenAISdk): Sdk['ways'] {
  const usage = { stream_options: { include_usage: true } };
  return {
    whole: async ({ url, body, signal, onEvent }) =>
      onEvent(await openai(sdk, url).chat.completions.create(typed(body), { signal })),
    events: ({ url, body, signal, onEvent }) =>
      drain(openai(sdk, url).chat.completions.create(typed(body, { stream: true, ...usage }), { signal }) as never, onEvent),
    assembled: async ({ url, body, signal, onEvent }) => {
      const stream = openai(sdk, url).chat.completions.stream(typed(body, usage), { signal });
      onEvent(await stream.finalChatCompletion());
    },
    embed: async ({ url, body, signal, onEvent }) =>
      onEvent(await openai(sdk, url).embeddings.create({ model: String(body['model']), input: 'hi' }, { signal })),
  };
}

function responses(sdk: OpenAISdk): Sdk['ways'] {
  return {
    whole: async ({ url, body, signal, onEvent }) => onEvent(await openai(sdk, url).responses.create(typed(body), { signal })),
    events: ({ url, body, signal, onEvent }) =>
      drain(openai(sdk, url).responses.create(typed(body, { stream: true }), { signal }) as never, onEvent),
    assembled: async ({ url, body, signal, onEvent }) =>
      onEvent(await openai(sdk, url).responses.stream(typed(body), { signal }).finalResponse()),
    count: async ({ url, body, signal, onEvent }) =>
      onEvent(await openai(sdk, url).responses.inputTokens.count(typed(body), { signal })),
  };
}

function messages(SDK: typeof Anthropic): Sdk['ways'] {
  const client = (url: string) => new SDK({ baseURL: url, apiKey: KEY, maxRetries: 0, logLevel: 'off' });
  return {
    whole: async ({ url, body, signal, onEvent }) => onEvent(await client(url).messages.create(typed(body), { signal })),
    events: ({ url, body, signal, onEvent }) =>
      drain(client(url).messages.create(typed(body, { stream: true }), { signal }) as never, onEvent),
    assembled: async ({ url, body, signal, onEvent }) =>
      onEvent(await client(url).messages.stream(typed(body), { signal }).finalMessage()),
    count: async ({ url, body: { max_tokens: _, ...body }, signal, onEvent }) =>
      onEvent(await client(url).messages.countTokens(typed(body), { signal })),
  };
}

function generate(GoogleGenAI: typeof GoogleGenAI1): Sdk['ways'] {
  const models = (url: string) => new GoogleGenAI({ apiKey: KEY, httpOptions: { baseUrl: url } }).models;
  const request = ({ body: { model, contents, generationConfig, ...rest }, signal }: Sending): never =>
    typed({ model, contents, config: { ...(generationConfig as Json), ...rest, abortSignal: signal } });
  return {
    whole: async (sending) => sending.onEvent(await models(sending.url).generateContent(request(sending))),
    events: (sending) => drain(models(sending.url).generateContentStream(request(sending)), sending.onEvent),
    count: async ({ url, body: { model, contents }, onEvent }) =>
      onEvent(await models(url).countTokens(typed({ model, contents }))),
    embed: async ({ url, body: { model }, onEvent }) =>
      onEvent(await models(url).embedContent({ model: String(model), contents: 'hi' })),
  };
}

// The newer majors are called like the older ones: their types differ, what is called here does not.
const asAnthropic = (SDK: typeof Anthropic0): typeof Anthropic => SDK as unknown as typeof Anthropic;
const asGoogle1 = (SDK: typeof GoogleGenAI2): typeof GoogleGenAI1 => SDK as unknown as typeof GoogleGenAI1;

const both = (sdk: OpenAISdk): Sdk[] => [
  { name: sdk.major, protocol: 'openai-chat', ways: chat(sdk) },
  { name: sdk.major, protocol: 'openai-responses', ways: responses(sdk) },
];

/** One for each protocol: the newest ones, where they are installed. */
export const SDKS: readonly Sdk[] = NEWEST
  ? [
      ...both(NEWEST.openai),
      { name: NEWEST.anthropic.major, protocol: 'anthropic-messages', ways: messages(NEWEST.anthropic.SDK) },
      { name: NEWEST.google.major, protocol: 'gemini', ways: generate(NEWEST.google.SDK) },
    ]
  : [
      ...OPENAI_SDKS.slice(-1).flatMap(both),
      { name: '@anthropic-ai/sdk 1', protocol: 'anthropic-messages', ways: messages(Anthropic) },
      { name: '@google/genai 2', protocol: 'gemini', ways: generate(asGoogle1(GoogleGenAI2)) },
    ];

/** Their majors before. */
export const OLDER: readonly Sdk[] = [
  { name: '@anthropic-ai/sdk 0', protocol: 'anthropic-messages', ways: messages(asAnthropic(Anthropic0)) },
  { name: '@google/genai 1', protocol: 'gemini', ways: generate(GoogleGenAI1) },
];
