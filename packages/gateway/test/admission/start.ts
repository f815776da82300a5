/** A gateway whose callers are chosen by a test: the key of a request is the name of its caller. */
import { request } from 'node:http';
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

export interface Answer {
  status: number;
  headers: Record<string, string>;
  text: string;
  // biome-ignore lint/suspicious/noExplicitAny: tests look into it
  json: any;
}

export interface SendOptions {
  key: string;
  method?: string;
  headers?: Record<string, string>;
  body?: unknown;
}

/** Sends one request by node's client. */
export function send(url: string, path: string, { key, method = 'POST', headers = {}, body }: SendOptions): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const outgoing = request(
      `${url}${path}`,
      { method, agent: false, headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json', ...headers } },
      (response) => {
        let text = '';
        response.on('data', (data) => {
          text += data;
        });
        response.on('end', () => {
          const isJson = /json/.test(response.headers['content-type'] ?? '') && text !== '';
          resolve({
            status: response.statusCode ?? 0,
            headers: response.headers as Record<string, string>,
            text,
            json: isJson ? JSON.parse(text) : undefined,
          });
        });
        response.on('error', reject);
      },
    );
    outgoing.on('error', reject);
    outgoing.end(typeof body === 'string' ? body : JSON.stringify(body));
  });
}

/** A chat request that may generate this many tokens. */
export const chat = (model: string, max = 100, more: object = {}): object => ({
  model,
  max_tokens: max,
  messages: [{ role: 'user', content: 'hi' }],
  ...more,
});

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
