import { describe, expect, test } from 'vitest';
import { chatContext, type Json } from '../../../../test/sdk/chat.ts';
import { CODECS, createStreamConverter } from '../../src/engine/index.ts';
import { createRepairFetch } from '../../src/fetch.ts';
import { decodeRequest } from '../../src/protocols/openai-chat/request-decode.ts';

// Where servers write the usage of a stream: OpenAI in a chunk of its own, on request; Mistral beside the last choice, always.

const USAGE = { prompt_tokens: 5, completion_tokens: 2, total_tokens: 7 };

const chunk = (choices: object[], more: object = {}): string =>
  `data: ${JSON.stringify({ id: 'c1', object: 'chat.completion.chunk', created: 1, model: 'm', choices, ...more })}\n\n`;

const choice = (delta: object, finish: string | null = null): object => ({ index: 0, delta, finish_reason: finish });

const START = chunk([choice({ role: 'assistant', content: 'Hi' })]);
const DONE = 'data: [DONE]\n\n';
const BESIDE = START + chunk([choice({ content: '' }, 'stop')], { usage: USAGE }) + DONE;
const APART = START + chunk([choice({}, 'stop')]) + chunk([], { usage: USAGE }) + DONE;

const read = (body: string): Json[] => [...body.matchAll(/^data: (\{.*)$/gm)].map(([, data]) => JSON.parse(data ?? '') as Json);

function convert(body: string, options: object | undefined): Json[] {
  const wire = {
    model: 'm',
    stream: true,
    messages: [{ role: 'user', content: 'hi' }],
    ...(options && { stream_options: options }),
  };
  const request = decodeRequest({ method: 'POST', path: '', headers: {}, body: wire }, chatContext());
  const stage = createStreamConverter({ from: CODECS['openai-chat'], to: CODECS['openai-chat'], request });
  const out = [...stage.push(new TextEncoder().encode(body)), ...stage.end()];
  return read(Buffer.concat(out).toString());
}

/** The chunks that have usage: how many choices each has, and its tokens. */
const usages = (chunks: readonly Json[]): [choices: number, tokens: number][] =>
  chunks.flatMap(({ choices, usage }): [number, number][] =>
    usage ? [[(choices as unknown[]).length, (usage as Json)['total_tokens'] as number]] : [],
  );

describe('conversion', () => {
  test.each([
    ['beside the last choice stays there, for clients that did not request it', BESIDE, undefined, [[1, 7]]],
    ['beside the last choice gets a chunk of its own for clients that requested it', BESIDE, { include_usage: true }, [[0, 7]]],
    ['in a chunk of its own is hidden from clients that did not request it', APART, undefined, []],
    ['in a chunk of its own goes to clients that requested it', APART, { include_usage: true }, [[0, 7]]],
  ])('usage %s', (_, body, options, expected) => {
    const chunks = convert(body, options);
    expect(usages(chunks)).toEqual(expected);
    expect(chunks.filter(({ choices }) => (choices as unknown[]).length === 0)).toHaveLength(
      expected.filter(([n]) => n === 0).length,
    );
  });

  test('usage on every chunk goes beside the last choice once', () => {
    const every = BESIDE.replace(START, chunk([choice({ role: 'assistant', content: 'Hi' })], { usage: USAGE }));
    expect(usages(convert(every, undefined))).toEqual([[1, 7]]);
  });
});

describe('repair', () => {
  const repair = async (body: string): Promise<Json[]> => {
    const fetch = createRepairFetch({
      fetch: async () => new Response(body, { headers: { 'content-type': 'text/event-stream' } }),
    });
    const response = await fetch('http://llm.example/v1/chat/completions', {
      method: 'POST',
      body: JSON.stringify({ model: 'm', stream: true, messages: [] }),
    });
    return read(await response.text());
  };

  /** A call with a blank id, which is repaired. */
  const call = chunk([
    choice({ role: 'assistant', tool_calls: [{ index: 0, id: '', type: 'function', function: { name: 'f', arguments: '{}' } }] }),
  ]);

  test('adds no chunk without choices where the server has none', async () => {
    const chunks = await repair(BESIDE.replace(START, call));
    expect(JSON.stringify(chunks)).toMatch(/"id":"[^"]+","type":"function"/);
    expect(usages(chunks)).toEqual([[1, 7]]);
    for (const { choices } of chunks) expect(choices).not.toEqual([]);
  });

  test('keeps the chunk without choices of a server that has one', async () => {
    expect(usages(await repair(APART.replace(START, call)))).toEqual([[0, 7]]);
  });
});
