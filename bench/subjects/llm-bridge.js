import { handleUniversalStreamRequest } from 'llm-bridge';
import { collect } from '../collect.js';

export function convert({ stream }) {
  return async () => ({ out: await collect(handleUniversalStreamRequest(stream(), 'openai', 'anthropic')) });
}
