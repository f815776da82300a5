import fc from 'fast-check';
import { expect, test } from 'vitest';
import { messagesContext } from '../../../../test/sdk/anthropic.ts';
import { CodecError } from '../../src/canonical/notes.ts';
import { profileFor } from '../../src/protocols/anthropic-messages/profiles.ts';
import { decodeRequest } from '../../src/protocols/anthropic-messages/request-decode.ts';
import { encodeRequest } from '../../src/protocols/anthropic-messages/request-encode.ts';

const odd = fc.oneof(
  fc.constantFrom<unknown>(null, true, 0, -1, 1.5, '', ' ', 'a', '__proto__', 'cv1.gemini.g.thought_signature.next.Uw', [], {}),
  fc.jsonValue({ maxDepth: 2 }),
);
const or = (value: fc.Arbitrary<unknown>) => fc.oneof({ weight: 60, arbitrary: value }, { weight: 1, arbitrary: odd });
const object = (shape: Record<string, fc.Arbitrary<unknown>>, requiredKeys: string[] = []) =>
  fc.record(Object.fromEntries(Object.entries(shape).map(([key, value]) => [key, or(value)])), { requiredKeys });

const id = fc.constantFrom('a', 'b', 'functions.f:0');
const text = fc.constantFrom('hi', ' ', '', 'Hello there. ');
const mark = fc.constantFrom({ type: 'ephemeral' }, { type: 'ephemeral', ttl: '1h' });
const typed = (type: string, shape: Record<string, fc.Arbitrary<unknown>>) =>
  object({ type: fc.constant(type), cache_control: mark, ...shape }, ['type', ...Object.keys(shape)]);
const source = fc.constantFrom<unknown>(
  { type: 'base64', media_type: 'image/png', data: 'AA' },
  { type: 'url', url: 'https://a' },
  { type: 'text', media_type: 'text/plain', data: 'x' },
  { type: 'content', content: [{ type: 'text', text: 'x' }] },
);

const spoken = fc.oneof(
  typed('text', { text }),
  typed('image', { source }),
  typed('document', { source }),
  typed('tool_result', { tool_use_id: id, content: fc.oneof(text, fc.array(typed('text', { text }), { maxLength: 2 })) }),
);

const generated = fc.oneof(
  typed('text', { text }),
  typed('tool_use', { id, name: fc.constantFrom('f', 'g.h'), input: fc.constantFrom<unknown>({}, { x: 1 }, '{"x":', [1]) }),
  typed('thinking', { thinking: text, signature: fc.constantFrom('', 's', 'cv1.gemini.g.thought_signature.next.Uw') }),
  typed('server_tool_use', { id, name: fc.constant('web_search'), input: fc.constant({}) }),
  typed('web_search_tool_result', { tool_use_id: id, content: fc.constant([]) }),
  typed('compaction', { content: text }),
);

/** Mostly what may stand there. */
const says = (role: string, blocks: fc.Arbitrary<unknown>) =>
  object({ role: fc.constant(role), content: fc.oneof(text, fc.array(blocks, { maxLength: 4 })) }, ['role', 'content']);

const message = fc.oneof(
  { weight: 9, arbitrary: says('user', spoken) },
  { weight: 9, arbitrary: says('assistant', generated) },
  { weight: 3, arbitrary: says('system', typed('text', { text })) },
  { weight: 1, arbitrary: says('user', fc.oneof(spoken, generated)) },
);

const body = object(
  {
    model: fc.constant('claude'),
    messages: fc.array(message, { minLength: 1, maxLength: 5 }),
    system: fc.oneof(text, fc.array(typed('text', { text }), { maxLength: 2 })),
    tools: fc.array(
      fc.oneof(
        object({ name: fc.constantFrom('f', 'g.h'), input_schema: odd, cache_control: mark }, ['name']),
        fc.constant({ type: 'web_search_20250305', name: 'web_search' }),
      ),
      { maxLength: 2 },
    ),
    tool_choice: fc.constantFrom({ type: 'auto' }, { type: 'any' }, { type: 'tool', name: 'f' }),
    thinking: fc.constantFrom(
      { type: 'enabled', budget_tokens: 2000 },
      { type: 'adaptive' },
      { type: 'disabled' },
      { type: 'between_tools' },
    ),
    output_config: fc.constantFrom({ effort: 'low' }, { format: { type: 'json_schema', schema: { type: 'object' } } }),
    max_tokens: fc.constantFrom(1, 1024, 5000),
    temperature: fc.constantFrom(0, 1, 2),
    metadata: fc.constant({ user_id: 'u' }),
    stream: fc.boolean(),
    container: fc.constant('c'),
  },
  ['model', 'messages'],
);

const MODELS = ['claude-3-haiku-20240307', 'claude-haiku-4-5', 'claude-opus-5'] as const;
const RUNS = { seed: 7, numRuns: 500 };

/** undefined when the request is refused, which is the only way to fail. */
function convert(wire: unknown, model: string): unknown {
  const context = messagesContext({ profile: profileFor('anthropic', model) });
  try {
    return encodeRequest(decodeRequest({ method: 'POST', path: '/v1/messages', headers: {}, body: wire }, context), context).body;
  } catch (error) {
    if (error instanceof CodecError) return undefined;
    throw error;
  }
}

test('any body is converted, or refused with a reason; the source stays as it is', () => {
  let converted = 0;
  fc.assert(
    fc.property(body, fc.constantFrom(...MODELS), (wire, model) => {
      const before = structuredClone(wire);
      if (convert(wire, model) !== undefined) converted++;
      expect(wire).toEqual(before);
    }),
    RUNS,
  );
  expect(converted).toBeGreaterThan(RUNS.numRuns / 10);
});

test('P130 what was converted once stays as it is', () => {
  fc.assert(
    fc.property(body, fc.constantFrom(...MODELS), (wire, model) => {
      const once = convert(wire, model);
      if (once === undefined) return;
      expect(JSON.stringify(convert(wire, model))).toBe(JSON.stringify(once));
      expect(convert(once, model)).toEqual(once);
    }),
    RUNS,
  );
});

interface Turn {
  role: string;
  content: { type: string; id?: string; tool_use_id?: string; text?: string }[];
}

test('P01 P02 P04 P05 P11 P12 P29 what comes out is a conversation that the API takes', () => {
  fc.assert(
    fc.property(body, fc.constantFrom(...MODELS), (wire, model) => {
      const found = convert(wire, model) as { messages: Turn[] } | undefined;
      if (!found) return;
      expect(found.messages[0]?.role).toBe('user');
      found.messages.forEach(({ role, content }, i) => {
        const next = found.messages[i + 1];
        if (role !== 'system') expect(next?.role).not.toBe(role);
        expect(content.length).toBeGreaterThan(0);
        const kinds = content.map(({ type }) => type);
        for (const { type, text: said = 'x' } of content) if (type === 'text') expect(said.trim()).not.toBe('');
        const results = kinds.lastIndexOf('tool_result') + 1;
        expect(kinds.slice(0, results).every((kind) => kind === 'tool_result')).toBe(true);
        const calls = content.filter(({ type }) => type === 'tool_use').map((call) => call.id);
        const answers = (next?.content ?? []).filter(({ type }) => type === 'tool_result').map((result) => result.tool_use_id);
        if (next) expect(answers).toEqual(calls);
      });
    }),
    RUNS,
  );
});
