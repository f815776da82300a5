/**
 * What the scripted upstream sends, for the upstream that sends it and the load generator that compares it. The name of the model says what:
 * `mock-whole` a short response, `mock-large` one of 100 KB, `mock-d50-n20-k7` a stream of 20 chunks, one every 50 ms, as number 7, and
 * `mock-endless-k7` one that sends until the connection closes.
 */

export const TEXTS = {
  'mock-whole': 'Hello there, this is a short reply.',
  'mock-large': 'All work and no play makes "Jack" a dull boy.\n'.repeat(2130),
};

/** Everything that a stream says is marks: `t=`, which stream (6 digits), which chunk of it (6), when it was sent (16), and `;`. */
export const MARK_LENGTH = 2 + 6 + 6 + 16 + 1;
const TIME_RANGE = 10n ** 16n;

/** Nanoseconds of a clock that all processes of the machine share. */
export const readClock = () => process.hrtime.bigint() % TIME_RANGE;

export function buildMark(stream, chunk) {
  return `t=${String(stream).padStart(6, '0')}${String(chunk).padStart(6, '0')}${String(readClock()).padStart(16, '0')};`;
}

/** What a model name asks for. */
export function parseModel(name) {
  const stream = /^mock-d(\d+)-n(\d+)(?:-k(\d+))?$/.exec(name);
  if (stream) return { kind: 'stream', delay: Number(stream[1]), chunks: Number(stream[2]), number: Number(stream[3] ?? 0) };
  return /^mock-endless(-k\d+)?$/.test(name) ? { kind: 'endless' } : { kind: 'whole', text: TEXTS[name] ?? TEXTS['mock-whole'] };
}

const CHAT_META = {
  id: 'chatcmpl-AbCdEf0123456789',
  object: 'chat.completion.chunk',
  created: 1731690000,
  model: 'gpt-4o-mini-2024-07-18',
  system_fingerprint: 'fp_0123456789',
};
const chatEvent = (delta, finish_reason = null) =>
  `data: ${JSON.stringify({ ...CHAT_META, choices: [{ index: 0, delta, logprobs: null, finish_reason }] })}\n\n`;
const anthropicEvent = (event) => `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`;

/** The two protocols that the upstream speaks: whole bodies, and the events before, of and after the text of a stream. */
export const UPSTREAM_PROTOCOLS = {
  'openai-chat': {
    whole: (text) =>
      JSON.stringify({
        id: 'chatcmpl-1',
        object: 'chat.completion',
        created: 1731690000,
        model: 'm',
        choices: [{ index: 0, message: { role: 'assistant', content: text }, logprobs: null, finish_reason: 'stop' }],
        usage: { prompt_tokens: 10, completion_tokens: 9, total_tokens: 19 },
      }),
    begin: chatEvent({ role: 'assistant', content: '' }),
    text: (text) => chatEvent({ content: text }),
    end:
      chatEvent({}, 'stop') +
      `data: ${JSON.stringify({ ...CHAT_META, choices: [], usage: { prompt_tokens: 10, completion_tokens: 9, total_tokens: 19 } })}\n\ndata: [DONE]\n\n`,
  },
  'anthropic-messages': {
    whole: (text) =>
      JSON.stringify({
        id: 'msg_1',
        type: 'message',
        role: 'assistant',
        model: 'm',
        content: [{ type: 'text', text }],
        stop_reason: 'end_turn',
        stop_sequence: null,
        usage: { input_tokens: 10, output_tokens: 9 },
      }),
    begin:
      anthropicEvent({
        type: 'message_start',
        message: {
          id: 'msg_1',
          type: 'message',
          role: 'assistant',
          model: 'm',
          content: [],
          stop_reason: null,
          stop_sequence: null,
          usage: { input_tokens: 10, output_tokens: 1 },
        },
      }) + anthropicEvent({ type: 'content_block_start', index: 0, content_block: { type: 'text', text: '' } }),
    text: (text) => anthropicEvent({ type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text } }),
    end:
      anthropicEvent({ type: 'content_block_stop', index: 0 }) +
      anthropicEvent({
        type: 'message_delta',
        delta: { stop_reason: 'end_turn', stop_sequence: null },
        usage: { output_tokens: 9 },
      }) +
      anthropicEvent({ type: 'message_stop' }),
  },
};

/** How a client of each protocol reads the text of a whole response, and what the end of a complete stream contains. */
export const CLIENT_PROTOCOLS = {
  'openai-chat': {
    readText: ({ choices: [{ message, finish_reason }] }) => (finish_reason === 'stop' ? message.content : undefined),
    streamEnd: 'data: [DONE]',
  },
  'anthropic-messages': {
    readText: ({ content, stop_reason }) => (stop_reason === 'end_turn' ? content.map(({ text }) => text).join('') : undefined),
    streamEnd: '"type":"message_stop"',
  },
  'openai-responses': {
    readText: ({ output, status }) =>
      status === 'completed' ? output.flatMap(({ content = [] }) => content.map(({ text }) => text)).join('') : undefined,
    streamEnd: '"type":"response.completed"',
  },
  gemini: {
    readText: ({ candidates: [{ content, finishReason }] }) =>
      finishReason === 'STOP' ? content.parts.map(({ text }) => text).join('') : undefined,
    streamEnd: '"finishReason":"STOP"',
  },
};
