// `node examples/convert.js` (after `npm run build`): a request of an Anthropic client for an OpenAI-compatible server, and the response.
// The request is sent in the protocol of the server, and its stream comes back in that of the client.
import { createReadStream } from 'node:fs';
import { Readable } from 'node:stream';
import { convertRequest, convertStream } from '@sluice/core';

// A reader such as `head` may close the pipe.
process.stdout.on('error', () => process.exit());

const anthropicRequest = {
  model: 'claude-sonnet-5',
  max_tokens: 1024,
  top_k: 40,
  stream: true,
  system: 'Answer in one sentence.',
  messages: [{ role: 'user', content: 'What is the weather in Oslo and in Rome?' }],
  tools: [{ name: 'get_weather', input_schema: { type: 'object', properties: { city: { type: 'string' } } } }],
};

const { body, notes, request } = convertRequest(anthropicRequest, {
  from: 'anthropic',
  to: 'openai',
  model: 'gpt-5.6',
  provider: 'openai',
});
console.log('What the server gets:\n', JSON.stringify(body, null, 2));
console.log('\nWhat is lost:');
for (const { code, path, message } of notes) console.log(`  ${code} ${path}: ${message}`);

// In place of `(await fetch(url, …)).body`: a recorded stream, with the mistakes that real servers make.
const response = Readable.toWeb(createReadStream(new URL('broken-stream.sse', import.meta.url)));
console.log('\nWhat the client reads:\n');
for await (const chunk of response.pipeThrough(convertStream({ from: 'openai', to: 'anthropic', request })))
  process.stdout.write(chunk);
