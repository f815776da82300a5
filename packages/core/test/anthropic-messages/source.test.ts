import { describe, expect, test } from 'vitest';
import { messagesContext } from '../../../../test/sdk/anthropic.ts';
import { decodeRequest } from '../../src/protocols/anthropic-messages/request-decode.ts';
import { decodeResponse } from '../../src/protocols/anthropic-messages/response.ts';
import { frames, run } from './run.ts';
import { close, finish, open, say, start, stop, text } from './wire.ts';

// What Anthropic says, and others have to be told: the numbers are those of the pitfalls of other targets.

describe('responses', () => {
  test('P38 a refusal before any text keeps its details', () => {
    const stop_details = { type: 'refusal', category: 'cyber', explanation: 'No.' };
    const body = { type: 'message', role: 'assistant', content: [], stop_reason: 'refusal', stop_details };
    expect(decodeResponse(body, messagesContext())).toMatchObject({
      content: [],
      stop_reason: 'refusal',
      stop_details: { category: 'cyber', explanation: 'No.' },
    });
  });

  test('P100 counters of the end replace those of the start: nothing is added up', () => {
    const usage = { input_tokens: 2230, output_tokens: 1 };
    const begin = { ...start(), message: { id: 'm', model: 'c', usage } };
    const end = { ...finish('end_turn'), usage: { input_tokens: 12_284, output_tokens: 9 } };
    const { message } = run(frames([begin, open(0, text()), say(0, 'a'), close(0), end, stop]));
    expect(message.usage).toMatchObject({ input_tokens: 12_284, output_tokens: 9 });
  });

  test('P114 a second start of the same message has no effect', () => {
    const { message, complete } = run(
      frames([start(), start(), open(0, text()), say(0, 'a'), close(0), finish('end_turn'), stop]),
    );
    expect(complete).toBe(true);
    expect(message.content).toMatchObject([{ type: 'text', text: 'a' }]);
  });
});

describe('requests', () => {
  const decode = (messages: unknown[], more: object = {}) => {
    const body = { model: 'm', max_tokens: 1, messages, ...more };
    return decodeRequest({ method: 'POST', path: '/v1/messages', headers: {}, body }, messagesContext());
  };
  const call = (id: string) => ({ type: 'tool_use', id, name: 'f', input: {} });
  const said = (value: string) => ({ type: 'text', text: value });

  test('P17 text and calls keep their order', () => {
    const { messages } = decode([
      { role: 'user', content: 'q' },
      { role: 'assistant', content: [said('A'), call('1'), said('B'), call('2')] },
    ]);
    expect(messages[1]?.content.map(({ type }) => type)).toEqual(['text', 'tool_use', 'text', 'tool_use']);
  });

  test('P30 P40 an image in a result, and that it is an error', () => {
    const source = { type: 'base64', media_type: 'image/png', data: 'AA' };
    const result = { type: 'tool_result', tool_use_id: '1', is_error: true, content: [said('shot'), { type: 'image', source }] };
    const { messages } = decode([
      { role: 'user', content: 'q' },
      { role: 'assistant', content: [call('1')] },
      { role: 'user', content: [result] },
    ]);
    expect(messages[2]?.content).toMatchObject([{ is_error: true, content: [{ type: 'text' }, { type: 'image' }] }]);
  });

  test('P74 cache marks are read at every position', () => {
    const mark = { cache_control: { type: 'ephemeral' } };
    const request = decode([{ role: 'user', content: [{ ...said('q'), ...mark }] }], {
      tools: [{ name: 'f', input_schema: {}, ...mark }],
      system: [{ ...said('s'), ...mark }],
    });
    expect(request).toMatchObject({ tools: [mark], system: [mark], messages: [{ content: [mark] }] });
  });

  test('P76 the id of the user is kept to the letter', () => {
    const user_id = JSON.stringify({ device_id: '0'.repeat(64), session_id: 's' });
    expect(decode([{ role: 'user', content: 'q' }], { metadata: { user_id } }).user_id).toBe(user_id);
  });
});
