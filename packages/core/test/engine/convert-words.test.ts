import { describe, expect, test } from 'vitest';
import { convertRequest, type ProtocolId } from '../../src/index.ts';

type Json = Record<string, unknown>;

interface Row {
  name: string;
  from: ProtocolId;
  to: ProtocolId;
  body: Json;
  provider?: string;
  model?: string;
  /** What of the converted request counts. */
  sends: Json;
  /** Code, path, and message of each note. */
  told?: string[];
}

const USER = { role: 'user', content: 'hi' };
const TOOL = { type: 'function', function: { name: 'f', parameters: { type: 'object', properties: {} } } };
const chat = (over: Json): Json => ({ model: 'm', max_tokens: 99, messages: [USER], ...over });
const claude = (over: Json): Json => ({ model: 'm', max_tokens: 9000, messages: [USER], ...over });

const THINKING: Row[] = [
  ...(['openai-chat', 'openai-responses', 'gemini'] as const).flatMap((to): Row[] => [
    {
      name: 'thinking.display "updates"',
      from: 'anthropic-messages',
      to,
      body: claude({ thinking: { type: 'adaptive', display: 'updates' } }),
      sends: {
        'openai-chat': { thinking: undefined },
        'openai-responses': { reasoning: { summary: 'auto' } },
        gemini: { generationConfig: { maxOutputTokens: 9000, thinkingConfig: { includeThoughts: true, thinkingBudget: -1 } } },
      }[to],
      told: ['APPROXIMATED /thinking/display only anthropic-messages knows display "updates"; treated as "summarized"'],
    },
    {
      name: 'a thinking.display without a canonical form',
      from: 'anthropic-messages',
      to,
      body: claude({ thinking: { type: 'adaptive', display: 'future' } }),
      sends: { thinking: undefined },
      told: ['DROPPED /thinking/display only anthropic-messages knows display'],
    },
    {
      name: 'thinking.type "between_tools"',
      from: 'anthropic-messages',
      to,
      body: claude({ thinking: { type: 'between_tools' } }),
      sends: { thinking: undefined },
      told: ['APPROXIMATED /thinking/type only anthropic-messages knows type "between_tools"; treated as "adaptive"'],
    },
  ]),
  {
    name: 'thinking.display "updates" is kept',
    from: 'anthropic-messages',
    to: 'anthropic-messages',
    model: 'claude-sonnet-4-5',
    body: claude({ thinking: { type: 'enabled', budget_tokens: 2000, display: 'updates' } }),
    sends: { thinking: { type: 'enabled', budget_tokens: 2000, display: 'updates' } },
  },
  {
    name: 'thinking.display "updates" is kept where a budget becomes an effort',
    from: 'anthropic-messages',
    to: 'anthropic-messages',
    model: 'claude-opus-5',
    body: claude({ thinking: { type: 'enabled', budget_tokens: 2000, display: 'updates' } }),
    sends: { thinking: { type: 'adaptive', display: 'updates' }, output_config: { effort: 'medium' } },
    told: ['APPROXIMATED /thinking/budget_tokens a budget of 2000 tokens is sent as the effort "medium"'],
  },
  {
    name: 'thinking.type "between_tools" is kept',
    from: 'anthropic-messages',
    to: 'anthropic-messages',
    model: 'claude-sonnet-5-5',
    body: claude({ thinking: { type: 'between_tools' } }),
    sends: { thinking: { type: 'between_tools' } },
  },
];

describe('a word that only one protocol knows is mapped with a note, and kept where the protocol is the same', () => {
  test.each([...THINKING])('$name ($from to $to)', ({ from, to, body, provider, model, sends, told = [] }) => {
    const path = from === 'gemini' ? { path: '/v1beta/models/m:generateContent' } : {};
    const { body: sent, notes } = convertRequest(body, { from, to, provider, ...(model && { model }), ...path });
    expect(notes.map(({ code, path: place, message }) => `${code} ${place} ${message}`)).toEqual(told);
    expect(sent).toEqual({ ...(sent as Json), ...sends });
  });
});
