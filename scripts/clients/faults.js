// Ways to end a stream in the middle, and a proxy before the scripted upstream that ends the first stream of a client in one of them.
import { once } from 'node:events';
import { createServer, request } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';

/** Appears in every error event, so that a client's output tells whether it showed the error. */
export const MARK = 'scripted failure';

/** Time for a client to read what was written before something else follows. */
const READ_MS = 100;

const sse = (data, event) => `${event === undefined ? '' : `event: ${event}\n`}data: ${JSON.stringify(data)}\n\n`;

/** The message of the gateway for a lost connection: some clients retry by these words. */
const HANG_UP = `${MARK}: socket hang up`;

const chat = (code, message = MARK) => sse({ error: { message, type: 'server_error', code, param: null } });
const anthropic = (type, message = MARK) => sse({ type: 'error', error: { type, message } }, 'error');

/** As the gateway writes it: the error, then the failed response. */
function responses(code, message = MARK) {
  const response = { id: 'resp_1', object: 'response', created_at: 0, model: 'mock-model', status: 'failed', output: [] };
  const error = { type: 'server_error', code, message, param: null };
  return (
    sse({ ...error, type: 'error', sequence_number: 9, error }, 'error') +
    sse(
      { type: 'response.failed', sequence_number: 10, response: { ...response, error: { code, message: MARK } } },
      'response.failed',
    )
  );
}

const GEMINI_ERROR = { error: { code: 502, message: HANG_UP, status: 'INTERNAL' } };

/** The error event of each protocol: `gateway` is what the gateway writes for a lost connection, the others are what was tried. */
const EVENTS = {
  'openai-chat': {
    plain: chat(null),
    busy: chat('overloaded'),
    reset: chat('ECONNRESET'),
    gateway: chat('ECONNRESET', HANG_UP),
  },
  'anthropic-messages': {
    plain: anthropic('api_error'),
    busy: anthropic('overloaded_error'),
    reset: anthropic('timeout_error'),
    gateway: anthropic('overloaded_error', HANG_UP),
  },
  'openai-responses': {
    plain: responses('server_error'),
    busy: responses('server_is_overloaded'),
    reset: responses('ECONNRESET'),
    gateway: responses('ECONNRESET', HANG_UP),
  },
  gemini: { plain: sse(GEMINI_ERROR), bare: `${JSON.stringify(GEMINI_ERROR)}\r\n` },
};

const ALL = Object.keys(EVENTS);
const GEMINI = ['gemini'];
const OTHERS = ALL.filter((protocol) => protocol !== 'gemini');

/** `steps`: what happens after the last regular event, in order. */
export const FAULTS = [
  { id: 'cut', what: 'connection closed without an error event', in: ALL, steps: ['pause', 'cut'] },
  { id: 'plain-end', what: 'error event, then the end of the body', in: ALL, steps: ['plain', 'end'] },
  { id: 'busy-end', what: 'error event with an overloaded error', in: OTHERS, steps: ['busy', 'end'] },
  { id: 'reset-end', what: 'error event with code ECONNRESET (Anthropic: timeout_error)', in: OTHERS, steps: ['reset', 'end'] },
  {
    id: 'gateway-end',
    what: '**as the gateway writes it**: code ECONNRESET (Anthropic: overloaded_error), "socket hang up"',
    in: OTHERS,
    steps: ['gateway', 'end'],
  },
  { id: 'plain-pause-cut', what: 'error event, then a closed connection', in: ALL, steps: ['plain', 'pause', 'cut'] },
  { id: 'bare-end', what: 'error as bare JSON, then the end of the body', in: GEMINI, steps: ['bare', 'end'] },
  { id: 'pause-bare-end', what: 'pause, error as bare JSON, then the end', in: GEMINI, steps: ['pause', 'bare', 'end'] },
  {
    id: 'plain-pause-bare-end',
    what: '**as the gateway writes it**: error event, pause, bare JSON, then the end',
    in: GEMINI,
    steps: ['plain', 'pause', 'bare', 'end'],
  },
];

function perform(step, response, protocol) {
  switch (step) {
    case 'end':
      return response.end();
    case 'cut':
      return response.destroy();
    case 'pause':
      return sleep(READ_MS);
    default:
      return response.write(EVENTS[protocol][step]);
  }
}

/** Regular events before the fault: some text, and no tool call. */
const EVENTS_BEFORE = { 'openai-chat': 4, 'anthropic-messages': 5, 'openai-responses': 6, gemini: 3 };

/** Starts a proxy that ends the first stream with tools in a fault; everything else passes. */
export async function startFaultyProxy({ upstream, protocol, fault }) {
  let hasFailed = false;
  const server = createServer(async (incoming, response) => {
    const body = Buffer.concat(await incoming.toArray());
    const reply = await forward(upstream, incoming, body);
    const text = Buffer.concat(await reply.toArray());
    const fails = !hasFailed && isStream(reply) && body.includes('"tools"');
    response.writeHead(reply.statusCode, { 'content-type': reply.headers['content-type'] ?? 'text/plain' });
    if (!fails) {
      response.end(text);
      return;
    }
    hasFailed = true;
    const events = text
      .toString()
      .split(/(?<=\n\n)/)
      .slice(0, EVENTS_BEFORE[protocol]);
    for (const event of events) response.write(event);
    for (const step of fault.steps) await perform(step, response, protocol);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    url: `http://127.0.0.1:${server.address().port}`,
    hasFailed: () => hasFailed,
    close: async () => {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
}

const isStream = (reply) => (reply.headers['content-type'] ?? '').startsWith('text/event-stream');

async function forward(upstream, incoming, body) {
  const headers = { ...incoming.headers, 'content-length': String(body.length) };
  delete headers['transfer-encoding'];
  const outgoing = request(upstream + incoming.url, { method: incoming.method, headers });
  outgoing.end(body);
  const [reply] = await once(outgoing, 'response');
  return reply;
}
