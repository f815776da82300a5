import type { ServerResponse } from 'node:http';
import type { Metrics } from '../observe/metrics.ts';

interface PageContext {
  id: string;
  metrics: Metrics;
  isDraining: boolean;
}

export interface OwnPage {
  /** Whether it needs no client key, because it contains no private data. */
  isPublic: boolean;
  send(response: ServerResponse, context: PageContext): void | Promise<void>;
}

/** Pages of the gateway itself. */
export const OWN_PAGES: ReadonlyMap<string, OwnPage> = new Map([
  // Claude Code checks that the server is up.
  ['/', { isPublic: true, send: (response, { id }) => sendText(response, 200, 'sluice\n', id) }],
  ['/health/live', { isPublic: true, send: (response, { id }) => sendText(response, 200, 'live\n', id) }],
  [
    '/health/ready',
    {
      isPublic: true,
      send: (response, { id, isDraining }) =>
        sendText(response, isDraining ? 503 : 200, isDraining ? 'draining\n' : 'ready\n', id),
    },
  ],
  [
    '/metrics',
    {
      isPublic: false,
      send: async (response, { id, metrics }) => sendText(response, 200, await metrics.text(), id, metrics.contentType),
    },
  ],
] satisfies [string, OwnPage][]);

function sendText(response: ServerResponse, status: number, text: string, id: string, type = 'text/plain; charset=utf-8'): void {
  response.writeHead(status, {
    'content-type': type,
    'content-length': String(Buffer.byteLength(text)),
    'x-sluice-request-id': id,
  });
  response.end(text);
}
