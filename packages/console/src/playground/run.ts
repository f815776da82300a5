/** One request of the playground: sent, read as it arrives, and looked up when it has ended. */

import { viewBlock } from '@gateway/admin/sections';
import type { Conversation, Exchange } from '@gateway/admin/types';
import { signal } from '@preact/signals';
import { call } from '../lib/data.ts';
import { type ModelRequest, sendRequest } from '../lib/send.ts';
import { describeError } from '../lib/session.ts';

/** What is known of a request. */
export interface RunState {
  readonly is: 'sending' | 'streaming' | 'ended' | 'stopped' | 'failed';
  readonly sections: Conversation['response'];
  readonly stopReason: string | null;
  readonly error: string | null;
  readonly exchange: string | null;
  readonly bytes: number;
  /** Tokens and cost, when the exchange is settled. */
  readonly row: Exchange | null;
}

const BEGUN: RunState = {
  is: 'sending',
  sections: [],
  stopReason: null,
  error: null,
  exchange: null,
  bytes: 0,
  row: null,
};

/** How often a response is drawn while it arrives. */
const DRAW_MS = 80;

/** A request that runs. */
export class Run {
  readonly state = signal<RunState>(BEGUN);
  readonly #abort = new AbortController();
  #drawnAt = 0;

  /** Sends the request. Never rejects. */
  async start(request: ModelRequest, protocol: string): Promise<void> {
    const { signal: aborted } = this.#abort;
    try {
      const [{ createReader }, sent] = await Promise.all([import('../lib/core.ts'), sendRequest(request, aborted)]);
      const { exchange, response } = sent;
      this.#set({ is: 'streaming', exchange });
      if (response.ok) await this.#read(response, createReader(protocol));
      else this.#set({ is: 'failed', error: describeBody(response.status, await response.text()) });
    } catch (error) {
      this.#set(aborted.aborted ? { is: 'stopped' } : { is: 'failed', error: describeError(error) });
    }
    await this.#settle();
  }

  /** Ends the request; what has arrived stays. */
  stop(): void {
    this.#abort.abort();
  }

  #set(change: Partial<RunState>): void {
    this.state.value = { ...this.state.value, ...change };
  }

  async #read(response: Response, reader: Reader): Promise<void> {
    const body = response.body?.getReader();
    for (let part = await body?.read(); part && !part.done; part = await body?.read()) {
      reader.push(part.value);
      const bytes = this.state.value.bytes + part.value.length;
      const now = performance.now();
      if (now - this.#drawnAt < DRAW_MS) this.#set({ bytes });
      else {
        this.#drawnAt = now;
        this.#set({ bytes, ...view(reader.snapshot()) });
      }
    }
    this.#set({ is: 'ended', ...view(reader.finish()) });
  }

  /** The row of the ledger: it is settled when the response has ended, and a moment later when the request was stopped. */
  async #settle(): Promise<void> {
    const { exchange: id } = this.state.value;
    for (let tries = 0; id !== null && tries < 20; tries++) {
      const found = await call('GET exchanges/{id}', { id }).catch(() => undefined);
      if (found && found.exchange.outcome !== 'live') {
        this.#set({ row: found.exchange });
        return;
      }
      await new Promise((resolve) => setTimeout(resolve, 100 * (tries + 1)));
    }
  }
}

type Reader = ReturnType<typeof import('../lib/core.ts')['createReader']>;

const view = ({ message, error }: ReturnType<Reader['finish']>): Pick<RunState, 'sections' | 'stopReason' | 'error'> => ({
  sections: message.content.flatMap((block) => viewBlock(block, 'assistant')),
  stopReason: message.stop_reason,
  error: error?.message ?? null,
});

/** The message of an error response, whatever its protocol; else its text. */
function describeBody(status: number, text: string): string {
  const found = /"message"\s*:\s*("(?:[^"\\]|\\.)*")/.exec(text)?.[1];
  const message: unknown = found === undefined ? text : JSON.parse(found);
  return `${status}: ${String(message).slice(0, 2000)}`;
}
