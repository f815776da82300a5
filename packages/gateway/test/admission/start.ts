/** A gateway whose callers are chosen by a test: the key of a request is the name of its caller. */
import { type Caller, type KeyPolicy, UNLIMITED } from '../../src/keys/caller.ts';
import { Gatekeeper } from '../../src/keys/gatekeeper.ts';
import { wholeOf } from '../gateway/dialects.ts';
import { whole } from '../gateway/http.ts';
import { type Started, type StartOptions, startGateway } from '../gateway/start.ts';

export const createCaller = (name: string, policy: Partial<KeyPolicy> = {}, tags: readonly string[] = []): Caller => ({
  id: `id-of-${name}`,
  name,
  tags,
  policy: { ...UNLIMITED, ...policy },
});

/** Starts a gateway with these callers. */
export function startGated(callers: readonly Caller[], options: StartOptions): Promise<Started> {
  const gatekeeper = new Gatekeeper(callers.map((caller) => ({ key: caller.name, caller })));
  return startGateway({
    ...options,
    services: (made) => {
      const directory = { ...made.directory(), gatekeeper };
      const changed = { ...made, directory: () => directory };
      return options.services?.(changed) ?? changed;
    },
  });
}

/** A whole chat response that reports these tokens. */
export const answerWith = (input: number, output: number): Buffer =>
  whole(
    200,
    wholeOf('openai-chat', {
      id: 'answer-1',
      model: 'm',
      created: 1,
      content: [{ type: 'text', text: 'One.' }],
      stop_reason: 'end_turn',
      usage: { input_tokens: input, output_tokens: output },
    }),
  );
