/** The upstream of the proof with many clients: streams wait for the messages "chunk" and "end" of its parent, others get a response. */
import { createServer } from 'node:http';

const streams = new Set();

const USAGE = { prompt_tokens: 10, completion_tokens: 10, total_tokens: 20 };
const chunk = (choices, more = {}) =>
  `data: ${JSON.stringify({ id: 'chatcmpl-1', object: 'chat.completion.chunk', created: 1, model: 'm', choices, ...more })}\n\n`;
const WORD = chunk([{ index: 0, delta: { role: 'assistant', content: 'word ' }, finish_reason: null }]);
const END = `${chunk([{ index: 0, delta: {}, finish_reason: 'stop' }])}${chunk([], { usage: USAGE })}data: [DONE]\n\n`;
const WHOLE = JSON.stringify({
  id: 'chatcmpl-1',
  object: 'chat.completion',
  created: 1,
  model: 'm',
  choices: [{ index: 0, message: { role: 'assistant', content: 'word' }, finish_reason: 'stop' }],
  usage: USAGE,
});

const server = createServer((request, response) => {
  let body = '';
  request.on('data', (data) => {
    body += data;
  });
  request.on('end', () => {
    if (!body.includes('"stream":true')) {
      response.writeHead(200, { 'content-type': 'application/json' }).end(WHOLE);
      return;
    }
    response.writeHead(200, { 'content-type': 'text/event-stream' }).write(WORD);
    streams.add(response);
    response.once('close', () => streams.delete(response));
  });
});

process.on('message', (message) => {
  for (const response of streams) {
    if (message === 'chunk') response.write(WORD);
    else response.end(END);
  }
});
process.on('disconnect', () => process.exit());
server.listen(0, '127.0.0.1', 8192, () => process.send({ port: server.address().port }));
