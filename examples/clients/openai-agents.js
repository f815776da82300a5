import { Agent, run, setDefaultOpenAIClient, setTracingDisabled } from '@openai/agents';
import OpenAI from 'openai';

const { SLUICE_URL = 'http://127.0.0.1:4141', SLUICE_KEY = 'any', SLUICE_MODEL = 'demo/hello' } = process.env;
setTracingDisabled(true); // traces would go to OpenAI
setDefaultOpenAIClient(new OpenAI({ baseURL: `${SLUICE_URL}/v1`, apiKey: SLUICE_KEY }));

const agent = new Agent({ name: 'Greeter', instructions: 'You are terse.', model: SLUICE_MODEL });
const { finalOutput } = await run(agent, 'Hello');
console.log(finalOutput);
