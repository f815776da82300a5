import { describe, expect, test } from 'vitest';
import { nameConversation } from '../../src/routing/affinity.ts';
import { CacheBreaks } from '../../src/routing/cache-breaks.ts';

const tool = (name: string, description = 'd'): object => ({ name, description, input_schema: { type: 'object' } });
const user = (content: unknown): object => ({ role: 'user', content });
const assistant = (content: unknown): object => ({ role: 'assistant', content });
const text = (value: string, mark?: object): object => ({ type: 'text', text: value, ...(mark && { cache_control: mark }) });
const MARK = { type: 'ephemeral' };

const FIRST = { system: [text('be brief')], tools: [tool('a'), tool('b')], messages: [user('hello')] };
const SECOND = { ...FIRST, messages: [user('hello'), assistant('hi'), user('more')] };

const FUNCTIONS = (description: string): object => ({
  tools: [{ type: 'function', function: { name: 'a', description, parameters: {} } }],
});

describe('what changed since the turn before', () => {
  test.each<[string, object, object, string | undefined]>([
    ['the same request again', FIRST, FIRST, undefined],
    ['a turn more', FIRST, SECOND, undefined],
    ['marks of the cache that move', { ...FIRST, messages: [user([text('hello', MARK)])] }, SECOND, undefined],
    ['a mark on instructions', FIRST, { ...SECOND, system: [text('be brief', MARK)] }, undefined],
    ['a description', FIRST, { ...SECOND, tools: [tool('a'), tool('b', 'other')] }, 'tools[1].description changed'],
    ['the order of tools', FIRST, { ...SECOND, tools: [tool('b'), tool('a')] }, 'tools[0] changed'],
    ['a tool more', FIRST, { ...SECOND, tools: [tool('a'), tool('b'), tool('c')] }, 'tools[2] added'],
    ['a tool less', FIRST, { ...SECOND, tools: [tool('a')] }, 'tools[1] removed'],
    ['no tools', FIRST, { ...SECOND, tools: undefined }, 'tools removed'],
    ['tools of a sudden', { ...FIRST, tools: undefined }, SECOND, 'tools added'],
    ['a time in the instructions', FIRST, { ...SECOND, system: [text('it is 5 pm')] }, 'system[0] changed'],
    ['instructions as text', { ...FIRST, system: 'a' }, { ...SECOND, system: 'b' }, 'system[0] changed'],
    [
      'an earlier message',
      SECOND,
      { ...SECOND, messages: [user('hello'), assistant('ho'), user('more')] },
      'messages[1] changed',
    ],
    ['messages that were removed', SECOND, FIRST, 'messages[1] removed'],
    ['tools before messages', SECOND, { ...SECOND, tools: [], messages: [user('hello'), assistant('ho')] }, 'tools[0] removed'],
    [
      'a function of Chat',
      { messages: [user('x')], ...FUNCTIONS('a') },
      { messages: [user('x')], ...FUNCTIONS('b') },
      'tools[0].function.description changed',
    ],
    [
      'instructions of Chat',
      { messages: [{ role: 'system', content: 'a' }, user('x')] },
      { messages: [{ role: 'system', content: 'b' }, user('x')] },
      'messages[0] changed',
    ],
    [
      'Responses',
      { instructions: 'a', input: [user('x')] },
      { instructions: 'b', input: [user('x')] },
      'instructions[0] changed',
    ],
    [
      'Gemini',
      { systemInstruction: { parts: [{ text: 'a' }] }, contents: [{ parts: [{ text: 'x' }] }] },
      { systemInstruction: { parts: [{ text: 'b' }] }, contents: [{ parts: [{ text: 'x' }] }] },
      'systemInstruction[0] changed',
    ],
    // Threads of one session have different first messages.
    ['another thread', FIRST, { ...FIRST, system: 'x', messages: [user('other')] }, undefined],
    ['no body', FIRST, {}, undefined],
  ])('%s', (_, before, after, change) => {
    const breaks = new CacheBreaks();
    expect(breaks.compare('s', 'm', before)).toBeUndefined();
    expect(breaks.compare('s', 'm', after)).toBe(change);
    expect(breaks.compare('other session', 'm', after)).toBeUndefined();
  });

  test('only the turn before counts', () => {
    const breaks = new CacheBreaks();
    const changed = { ...SECOND, system: 'x' };
    expect([FIRST, changed, changed, SECOND].map((body) => breaks.compare('s', 'm', body))).toEqual([
      undefined,
      'system[0] changed',
      undefined,
      'system[0] changed',
    ]);
  });

  test('odd values and long conversations are no problem', () => {
    const breaks = new CacheBreaks();
    const messages = Array.from({ length: 5000 }, (_, i) => user(`m${i}`));
    for (const body of [null, 5, 'x', [], { tools: 5, messages: [null, 5] }, { messages }, { tools: [null, 5, { function: 5 }] }])
      expect(breaks.compare('s', 'm', body)).toBeUndefined();
    for (let i = 0; i < 2000; i++) breaks.compare(`s${i}`, 'm', FIRST);
    expect(breaks.compare('s0', 'm', { ...FIRST, system: 'x' })).toBeUndefined();
    expect(breaks.compare('s1999', 'm', { ...FIRST, system: 'x' })).toBe('system[0] changed');
  });
});

describe('the name of a conversation', () => {
  const name = (facts: Partial<Parameters<typeof nameConversation>[0]>): string | undefined =>
    nameConversation({ caller: 'k', model: 'm', session: undefined, body: FIRST, ...facts });

  test.each<[string, Partial<Parameters<typeof nameConversation>[0]>, boolean]>([
    ['a later turn', { body: SECOND }, true],
    ['a later turn with marks', { body: { ...SECOND, system: [text('be brief', MARK)] } }, true],
    ['another first message', { body: { ...FIRST, messages: [user('other')] } }, false],
    ['other tools', { body: { ...FIRST, tools: [] } }, false],
    ['another caller', { caller: 'other' }, false],
    ['another model', { model: 'other' }, false],
    ['a session', { session: 's' }, false],
  ])('by its prompt: %s', (_, facts, isSame) => expect(name(facts) === name({})).toBe(isSame));

  test('by its session, whatever the prompt', () => {
    expect(name({ session: 's', body: {} })).toBe(name({ session: 's' }));
    expect(name({ session: 's'.repeat(100_000) })).toHaveLength(22);
    expect(name({ session: 's', caller: 'other' })).not.toBe(name({ session: 's' }));
    expect(name({ body: {} })).toBeUndefined();
  });
});
