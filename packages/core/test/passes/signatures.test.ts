import { describe, expect, test } from 'vitest';
import type { ContentBlock } from '../../src/canonical/message.ts';
import type { SignedBlob } from '../../src/canonical/protocol.ts';
import type { CanonicalRequest } from '../../src/canonical/request.ts';
import { filterSignatures } from '../../src/passes/content.ts';
import { modelFamily } from '../../src/protocols/anthropic-messages/profiles.ts';
import { type RuleChanges, testRules } from './telling.ts';

const blob = (over: Partial<SignedBlob> = {}): SignedBlob => ({
  origin: 'anthropic-messages',
  form: 'signature',
  value: 's',
  ...over,
});
const think = (signature?: SignedBlob, thinking = 'R'): ContentBlock => ({
  type: 'thinking',
  thinking,
  ...(signature && { signature }),
});
const use = (signature?: SignedBlob): ContentBlock => ({
  type: 'tool_use',
  id: 'a',
  name: 'f',
  input: {},
  ...(signature && { signature }),
});
const text = (value: string, signature?: SignedBlob): ContentBlock => ({
  type: 'text',
  text: value,
  ...(signature && { signature }),
});
const request = (...content: ContentBlock[]): CanonicalRequest => ({
  model: 'm',
  parameters: {},
  messages: [{ role: 'assistant', content }],
});

const CLAUDE: RuleChanges = {
  protocol: 'anthropic-messages',
  modelFamily,
  provider: 'p',
  model: 'claude-sonnet-4-5',
  unsignedThinking: 'drop',
};
const THINKING = ['DROPPED assistant.thinking /messages/0/content/0'];

describe('signatures and thinking, by issuer', () => {
  type Row = [name: string, content: ContentBlock[], expected: ContentBlock[], told?: string[], rules?: RuleChanges];

  test.each<Row>([
    ['its own thinking', [think(blob())], [think(blob())]],
    ['its own, by the same provider', [think(blob({ provider: 'p' }))], [think(blob({ provider: 'p' }))]],
    ['P77 of another provider', [think(blob({ provider: 'q' }))], [], THINKING],
    [
      'P77 of a provider, to one that nobody names',
      [think(blob({ provider: 'q' }))],
      [],
      THINKING,
      { provider: undefined } as never,
    ],
    ['of no provider, to one that nobody names', [think(blob())], [think(blob())], [], { provider: undefined } as never],
    ['P77 of another protocol', [think(blob({ origin: 'gemini' }))], [], THINKING],
    ['P77 of nobody', [think()], [], THINKING],
    ['of nobody, and empty', [think(undefined, '')], []],
    [
      'of nobody, and empty but for what only its protocol knows',
      [{ ...think(undefined, ''), extensions: { 'openai-chat': { reasoning_details: [{}] } } }],
      [],
      THINKING,
    ],
    ['of nobody, where the encoder decides', [think()], [think()], [], { unsignedThinking: 'keep' }],
    ['P77 of another family', [think(blob({ model: 'claude-opus-4-6' }))], [], THINKING],
    ['of the same family', ...same('claude-3-7-sonnet-20250219')],
    ['of the same family, elsewhere', ...same('us.anthropic.claude-sonnet-4-5-20250929-v1:0')],
    ['of a model with another kind of name', ...same('my-deployment')],
    [
      'as text',
      [think(blob({ origin: 'gemini' })), think()],
      [text('<thinking>R</thinking>'), text('<thinking>R</thinking>')],
      [],
      { foreignThinking: 'text' },
    ],
    ['redacted has no text', [think(blob({ origin: 'gemini' }), '')], [], THINKING, { foreignThinking: 'text' }],
    [
      'a call and a text stay, without the proof',
      [use(blob({ origin: 'gemini' })), text('t', blob({ origin: 'gemini' }))],
      [use(), text('t')],
      [
        'DROPPED assistant.tool_use.signature /messages/0/content/0/signature',
        'DROPPED assistant.text.signature /messages/0/content/1/signature',
      ],
    ],
    ['P81 a call of its own', [use(blob())], [use(blob())]],
    [
      'a signature that the protocol carries anyway',
      [use(blob({ origin: 'gemini' }))],
      [use(blob({ origin: 'gemini' }))],
      [],
      { carriesSignature: () => true },
    ],
  ])('%s', (_, content, expected, told = [], over = {}) => {
    const rules = testRules({ ...CLAUDE, ...over });
    expect(filterSignatures(request(...content), rules).messages[0]?.content ?? []).toEqual(expected);
    expect(rules.told).toEqual(told);
  });

  function same(model: string): [ContentBlock[], ContentBlock[]] {
    return [[think(blob({ model }))], [think(blob({ model }))]];
  }

  test('P78: what is its own is the same object, in its order', () => {
    const server: ContentBlock = { type: 'tool_use', id: 's', name: 'web_search', input: {}, kind: 'server' };
    const source = request(think(blob()), server, think(blob({ value: 's2' })), use());
    expect(filterSignatures(source, testRules(CLAUDE))).toBe(source);
  });
});
