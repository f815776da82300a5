/** A client of gateways. It imports nothing of them, because tests of processes start faster without. */
import { request } from 'node:http';

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
    // Before a text, node writes headers as UTF-8 once more.
    if (body === undefined) outgoing.end();
    else outgoing.end(Buffer.from(typeof body === 'string' ? body : JSON.stringify(body)));
  });
}

/** A chat request that may generate this many tokens. */
export const chat = (model: string, max = 100, more: object = {}): object => ({
  model,
  max_tokens: max,
  messages: [{ role: 'user', content: 'hi' }],
  ...more,
});
