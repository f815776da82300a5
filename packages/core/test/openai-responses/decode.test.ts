import { describe, expect, test } from 'vitest';
import { openaiResponses } from '../../src/protocols/openai-responses/index.ts';
import { brief } from './brief.ts';
import * as p from './payloads.ts';
import { ROWS } from './rows.ts';
import { type Payload, rulesOf, run, runPayloads } from './run.ts';

const derived = (line: string): string => line.replace(/call_[0-9a-f]{24}/, '<derived>').replace(/resp_[0-9a-f]{24}/, 'resp_1');

test.each(ROWS)('$name', ({ payloads, events, end = ['end end_turn', 'message_stop'], rules = [] }) => {
  const result = runPayloads(payloads);
  expect(result.events.map(brief).map(derived)).toEqual(['message resp_1', ...events, ...end]);
  expect(rulesOf(result)).toEqual(rules);
});

describe('a stream that never began', () => {
  const error = (payload: Payload | undefined, event?: string): string[] =>
    run((push) => payload && push({ data: JSON.stringify(payload), ...(event && { event }) }), 'frames').events.map(brief);

  test.each<[string, Payload | undefined, string | undefined, string]>([
    ['empty', undefined, undefined, 'error UPSTREAM_ERROR empty_stream'],
    ['an error body', { error: { code: 'invalid_api_key', message: 'no' } }, undefined, 'error AUTHENTICATION invalid_api_key'],
    [
      'an error as text beside its code',
      { code: 'model_not_found', error: 'no such model' },
      undefined,
      'error NOT_FOUND model_not_found',
    ],
    ['a detail', { detail: 'who are you' }, undefined, 'error UPSTREAM_ERROR'],
    [
      'a nested error event',
      { type: 'error', error: { code: 'rate_limit_exceeded', message: 'x' } },
      'error',
      'error RATE_LIMIT rate_limit_exceeded',
    ],
    ['an error event without a type', { code: 'server_error', message: 'x' }, 'error', 'error UPSTREAM_ERROR server_error'],
    ['a code and a message', { code: 429, message: 'slow down' }, undefined, 'error RATE_LIMIT 429'],
    ['a verdict of success', { code: 200, message: 'ok' }, undefined, 'error UPSTREAM_ERROR empty_stream'],
    ['nothing we know', { hello: 1 }, undefined, 'error UPSTREAM_ERROR empty_stream'],
  ])('%s', (_, payload, event, expected) => {
    expect(error(payload, event)).toEqual([expected]);
  });
});

describe('framing', () => {
  const payloads = [p.created, ...p.wholeMessage(0, 'msg_1', 'Hi'), p.completed([p.message('msg_1', [p.outputText('Hi')])])];
  const lines = runPayloads(payloads).events.map(brief);

  test('events without event: lines', () => {
    const result = run((push) => {
      for (const payload of payloads) push({ data: JSON.stringify(payload) });
    }, 'frames');
    expect(result.events.map(brief)).toEqual(lines);
    expect(rulesOf(result)).toEqual(['responses/event-line-missing']);
  });

  test('the type only in the event: line', () => {
    const result = run((push) => {
      for (const { type, ...payload } of payloads) push({ data: JSON.stringify(payload), event: String(type) });
    }, 'frames');
    expect(result.events.map(brief)).toEqual(lines);
    expect(rulesOf(result)).toEqual(['responses/type-missing']);
  });

  test('[DONE] has no effect', () => {
    const result = run((push) => {
      push({ data: JSON.stringify(p.created), event: 'response.created' });
      push({ data: '[DONE]' });
    }, 'frames');
    expect(result).toMatchObject({ complete: false, error: null });
    expect(rulesOf(result)).toEqual(['responses/done-sentinel', 'responses/terminal-missing']);
  });
});

describe('what is kept', () => {
  const searching = { type: 'mcp_list_tools', id: 'mcpl_1', tools: [] };
  const listed = { type: 'mcp_list_tools', id: 'mcpl_1', tools: [{ name: 't' }] };
  const result = runPayloads([
    p.created,
    p.added(0, searching),
    p.added(1, p.reasoning('rs_1')),
    p.summaryPart(1, 0),
    p.summary(1, 0, 'Hm'),
    p.done(1, p.reasoning('rs_1', { summary: p.summaryTexts('Hm'), encrypted_content: 'gA', format: 'x' })),
    p.added(2, p.message('msg_1', [], { phase: 'final_answer' })),
    p.partAdded(2),
    p.text(2, 'Hi', { logprobs: [{ token: 'Hi', logprob: -1, bytes: [72, 105], top_logprobs: [{ token: 'Ho', logprob: -2 }] }] }),
    p.partDone(2, p.outputText('Hi', { annotations: [{ type: 'file_citation', file_id: 'f', filename: 'a.pdf', index: 3 }] })),
    p.done(2, p.message('msg_1', [p.outputText('Hi')])),
    p.added(3, p.call('call_1', 'get', '', { namespace: 'crm' })),
    p.done(3, p.call('call_1', 'get', '{}', { namespace: 'crm', caller: { type: 'program' } })),
    {
      ...p.completed([listed, p.reasoning('rs_1'), p.message('msg_1', [p.outputText('Hi')]), p.call('call_1', 'get', '{}')], {
        service_tier: 'flex',
        metadata: { a: 'b' },
      }),
      copilot_usage: { n: 1 },
    },
  ]);

  test('extras', () => {
    expect(openaiResponses.extras(result.message)).toEqual({
      reasoning_items: [{ type: 'reasoning', id: 'rs_1', format: 'x', summary: p.summaryTexts('Hm'), encrypted_content: 'gA' }],
      annotations: [{ type: 'file_citation', file_id: 'f', filename: 'a.pdf', index: 3 }],
      blocks: [listed],
      logprobs: [{ token: 'Hi', logprob: -1, bytes: [72, 105], top_logprobs: [{ token: 'Ho', logprob: -2 }] }],
    });
  });

  test('fields of calls, blocks and the message', () => {
    const [list, thinking, text, call] = result.message.content;
    // Its block had stopped when the final form came.
    expect(list).toEqual({ type: 'opaque', origin: 'openai-responses', raw: listed });
    expect(call?.type === 'tool_use' && openaiResponses.callFields(call)).toEqual({
      namespace: 'crm',
      caller: { type: 'program' },
    });
    expect(call).toMatchObject({ id: 'call_1', item_id: 'fc_call_1', input: {}, input_raw: '{}' });
    expect(thinking).toMatchObject({
      thinking: 'Hm',
      summary_parts: ['Hm'],
      extensions: { 'openai-responses': { item_id: 'rs_1', format: 'x' } },
    });
    expect(text?.extensions).toEqual({ 'openai-responses': { item_id: 'msg_1', phase: 'final_answer' } });
    expect(result.message.service_tier).toBe('flex');
    expect(result.message.extensions?.['openai-responses']).toEqual({
      finish_reason: 'completed',
      metadata: { a: 'b' },
      copilot_usage: { n: 1 },
    });
    expect(result.message.usage).toEqual({ input_tokens: 5, output_tokens: 3, extensions: { 'openai-responses': p.usage } });
  });

  test('nothing is there that was not', () => {
    const { message } = runPayloads([
      p.created,
      ...p.wholeMessage(0, 'msg_1', 'Hi'),
      p.completed([p.message('msg_1', [p.outputText('Hi')])]),
    ]);
    expect(openaiResponses.extras(message)).toEqual({});
  });
});

test.each<[boolean, Payload, string | undefined]>([
  [true, p.created, undefined],
  [true, p.body('completed', []), undefined],
  [true, { response: {} }, 'response.completed'],
  [false, { object: 'chat.completion.chunk', choices: [] }, undefined],
  [false, { type: 'message_start', message: {} }, 'message_start'],
  [false, { type: 'error', error: {} }, 'error'],
  [false, { candidates: [] }, undefined],
  [false, { response: { candidates: [] } }, undefined],
])('recognises: %s for %j (%s)', (expected, payload, event) => {
  expect(openaiResponses.recognises(payload, event)).toBe(expected);
});
