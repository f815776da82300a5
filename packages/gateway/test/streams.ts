/** Small streams of our own writing. */
const chunk = (delta: object, finish: string | null = null): string =>
  `data: ${JSON.stringify({ id: 'chatcmpl-1', object: 'chat.completion.chunk', created: 1, model: 'm-1', choices: [{ index: 0, delta, finish_reason: finish }] })}\n\n`;

const event = (data: { type: string } & Record<string, unknown>): string =>
  `event: ${data.type}\ndata: ${JSON.stringify(data)}\n\n`;

const DONE = 'data: [DONE]\n\n';

/** A text in one delta, or in several. */
export const chat = (text: string, ...more: string[]): string =>
  [{ role: 'assistant', content: text }, ...more.map((content) => ({ content }))].map((delta) => chunk(delta)).join('') +
  chunk({}, 'stop') +
  DONE;

export const chatCall = (args: string, finish: string | null = 'tool_calls', name = 'get_weather'): string =>
  chunk({ role: 'assistant', tool_calls: [{ index: 0, id: 'call_1', type: 'function', function: { name, arguments: args } }] }) +
  (finish === null ? '' : chunk({}, finish) + DONE);

export const cutChat = (text: string): string => chunk({ role: 'assistant', content: text });

export const chatError = (message: string): string =>
  `data: ${JSON.stringify({ error: { message, code: 'rate_limit_exceeded' } })}\n\n`;

export const anthropic = (text: string): string =>
  event({
    type: 'message_start',
    message: {
      id: 'msg_1',
      type: 'message',
      role: 'assistant',
      model: 'm-2',
      content: [],
      usage: { input_tokens: 3, output_tokens: 1 },
    },
  }) +
  event({ type: 'content_block_start', index: 0, content_block: { type: 'text', text: '' } }) +
  event({ type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text } }) +
  event({ type: 'content_block_stop', index: 0 }) +
  event({ type: 'message_delta', delta: { stop_reason: 'end_turn', stop_sequence: null }, usage: { output_tokens: 5 } }) +
  event({ type: 'message_stop' });

export const gemini = (text: string): string =>
  `data: ${JSON.stringify({ candidates: [{ content: { parts: [{ text }], role: 'model' }, finishReason: 'STOP', index: 0 }], modelVersion: 'm-3', responseId: 'r-1' })}\n\n`;

export const responses = (text: string): string => {
  const response = { id: 'resp_1', object: 'response', created_at: 1, model: 'm-4', status: 'in_progress', output: [] };
  const part = { type: 'output_text', text, annotations: [] };
  const item = { type: 'message', id: 'msg_1', role: 'assistant', status: 'completed', content: [part] };
  return (
    event({ type: 'response.created', sequence_number: 0, response }) +
    event({
      type: 'response.output_item.added',
      sequence_number: 1,
      output_index: 0,
      item: { ...item, status: 'in_progress', content: [] },
    }) +
    event({
      type: 'response.content_part.added',
      sequence_number: 2,
      item_id: 'msg_1',
      output_index: 0,
      content_index: 0,
      part: { ...part, text: '' },
    }) +
    event({
      type: 'response.output_text.delta',
      sequence_number: 3,
      item_id: 'msg_1',
      output_index: 0,
      content_index: 0,
      delta: text,
    }) +
    event({ type: 'response.output_text.done', sequence_number: 4, item_id: 'msg_1', output_index: 0, content_index: 0, text }) +
    event({ type: 'response.output_item.done', sequence_number: 5, output_index: 0, item }) +
    event({ type: 'response.completed', sequence_number: 6, response: { ...response, status: 'completed', output: [item] } })
  );
};

/** With what Anthropic has no words for. */
export const chatAudio: string =
  chunk({ role: 'assistant', audio: { id: 'audio_1', data: 'AAAA', expires_at: 9 } }) + chunk({}, 'stop') + DONE;
