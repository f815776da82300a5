import { convertRequest, type ProtocolId } from '@sluice/core';
import { type Json, object } from './facts.ts';

const TOOLS = [
  {
    type: 'function',
    function: {
      name: 'get_weather',
      description: 'The weather of a city',
      parameters: { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] },
    },
  },
];

const user = (content: string) => ({ role: 'user', content });

/** What the demo model can do, each as a request of OpenAI Chat. */
export const FEATURES = {
  text: { messages: [user('hi there')] },
  reasoning: { messages: [user('hi there')], reasoning_effort: 'low' },
  call: { messages: [user('demo: call get_weather')], tools: TOOLS },
  'reasoning and call': { messages: [user('demo: call get_weather')], tools: TOOLS, reasoning_effort: 'low' },
  'forced call': {
    messages: [user('hi there')],
    tools: TOOLS,
    tool_choice: { type: 'function', function: { name: 'get_weather' } },
  },
  'unknown tool': { messages: [user('demo: call get_wether')], tools: TOOLS },
  result: {
    messages: [
      user('demo: call get_weather'),
      {
        role: 'assistant',
        content: 'Calling the tool get_weather.',
        tool_calls: [{ id: 'call_demo_1', type: 'function', function: { name: 'get_weather', arguments: '{"city":"Ulm"}' } }],
      },
      { role: 'tool', tool_call_id: 'call_demo_1', content: '{"sky":"grey 🌧"}' },
    ],
    tools: TOOLS,
  },
} as const;

export type Feature = keyof typeof FEATURES;

/** The body of a request in a protocol, with the model, which Gemini's has in its path. */
export function buildBody(protocol: ProtocolId, feature: Feature, model: string): Json {
  const request = { model, max_completion_tokens: 4096, ...FEATURES[feature] };
  return { ...object(convertRequest(request, { from: 'openai-chat', to: protocol }).body), model };
}
