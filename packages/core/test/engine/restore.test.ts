import { describe, expect, test } from 'vitest';
import { MessageAccumulator } from '../../src/accumulate/message.ts';
import type { CanonicalStreamEvent } from '../../src/canonical/events.ts';
import type { CanonicalResponse, ToolUseBlock } from '../../src/canonical/message.ts';
import type { Note } from '../../src/canonical/notes.ts';
import type { CanonicalRequest, CanonicalTool } from '../../src/canonical/request.ts';
import { StreamValidator } from '../../src/canonical/validator.ts';
import { findRenamedTools, restoreEvents, restoreResponse } from '../../src/engine/restore.ts';
import { replay } from '../../src/engine/whole.ts';
import type { ToolRules } from '../../src/passes/rules.ts';

const RULES: ToolRules = {
  toolName: { pattern: /^[a-zA-Z0-9_-]+$/, max: 64 },
  custom: false,
  namespaces: false,
  objectRoot: true,
};

const request = (...tools: CanonicalTool[]): CanonicalRequest => ({ model: 'm', messages: [], parameters: {}, tools });

const answer = (block: Partial<ToolUseBlock>): CanonicalResponse => ({
  id: 'r',
  model: 'm',
  content: [
    { type: 'text', text: 'so' },
    { type: 'tool_use', id: 'c', name: 'f', input: {}, ...block },
  ],
  stop_reason: 'tool_use',
});

const OBJECT = { type: 'object', properties: {} };

interface Row {
  name: string;
  tool: CanonicalTool;
  /** The call as the upstream makes it. */
  call: Partial<ToolUseBlock>;
  /** The call as the client knows it. */
  restored: Partial<ToolUseBlock>;
}

const ROWS: Row[] = [
  {
    name: 'P27: a name that the upstream would refuse',
    tool: { name: 'josef.prochazka--singer', input_schema: OBJECT },
    call: { name: 'josef_prochazka--singer', input: { a: 1 }, input_raw: '{"a": 1}' },
    restored: { name: 'josef.prochazka--singer', input: { a: 1 }, input_raw: '{"a": 1}' },
  },
  {
    name: 'P28: a namespace',
    tool: { name: 'get', namespace: 'crm', input_schema: OBJECT },
    call: { name: 'crm__get', input_raw: '{}' },
    restored: { name: 'get', namespace: 'crm', input_raw: '{}' },
  },
  {
    name: 'P46: the text of a custom tool',
    tool: { name: 'sql', kind: 'custom' },
    call: { name: 'sql', input: { input: 'SELECT "1"' }, input_raw: '{"input":"SELECT \\"1\\""}' },
    restored: { name: 'sql', kind: 'custom', input: 'SELECT "1"', input_raw: 'SELECT "1"' },
  },
  {
    name: 'a custom tool without a text',
    tool: { name: 'sql', kind: 'custom' },
    call: { name: 'sql' },
    restored: { name: 'sql', kind: 'custom', input: '' },
  },
  {
    name: 'P57: a wrapped list',
    tool: { name: 'f', input_schema: { type: 'array', items: {} } },
    call: { input: { input: [1, 2] }, input_raw: '{"input":[1, 2]}' },
    restored: { name: 'f', input: {}, input_raw: '[1, 2]' },
  },
  {
    name: 'P57: a wrapped choice of objects',
    tool: { name: 'f', input_schema: { anyOf: [{ type: 'object' }, { type: 'null' }] } },
    call: { input: { input: { a: 1 } }, input_raw: '{"input":{"a":1}}' },
    restored: { name: 'f', input: { a: 1 }, input_raw: '{"a":1}' },
  },
  {
    name: 'a call that the provider ran is its own',
    tool: { name: 'web.search', input_schema: OBJECT },
    call: { name: 'web_search', kind: 'server', input_raw: '{}' },
    restored: { name: 'web_search', kind: 'server', input_raw: '{}' },
  },
];

function streamed(events: Iterable<CanonicalStreamEvent>, calls: Parameters<typeof restoreEvents>[0]): CanonicalResponse {
  const stage = restoreEvents(calls, () => undefined);
  const validator = new StreamValidator();
  const accumulator = new MessageAccumulator();
  for (const event of events)
    for (const restored of stage.push(event)) for (const valid of validator.push(restored)) accumulator.push(valid);
  expect([...stage.end()]).toEqual([]);
  return accumulator.finish().message;
}

/** Arguments letter by letter. */
function* slowly(events: Iterable<CanonicalStreamEvent>): Iterable<CanonicalStreamEvent> {
  for (const event of events) {
    if (event.type !== 'content_block_delta' || event.delta.type !== 'input_json_delta') yield event;
    else for (const char of event.delta.partial_json) yield { ...event, delta: { type: 'input_json_delta', partial_json: char } };
  }
}

describe.each(ROWS)('$name', ({ tool, call, restored }) => {
  const calls = findRenamedTools(request(tool), RULES) ?? new Map();
  const expected = { ...answer({}), content: [answer({}).content[0], { type: 'tool_use', id: 'c', input: {}, ...restored }] };

  test('in a whole response', () => {
    expect(restoreResponse(answer(call), calls, () => undefined)).toEqual(expected);
  });

  test('in a stream, at once and letter by letter', () => {
    const events = [...replay(answer(call))];
    expect(streamed(events, calls)).toEqual(expected);
    expect(streamed(slowly(events), calls)).toEqual(expected);
  });
});

test('nothing to restore: the very same objects', () => {
  const calls = findRenamedTools(request({ name: 'f', input_schema: OBJECT }), RULES);
  const response = answer({});
  expect(calls).toBeUndefined();
  expect(restoreResponse(response, calls, () => undefined)).toBe(response);
});

test('every choice is restored, and the first still mirrors the answer', () => {
  const calls = findRenamedTools(request({ name: 'a.b', input_schema: OBJECT }), RULES);
  const response = answer({ name: 'a_b' });
  const { content } = response;
  const choices = [
    { index: 0, content, stop_reason: 'tool_use' as const },
    { index: 1, content: answer({ name: 'a_b', id: 'd' }).content, stop_reason: 'tool_use' as const },
  ];
  const restored = restoreResponse({ ...response, choices }, calls, () => undefined);
  expect(restored.choices?.[0]?.content).toBe(restored.content);
  expect(restored.choices?.map((choice) => choice.content[1])).toMatchObject([{ name: 'a.b' }, { name: 'a.b', id: 'd' }]);
});

test('text of a custom tool goes on as it comes', () => {
  const calls = findRenamedTools(request({ name: 'sql', kind: 'custom' }), RULES) ?? new Map();
  const stage = restoreEvents(calls, () => undefined);
  const delta = (partial_json: string): CanonicalStreamEvent => ({
    type: 'content_block_delta',
    index: 0,
    delta: { type: 'input_json_delta', partial_json },
  });
  const block: ToolUseBlock = { type: 'tool_use', id: 'c', name: 'sql', input: {} };
  expect([...stage.push({ type: 'content_block_start', index: 0, content_block: block })]).toMatchObject([
    { content_block: { kind: 'custom', input: '' } },
  ]);
  const sent = ['{"input":"SEL', 'ECT', ' 1"}'].map((piece) => [...stage.push(delta(piece))]);
  expect(sent).toMatchObject([[{ delta: { text: 'SEL' } }], [{ delta: { text: 'ECT' } }], [{ delta: { text: ' 1' } }]]);
});

test('calls that went on after their end are restored, too', () => {
  const calls = findRenamedTools(request({ name: 'a.b', input_schema: OBJECT }), RULES) ?? new Map();
  const [event] = restoreEvents(calls, () => undefined).push({
    type: 'message_delta',
    delta: { stop_reason: 'tool_use' },
    late_blocks: [{ index: 0, content_block: { type: 'tool_use', id: 'c', name: 'a_b', input: {}, input_raw: '{"x":1}' } }],
  });
  expect(event).toMatchObject({ late_blocks: [{ index: 0, content_block: { name: 'a.b', input_raw: '{"x":1}' } }] });
});

test('more than the input is noted', () => {
  const notes: Note[] = [];
  const calls = findRenamedTools(request({ name: 'sql', kind: 'custom' }), RULES) ?? new Map();
  restoreResponse(answer({ name: 'sql', input_raw: '{"input":"x","y":1}' }), calls, (note) => notes.push(note));
  expect(notes).toMatchObject([{ code: 'APPROXIMATED', feature: 'content.tool_use.input' }]);
});
