/** An upstream that responds when the test lets it. */
import { once } from 'node:events';
import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

/** Each response reports 100 tokens of input and 100 of output. */
export class HeldUpstream {
  readonly #waiting: ServerResponse[] = [];
  readonly #server = createServer((incoming, response) => {
    incoming.resume();
    // Lists of models are not held.
    if (incoming.method === 'GET') return void response.writeHead(404).end();
    this.received++;
    this.#waiting.push(response);
    if (!this.isHeld) this.answerAll();
  });
  /** How many requests have arrived. */
  received = 0;
  /** Whether requests wait for `answerAll`. */
  isHeld = true;

  static async start(): Promise<HeldUpstream> {
    const upstream = new HeldUpstream();
    await once(upstream.#server.listen(0, '127.0.0.1'), 'listening');
    return upstream;
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port; // it listens on TCP
  }

  get waiting(): number {
    return this.#waiting.length;
  }

  answerAll(): void {
    for (const response of this.#waiting.splice(0)) response.writeHead(200, { 'content-type': 'application/json' }).end(BODY);
  }

  close(): void {
    this.#server.closeAllConnections();
    this.#server.close();
  }
}

const BODY = JSON.stringify({
  id: 'answer-1',
  object: 'chat.completion',
  created: 1,
  model: 'm',
  choices: [{ index: 0, message: { role: 'assistant', content: 'One.' }, finish_reason: 'stop' }],
  usage: { prompt_tokens: 100, completion_tokens: 100, total_tokens: 200 },
});
