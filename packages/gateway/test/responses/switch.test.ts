import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type Started, startGateway } from '../gateway/start.ts';
import { PROTOCOLS, startUpstream, type Upstream } from './upstreams.ts';

// A conversation moves from any upstream to any other one, with thinking state, a tool call and its result. The state of a provider
// reaches no other one.

const SIGNATURE = 'c2lnbmF0dXJlLW9mLXRoZS1wcm92aWRlcg==';

const upstreams: Upstream[] = [];
let gateway: Started;

beforeAll(async () => {
  // Two of each, so that a conversation can move between two accounts of one protocol.
  for (const protocol of [...PROTOCOLS, ...PROTOCOLS]) upstreams.push(await startUpstream(protocol));
  const providers = upstreams.map(({ protocol, url }, i) => [`up${i}`, { protocol, base_url: url, api_key: `k${i}` }]);
  gateway = await startGateway({ config: { providers: Object.fromEntries(providers) } });
});

afterAll(async () => {
  await gateway.close();
  for (const upstream of upstreams) upstream.close();
});

interface Answer {
  id: string;
  status: string;
  output: { type: string; call_id?: string }[];
}

async function ask(body: object): Promise<{ status: number; body: Answer }> {
  const response = await fetch(`${gateway.url}/v1/responses`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(body),
  });
  return { status: response.status, body: (await response.json()) as Answer }; // asserted below
}

const TOOLS = [{ type: 'function', name: 'look', parameters: { type: 'object', properties: {} }, strict: false }];

const PAIRS = PROTOCOLS.flatMap((_, from) => PROTOCOLS.map((__, to) => ({ from, to: to + PROTOCOLS.length })));

describe.each(PAIRS)('from up$from to up$to and back', ({ from, to }) => {
  const [one, other] = [() => upstreams[from] as Upstream, () => upstreams[to] as Upstream]; // all are started

  test.each(['previous_response_id', 'input'])('by %s', async (by) => {
    one().next = { call: { name: 'look', id: 'call_1' }, signature: SIGNATURE };
    const question = { role: 'user', content: 'the first question' };
    const first = await ask({ model: `up${from}/m`, tools: TOOLS, input: [question], include: ['reasoning.encrypted_content'] });
    one().next = {};
    expect(first.status).toBe(200);
    const call = first.body.output.find(({ type }) => type === 'function_call');
    const result = { type: 'function_call_output', call_id: call?.call_id, output: 'the result' };
    const earlier = by === 'input' ? [question, ...first.body.output] : [];
    const previous = by === 'input' ? {} : { previous_response_id: first.body.id };
    const moved = await ask({ model: `up${to}/m`, tools: TOOLS, ...previous, input: [...earlier, result] });
    expect(moved.status, JSON.stringify(moved.body)).toBe(200);
    const got = other().got.at(-1) ?? '';
    for (const text of ['the first question', 'look', 'the result']) expect(got).toContain(text);
    expect(got).not.toContain(SIGNATURE);
    const back = await ask({ model: `up${from}/m`, tools: TOOLS, previous_response_id: moved.body.id, input: 'and now?' });
    expect(back.status, JSON.stringify(back.body)).toBe(200);
    const last = one().got.at(-1) ?? '';
    for (const text of ['the first question', 'the result', 'and now?']) expect(last).toContain(text);
  });
});
