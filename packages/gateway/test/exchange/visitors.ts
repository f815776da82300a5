/** Clients that send, wait, stop reading and leave, and keep what they have received. */
import { type AccumulatedMessage, PROTOCOLS } from '@sluice/core';
import { readStream, readWhole } from '../gateway/dialects.ts';
import { parseReply, type Reply } from '../gateway/http.ts';
import type { RawClient } from '../gateway/raw-client.ts';
import { askText } from '../gateway/start.ts';
import type { ClientProtocol, RequestPlan } from './schedule.ts';

/** A request that a client has sent. */
export interface SentRequest {
  /** Its number in the schedule. */
  readonly number: number;
  /** What it asks: equal requests ask the same. */
  readonly message: number;
  readonly plan: RequestPlan;
}

/** How the client's side of a connection ended. */
type Leaving = 'reset' | 'closed' | 'killed';

/** One connection of a client. */
export class Visit {
  readonly client: RawClient;
  readonly sent: SentRequest[] = [];
  leaving: Leaving | undefined;
  isHalfClosed = false;
  /** The gateway was stopped or the key revoked while the connection was open. */
  isDisturbed = false;
  /** The responses in this number of bytes. */
  #read: { bytes: number; replies: readonly Reply[] } = { bytes: 0, replies: [] };

  constructor(client: RawClient) {
    this.client = client;
  }

  send(request: SentRequest, key: string): void {
    this.sent.push(request);
    const text = buildRequest(request, key);
    this.client.send(request.plan.isPartial ? text.slice(0, -5) : text);
  }

  /** Whether a request can follow on this connection. */
  get isUsable(): boolean {
    return !this.leaving && !this.isHalfClosed && !this.client.isClosed && !this.sent.some(({ plan }) => plan.isPartial);
  }

  reset(): void {
    this.leaving ??= 'reset';
    this.client.reset();
  }

  close(): void {
    this.leaving ??= 'closed';
    this.client.leave();
  }

  halfClose(): void {
    this.isHalfClosed = true;
    this.client.halfClose();
  }

  resume(): void {
    this.client.socket.resume();
  }

  /** The responses so far, in the order of the requests. */
  get replies(): readonly Reply[] {
    const { bytesRead } = this.client.socket;
    if (this.#read.bytes === bytesRead) return this.#read.replies;
    const replies: Reply[] = [];
    for (let bytes = this.client.received; bytes.length > 0; ) {
      const reply = parseReply(bytes);
      if (!reply) break;
      replies.push(reply);
      bytes = reply.rest;
    }
    this.#read = { bytes: this.client.received.length, replies };
    return replies;
  }

  /** Nothing more is to come. */
  get isOver(): boolean {
    if (this.leaving || this.client.isClosed) return true;
    return this.replies.filter(({ isWhole }) => isWhole).length >= this.sent.filter(({ plan }) => !plan.isPartial).length;
  }
}

const MESSAGES = (text: string): object => ({ max_tokens: 99, messages: [{ role: 'user', content: text }] });

const SAYINGS = {
  'openai-chat': MESSAGES,
  'anthropic-messages': MESSAGES,
  'openai-responses': (text) => ({ max_output_tokens: 99, input: text }),
} as const satisfies Record<ClientProtocol, (text: string) => object>;

const buildRequest = ({ number, message, plan }: SentRequest, key: string): string =>
  askText({
    client: plan.client,
    model: 'm',
    stream: plan.isStream,
    headers: {
      authorization: `Bearer ${key}`,
      'x-sluice-tags': `request=${number}`,
      ...(plan.isKeyed && plan.topic !== undefined && { 'idempotency-key': `topic-${plan.topic}` }),
    },
    body: { ...SAYINGS[plan.client](`Say something about #${message}#.`), ...(plan.isBackground && { background: true }) },
  });

/** What a client reads in a response with status 200. */
export interface ReadReply extends Pick<AccumulatedMessage, 'text' | 'complete'> {
  hasError: boolean;
  /** How often the response says that it is over. */
  ends: number;
}

const END_MARKS = {
  'openai-chat': /^data: \[DONE\]/gm,
  'anthropic-messages': /^event: message_stop/gm,
  'openai-responses': /^event: response\.(?:completed|incomplete|failed)/gm,
} as const satisfies Record<ClientProtocol, RegExp>;

export function readReply({ plan }: SentRequest, { body, isWhole }: Reply): ReadReply {
  if (!plan.isStream) {
    // The client of a background response only receives that it has begun.
    if (!isWhole || plan.isBackground) return { text: '', complete: false, hasError: false, ends: 0 };
    const { content } = readWhole(plan.client, body);
    const text = content.map((block) => (block.type === 'text' ? block.text : '')).join('');
    return { text, complete: true, hasError: false, ends: 1 };
  }
  const { text, complete, error } = readStream(PROTOCOLS[plan.client].id, body);
  const ends = body.toString('utf8').match(END_MARKS[plan.client])?.length ?? 0;
  return { text, complete: complete && error === null, hasError: error !== null, ends };
}
