import { expect, test } from 'vitest';
import type { JsonObject } from '../../src/json/json.ts';
import { frames, run } from './run.ts';
import { args, close, delta, finish, open, say, sign, start, stop, text, think, thinking, tool } from './wire.ts';

const result = { type: 'code_execution_tool_result', tool_use_id: 's', content: { type: 'code_execution_result', stdout: '1' } };
const cite = {
  type: 'char_location',
  cited_text: 'c',
  document_index: 0,
  document_title: null,
  start_char_index: 0,
  end_char_index: 1,
};
const usage = { input_tokens: 3, output_tokens: 4, service_tier: 'standard' };

interface Row {
  name: string;
  content: JsonObject[];
  stream: JsonObject[];
  stopReason: string;
}

const rows: Row[] = [
  {
    name: 'text with a citation',
    content: [{ ...text('abc'), citations: [cite] }],
    stream: [open(0, text()), say(0, 'ab'), delta(0, { type: 'citations_delta', citation: cite }), say(0, 'c'), close(0)],
    stopReason: 'end_turn',
  },
  {
    name: 'thinking',
    content: [thinking('hm', 'S'), { type: 'redacted_thinking', data: 'D' }, text('a')],
    stream: [
      open(0, thinking()),
      think(0, 'hm'),
      sign(0, 'S'),
      close(0),
      open(1, { type: 'redacted_thinking', data: 'D' }),
      close(1),
      open(2, text()),
      say(2, 'a'),
      close(2),
    ],
    stopReason: 'end_turn',
  },
  {
    name: 'calls',
    content: [tool('a', 'f', { x: [1] }), tool('b', 'g')],
    stream: [
      open(0, tool('a', 'f')),
      args(0, '{"x":'),
      args(0, '[1]}'),
      close(0),
      open(1, tool('b', 'g')),
      args(1, ''),
      close(1),
    ],
    stopReason: 'tool_use',
  },
  {
    name: 'server tools and opaque blocks',
    content: [{ type: 'server_tool_use', id: 's', name: 'x', input: { a: 1 } }, result, { type: 'compaction', content: 'sum' }],
    stream: [
      open(0, { type: 'server_tool_use', id: 's', name: 'x', input: {} }),
      args(0, '{"a":1}'),
      close(0),
      open(1, result),
      close(1),
      open(2, { type: 'compaction', content: null }),
      delta(2, { type: 'compaction_delta', content: 'sum' }),
      close(2),
    ],
    stopReason: 'pause_turn',
  },
];

test.each(rows)('a body is the message of its stream: $name', ({ content, stream, stopReason }) => {
  const fields = { stop_reason: stopReason, stop_sequence: null, container: { id: 'c' } };
  const body = { ...Object(start()['message']), content, usage, ...fields };
  const streamed = run(
    frames([
      start({ usage: { input_tokens: 3, output_tokens: 1 }, container: { id: 'c' } }),
      ...stream,
      finish(stopReason, usage),
      stop,
    ]),
  );
  const whole = run(JSON.stringify(body));
  expect(whole.message).toEqual(streamed.message);
  expect([streamed.rules, whole.rules]).toEqual([[], ['sse/bare-json', 'sse/json-body-instead-of-stream']]);
});
