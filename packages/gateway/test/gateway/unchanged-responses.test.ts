import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Examiner, type ProtocolId } from '@sluice/core';
import { CODECS } from '@sluice/core/engine';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type Recording, readManifest, readRecording } from '../../../../test/corpus.ts';
import { examine } from '../../../../test/doctor/examine.ts';
import { type Started, startGateway } from './start.ts';

// Do no harm: a client of the same protocol gets what the upstream sent, byte for byte, as long as it conforms.

const PROTOCOLS = Object.keys(CODECS) as ProtocolId[]; // the keys of a closed table

/** An upstream that responds to each request with the body that is set. */
class Upstream {
  readonly #server: Server;
  body: Buffer = Buffer.alloc(0);
  isStream = false;

  constructor() {
    this.#server = createServer((request, response) => {
      request.resume().on('end', () => {
        response.setHeader('content-type', this.isStream ? 'text/event-stream' : 'application/json');
        response.end(this.body);
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

const upstream = new Upstream();
let gateway: Started;

beforeAll(async () => {
  const url = await upstream.start();
  const settings = (protocol: ProtocolId) => ({ protocol, base_url: `${url}/${protocol}/v1`, api_key: 'k' });
  gateway = await startGateway({
    config: {
      responses: { store: 'off' },
      providers: Object.fromEntries(
        PROTOCOLS.flatMap((protocol) => [
          [`own-${protocol}`, settings(protocol)],
          [`passed-${protocol}`, { ...settings(protocol), repair: false }],
        ]),
      ),
      // Without an alias: the client's name of the model is that of the upstream.
      models: Object.fromEntries(
        PROTOCOLS.flatMap((protocol) =>
          ['own', 'passed'].map((way) => [`${way}.${protocol}`, `${way}-${protocol}/${way}.${protocol}`]),
        ),
      ),
      limits: { retries_per_provider: 0 },
    },
  });
});

afterAll(async () => {
  await gateway.close();
  await upstream.stop();
});

const MESSAGES = [{ role: 'user', content: 'hello' }];

function buildRequest(protocol: ProtocolId, model: string, isStream: boolean): { path: string; body: object } {
  switch (protocol) {
    case 'openai-chat':
      return {
        path: '/v1/chat/completions',
        body: { model, messages: MESSAGES, ...(isStream && { stream: true, stream_options: { include_usage: true } }) },
      };
    case 'anthropic-messages':
      return { path: '/v1/messages', body: { model, max_tokens: 100, messages: MESSAGES, stream: isStream } };
    case 'openai-responses':
      return { path: '/v1/responses', body: { model, input: 'hello', stream: isStream } };
    case 'gemini':
      return {
        path: `/v1beta/models/${model}:${isStream ? 'streamGenerateContent?alt=sse' : 'generateContent'}`,
        body: { contents: [{ role: 'user', parts: [{ text: 'hello' }] }] },
      };
    default:
      return protocol satisfies never;
  }
}

interface Row {
  name: string;
  protocol: ProtocolId;
  isStream: boolean;
  body: Buffer;
  isConforming: boolean;
  /** Whoever recorded it found something unusual in it. */
  hasQuirk: boolean;
}

function readRow({ file, protocol, stream, quirks = [] }: Recording): Row[] {
  const known = PROTOCOLS.find((id) => id === protocol);
  if (!known) return [];
  const body = readRecording(file);
  const examination = examine([body], { protocol: CODECS[known], whole: !stream });
  const { complete, error } = examination.message;
  const isConforming = complete && error === null && Examiner.findRepairs(examination, true).length === 0;
  return [{ name: file, protocol: known, isStream: stream, body, isConforming, hasQuirk: quirks.length > 0 }];
}

const ROWS = readManifest()
  .filter(({ status }) => status === 200)
  .flatMap(readRow);

async function send({ protocol, isStream, body }: Row, way: 'own' | 'passed', name = `${way}.${protocol}`): Promise<Buffer> {
  upstream.body = body;
  upstream.isStream = isStream;
  const request = buildRequest(protocol, name, isStream);
  const response = await fetch(gateway.url + request.path, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(request.body),
  });
  return Buffer.from(await response.arrayBuffer());
}

/** Bodies of the vendors that define the protocols, which they send to everybody. */
const VENDORS = /\/(?:openai|azure|anthropic|google|google-vertex)-[\da-f]{8}\./;

/** What is changed in conforming bodies, and in those of the vendors: the least that removes a violation. */
const CHANGED: Readonly<Record<string, string>> = {
  'openai-chat/openai-f4117955.sse': 'the last chunk: finish_reason is "stop" after a tool call',
  'openai-chat/azure-203a40f1.sse': 'blank roles',
  'openai-chat/azure-8aa3bd6a.sse': 'blank roles, and two finish reasons',
  'openai-chat/azure-993eecca.sse': 'blank roles',
  'openai-chat/azure-a3632c32.sse': 'the last chunk: finish_reason is "stop" after a tool call',
  'openai-chat/azure-cf081b5a.sse': 'the last chunk: finish_reason is "stop" after a tool call',
  'openai-chat/openai-ea116167.sse': 'the last chunk: finish_reason is "stop" after a tool call',
  'openai-chat/azure-f085819c.json': 'finish_reason is not one of the protocol',
  'openai-chat/azure-deefc7f4.json': 'a choice has no message',
  'anthropic-messages/anthropic-bc10f231.sse': '[DONE] after the end is dropped',
  'openai-responses/openai-e0f00585.sse': 'a done event has more text than its deltas; required fields are missing',
  'openai-responses/openai-10c756ee.json': 'required fields are missing',
  'openai-responses/llamacpp-8bcf3789.json': 'required fields are missing',
  'openai-responses/mistralrs-f2a3cd72.json': 'required fields are missing',
  'openai-responses/chatgpt-codex-b170c9dc.json': 'required fields are missing',
  'gemini/google-fad64d29.sse': 'content after the finish reason',
  'gemini/google-68f12bbf.sse': 'content after the finish reason',
  'gemini/google-13cbaff1.sse': 'content after the finish reason',
  'gemini/google-b6a5fec5.sse': 'content after the finish reason',
  'gemini/google-vertex-61b32e85.json': 'a number as finish reason',
  'gemini/google-03c2ad7a.json': 'embeddings, which are no response to this request',
  'gemini/google-vertex-d2b3fed2.json': 'embeddings, which are no response to this request',
};

const seen = new Set<string>();

describe.each(PROTOCOLS)('%s', (protocol) => {
  test.each([true, false])('a body that conforms reaches the client byte for byte (stream: %s)', async (isStream) => {
    const rows = ROWS.filter((row) => row.protocol === protocol && row.isStream === isStream);
    const conforming = rows.filter((row) => row.isConforming);
    const vendors = rows.filter(({ name }) => VENDORS.test(name));
    const ordinary = vendors.filter(({ hasQuirk }) => !hasQuirk);
    const changed: string[] = [];
    const same: Row[] = [];
    let passed = 0;
    for (const row of rows) {
      const isVendor = vendors.includes(row);
      const isSame = (await send(row, 'own')).equals(row.body);
      // What passes unchanged without the repair: all but errors with status 200, and a terminal frame that is added.
      const isPassed = isVendor && (isSame || (await send(row, 'passed')).equals(row.body));
      if (isSame) same.push(row);
      if (isPassed) passed++;
      if (!isSame && (isPassed || row.isConforming)) changed.push(row.name);
    }
    const count = (some: readonly Row[]): string => `${some.filter((row) => same.includes(row)).length} of ${some.length}`;
    console.log(
      `${protocol}, ${isStream ? 'streams' : 'whole'}: ${count(rows)} unchanged, ${count(conforming)} that conform, ` +
        `${count(vendors)} of vendors (${passed} without the repair), ${count(ordinary)} of vendors without a quirk`,
    );
    for (const name of changed) seen.add(name);
    expect(changed.filter((name) => !CHANGED[name])).toEqual([]);
    expect(conforming.length).toBeGreaterThan(10);
  });
});

test('every listed change still occurs', () => {
  const names = new Set(ROWS.map(({ name }) => name));
  expect(Object.keys(CHANGED).filter((name) => names.has(name) && !seen.has(name))).toEqual([]);
});

test.each([true, false])('an alias replaces the name of the model, and nothing else (stream: %s)', async (isStream) => {
  for (const protocol of PROTOCOLS) {
    const rows = ROWS.filter((one) => one.protocol === protocol && one.isStream === isStream && one.isConforming);
    const row = rows.find(({ name }) => VENDORS.test(name));
    if (!row) throw new Error('the corpus has no such body');
    const alias = `own-${protocol}/m`;
    const [text, body] = [(await send(row, 'own', alias)).toString(), row.body.toString()];
    expect(text).toContain(alias);
    const [name = ''] = /^[^"]+/.exec(body.slice(text.indexOf(alias))) ?? [];
    expect(text.replaceAll(alias, name)).toBe(body);
  }
});
