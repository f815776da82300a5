import { describe, expect, test } from 'vitest';
import { convertRequest, type ProtocolId } from '../../src/index.ts';

// Models of OpenAI that do not reason unless a request has an effort: gpt-5.1 to gpt-5.4.

type OpenAi = 'openai-chat' | 'openai-responses';

const BODIES = {
  'openai-chat': { messages: [{ role: 'user', content: 'hi' }] },
  'openai-responses': { input: 'hi' },
  'anthropic-messages': { max_tokens: 999, messages: [{ role: 'user', content: 'hi' }] },
  gemini: { contents: [{ role: 'user', parts: [{ text: 'hi' }] }] },
} as const satisfies Record<ProtocolId, object>;

function convert(from: ProtocolId, to: OpenAi, model: string, fields: object) {
  const provider = { id: 'openai', protocol: to, base_url: 'https://api.openai.com' } as const;
  const { body, notes } = convertRequest({ model, ...BODIES[from], ...fields }, { from, to, model, provider });
  return { body: body as Record<string, unknown>, notes: notes.map(({ code, path, message }) => `${code} ${path}: ${message}`) };
}

const PAIRS: readonly OpenAi[] = ['openai-chat', 'openai-responses'];
const SAMPLING = { temperature: 0.2, top_p: 0.9 };
const effort = (protocol: OpenAi, value: string | null): object =>
  protocol === 'openai-chat' ? { reasoning_effort: value } : { reasoning: { effort: value } };

describe.each(PAIRS)('%s', (protocol) => {
  test.each(['gpt-5.1', 'gpt-5.2', 'gpt-5.4', 'gpt-5.4-mini', 'gpt-5.1-chat-latest', 'ft:gpt-5.1:org::id'])(
    'temperature and top_p reach %s without an effort',
    (model) => {
      for (const from of PAIRS) {
        const { body, notes } = convert(from, protocol, model, SAMPLING);
        expect(body).toMatchObject(SAMPLING);
        expect(notes).toEqual([]);
      }
      expect(convert(protocol, protocol, model, { ...SAMPLING, ...effort(protocol, null) }).body).toMatchObject(SAMPLING);
      expect(convert(protocol, protocol, model, { ...SAMPLING, ...effort(protocol, 'none') }).body).toMatchObject(SAMPLING);
    },
  );

  test('they do not while it reasons', () => {
    const { body, notes } = convert(protocol, protocol, 'gpt-5.2', { ...SAMPLING, ...effort(protocol, 'low') });
    expect(body).not.toHaveProperty('temperature');
    expect(notes).toHaveLength(2);
  });

  test.each(['gpt-5', 'gpt-5-mini', 'gpt-5.1-codex', 'gpt-5.2-pro', 'gpt-5.5', 'gpt-5.10', 'gpt-6', 'o3'])(
    'they do not reach %s, which reasons by default',
    (model) => {
      const { body, notes } = convert(protocol, protocol, model, SAMPLING);
      expect(body).not.toHaveProperty('temperature');
      expect(notes).toHaveLength(2);
    },
  );

  const readEffort = (body: Record<string, unknown>): unknown =>
    protocol === 'openai-chat'
      ? body['reasoning_effort']
      : (body['reasoning'] as Record<string, unknown> | undefined)?.['effort'];

  test('adaptive thinking makes it reason', () => {
    const { body, notes } = convert('anthropic-messages', protocol, 'gpt-5.2', { thinking: { type: 'adaptive' } });
    expect(readEffort(body)).toBe('medium');
    expect(notes).toEqual([
      'APPROXIMATED /thinking/type: adaptive thinking: this model does not reason by default; sent as effort "medium"',
    ]);
  });

  test('adaptive thinking is left to a model that reasons by default, with a note', () => {
    const { body, notes } = convert('anthropic-messages', protocol, 'gpt-5.5', { thinking: { type: 'adaptive' } });
    expect(readEffort(body)).toBeUndefined();
    expect(notes).toEqual(['APPROXIMATED /thinking/type: adaptive thinking: left to the model']);
  });

  test('an effort or a budget is sent as such', () => {
    const asked = { thinking: { type: 'adaptive' }, output_config: { effort: 'high' } };
    expect(readEffort(convert('anthropic-messages', protocol, 'gpt-5.2', asked).body)).toBe('high');
    const budget = { max_tokens: 9999, thinking: { type: 'enabled', budget_tokens: 8192 } };
    expect(readEffort(convert('anthropic-messages', protocol, 'gpt-5.2', budget).body)).toBe('medium');
  });
});

test('a summary alone requests no reasoning', () => {
  const { body } = convert('openai-responses', 'openai-chat', 'gpt-5.2', { reasoning: { summary: 'auto' }, ...SAMPLING });
  expect(body).not.toHaveProperty('reasoning_effort');
  expect(body).toMatchObject(SAMPLING);
});
