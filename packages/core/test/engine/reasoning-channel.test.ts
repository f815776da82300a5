import OpenAI from 'openai';
import { expect, test } from 'vitest';
import { convertRequest, convertResponse, createStreamConverter } from '../../src/index.ts';

// Clients of Responses show summaries of reasoning; few read its full text.

const REQUEST = { model: 'm', input: 'hi', stream: true };
const { request } = convertRequest(REQUEST, { from: 'openai-responses', to: 'openai-chat' });

const chunk = (delta: object, finish: string | null = null): string =>
  `data: ${JSON.stringify({ id: 'c1', object: 'chat.completion.chunk', created: 1, model: 'm', choices: [{ index: 0, delta, finish_reason: finish }] })}\n\n`;

const STREAM = [
  chunk({ role: 'assistant', reasoning_content: 'Let me ' }),
  chunk({ reasoning_content: 'think.' }),
  chunk({ content: 'Hello' }),
  chunk({}, 'stop'),
  'data: [DONE]\n\n',
].join('');

test('reasoning of a Chat stream is a summary', async () => {
  const converter = createStreamConverter({ from: 'openai-chat', to: 'openai-responses', request });
  const body = Buffer.concat([...converter.push(new TextEncoder().encode(STREAM)), ...converter.end()]);
  const client = new OpenAI({
    apiKey: 'k',
    baseURL: 'http://llm.example/v1',
    fetch: async () => new Response(body, { headers: { 'content-type': 'text/event-stream' } }),
  });
  let summary = '';
  const stream = client.responses.stream({ model: 'm', input: 'hi' });
  for await (const event of stream) {
    expect(event.type).not.toMatch(/reasoning_text/);
    if (event.type === 'response.reasoning_summary_text.delta') summary += event.delta;
  }
  expect(summary).toBe('Let me think.');
  const { output, output_text } = await stream.finalResponse();
  expect(output[0]).toMatchObject({ type: 'reasoning', summary: [{ type: 'summary_text', text: 'Let me think.' }] });
  expect(output[0]).not.toHaveProperty('content');
  expect(output_text).toBe('Hello');
});

test('reasoning of a whole Chat response is a summary, and goes back as reasoning', () => {
  const message = { role: 'assistant', content: 'Hello', reasoning_content: 'Let me think.' };
  const whole = {
    id: 'c1',
    object: 'chat.completion',
    created: 1,
    model: 'm',
    choices: [{ index: 0, message, finish_reason: 'stop' }],
  };
  const { body } = convertResponse(whole, { from: 'openai-chat', to: 'openai-responses', request });
  const { output } = body as { output: Record<string, unknown>[] };
  expect(output[0]).toMatchObject({ type: 'reasoning', summary: [{ type: 'summary_text', text: 'Let me think.' }] });
  const call = { type: 'function_call', call_id: 'c', name: 'f', arguments: '{}' };
  const result = { type: 'function_call_output', call_id: 'c', output: 'ok' };
  const back = convertRequest(
    { model: 'deepseek-v3.2', input: [{ role: 'user', content: 'hi' }, output[0], call, result] },
    { from: 'openai-responses', to: 'openai-chat', provider: 'deepseek' },
  );
  expect(JSON.stringify(back.body)).toContain('"reasoning_content":"Let me think."');
});

test('full reasoning of a Responses server stays full', () => {
  const item = { type: 'reasoning', id: 'rs_1', summary: [], content: [{ type: 'reasoning_text', text: 'Let me think.' }] };
  const whole = { id: 'resp_1', object: 'response', created_at: 1, status: 'completed', model: 'm', output: [item] };
  const { body } = convertResponse(whole, { from: 'openai-responses', to: 'openai-responses' });
  expect(body).toMatchObject({ output: [{ summary: [], content: [{ type: 'reasoning_text', text: 'Let me think.' }] }] });
});
