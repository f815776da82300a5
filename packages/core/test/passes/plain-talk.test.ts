import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { createContext } from '../../src/engine/context.ts';
import { CODECS } from '../../src/engine/index.ts';
import type { CanonicalMessage, CanonicalRequest, Note } from '../../src/index.ts';
import { isTextOnly } from '../../src/passes/prepare.ts';

const says = (role: CanonicalMessage['role'], ...texts: string[]): CanonicalMessage => ({
  role,
  content: texts.map((text) => ({ type: 'text', text })),
});

const ask = (...messages: CanonicalMessage[]): CanonicalRequest => ({ model: 'm', messages, parameters: {} });

const text = fc.constantFrom('', ' ', 'Hi', 'Hi \n', 'größer');
const message = fc
  .tuple(fc.constantFrom('user' as const, 'assistant' as const, 'system' as const), fc.array(text, { maxLength: 3 }))
  .map(([role, texts]) => says(role, ...texts));

/** Talks in plain text, with everything beside the messages that passes look at. */
const plain: fc.Arbitrary<CanonicalRequest> = fc.record(
  {
    model: fc.constant('m'),
    messages: fc.array(message, { minLength: 1, maxLength: 5 }),
    parameters: fc.record(
      {
        temperature: fc.constantFrom(-1, 0.5, 3),
        max_tokens: fc.constantFrom(1, 1e9),
        stop_sequences: fc.constant(['a', 'b', 'c', 'd', 'e', 'f']),
      },
      { requiredKeys: [] },
    ),
    system: fc.array(
      text.map((words) => ({ type: 'text' as const, text: words, role: 'developer' as const })),
      { maxLength: 2 },
    ),
    output_format: fc.constant({
      type: 'json_schema' as const,
      json_schema: { name: 'n', schema: { type: 'object', properties: { a: { type: 'string', pattern: 'x' } } } },
    }),
  },
  { requiredKeys: ['model', 'messages', 'parameters'] },
);

const codecs = Object.values(CODECS);

/** What is sent, and told; or why not. */
function sent(request: CanonicalRequest, codec: (typeof codecs)[number]): unknown {
  const notes: Note[] = [];
  const context = createContext({ note: (note) => void notes.push(note), profile: codec.profileFor('') });
  try {
    return { body: codec.request.encode(request, context).body, notes };
  } catch (error) {
    return String(error);
  }
}

describe.each(codecs)('to $id', (codec) => {
  test('plain talk is prepared in fewer passes, and in the same way', () => {
    fc.assert(
      fc.property(plain, (request) => {
        expect(isTextOnly(request)).toBe(true);
        // No tool at all: the same question, and not plain to whoever counts fields.
        const full = { ...request, tools: [] };
        expect(isTextOnly(full)).toBe(false);
        expect(sent(request, codec)).toEqual(sent(full, codec));
      }),
    );
  });
});

const hi = says('user', 'Hi');

test.each<[string, CanonicalRequest]>([
  ['tools', { ...ask(hi), tools: [{ name: 'f' }] }],
  ['a choice of tools', { ...ask(hi), tool_choice: { type: 'none' } }],
  ['a mark of the cache', { ...ask(hi), prompt_cache: { cache_control: { type: 'ephemeral' } } }],
  ['a marked text', ask({ role: 'user', content: [{ type: 'text', text: 'Hi', cache_control: { type: 'ephemeral' } }] })],
  ['a marked instruction', { ...ask(hi), system: [{ type: 'text', text: 'x', cache_control: { type: 'ephemeral' } }] }],
  [
    'a signed text',
    ask({
      role: 'assistant',
      content: [{ type: 'text', text: 'Hi', signature: { value: 's', origin: 'gemini', form: 'thought_signature' } }],
    }),
  ],
  ['a participant with a name', ask({ ...hi, name: 'n' })],
  ['fields of one protocol', ask({ ...hi, extensions: { gemini: { x: 1 } } })],
  ['an image', ask({ role: 'user', content: [{ type: 'image', source: { url: 'https://x' } }] })],
  ['a result', ask({ role: 'tool', content: [{ type: 'tool_result', tool_use_id: 'c', content: 'x' }] })],
  ['thoughts', ask({ role: 'assistant', content: [{ type: 'thinking', thinking: 'x' }] })],
])('%s: no plain talk', (_, request) => expect(isTextOnly(request)).toBe(false));
