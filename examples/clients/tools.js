// A tool, with the SDK of OpenAI and whichever model the gateway has. The last line of the prompt makes the demo model call it.
import OpenAI from 'openai';

// A reader such as `head` may close the pipe.
process.stdout.on('error', () => process.exit());

const { SLUICE_URL = 'http://127.0.0.1:4141', SLUICE_KEY = 'any', SLUICE_MODEL = 'demo/hello' } = process.env;
const client = new OpenAI({ baseURL: `${SLUICE_URL}/v1`, apiKey: SLUICE_KEY });

const runner = client.chat.completions.runTools({
  model: SLUICE_MODEL,
  messages: [{ role: 'user', content: 'How is the weather in Oslo?\ndemo: call get_weather' }],
  stream: true,
  tools: [
    {
      type: 'function',
      function: {
        name: 'get_weather',
        description: 'The weather in a city',
        parameters: { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] },
        parse: JSON.parse,
        function: ({ city }) => `Rain in ${city}, 4 °C`,
      },
    },
  ],
});
runner.on('content', (text) => process.stdout.write(text));
runner.on('functionToolCall', ({ name, arguments: text }) => console.log(`\n→ ${name}(${text})`));
await runner.finalContent();
console.log();
