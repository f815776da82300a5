/** No framing at all: what JSON.parse alone costs for the same payloads. */
export function sse({ payloads }) {
  return () => {
    let characters = '[DONE]'.length;
    for (const payload of payloads) {
      characters += payload.length;
      JSON.parse(payload);
    }
    return { characters };
  };
}

/** A request, parsed and written again. */
export function parseAndStringify({ text }) {
  return () => ({ text: JSON.stringify(JSON.parse(text)) });
}
