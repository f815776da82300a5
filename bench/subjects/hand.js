import { HandAccumulator, HandOpenAIToAnthropic, HandOpenAIToAnthropicObj, HandSseBytes } from '../reference/hand.mjs';

function resultOf(accumulator) {
  const { message } = accumulator.final().choices[0];
  return { text: message.content ?? '', args: (message.tool_calls ?? []).map((call) => call.function.arguments) };
}

export function accumulate({ chunks }) {
  return () => {
    const accumulator = new HandAccumulator();
    for (const chunk of chunks) accumulator.add(chunk);
    return resultOf(accumulator);
  };
}

export function sse({ pieces, json }) {
  return () => {
    let characters = 0;
    const decoder = new HandSseBytes((data) => {
      characters += data.length;
      if (json && data !== '[DONE]') JSON.parse(data);
    });
    for (const piece of pieces) decoder.push(piece);
    return { characters };
  };
}

export function endToEnd({ pieces }) {
  return () => {
    const accumulator = new HandAccumulator();
    const decoder = new HandSseBytes((data) => {
      if (data !== '[DONE]') accumulator.add(JSON.parse(data));
    });
    for (const piece of pieces) decoder.push(piece);
    return resultOf(accumulator);
  };
}

const converted =
  (Converter) =>
  ({ pieces }) =>
  () => {
    const out = [];
    let text = '';
    const converter = new Converter();
    const decoder = new HandSseBytes((data) => {
      if (data !== '[DONE]') text += converter.chunk(JSON.parse(data));
    });
    const flush = () => {
      if (text !== '') out.push(Buffer.from(text));
      text = '';
    };
    for (const piece of pieces) {
      decoder.push(piece);
      flush();
    }
    text = converter.end();
    flush();
    return { out };
  };

export const convertObjects = converted(HandOpenAIToAnthropicObj);
export const convertTemplates = converted(HandOpenAIToAnthropic);
