import { once } from 'node:events';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { type Clock, REAL_CLOCK, sleep } from '../../src/http/clock.ts';

// The scripted upstream of the Failover Bench: an OpenAI Chat server whose model names are faults.

/** The only answer that the wall gives: 60 words. */
export const ANSWER = [
  'A sluice is a gate in a channel that lets water pass or holds it back.',
  'Every morning the keeper walks along the bank, looks at the level of the river and turns the wheel.',
  'When the stream above fails he opens the second channel,',
  'and the mill below does not notice that its water has come from another river.',
].join(' ');

/** Each with the space before it. */
const splitWords = (text: string): string[] => text.match(/\s*\S+/g) ?? [];

const WORDS = splitWords(ANSWER);

const USAGE = { prompt_tokens: 12, completion_tokens: 75, total_tokens: 87 };

/** Times of the faults, in milliseconds. */
export const WALL_TIMES = {
  /** `Retry-After` of a 429. */
  retryAfter: 2000,
  /** Until the first word of a slow model. */
  firstWord: 40_000,
  /** How long the model that flaps is down. */
  down: 60_000,
};

/** A request as the wall saw it. */
export interface WallRequest {
  model: string;
  /** By the wall's clock. */
  at: number;
  /** What tells the requests of one client request from others: `ask-N` in the text. */
  mark: string | undefined;
  /** The text of a trailing assistant message. */
  prefill: string | undefined;
}

interface Turn extends WallRequest {
  response: ServerResponse;
  /** The number of this request among those for its model, from 1. */
  number: number;
}

type Fault = (turn: Turn, wall: Wall) => void | Promise<void>;

/** Starts on a port of the system's choice. */
export class Wall {
  readonly #server: Server;
  readonly #clock: Clock;
  readonly #startedAt: number;
  /** In the order in which they came. */
  requests: WallRequest[] = [];

  private constructor(server: Server, clock: Clock) {
    this.#server = server;
    this.#clock = clock;
    this.#startedAt = clock.now();
  }

  static async start(clock: Clock = REAL_CLOCK): Promise<Wall> {
    const server = createServer({ keepAlive: true, noDelay: true });
    const wall = new Wall(server, clock);
    server.on('request', (request, response) => void wall.#serve(request, response));
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    return wall;
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  /** Milliseconds since the start. */
  get age(): number {
    return this.#clock.now() - this.#startedAt;
  }

  sleep(ms: number): Promise<void> {
    return sleep(this.#clock, ms);
  }

  async stop(): Promise<void> {
    this.#server.closeAllConnections();
    this.#server.close();
    await once(this.#server, 'close');
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    response.on('error', () => undefined);
    const { model, messages } = await readBody(request);
    const last = messages.at(-1);
    const seen: WallRequest = {
      model,
      at: this.#clock.now(),
      mark: /ask-\d+/.exec(JSON.stringify(messages))?.[0],
      prefill: last?.role === 'assistant' ? readText(last.content) : undefined,
    };
    this.requests.push(seen);
    const number = this.requests.filter((one) => one.model === model).length;
    await (FAULTS[model] ?? answer)({ ...seen, response, number }, this);
  }
}

async function readBody(request: IncomingMessage): Promise<{ model: string; messages: { role: string; content: unknown }[] }> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk);
  return JSON.parse(Buffer.concat(chunks).toString('utf8'));
}

const readText = (content: unknown): string =>
  typeof content === 'string' ? content : Array.isArray(content) ? content.map(({ text = '' }) => text).join('') : '';

function refuse({ response }: Turn, status: number, error: object, headers: Record<string, string> = {}): void {
  response.writeHead(status, { 'content-type': 'application/json', ...headers });
  response.end(JSON.stringify({ error }));
}

const chunkOf = (model: string, choices: object[], more: object = {}): string =>
  `data: ${JSON.stringify({ id: 'chatcmpl-wall', object: 'chat.completion.chunk', created: 1, model, choices, ...more })}\n\n`;

function open({ response, model }: Turn): void {
  response.writeHead(200, { 'content-type': 'text/event-stream' });
  response.flushHeaders();
  response.write(chunkOf(model, [{ index: 0, delta: { role: 'assistant', content: '' }, finish_reason: null }]));
}

function say({ response, model }: Turn, words: readonly string[]): void {
  for (const word of words) response.write(chunkOf(model, [{ index: 0, delta: { content: word }, finish_reason: null }]));
}

function finish({ response, model }: Turn): void {
  response.write(chunkOf(model, [{ index: 0, delta: {}, finish_reason: 'stop' }]));
  response.write(chunkOf(model, [], { usage: USAGE }));
}

const close = ({ response }: Turn): void => void response.end('data: [DONE]\n\n');

/** The whole answer, or the rest of it after a prefill. */
const answer: Fault = (turn) => {
  const { prefill = '' } = turn;
  const rest = ANSWER.startsWith(prefill) ? ANSWER.slice(prefill.length) : ANSWER;
  open(turn);
  say(turn, splitWords(rest));
  finish(turn);
  close(turn);
};

/** What has been written must leave before the reset. */
async function reset({ response }: Turn): Promise<void> {
  for (let turn = 0; turn < 20; turn++) await new Promise((resolve) => setImmediate(resolve));
  response.socket?.resetAndDestroy();
}

const cutAtWord =
  (word: number): Fault =>
  async (turn) => {
    open(turn);
    say(turn, WORDS.slice(0, word));
    await reset(turn);
  };

const limited: Fault = (turn) =>
  refuse(
    turn,
    429,
    { message: 'Rate limit reached', type: 'rate_limit_error', code: 'rate_limit_exceeded' },
    {
      'retry-after': String(WALL_TIMES.retryAfter / 1000),
    },
  );

const unavailable: Fault = (turn) => refuse(turn, 503, { message: 'Service unavailable', type: 'server_error' });

const FAULTS: Readonly<Record<string, Fault>> = {
  'fb-s01-429-retry-after': (turn, wall) => {
    const first = wall.requests.find(({ model }) => model === turn.model);
    const isEarly = turn.at < (first?.at ?? 0) + WALL_TIMES.retryAfter;
    return isEarly ? limited(turn, wall) : answer(turn, wall);
  },
  'fb-s02-429-persistent': limited,
  'fb-s03-500-then-200': (turn, wall) =>
    turn.number === 1 ? refuse(turn, 500, { message: 'Internal error', type: 'server_error' }) : answer(turn, wall),
  'fb-s04-503-persistent': unavailable,
  'fb-s05-reset': (turn, wall) => (turn.number === 1 ? reset(turn) : answer(turn, wall)),
  'fb-s06-no-response': () => undefined,
  'fb-s07-slow-ttft': async (turn, wall) => {
    turn.response.writeHead(200, { 'content-type': 'text/event-stream' });
    turn.response.flushHeaders();
    await wall.sleep(WALL_TIMES.firstWord);
    say(turn, WORDS);
    finish(turn);
    close(turn);
  },
  'fb-s08-stream-cut': cutAtWord(40),
  'fb-s09-stream-stall': (turn) => {
    open(turn);
    say(turn, WORDS.slice(0, 20));
  },
  'fb-s10-malformed-chunk': (turn) => {
    open(turn);
    say(turn, WORDS.slice(0, 9));
    // The tenth word is lost in a chunk that ends in its middle.
    turn.response.write(`data: {"id":"chatcmpl-wall","choices":[{"index":0,"delta":{"content":"${WORDS[9]}\n\n`);
    say(turn, WORDS.slice(10));
    finish(turn);
    close(turn);
  },
  'fb-s11-no-done': (turn) => {
    open(turn);
    say(turn, WORDS);
    finish(turn);
  },
  'fb-s12-context-length': (turn) =>
    refuse(turn, 400, {
      message: "This model's maximum context length is 8192 tokens. However, your messages resulted in 9000 tokens.",
      type: 'invalid_request_error',
      param: 'messages',
      code: 'context_length_exceeded',
    }),
  'fb-s13-content-filter': (turn) =>
    refuse(turn, 400, {
      message: 'The response was filtered due to the prompt triggering the content management policy.',
      type: null,
      param: 'prompt',
      code: 'content_filter',
    }),
  'fb-s14-stream-cut': cutAtWord(40),
  'fb-s15-flap': (turn, wall) => (wall.age < WALL_TIMES.down ? unavailable(turn, wall) : answer(turn, wall)),
  'fb-s16-503-persistent': unavailable,
  'fb-ok-noprefill': (turn, wall) =>
    turn.prefill === undefined
      ? answer(turn, wall)
      : refuse(turn, 400, {
          message: 'This model does not support assistant message prefill. The conversation must end with a user message.',
          type: 'invalid_request_error',
        }),
};
