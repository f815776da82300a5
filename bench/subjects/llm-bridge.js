import { handleUniversalStreamRequest } from 'llm-bridge';
import { collect } from '../collect.js';

const NAMES = {
  'openai-chat': 'openai',
  'anthropic-messages': 'anthropic',
  'openai-responses': 'openai-responses',
  gemini: 'google',
};

export function convert({ stream, from, to }) {
  return async () => ({ out: await collect(handleUniversalStreamRequest(stream(), NAMES[from], NAMES[to])) });
}
