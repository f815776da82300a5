import { createStreamConverter } from '@sluice/core';
import { ChatAccumulator } from '@sluice/core/accumulate';
import { CODECS, StreamAccumulator } from '@sluice/core/engine';
import { accumulate as readToEnd } from '@sluice/core/io';
import { openaiChat } from '@sluice/core/openai-chat';
import { createSseDecoder } from '@sluice/core/sse';

const protocol = openaiChat;
const resultOf = ({ text, tool_calls: calls }) => ({ text, args: calls.map((call) => call.arguments) });

export function accumulate({ chunks }) {
  return () => {
    const accumulator = new ChatAccumulator();
    for (const chunk of chunks) accumulator.push(chunk);
    const { message } = accumulator.finish().choices[0];
    return { text: message.content ?? '', args: (message.tool_calls ?? []).map((call) => call.function.arguments) };
  };
}

export function sse({ pieces, json }) {
  return () => {
    let characters = 0;
    const read = (frames) => {
      for (const { data } of frames) {
        characters += data.length;
        if (json && data !== '[DONE]') JSON.parse(data);
      }
    };
    const decoder = createSseDecoder();
    for (const piece of pieces) read(decoder.push(piece));
    read(decoder.end());
    return { characters };
  };
}

export function endToEnd({ pieces }) {
  return () => {
    const accumulator = new StreamAccumulator({ protocol });
    for (const piece of pieces) accumulator.push(piece);
    return resultOf(accumulator.finish());
  };
}

export function endToEndAsync({ stream }) {
  return async () => resultOf(await readToEnd(stream(), { protocol }));
}

export function convert({ pieces, from, to }) {
  return () => {
    const out = [];
    const converter = createStreamConverter({ from: CODECS[from], to: CODECS[to] });
    for (const piece of pieces) out.push(...converter.push(piece));
    out.push(...converter.end());
    return { out };
  };
}
