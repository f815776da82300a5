/** Upstreams that follow the plans of requests, and keep their own account of what they served. */
import type { CanonicalUsage, ProtocolId } from '@sluice/core';
import type { Clock } from '../../src/http/clock.ts';
import { ANSWER, errorFrames, framesOf, wholeOf } from '../gateway/dialects.ts';
import { Faultd, type Script, type Served } from '../gateway/faultd.ts';
import { chunk, head, LAST_CHUNK, streamHead, whole } from '../gateway/http.ts';
import type { Behaviour, Name, RequestPlan } from './schedule.ts';

const PROTOCOLS = { one: 'openai-chat', two: 'anthropic-messages' } as const satisfies Record<Name, ProtocolId>;

/** Characters after each word of a flood: more than the buffers of the gateway take at once. */
const FLOOD = 400_000;

/** What an upstream knows of one request that it has received. */
export interface Account {
  readonly id: string;
  readonly upstream: Name;
  readonly message: number;
  readonly isStream: boolean;
  readonly text: string;
  /** What its response reports. */
  readonly usage: CanonicalUsage;
  /** Sent. */
  status: number | undefined;
  /** Content was sent. */
  hasContent: boolean;
  /** All of the response was sent, with its usage. */
  isWhole: boolean;
  readonly served: Served;
}

/** Two upstreams of one gateway. */
export class Upstreams {
  readonly one: Faultd;
  readonly two: Faultd;
  accounts: Account[] = [];
  readonly #plans = new Map<number, RequestPlan>();
  #served = 0;

  private constructor(one: Faultd, two: Faultd) {
    this.one = one;
    this.two = two;
    one.playBy((served) => this.#answer('one', served));
    two.playBy((served) => this.#answer('two', served));
  }

  static async start(clock: Clock): Promise<Upstreams> {
    return new Upstreams(await Faultd.start(clock), await Faultd.start(clock));
  }

  /** What is done with the requests that have this message; the first plan counts. */
  plan(message: number, plan: RequestPlan): void {
    if (!this.#plans.has(message)) this.#plans.set(message, plan);
  }

  /** Forgets everything before. */
  reset(): void {
    for (const { served } of [this.one, this.two]) served.length = 0;
    this.accounts = [];
    this.#plans.clear();
    this.#served = 0;
  }

  get openSockets(): number {
    return this.one.openSockets + this.two.openSockets;
  }

  /** Requests that are still being served on an open connection. */
  get running(): Account[] {
    return this.accounts.filter(({ served }) => !served.isDone && !served.isClosed);
  }

  async stop(): Promise<void> {
    await this.one.stop();
    await this.two.stop();
  }

  #answer(upstream: Name, served: Served): Script {
    const message = Number(/#(\d+)#/.exec(served.body)?.[1]);
    const count = this.accounts.filter((account) => account.upstream === upstream && account.message === message).length;
    const behaviour = this.#plans.get(message)?.[upstream].at(count) ?? this.#plans.get(message)?.[upstream].at(-1);
    if (!behaviour) return [{ send: head(404, { 'content-length': '0' }) }];
    const number = ++this.#served;
    const words = [1, 2, 3, 4, 5, 6].map((index) => `${upstream === 'one' ? 'a' : 'b'}${message}.${count}-${index}`);
    const pad = behaviour.is === 'flood' ? '_'.repeat(FLOOD) : '';
    const account: Account = {
      id: `served-${number}`,
      upstream,
      message,
      isStream: JSON.parse(served.body).stream === true,
      text: words.map((word) => word + pad).join(' '),
      usage: { input_tokens: 1000 + number, output_tokens: 7 + (number % 13) },
      status: undefined,
      hasContent: false,
      isWhole: false,
      served,
    };
    this.accounts.push(account);
    return buildScript(account, behaviour);
  }
}

function buildScript(account: Account, way: Behaviour): Script {
  const before: Script = way.ms > 0 ? [{ wait: way.ms }] : [];
  if (way.is === 'refused') return [...before, ...refuse(account, way)];
  const parts = account.isStream ? listStreamParts(account) : listWholeParts(account);
  const opening = setStatus(account, 200);
  // A second response is only known as one if it comes before the connection is used again.
  if (way.is === 'twice')
    parts.push({ bytes: Buffer.concat([...parts.splice(-1), ...parts].map(toBytes)), has: { isWhole: true } });
  const send = (count: number): Script =>
    parts
      .slice(0, count)
      .flatMap(
        ({ bytes, has }, index): Script => [
          { run: () => void Object.assign(account, has) },
          { send: bytes },
          ...(way.gap > 0 && index < parts.length - 1 ? [{ wait: way.gap }] : []),
        ],
      );
  if (way.is !== 'cut') return [...before, opening, ...send(parts.length)];
  const count = Math.floor((way.sixths * (parts.length - 1)) / 6);
  return [...before, ...(count > 0 ? [opening] : []), ...send(count), ...cut(account, way.how, count > 0)];
}

const setStatus = (account: Account, status: number): Script[number] => ({
  run: () => void Object.assign(account, { status }),
});

function cut({ upstream, isStream }: Account, how: Extract<Behaviour, { is: 'cut' }>['how'], hasBegun: boolean): Script {
  switch (how) {
    case 'reset':
      return [{ wait: 1 }, { reset: true }];
    case 'end':
      return [{ fin: true }];
    case 'silence':
      return [{ hang: true }];
    case 'error':
      return isStream && hasBegun
        ? [{ send: chunk(errorFrames(PROTOCOLS[upstream], OVERLOADED)) }, { send: LAST_CHUNK }]
        : [{ wait: 1 }, { reset: true }];
    default:
      return how satisfies never;
  }
}

const OVERLOADED = { code: 'OVERLOADED', message: 'no', http_status: 529 } as const;

function refuse(account: Account, { status, after }: Extract<Behaviour, { is: 'refused' }>): Script {
  const headers = { 'x-request-id': account.id, ...(after !== undefined && { 'retry-after': String(after) }) };
  const body = JSON.stringify({ type: 'error', error: { type: 'error', message: 'no' } });
  return [setStatus(account, status), { send: whole(status, body, headers) }];
}

/** Bytes of a response, and what the upstream has sent with them. */
interface Part {
  bytes: string | Uint8Array;
  has: Partial<Pick<Account, 'hasContent' | 'isWhole'>>;
}

const toBytes = ({ bytes }: Part): Buffer => Buffer.from(bytes);

function listStreamParts({ id, upstream, text, usage }: Account): Part[] {
  const frames = framesOf(PROTOCOLS[upstream], { ...ANSWER, content: [{ type: 'text', text }], usage });
  // The usage is in one of the last frames; what a client cannot have is not counted as sent.
  const ending = frames.findLastIndex((frame) => frame.includes(String(usage.output_tokens)) && frame.includes('tokens'));
  return [
    { bytes: streamHead({ 'x-request-id': id }), has: {} },
    ...frames.map((frame, index) => ({
      bytes: chunk(frame),
      has: { ...(/[ab]\d+\.\d+-\d/.test(frame) && { hasContent: true }), ...(index >= ending && { isWhole: true }) },
    })),
    { bytes: LAST_CHUNK, has: {} },
  ];
}

function listWholeParts({ id, upstream, text, usage }: Account): Part[] {
  const body = wholeOf(PROTOCOLS[upstream], { ...ANSWER, content: [{ type: 'text', text }], usage });
  const bytes = whole(200, body, { 'x-request-id': id });
  const start = bytes.indexOf('\r\n\r\n') + 4;
  const size = Math.ceil((bytes.length - start) / 5);
  const ends = [start, ...[1, 2, 3, 4].map((part) => start + part * size), bytes.length];
  return ends.map((end, index) => ({
    bytes: bytes.subarray(index === 0 ? 0 : ends[index - 1], end),
    has: { ...(index > 0 && { hasContent: true }), ...(index === ends.length - 1 && { isWhole: true }) },
  }));
}
