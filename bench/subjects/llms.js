import { createRequire } from 'node:module';
import { collect } from '../collect.js';

// Its ES module cannot be imported (a dynamic require), the CommonJS one can.
const { default: Server } = createRequire(import.meta.url)('@musistudio/llms');

/** The transformer that answers Anthropic clients, out of a server that never listens. */
async function anthropic() {
  const { transformerService } = new Server({
    initialConfig: { providers: [] },
    useJsonFile: false,
    useEnvFile: false,
    logger: false,
  });
  while (!transformerService.getTransformer('Anthropic')) await new Promise((resolve) => setTimeout(resolve, 10));
  return transformerService.getTransformer('Anthropic');
}

const transformer = await anthropic();

export function convert({ response }) {
  return async () => {
    const { body } = await transformer.transformResponseIn(response(), { req: { id: 1 } });
    return { out: await collect(body) };
  };
}
