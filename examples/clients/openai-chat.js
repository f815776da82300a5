import OpenAI from 'openai';

// A reader such as `head` may close the pipe.
process.stdout.on('error', () => process.exit());

const { SLUICE_URL = 'http://127.0.0.1:4141', SLUICE_KEY = 'any', SLUICE_MODEL = 'demo/hello' } = process.env;
const client = new OpenAI({ baseURL: `${SLUICE_URL}/v1`, apiKey: SLUICE_KEY });

const stream = await client.chat.completions.create({
  model: SLUICE_MODEL,
  messages: [{ role: 'user', content: 'Hello' }],
  stream: true,
});
for await (const { choices } of stream) process.stdout.write(choices[0]?.delta.content ?? '');
console.log();
