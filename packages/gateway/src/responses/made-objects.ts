/** Remembers the objects that providers make while they respond to a conversation: containers, and files of their tools. */

import { type ClientRequest, createSseDecoder, type SseDecoder } from '@sluice/core';
import { findConvertedFields, readIds } from '../exchange/object-fields.ts';
import type { ExchangeState, PreparedState } from '../exchange/state.ts';
import type { Candidate, Reply } from '../exchange/types.ts';
import { isJson, parse } from './items.ts';
import { rememberObjects } from './objects.ts';
import type { ResponseStore } from './store.ts';

/** Whether the provider may make objects while it responds: its tools run in a container, and write files. */
export function mayMakeObjects(body: unknown): boolean {
  if (!isJson(body)) return false;
  const { container, tools } = body;
  const isRunner = (tool: unknown): boolean =>
    isJson(tool) && typeof tool['type'] === 'string' && tool['type'].startsWith('code_execution');
  return (container !== undefined && container !== null) || (Array.isArray(tools) && tools.some(isRunner));
}

/** The state of a request of Anthropic Messages that may make objects. */
export class MadeObjects implements ExchangeState {
  readonly #wire: ClientRequest;
  readonly #store: ResponseStore;
  readonly #caller: string;
  readonly #decoder: SseDecoder;
  readonly mayReuse = false;
  readonly convertedEnvelope = {};

  constructor(wire: ClientRequest, { store, caller, eventBytes }: MadeObjectsParts) {
    this.#wire = wire;
    this.#store = store;
    this.#caller = caller;
    this.#decoder = createSseDecoder({ maxLineBytes: eventBytes, maxEventBytes: eventBytes });
  }

  prepare(): PreparedState {
    return { wire: this.#wire };
  }

  sent(bytes: Uint8Array, source: Candidate | undefined): void {
    // Deltas of text are most of a stream.
    for (const { data } of this.#decoder.push(bytes)) if (MARK.test(data)) this.#remember(parse(data), source);
  }

  beforeEnd(held: readonly Uint8Array[], source: Candidate | undefined): undefined {
    for (const bytes of held) this.sent(bytes, source);
  }

  beforeReply({ status, body }: Reply, source: Candidate | undefined): undefined {
    if (status < 400) this.#remember(body, source);
  }

  #remember(value: unknown, source: Candidate | undefined): void {
    if (source?.provider.protocol !== PROTOCOL) return;
    const made = readIds(PROTOCOL, findConvertedFields(PROTOCOL, 'CHAT').makes ?? [], value);
    rememberObjects(this.#store, made, this.#caller, source.provider.id);
  }
}

const PROTOCOL = 'anthropic-messages';

/** Names of fields, as the provider writes them: an event without them has no object. */
const MARK = /container|file_id/;

interface MadeObjectsParts {
  store: ResponseStore;
  caller: string;
  eventBytes: number;
}
