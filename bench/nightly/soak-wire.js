/**
 * What the soak's upstream sends and what its clients must read, by protocol. Written by hand and without @sluice/core, so that a mistake there
 * cannot hide itself.
 */

export const PROTOCOLS = ['openai-chat', 'anthropic-messages', 'openai-responses', 'gemini'];

/** A small generator of seeded numbers in [0, 1): mulberry32. */
export function createRandom(seed) {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4294967296;
  };
}

const WORDS = ['gate', 'Grüße', 'stream', '😀', '"quoted"', 'line\nend', 'tab\t', '{"a":1}', '日本語', '\\', 'data: x', 'end'];

/** The answer to request number k: its text in pieces, and a tool call for every fourth. */
export function answerOf(k) {
  const random = createRandom(k);
  const pieces = Array.from({ length: 1 + Math.floor(random() * 12) }, (_, i) => {
    const words = Array.from({ length: 1 + Math.floor(random() * 4) }, () => WORDS[Math.floor(random() * WORDS.length)]);
    return `${k}.${i} ${words.join(' ')} `;
  });
  const call = k % 4 === 0 ? { id: `call_${k}`, name: 'lookup', input: { k, query: pieces[0] } } : undefined;
  return { k, pieces, text: pieces.join(''), call };
}

const USAGE = { input: 11, output: 7 };

// Requests

const TOOL_SCHEMA = { type: 'object', properties: { k: { type: 'integer' }, query: { type: 'string' } } };

/** The prompt tells the upstream which answer to send, and how many milliseconds to wait between its pieces. */
const promptOf = (k, delay) => `soak:${k}:${delay}`;
export const readPrompt = (body) => /soak:(\d+):(\d+)/.exec(body)?.slice(1).map(Number);

const REQUESTS = {
  'openai-chat': (model, stream, content, hasTool) => ({
    path: '/v1/chat/completions',
    body: {
      model,
      stream,
      ...(stream && { stream_options: { include_usage: true } }),
      messages: [{ role: 'user', content }],
      ...(hasTool && { tools: [{ type: 'function', function: { name: 'lookup', parameters: TOOL_SCHEMA } }] }),
    },
  }),
  'anthropic-messages': (model, stream, content, hasTool) => ({
    path: '/v1/messages',
    body: {
      model,
      stream,
      max_tokens: 999,
      messages: [{ role: 'user', content }],
      ...(hasTool && { tools: [{ name: 'lookup', input_schema: TOOL_SCHEMA }] }),
    },
  }),
  'openai-responses': (model, stream, content, hasTool) => ({
    path: '/v1/responses',
    body: {
      model,
      stream,
      input: content,
      ...(hasTool && { tools: [{ type: 'function', name: 'lookup', parameters: TOOL_SCHEMA, strict: false }] }),
    },
  }),
  gemini: (model, stream, text, hasTool) => ({
    path: `/v1beta/models/${model}:${stream ? 'streamGenerateContent?alt=sse' : 'generateContent'}`,
    body: {
      contents: [{ role: 'user', parts: [{ text }] }],
      ...(hasTool && { tools: [{ functionDeclarations: [{ name: 'lookup', parameters: TOOL_SCHEMA }] }] }),
    },
  }),
};

export function requestOf(protocol, { model, stream, k, delay }) {
  const { path, body } = REQUESTS[protocol](model, stream, promptOf(k, delay), answerOf(k).call !== undefined);
  return { path, body: JSON.stringify(body) };
}

// What the upstream sends

/** By the path of a request: whose it is, and whether it asks for a stream. */
export function protocolAt(path, body) {
  if (path.includes('/models/')) return { protocol: 'gemini', stream: path.includes(':stream') };
  const stream = /"stream": ?true/.test(body);
  if (path.endsWith('/messages')) return { protocol: 'anthropic-messages', stream };
  return { protocol: path.endsWith('/responses') ? 'openai-responses' : 'openai-chat', stream };
}

const frame = (payload, event) => `${event ? `event: ${event}\n` : ''}data: ${JSON.stringify(payload)}\n\n`;
const typed = (payload) => frame(payload, payload.type);
/** Arguments come in two pieces. */
const halves = (text) => [text.slice(0, text.length >> 1), text.slice(text.length >> 1)];

const chatCall = ({ id, name, input }) => ({ id, type: 'function', function: { name, arguments: JSON.stringify(input) } });

function chatFrames({ k, pieces, call }) {
  const chunk = (delta, finish_reason = null) =>
    frame({
      id: `c${k}`,
      object: 'chat.completion.chunk',
      created: 1,
      model: 'm',
      choices: [{ index: 0, delta, finish_reason }],
    });
  const usage = { prompt_tokens: USAGE.input, completion_tokens: USAGE.output, total_tokens: USAGE.input + USAGE.output };
  const calls = call
    ? [
        chunk({ tool_calls: [{ index: 0, ...chatCall({ ...call, input: '' }), function: { name: call.name, arguments: '' } }] }),
        ...halves(JSON.stringify(call.input)).map((text) => chunk({ tool_calls: [{ index: 0, function: { arguments: text } }] })),
      ]
    : [];
  return [
    chunk({ role: 'assistant', content: '' }),
    ...pieces.map((content) => chunk({ content })),
    ...calls,
    chunk({}, call ? 'tool_calls' : 'stop'),
    frame({ id: `c${k}`, object: 'chat.completion.chunk', created: 1, model: 'm', choices: [], usage }),
    'data: [DONE]\n\n',
  ];
}

const chatWhole = ({ k, text, call }) => ({
  id: `c${k}`,
  object: 'chat.completion',
  created: 1,
  model: 'm',
  choices: [
    {
      index: 0,
      message: { role: 'assistant', content: text, ...(call && { tool_calls: [chatCall(call)] }) },
      finish_reason: call ? 'tool_calls' : 'stop',
    },
  ],
  usage: { prompt_tokens: USAGE.input, completion_tokens: USAGE.output, total_tokens: USAGE.input + USAGE.output },
});

const anthropicUsage = { input_tokens: USAGE.input, output_tokens: USAGE.output };

const anthropicWhole = ({ k, text, call }) => ({
  id: `msg_${k}`,
  type: 'message',
  role: 'assistant',
  model: 'm',
  content: [{ type: 'text', text }, ...(call ? [{ type: 'tool_use', ...call }] : [])],
  stop_reason: call ? 'tool_use' : 'end_turn',
  stop_sequence: null,
  usage: anthropicUsage,
});

function anthropicFrames(answer) {
  const { pieces, call } = answer;
  const message = { ...anthropicWhole(answer), content: [], stop_reason: null };
  const delta = (index, value) => typed({ type: 'content_block_delta', index, delta: value });
  const tool = call
    ? [
        typed({
          type: 'content_block_start',
          index: 1,
          content_block: { type: 'tool_use', id: call.id, name: call.name, input: {} },
        }),
        ...halves(JSON.stringify(call.input)).map((partial_json) => delta(1, { type: 'input_json_delta', partial_json })),
        typed({ type: 'content_block_stop', index: 1 }),
      ]
    : [];
  return [
    typed({ type: 'message_start', message }),
    typed({ type: 'content_block_start', index: 0, content_block: { type: 'text', text: '' } }),
    ...pieces.map((text) => delta(0, { type: 'text_delta', text })),
    typed({ type: 'content_block_stop', index: 0 }),
    ...tool,
    typed({
      type: 'message_delta',
      delta: { stop_reason: call ? 'tool_use' : 'end_turn', stop_sequence: null },
      usage: anthropicUsage,
    }),
    typed({ type: 'message_stop' }),
  ];
}

function responsesItems({ k, text, call }) {
  const part = { type: 'output_text', text, annotations: [] };
  const message = { id: `msg_${k}`, type: 'message', status: 'completed', role: 'assistant', content: [part] };
  if (!call) return [message];
  const { id, name, input } = call;
  const item = { id: `fc_${k}`, type: 'function_call', status: 'completed', call_id: id, name, arguments: JSON.stringify(input) };
  return [message, item];
}

const responsesWhole = (answer) => ({
  id: `resp_${answer.k}`,
  object: 'response',
  created_at: 1,
  status: 'completed',
  model: 'm',
  output: responsesItems(answer),
  usage: { input_tokens: USAGE.input, output_tokens: USAGE.output, total_tokens: USAGE.input + USAGE.output },
});

function responsesFrames(answer) {
  let sequence_number = 0;
  const event = (type, fields) => typed({ type, sequence_number: sequence_number++, ...fields });
  const response = responsesWhole(answer);
  const begun = { ...response, status: 'in_progress', output: [], usage: null };
  const [message, call] = response.output;
  const [part] = message.content;
  const place = { item_id: message.id, output_index: 0, content_index: 0 };
  const frames = [
    event('response.created', { response: begun }),
    event('response.in_progress', { response: begun }),
    event('response.output_item.added', { output_index: 0, item: { ...message, status: 'in_progress', content: [] } }),
    event('response.content_part.added', { ...place, part: { ...part, text: '' } }),
    ...answer.pieces.map((delta) => event('response.output_text.delta', { ...place, delta })),
    event('response.output_text.done', { ...place, text: part.text }),
    event('response.content_part.done', { ...place, part }),
    event('response.output_item.done', { output_index: 0, item: message }),
  ];
  if (call) {
    const at = { item_id: call.id, output_index: 1 };
    frames.push(
      event('response.output_item.added', { output_index: 1, item: { ...call, status: 'in_progress', arguments: '' } }),
      ...halves(call.arguments).map((delta) => event('response.function_call_arguments.delta', { ...at, delta })),
      event('response.function_call_arguments.done', { ...at, arguments: call.arguments }),
      event('response.output_item.done', { output_index: 1, item: call }),
    );
  }
  return [...frames, event('response.completed', { response })];
}

const geminiUsage = {
  promptTokenCount: USAGE.input,
  candidatesTokenCount: USAGE.output,
  totalTokenCount: USAGE.input + USAGE.output,
};
const geminiCall = (call) => (call ? [{ functionCall: { name: call.name, args: call.input } }] : []);
const geminiChunk = (k, parts, more = {}) => ({
  candidates: [{ index: 0, content: { role: 'model', parts }, ...more }],
  usageMetadata: geminiUsage,
  modelVersion: 'm',
  responseId: `r${k}`,
});

const geminiWhole = ({ k, text, call }) => geminiChunk(k, [{ text }, ...geminiCall(call)], { finishReason: 'STOP' });

const geminiFrames = ({ k, pieces, call }) =>
  [
    ...pieces.map((text) => geminiChunk(k, [{ text }])),
    ...geminiCall(call).map((part) => geminiChunk(k, [part])),
    geminiChunk(k, [{ text: '' }], { finishReason: 'STOP' }),
  ].map((payload) => `data: ${JSON.stringify(payload)}\r\n\r\n`);

const ANSWERS = {
  'openai-chat': { frames: chatFrames, whole: chatWhole },
  'anthropic-messages': { frames: anthropicFrames, whole: anthropicWhole },
  'openai-responses': { frames: responsesFrames, whole: responsesWhole },
  gemini: { frames: geminiFrames, whole: geminiWhole },
};

/** The frames of a stream, as the upstream sends them. */
export const framesOf = (protocol, k) => ANSWERS[protocol].frames(answerOf(k));
export const wholeOf = (protocol, k) => JSON.stringify(ANSWERS[protocol].whole(answerOf(k)));

// What a client reads

const isToolCall = (type) => type === 'tool_use' || type === 'function_call';

const READERS = {
  'openai-chat': {
    whole: ({ choices: [{ message, finish_reason }] }) => ({
      text: message.content ?? '',
      calls: (message.tool_calls ?? []).map((call) => [call.function.name, JSON.parse(call.function.arguments)]),
      finish: finish_reason,
    }),
    stream: (payloads, markers) => {
      const [choice] = [payloads.flatMap(({ choices }) => choices)];
      const calls = choice.flatMap(({ delta }) => delta.tool_calls ?? []);
      const name = calls.map((call) => call.function?.name ?? '').join('');
      const input = calls.map((call) => call.function?.arguments ?? '').join('');
      return {
        text: choice.map(({ delta }) => delta.content ?? '').join(''),
        calls: name === '' ? [] : [[name, JSON.parse(input)]],
        finish: markers === 1 && choice.map(({ finish_reason }) => finish_reason ?? '').join(''),
      };
    },
    finish: (call) => (call ? 'tool_calls' : 'stop'),
  },
  'anthropic-messages': {
    whole: ({ content, stop_reason }) => ({
      text: content.map(({ text = '' }) => text).join(''),
      calls: content.filter(({ type }) => isToolCall(type)).map(({ name, input }) => [name, input]),
      finish: stop_reason,
    }),
    stream: (payloads) => {
      const deltas = payloads.filter(({ type }) => type === 'content_block_delta').map(({ delta }) => delta);
      const names = payloads.flatMap(({ content_block }) => (content_block?.type === 'tool_use' ? [content_block.name] : []));
      const input = deltas.map(({ partial_json = '' }) => partial_json).join('');
      return {
        text: deltas.map(({ text = '' }) => text).join(''),
        calls: names.map((name) => [name, JSON.parse(input)]),
        finish: payloads.at(-1).type === 'message_stop' && payloads.map(({ delta }) => delta?.stop_reason ?? '').join(''),
      };
    },
    finish: (call) => (call ? 'tool_use' : 'end_turn'),
  },
  'openai-responses': {
    whole: ({ output, status }) => ({
      text: output.flatMap(({ content = [] }) => content.map(({ text }) => text)).join(''),
      calls: output.filter(({ type }) => isToolCall(type)).map((item) => [item.name, JSON.parse(item.arguments)]),
      finish: status,
    }),
    stream: (payloads) => {
      const deltas = payloads.filter(({ type }) => type === 'response.output_text.delta').map(({ delta }) => delta);
      const last = payloads.at(-1);
      const read = READERS['openai-responses'].whole(last.response);
      // Both tell the text, and they have to agree.
      return { ...read, text: read.text === deltas.join('') ? read.text : { deltas: deltas.join(''), whole: read.text } };
    },
    finish: () => 'completed',
  },
  gemini: {
    whole: (payload) => READERS.gemini.stream([payload]),
    stream: (payloads) => {
      const candidates = payloads.flatMap((payload) => payload.candidates ?? []);
      const parts = candidates.flatMap(({ content }) => content?.parts ?? []);
      return {
        text: parts.map(({ text = '' }) => text).join(''),
        calls: parts.flatMap(({ functionCall }) => (functionCall ? [[functionCall.name, functionCall.args]] : [])),
        finish: candidates.map(({ finishReason = '' }) => finishReason).join(''),
      };
    },
    finish: () => 'STOP',
  },
};

/** Undefined when a response is exactly what the upstream sent; else what is wrong with it. */
export function faultIn(body, { client, upstream, isPassing, stream, k }) {
  const { text, call } = answerOf(k);
  if (isPassing) {
    const sent = stream ? framesOf(upstream, k).join('') : wholeOf(upstream, k);
    return body === sent ? undefined : `the bytes differ: ${body.slice(0, 500)}`;
  }
  const reader = READERS[client];
  const expected = { text, calls: call ? [[call.name, call.input]] : [], finish: reader.finish(call) };
  const found = stream ? readStream(reader, body) : reader.whole(JSON.parse(body));
  const [is, should] = [found, expected].map((value) => JSON.stringify([value.text, value.calls, value.finish]));
  return is === should ? undefined : `read ${is.slice(0, 500)}, sent ${should.slice(0, 500)}`;
}

function readStream(reader, body) {
  const datas = body.split(/\r?\n/).flatMap((line) => (line.startsWith('data: ') ? [line.slice('data: '.length)] : []));
  const payloads = datas.filter((data) => data !== '[DONE]').map((data) => JSON.parse(data));
  return reader.stream(payloads, datas.length - payloads.length);
}
