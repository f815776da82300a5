/** An upstream that does the most that each request allows, and reports it: no request costs more than was reserved for it. */
import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { ProtocolId } from '@sluice/core';
import fc from 'fast-check';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { wholeOf } from '../gateway/dialects.ts';
import { eventually, type Started } from '../gateway/start.ts';
import { send } from './client.ts';
import { createCaller, startGated } from './start.ts';

type Json = Record<string, unknown>;

/** Tokens of a response whose request does not limit it: that of no model is longer. */
const LONGEST_OUTPUT = 131_072;

/** Tokens of an image at the model that counts the most. */
const IMAGE_TOKENS = 48_169;

/** Tokens of the result of a search. */
const RESULT_TOKENS = 10_000;

/** How often the provider uses a tool without a limit. */
const MAX_TOOL_USES = 10;

interface Spent {
  input: number;
  output: number;
}

/** A token per byte of every text, every field at its worst, every tool as often as it may. */
function spend(path: string, body: Json): Spent {
  const config = (body['generationConfig'] ?? body) as Json;
  const texts = readTexts(body);
  const images = readAll(body, 'type').filter(
    (type) => type === 'image' || type === 'image_url' || type === 'input_image',
  ).length;
  const first = texts.reduce((sum, text) => sum + Buffer.byteLength(text), 0) + images * IMAGE_TOKENS;
  const stated = readAll(body, 'tools')
    .flat()
    .map((tool) => (tool as Json)['max_uses']); // the test writes objects
  const uses = stated.reduce<number>((sum, count) => sum + Number(count ?? MAX_TOOL_USES), 0);
  let input = first;
  for (let use = 1; use <= uses; use++) input += first + use * RESULT_TOKENS;
  if (/embeddings/.test(path)) return { input, output: 0 };
  if (/rerank/.test(path)) {
    const documents = body['documents'] as string[];
    return { input: input + documents.length * Buffer.byteLength(String(body['query'])), output: 0 };
  }
  const limits = ['max_tokens', 'max_completion_tokens', 'max_output_tokens', 'maxOutputTokens'].flatMap(
    (name) => config[name] ?? [],
  );
  const tokens = limits.length > 0 ? Math.max(...limits.map(Number)) : LONGEST_OUTPUT;
  const choices = Math.max(1, ...['n', 'best_of', 'candidateCount'].map((name) => Number(config[name] ?? 1)));
  const prompts = Array.isArray(body['prompt']) ? body['prompt'].length : 1;
  return { input, output: tokens * choices * prompts };
}

/** Every text that the test wrote: they begin with this letter. */
const MARK = '¶';

function readTexts(value: unknown): string[] {
  if (typeof value === 'string') return value.startsWith(MARK) ? [value] : [];
  return typeof value === 'object' && value !== null ? Object.values(value).flatMap(readTexts) : [];
}

function readAll(value: unknown, name: string): unknown[] {
  if (typeof value !== 'object' || value === null) return [];
  return Object.entries(value).flatMap(([key, inner]) => [...(key === name ? [inner] : []), ...readAll(inner, name)]);
}

/** The response with this usage that an upstream of a path gives. */
function answer(path: string, { input, output }: Spent): string {
  const usage = { prompt_tokens: input, completion_tokens: output, total_tokens: input + output };
  if (/rerank/.test(path)) return JSON.stringify({ results: [{ index: 0, relevance_score: 1 }], usage });
  if (/embeddings/.test(path))
    return JSON.stringify({ object: 'list', model: 'm', data: [{ object: 'embedding', index: 0, embedding: [1] }], usage });
  if (/\/v1\/completions/.test(path))
    return JSON.stringify({ id: 'c', object: 'text_completion', created: 1, model: 'm', choices: [], usage });
  const protocol: ProtocolId = /generateContent/.test(path)
    ? 'gemini'
    : /messages/.test(path)
      ? 'anthropic-messages'
      : /responses/.test(path)
        ? 'openai-responses'
        : 'openai-chat';
  return wholeOf(protocol, {
    id: 'answer-1',
    model: 'm',
    created: 1,
    content: [{ type: 'text', text: 'One.' }],
    stop_reason: 'end_turn',
    usage: { input_tokens: input, output_tokens: output },
  });
}

/** What the upstream has spent for the last request. */
let spent: Spent | undefined;

async function serve(incoming: IncomingMessage, response: ServerResponse): Promise<void> {
  const chunks: Buffer[] = [];
  for await (const chunk of incoming) chunks.push(chunk as Buffer); // node's streams of bytes
  const path = incoming.url ?? '';
  spent = spend(path, JSON.parse(Buffer.concat(chunks).toString()));
  response.writeHead(200, { 'content-type': 'application/json' }).end(answer(path, spent));
}

const oracle = createServer((incoming, response) => void serve(incoming, response));

/** What the gate has reserved for a request, and what it has charged. */
const settled: { reserved: number; charged: number }[] = [];

let gateway: Started;

beforeAll(async () => {
  await once(oracle.listen(0, '127.0.0.1'), 'listening');
  const url = `http://127.0.0.1:${(oracle.address() as AddressInfo).port}`;
  const at = { api_key: 'k', repair: false, profile: { max_tool_uses: MAX_TOOL_USES } };
  gateway = await startGated([createCaller('a', { budgets: [{ micros: 1e15, period: 'total' }] })], {
    config: {
      providers: {
        chat: { protocol: 'openai-chat', base_url: `${url}/v1`, ...at },
        answers: { protocol: 'openai-responses', base_url: `${url}/v1`, ...at },
        an: { protocol: 'anthropic-messages', base_url: url, ...at },
        ge: { protocol: 'gemini', base_url: `${url}/v1beta`, ...at },
      },
      default_price: { input: '1', output: '3' },
    },
    services: (made) => {
      const { gate } = made;
      const end = gate.end.bind(gate);
      gate.end = (admission, used) => {
        settled.push({ reserved: admission.reserved ?? 0, charged: used.micros });
        end(admission, used);
      };
      return made;
    },
  });
});

afterAll(async () => {
  await gateway.close();
  oracle.closeAllConnections();
  oracle.close();
});

interface Wire {
  path: string;
  body: Json;
}

const text = fc
  .oneof(
    fc.string({ unit: 'grapheme', maxLength: 60 }),
    fc.string({ unit: 'binary', maxLength: 60 }),
    fc.nat(2000).map((n) => '7'.repeat(n)),
  )
  .map((value) => MARK + value.toWellFormed());

const tokens = fc.option(fc.integer({ min: 1, max: 20_000 }), { nil: undefined });

const few = fc.option(fc.integer({ min: 1, max: 20 }), { nil: undefined });

const model = fc.constantFrom('chat/m', 'answers/m', 'an/m', 'ge/m');

const image = { type: 'image_url', image_url: { url: 'https://example.invalid/a.png' } };

const omitEmpty = (fields: Json): Json => Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined));

const chat = fc
  .record({ model, text, max_tokens: tokens, max_completion_tokens: tokens, n: few, best_of: few, images: fc.nat(3) })
  .map(({ text: content, images, ...rest }): Wire => {
    const parts = [{ type: 'text', text: content }, ...Array.from({ length: images }, () => image)];
    return { path: '/v1/chat/completions', body: { ...omitEmpty(rest), messages: [{ role: 'user', content: parts }] } };
  });

const messages = fc
  .record({ model, text, max_tokens: fc.integer({ min: 1, max: 20_000 }), uses: few, max_tool_calls: few, hasTool: fc.boolean() })
  .map(({ text: content, uses, hasTool, ...rest }): Wire => {
    const tools = [omitEmpty({ type: 'web_search_20250305', name: 'web_search', max_uses: uses })];
    const body = { ...omitEmpty(rest), messages: [{ role: 'user', content }], ...(hasTool && { tools }) };
    return { path: '/v1/messages', body };
  });

const responses = fc
  .record({ model, input: text, instructions: text, max_output_tokens: tokens, store: fc.constant(false) })
  .map((body): Wire => ({ path: '/v1/responses', body: omitEmpty(body) }));

const gemini = fc.record({ model, text, maxOutputTokens: tokens, candidateCount: few }).map(
  ({ model: name, text: content, ...config }): Wire => ({
    path: `/v1beta/models/${name}:generateContent`,
    body: { contents: [{ role: 'user', parts: [{ text: content }] }], generationConfig: omitEmpty(config) },
  }),
);

const completions = fc
  .record({
    model: fc.constant('chat/m'),
    prompt: fc.oneof(text, fc.array(text, { minLength: 1, maxLength: 30 })),
    max_tokens: tokens,
    n: few,
    best_of: few,
  })
  .map((body): Wire => ({ path: '/v1/completions', body: omitEmpty(body) }));

const embeddings = fc
  .record({ model: fc.constant('chat/m'), input: fc.oneof(text, fc.array(text, { minLength: 1, maxLength: 30 })) })
  .map((body): Wire => ({ path: '/v1/embeddings', body }));

const rerank = fc
  .record({ model: fc.constant('chat/m'), query: text, documents: fc.array(text, { minLength: 1, maxLength: 30 }) })
  .map((body): Wire => ({ path: '/v1/rerank', body }));

test('the worst case of a request costs no more than was reserved', { timeout: 240_000 }, async () => {
  let sent = 0;
  let admitted = 0;
  const wire = fc.oneof(chat, messages, responses, gemini, completions, embeddings, rerank);
  await fc.assert(
    fc.asyncProperty(wire, async ({ path, body }) => {
      spent = undefined;
      settled.length = 0;
      sent++;
      const { status, text: reply } = await send(gateway.url, path, { key: 'a', body });
      await eventually(() => settled.length === 1);
      const [{ reserved, charged } = { reserved: 0, charged: 0 }] = settled;
      // A protocol may have no place for what the client wants.
      expect([200, 400], reply).toContain(status);
      if (spent === undefined) return;
      admitted++;
      const { input, output } = spent as Spent; // set by the oracle meanwhile
      expect(charged).toBe(input + 3 * output);
      expect(reserved).toBeGreaterThanOrEqual(charged);
    }),
    { numRuns: 300 },
  );
  expect(admitted).toBeGreaterThan(sent / 2);
});
