/** What a client of each protocol makes of a stream, and an upstream of a request: whether a conversion is right. */

const isSame = (a, b) => a.length === b.length && a.every((value, i) => value === b[i]);

export const isExpected = ({ text, args }, expected) => text === expected.text && isSame(args, expected.args);

/** Reads the bytes of a converted stream: `{ text, args }`, without a text when the stream did not come to its end. */
export function readStreamOutput(protocol, out) {
  const lines = Buffer.concat(out).toString().split(/\r?\n/);
  const payloads = lines.filter((line) => line.startsWith('data: ') && line !== 'data: [DONE]');
  const { isDone, text, args } = STREAM_READERS[protocol](payloads.map((line) => JSON.parse(line.slice('data: '.length))));
  return { text: isDone ? text : undefined, args };
}

const STREAM_READERS = {
  'openai-chat': readChat,
  'anthropic-messages': readAnthropic,
  'openai-responses': readResponses,
  gemini: readGemini,
};
const CHAT_ENDS = ['stop', 'tool_calls'];

function readChat(chunks) {
  const choices = chunks.flatMap((chunk) => chunk.choices);
  const args = [];
  for (const { index, function: body } of choices.flatMap(({ delta }) => delta.tool_calls ?? []))
    args[index] = (args[index] ?? '') + (body.arguments ?? '');
  const text = choices.map(({ delta }) => delta.content ?? '').join('');
  return { isDone: choices.some((choice) => CHAT_ENDS.includes(choice.finish_reason)), text, args };
}

function readAnthropic(events) {
  const blocks = [];
  for (const event of events) {
    if (event.type === 'content_block_start') blocks[event.index] = { type: event.content_block.type, text: '' };
    if (event.type === 'content_block_delta') blocks[event.index].text += event.delta.text ?? event.delta.partial_json;
  }
  const collect = (type) => blocks.filter((block) => block.type === type).map((block) => block.text);
  return { isDone: hasType(events, 'message_stop'), text: collect('text').join(''), args: collect('tool_use') };
}

function readResponses(events) {
  const collect = (type) => events.filter((event) => event.type === type);
  const text = collect('response.output_text.delta')
    .map(({ delta }) => delta)
    .join('');
  const calls = new Map();
  for (const { item_id: id, delta } of collect('response.function_call_arguments.delta'))
    calls.set(id, (calls.get(id) ?? '') + delta);
  return { isDone: hasType(events, 'response.completed'), text, args: [...calls.values()] };
}

function readGemini(chunks) {
  const candidates = chunks.flatMap((chunk) => chunk.candidates ?? []);
  const parts = candidates.flatMap(({ content }) => content?.parts ?? []);
  const args = parts.flatMap(({ functionCall: call }) => (call ? [JSON.stringify(call.args)] : []));
  const isDone = candidates.some(({ finishReason }) => finishReason === 'STOP');
  return { isDone, text: parts.map(({ text }) => text ?? '').join(''), args };
}

const hasType = (events, type) => events.some((event) => event.type === type);

/** All texts, calls, results and tools of a request, each in its order. */
const readRequest = (protocol, body) => REQUEST_READERS[protocol](body);

/** Whether two requests say the same, each in its protocol. */
export function isSameRequest(a, b) {
  const [one, other] = [a, b].map(([protocol, body]) => readRequest(protocol, body));
  return Object.keys(one).every((key) => isSame(one[key], other[key]));
}

const REQUEST_READERS = {
  'openai-chat': ({ messages, tools = [] }) => ({
    texts: pickTexts(messages, ({ role, content }) => (role === 'user' ? listParts(content).map(({ text }) => text) : [])),
    calls: messages.flatMap(({ tool_calls: calls = [] }) => calls.map((call) => normalize(call.function.arguments))),
    results: pickTexts(messages, ({ role, content }) => (role === 'tool' ? listParts(content).map(({ text }) => text) : [])),
    tools: tools.map((tool) => tool.function.name),
  }),
  'anthropic-messages': ({ messages, tools = [] }) => {
    const blocks = messages.flatMap(({ content }) => listParts(content));
    return {
      texts: pickTexts(blocks, ({ type, text }) => (type === 'text' ? [text] : [])),
      calls: blocks.flatMap(({ type, input }) => (type === 'tool_use' ? [JSON.stringify(input)] : [])),
      results: pickTexts(blocks, ({ type, content }) =>
        type === 'tool_result' ? listParts(content).map(({ text }) => text) : [],
      ),
      tools: tools.map(({ name }) => name),
    };
  },
  'openai-responses': ({ input, tools = [] }) => ({
    texts: pickTexts(input, ({ role, content }) => (role === 'user' ? listParts(content).map(({ text }) => text) : [])),
    calls: input.flatMap(({ type, arguments: text }) => (type === 'function_call' ? [normalize(text)] : [])),
    results: pickTexts(input, ({ type, output }) =>
      type === 'function_call_output' ? listParts(output).map(({ text }) => text) : [],
    ),
    tools: tools.map(({ name }) => name),
  }),
  gemini: ({ contents, tools = [] }) => {
    const parts = contents.flatMap((content) => content.parts);
    return {
      texts: pickTexts(parts, ({ text }) => (text === undefined ? [] : [text])),
      calls: parts.flatMap(({ functionCall: call }) => (call ? [JSON.stringify(call.args)] : [])),
      results: parts.flatMap(({ functionResponse: result }) =>
        result ? [result.response.output ?? result.response.result] : [],
      ),
      tools: tools.flatMap(({ functionDeclarations: list }) => list.map(({ name }) => name)),
    };
  },
};

const listParts = (content) => (typeof content === 'string' ? [{ type: 'text', text: content }] : (content ?? []));
const normalize = (text) => JSON.stringify(JSON.parse(text));
const pickTexts = (list, pick) => list.flatMap(pick);
