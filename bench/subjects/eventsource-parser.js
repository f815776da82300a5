import { createParser } from 'eventsource-parser';

export function sse({ pieces, json }) {
  return () => {
    let characters = 0;
    const parser = createParser({
      onEvent({ data }) {
        characters += data.length;
        if (json && data !== '[DONE]') JSON.parse(data);
      },
    });
    const decoder = new TextDecoder();
    for (const piece of pieces) parser.feed(decoder.decode(piece, { stream: true }));
    return { characters };
  };
}
