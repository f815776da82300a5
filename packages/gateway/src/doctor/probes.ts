import type { Assembled } from '@sluice/core';

/** A small question, as an OpenAI Chat client would ask it; every other protocol gets it converted. */
export interface Probe {
  title: string;
  body: Readonly<Record<string, unknown>>;
  /** Whether the answer has what was asked for. */
  isShown(answer: Assembled): boolean;
  /** Said when it has not. */
  missing: string;
}

const ask = (content: string): object[] => [{ role: 'user', content }];

const tool = (name: string, description: string, properties: Record<string, object>): object => ({
  type: 'function',
  function: { name, description, parameters: { type: 'object', properties, required: Object.keys(properties) } },
});

const WEATHER = tool('get_weather', 'The weather of a city', { city: { type: 'string' } });
const TIME = tool('get_time', 'The time in a city', { city: { type: 'string' } });
const PING = tool('ping', 'Checks that tools work; takes no arguments', {});

/** Enough for a model that thinks first, and little for any other. */
const ROOM = 1024;

export const PROBES = {
  text: {
    title: 'plain text',
    body: { messages: ask('Say "hello" and nothing else.'), max_tokens: ROOM, temperature: 0 },
    isShown: ({ text }) => text !== '',
    missing: 'the answer has no text',
  },
  tool: {
    title: 'one tool',
    body: {
      messages: ask('What is the weather in Paris? Use the tool.'),
      tools: [WEATHER],
      tool_choice: 'required',
      max_tokens: ROOM,
    },
    isShown: ({ tool_calls: calls }) => calls.length > 0,
    missing: 'no tool was called',
  },
  'parallel-tools': {
    title: 'two tools at once',
    body: {
      messages: ask('What are the weather and the time in Paris? Call both tools at once, in one turn.'),
      tools: [WEATHER, TIME],
      max_tokens: ROOM,
    },
    isShown: ({ tool_calls: calls }) => calls.length > 1,
    missing: 'fewer than two calls came in one answer',
  },
  'tool-without-arguments': {
    title: 'a tool without arguments',
    body: { messages: ask('Call the tool ping.'), tools: [PING], tool_choice: 'required', max_tokens: ROOM },
    isShown: ({ tool_calls: calls }) => calls.length > 0,
    missing: 'no tool was called',
  },
  reasoning: {
    title: 'thinking first',
    body: { messages: ask('How many of the numbers 1 to 30 are prime?'), reasoning_effort: 'low', max_tokens: 4 * ROOM },
    isShown: ({ reasoning, usage }) => reasoning !== '' || (usage?.reasoning_tokens ?? 0) > 0,
    missing: 'no reasoning came, neither as text nor in the usage',
  },
  usage: {
    title: 'token counts',
    body: { messages: ask('Say "hello" and nothing else.'), max_tokens: ROOM, stream_options: { include_usage: true } },
    isShown: ({ usage }) => usage !== null,
    missing: 'the stream has no usage',
  },
} as const satisfies Record<string, Probe>;

export type ProbeName = keyof typeof PROBES;

/** A model that nobody has: what does an error look like? */
export const ERROR_PROBE = { title: 'an error', model: 'sluice-doctor-no-such-model' } as const;
