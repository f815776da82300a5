import { HandAccumulator, HandOpenAIToAnthropic, HandSseBytes } from '../reference/hand.mjs';
import { convertByHand } from '../reference/hand-objects.mjs';

function readResult(accumulator) {
  const { message } = accumulator.final().choices[0];
  return { text: message.content ?? '', args: (message.tool_calls ?? []).map((call) => call.function.arguments) };
}

export function accumulate({ chunks }) {
  return () => {
    const accumulator = new HandAccumulator();
    for (const chunk of chunks) accumulator.add(chunk);
    return readResult(accumulator);
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
    return readResult(accumulator);
  };
}

/** All events of one read in one buffer. `convert` returns the text for one event, `end` that for the end of the stream. */
function convertPieces(pieces, convert, end) {
  const out = [];
  let text = '';
  const decoder = new HandSseBytes((data, event) => {
    if (data !== '[DONE]') text += convert(data, event);
  });
  const flush = () => {
    if (text !== '') out.push(Buffer.from(text));
    text = '';
  };
  for (const piece of pieces) {
    decoder.push(piece);
    flush();
  }
  text = end();
  flush();
  return { out };
}

/** The least code: chat to Anthropic, from templates of text. */
export function convertTemplates({ pieces }) {
  return () => {
    const converter = new HandOpenAIToAnthropic();
    const convert = (data) => converter.chunk(JSON.parse(data));
    return convertPieces(pieces, convert, () => converter.end());
  };
}

export function convertObjects({ pieces, from, to }) {
  return () => ({ out: convertByHand(pieces, from, to) });
}

/** No conversion at all: every event is parsed and written again. */
export function parseAndStringify({ pieces }) {
  const write = (data, event) => {
    const line = `data: ${JSON.stringify(JSON.parse(data))}\n\n`;
    return event === '' ? line : `event: ${event}\n${line}`;
  };
  return () => convertPieces(pieces, write, () => '');
}
