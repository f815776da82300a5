import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { ProtocolId } from '@sluice/core';
import { CODECS } from '@sluice/core/engine';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { readCapturedRequests, readManifest, readRecording } from '../../../../test/corpus.ts';
import { framesOf, wholeOf } from './dialects.ts';
import { type Started, startGateway } from './start.ts';

// Do no harm: an upstream of which nothing is known gets what the client sent.

type Json = Record<string, unknown>;

interface Sent {
  name: string;
  protocol: ProtocolId;
  headers: Record<string, string>;
  body: Json;
  model: string;
  isStream: boolean;
}

const PROTOCOLS = Object.keys(CODECS) as ProtocolId[]; // the keys of a closed table

const isJson = (value: unknown): value is Json => typeof value === 'object' && value !== null && !Array.isArray(value);

/** The requests of the recordings, each once. */
function recorded(): Sent[] {
  const rows = new Map(readManifest().flatMap((row) => (row.request === undefined ? [] : [[row.request, row] as const])));
  return [...rows.entries()].flatMap(([file, { protocol, model, stream }]) => {
    const body: unknown = JSON.parse(readRecording(file).toString());
    const known = PROTOCOLS.find((id) => id === protocol);
    if (!known || !isJson(body)) return [];
    const isStream = known === 'gemini' ? stream : body['stream'] === true;
    return [{ name: file.replace('.request.json', ''), protocol: known, headers: {}, body, model, isStream }];
  });
}

/** The requests of real clients. */
function captured(): Sent[] {
  return readCapturedRequests().flatMap(({ name, path, headers, body }) => {
    const protocol = PROTOCOLS.find((id) => CODECS[id].detectInterface(path, headers) === 'CHAT');
    if (!protocol || !isJson(body)) return [];
    const named = protocol === 'gemini' ? /models\/([^:/]+):/.exec(path)?.[1] : body['model'];
    const isStream = protocol === 'gemini' ? path.includes(':stream') : body['stream'] === true;
    const model = typeof named === 'string' ? named : 'mock-model';
    return [{ name, protocol, headers, body, model, isStream }];
  });
}

const REQUESTS: readonly Sent[] = [...recorded(), ...captured()];

/** An upstream that speaks all four protocols and keeps what it was sent, and its response. */
class Upstream {
  readonly #server: Server;
  last: { body: Json; text: string; headers: Record<string, unknown>; reply: string } | undefined;

  constructor() {
    this.#server = createServer((request, response) => {
      const chunks: Buffer[] = [];
      request.on('data', (chunk: Buffer) => chunks.push(chunk));
      request.on('end', () => {
        const path = request.url ?? '';
        const text = Buffer.concat(chunks).toString();
        const body: Json = JSON.parse(text);
        const protocol = PROTOCOLS.find((id) => path.startsWith(`/${id}/`)) ?? 'openai-chat';
        const isStream = protocol === 'gemini' ? path.includes(':stream') : body['stream'] === true;
        const reply = isStream ? framesOf(protocol).join('') : wholeOf(protocol);
        this.last = { body, text, headers: request.headers, reply };
        response.setHeader('content-type', isStream ? 'text/event-stream' : 'application/json');
        response.end(reply);
      });
    });
  }

  async start(): Promise<string> {
    await new Promise<void>((resolve) => this.#server.listen(0, '127.0.0.1', resolve));
    const { port } = this.#server.address() as AddressInfo; // a TCP server has one
    return `http://127.0.0.1:${port}`;
  }

  async stop(): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }
}

const PATHS = {
  'openai-chat': () => '/v1/chat/completions',
  'anthropic-messages': () => '/v1/messages',
  'openai-responses': () => '/v1/responses',
  gemini: (model, isStream) =>
    `/v1beta/models/${encodeURIComponent(model)}:${isStream ? 'streamGenerateContent?alt=sse' : 'generateContent'}`,
} as const satisfies Record<ProtocolId, (model: string, isStream: boolean) => string>;

const upstream = new Upstream();
let gateway: Started;

beforeAll(async () => {
  const url = await upstream.start();
  gateway = await startGateway({
    config: {
      responses: { store: 'off' },
      providers: Object.fromEntries(
        PROTOCOLS.map((protocol) => [`own-${protocol}`, { protocol, base_url: `${url}/${protocol}/v1`, api_key: 'k' }]),
      ),
      limits: { request_depth: 200, retries_per_provider: 0 },
    },
  });
});

afterAll(async () => {
  await gateway.close();
  await upstream.stop();
});

const SPOKEN = ['anthropic-version', 'anthropic-beta'];

interface Exchange {
  status: number;
  sent: Json;
  reply: string;
}

async function send({ protocol, headers, body, isStream }: Sent, model: string): Promise<Exchange> {
  const name = `own-${protocol}/${model}`;
  const sent: Json = protocol === 'gemini' ? body : { ...body, model: name };
  const spoken = Object.fromEntries(SPOKEN.flatMap((header) => (headers[header] ? [[header, headers[header]]] : [])));
  upstream.last = undefined;
  const response = await fetch(gateway.url + PATHS[protocol](name, isStream), {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...spoken },
    body: JSON.stringify(sent),
  });
  return { status: response.status, sent, reply: await response.text() };
}

/** What the upstream has to see: what was sent, with its own name of the model, and asked for usage where chat streams. */
function expected({ protocol, isStream }: Sent, sent: Json, model: string): Json {
  const named = sent['model'] === undefined ? sent : { ...sent, model };
  if (protocol !== 'openai-chat' || !isStream) return named;
  const options = isJson(sent['stream_options']) ? sent['stream_options'] : {};
  return { ...named, stream_options: { ...options, include_usage: true } };
}

/** A chunk with nothing but usage, which clients that did not request it do not get. */
const USAGE_CHUNK = /data: \{[^\n]*"choices":\[\],"usage":[^\n]*\n\n/;

/** Bodies of other APIs: the gateway finds neither the model nor what the client requested in them. */
const OTHER_REQUESTS: Readonly<Record<string, string>> = {
  'openai-chat/huggingface-71a7f7cc': 'has no messages',
  'gemini/google-03c2ad7a': 'is a request for embeddings',
};

/** What the client has to see: the same bytes, with its own name of the model. */
function expectedReply({ protocol, isStream }: Sent, sent: Json, name: string): string {
  const reply = upstream.last?.reply ?? '';
  const options = sent['stream_options'];
  const hidesUsage = protocol === 'openai-chat' && isStream && !(isJson(options) && options['include_usage'] === true);
  return (hidesUsage ? reply.replace(USAGE_CHUNK, '') : reply).replaceAll(
    /"(model|modelVersion)":"[^"]+"/g,
    (_, field: string) => `"${field}":${JSON.stringify(name)}`,
  );
}

describe('a provider without a profile gets the request unchanged, and the client its response', () => {
  test('there are requests of each protocol', () => {
    for (const protocol of PROTOCOLS) expect(REQUESTS.filter((one) => one.protocol === protocol).length).toBeGreaterThan(50);
  });

  test.each(REQUESTS)('$name', async (request) => {
    const { status, sent, reply } = await send(request, 'some-model');
    expect(status).toBe(200);
    expect(upstream.last?.body).toEqual(expected(request, sent, 'some-model'));
    const name = `own-${request.protocol}/some-model`;
    if (OTHER_REQUESTS[request.name]) expect(reply).not.toMatch(/"model(Version)?":""/);
    else expect(reply).toBe(expectedReply(request, sent, name));
    for (const header of SPOKEN)
      if (request.headers[header]) expect(upstream.last?.headers[header]).toBe(request.headers[header]);
  });
});

/** Requests that are changed for a known model, each with the fact that asks for it. */
const CHANGED: Readonly<Record<string, string>> = {
  'anthropic-messages/anthropic-1ecb9f64': 'recorded: 400, the first message must be of the user; "(continued)" is put before it',
};

describe('a known model at such a provider gets the request unchanged, unless its profile changes it', () => {
  const known = REQUESTS.filter(({ protocol, model }) => CODECS[protocol].hasFacts('own', model));

  test('there are known models', () => expect(known.length).toBeGreaterThan(60));

  test.each(known)('$name', async (request) => {
    const { status, sent } = await send(request, request.model);
    expect(status).toBe(200);
    const wanted = expected(request, sent, request.model);
    if (CHANGED[request.name]) expect(upstream.last?.body).not.toEqual(wanted);
    else expect(upstream.last?.body).toEqual(wanted);
  });
});

describe('the text of a request', () => {
  const post = (body: string, headers: Record<string, string> = {}): Promise<Response> =>
    fetch(`${gateway.url}/v1/chat/completions`, { method: 'POST', body, headers });

  test('is forwarded verbatim except for the model and stream_options', async () => {
    const text =
      '{ "messages":[{"role":"user","content":"hi"}], "n":12345678901234567890, "t":1.0, "model" : "own-openai-chat/m","stream":true }';
    expect((await post(text)).status).toBe(200);
    expect(upstream.last?.text).toBe(
      text.replace('own-openai-chat/m', 'm').replace('true }', 'true ,"stream_options":{"include_usage":true}}'),
    );
  });

  test('a client that did not request usage gets none', async () => {
    const body = { model: 'own-openai-chat/m', stream: true, messages: [{ role: 'user', content: 'hi' }] };
    expect(await (await post(JSON.stringify(body))).text()).not.toContain('"prompt_tokens"');
    const asking = { ...body, stream_options: { include_usage: true } };
    expect(await (await post(JSON.stringify(asking))).text()).toContain('"prompt_tokens"');
  });

  test('invalid fields are forwarded for the upstream to reject', async () => {
    const body = { model: 'own-openai-chat/m', messages: [{ role: 'narrator', content: 7 }], tools: 'none' };
    expect((await post(JSON.stringify(body))).status).toBe(200);
    expect(upstream.last?.body).toEqual({ ...body, model: 'm' });
  });

  test('state of another provider in the history is not forwarded', async () => {
    const carrier = `cv1.gemini.google.thought_signature.self.${Buffer.from('secret').toString('base64url')}`;
    const details = [{ type: 'reasoning.encrypted', data: carrier }];
    const messages = [
      { role: 'user', content: 'hi' },
      { role: 'assistant', content: 'ho', reasoning_details: details },
      { role: 'user', content: 'hi again' },
    ];
    expect((await post(JSON.stringify({ model: 'own-openai-chat/m', messages }))).status).toBe(200);
    expect(upstream.last?.text).not.toContain('cv1.');
    expect(upstream.last?.body['messages']).toHaveLength(3);
  });
});
