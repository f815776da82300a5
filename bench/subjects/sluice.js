/** Sluice over the modules of one build, by the names of its entry points. */
export function createSubjects(modules) {
  const { createAccumulator, createExchange, createStreamConverter, convertRequest } = modules['.'];
  const { ChatAccumulator } = modules['./accumulate'];
  const { StreamAccumulator } = modules['./engine'];
  const { accumulate: readToEnd } = modules['./io'];
  const { openaiChat: protocol } = modules['./openai-chat'];
  const { createSseDecoder } = modules['./sse'];

  const accumulate = ({ chunks }) => {
    return () => {
      const accumulator = new ChatAccumulator();
      for (const chunk of chunks) accumulator.push(chunk);
      return readCompletion(accumulator.finish());
    };
  };

  const accumulateChat = ({ chunks }) => {
    return () => {
      const accumulator = createAccumulator();
      for (const chunk of chunks) accumulator.push(chunk);
      return readCompletion(accumulator.finish());
    };
  };

  const accumulateNamed = ({ chunks }) => {
    return () => {
      const accumulator = createAccumulator({ protocol: 'openai-chat' });
      for (const chunk of chunks) accumulator.push(chunk);
      return readMessage(accumulator.finish());
    };
  };

  const sse = ({ pieces, json }) => {
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
  };

  const readBytes = ({ pieces }) => {
    return () => {
      const accumulator = new StreamAccumulator({ protocol });
      for (const piece of pieces) accumulator.push(piece);
      return readMessage(accumulator.finish());
    };
  };

  const readStream = ({ stream }) => {
    return async () => readMessage(await readToEnd(stream(), { protocol }));
  };

  const convertStream = ({ pieces, from, to }) => {
    return () => {
      const out = [];
      const converter = createStreamConverter({ from, to });
      for (const piece of pieces) out.push(...converter.push(piece));
      out.push(...converter.end());
      return { out };
    };
  };

  const convertText = ({ text, from, to }) => {
    return () => ({ text: JSON.stringify(convertRequest(JSON.parse(text), { from, to, model: 'm' }).body) });
  };

  /** A small request and its whole response, there and back. `buildProfile` is called for every exchange. */
  const exchange = ({ buildProfile, provider, request, reply }) => {
    return () => {
      const profile = buildProfile();
      const one = createExchange('anthropic-messages', 'openai-chat', { provider, model: 'm', profile });
      const { body } = one.request(request);
      return { sent: body, received: one.response(reply).body };
    };
  };

  return { accumulate, accumulateChat, accumulateNamed, sse, readBytes, readStream, convertStream, convertText, exchange };
}

function readCompletion({ choices: [{ message }] }) {
  return { text: message.content ?? '', args: (message.tool_calls ?? []).map((call) => call.function.arguments) };
}

const readMessage = ({ text, tool_calls: calls }) => ({ text, args: calls.map((call) => call.arguments) });
