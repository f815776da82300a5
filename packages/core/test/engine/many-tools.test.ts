import { describe, expect, test } from 'vitest';
import { CodecError, convertRequest, type ProtocolId } from '../../src/index.ts';

const schema = { type: 'object', properties: {} };
const names = (count: number): string[] => Array.from({ length: count }, (_, i) => `tool_${i}`);

/** A request with this many tools, in each protocol. */
const REQUESTS: Record<ProtocolId, (count: number) => Record<string, unknown>> = {
  'openai-chat': (count) => ({
    model: 'm',
    messages: [{ role: 'user', content: 'hi' }],
    tools: names(count).map((name) => ({ type: 'function', function: { name, parameters: schema } })),
  }),
  'openai-responses': (count) => ({
    model: 'm',
    input: 'hi',
    tools: names(count).map((name) => ({ type: 'function', name, parameters: schema, strict: false })),
  }),
  'anthropic-messages': (count) => ({
    model: 'm',
    max_tokens: 9,
    messages: [{ role: 'user', content: 'hi' }],
    tools: names(count).map((name) => ({ name, input_schema: schema })),
  }),
  gemini: (count) => ({
    model: 'm',
    contents: [{ role: 'user', parts: [{ text: 'hi' }] }],
    tools: [{ functionDeclarations: names(count).map((name) => ({ name })) }],
  }),
};
const PROTOCOLS = Object.keys(REQUESTS) as ProtocolId[]; // the keys of a closed table

function countOf(body: unknown): number {
  const text = JSON.stringify(body);
  return names(700).filter((name) => text.includes(`"${name}"`)).length;
}

describe.each(PROTOCOLS)('many tools of %s', (from) => {
  test.each(PROTOCOLS)('all reach a %s provider about which nothing is known', (to) => {
    const { body } = convertRequest(REQUESTS[from](600), { from, to, provider: 'own' });
    expect(countOf(body)).toBe(600);
  });

  test.each([
    ['openai-responses', 'openai'],
    ['anthropic-messages', 'anthropic'],
    ['gemini', 'google'],
    ['openai-chat', 'groq'],
  ] as const)('all reach %s at %s, whose limit is not recorded', (to, provider) => {
    const { body } = convertRequest(REQUESTS[from](600), { from, to, provider });
    expect(countOf(body)).toBe(600);
  });

  test('128 reach OpenAI Chat, and more are refused', () => {
    const options = { from, to: 'openai-chat', provider: 'openai' } as const;
    expect(countOf(convertRequest(REQUESTS[from](128), options).body)).toBe(128);
    const refused = (): unknown => convertRequest(REQUESTS[from](129), options);
    expect(refused).toThrow(CodecError);
    expect(refused).toThrow('the provider accepts at most 128 tools; the request has 129');
  });
});
