import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { IssuedState } from '../../src/responses/issued.ts';
import { type Started, startGateway } from '../gateway/start.ts';
import { startUpstream, type Upstream } from './upstreams.ts';

// Clients of Responses hold encrypted reasoning as its provider sent it. It reaches the account that made it, and no other one.

const create = (text: string): object => ({ type: 'reasoning', id: 'rs_1', summary: [], encrypted_content: text });

describe('what is remembered', () => {
  test('is foreign to other accounts only', () => {
    const issued = new IssuedState();
    expect(issued.isForeign(create('a'), 'one')).toBe(false);
    issued.note([create('a'), { type: 'message' }, null], 'one');
    issued.note('none', 'two');
    expect(issued.isForeign(create('a'), 'one')).toBe(false);
    expect(issued.isForeign(create('a'), 'two')).toBe(true);
    issued.note([create('b')], 'two');
    expect(issued.isForeign(create('a'), 'one')).toBe(false);
    expect(issued.isForeign(create('b'), 'one')).toBe(true);
    for (const item of [create('c'), { type: 'compaction', encrypted_content: 'a' }, { type: 'reasoning' }, 'a', null])
      expect(issued.isForeign(item, 'two')).toBe(false);
  });

  test('is bounded, and the oldest goes first', () => {
    const issued = new IssuedState(10);
    for (let i = 0; i < 1000; i++) issued.note([create(`text ${i}`)], 'one');
    const known = Array.from({ length: 1000 }, (_, i) => i).filter((i) => issued.isForeign(create(`text ${i}`), 'two'));
    expect(known).toEqual(Array.from({ length: 10 }, (_, i) => 990 + i));
  });
});

describe('a client that sends its whole conversation', () => {
  const upstreams: Upstream[] = [];
  let gateway: Started;

  beforeAll(async () => {
    for (let i = 0; i < 2; i++) upstreams.push(await startUpstream('openai-responses'));
    const providers = upstreams.map(({ protocol, url }, i) => [`up${i}`, { protocol, base_url: url, api_key: `k${i}` }]);
    gateway = await startGateway({ config: { providers: Object.fromEntries(providers) } });
  });

  afterAll(async () => {
    await gateway.close();
    for (const upstream of upstreams) upstream.close();
  });

  const post = async (body: object): Promise<{ id: string; text: string }> => {
    const response = await fetch(`${gateway.url}/v1/responses`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ store: false, include: ['reasoning.encrypted_content'], ...body }),
    });
    expect(response.status).toBe(200);
    return { id: response.headers.get('x-sluice-request-id') ?? '', text: await response.text() };
  };

  const readOutput = (text: string): object[] => {
    const [, data = text] = /^event: response\.completed\ndata: (.*)$/m.exec(text) ?? [];
    const parsed = JSON.parse(data) as { output?: object[]; response?: { output: object[] } };
    return parsed.response?.output ?? parsed.output ?? [];
  };

  test.each([true, false])('gets no encrypted reasoning sent to another account; stream: %s', async (stream) => {
    const [one, two] = upstreams as [Upstream, Upstream]; // both are started
    const [mine, theirs] = [`secret-of-one-${stream}`, `secret-of-two-${stream}`];
    const question = { role: 'user', content: 'the question' };
    one.next = { signature: mine, text: 'the first answer' };
    two.next = { signature: theirs, text: 'the second answer' };
    const first = readOutput((await post({ model: 'up0/m', input: [question], stream })).text);
    expect(JSON.stringify(first)).toContain(mine);
    const moved = await post({ model: 'up1/m', input: [question, ...first, question], stream });
    expect(two.got.at(-1)).not.toContain(mine);
    expect(two.got.at(-1)).not.toContain('msg_up');
    expect(two.got.at(-1)).toContain('the first answer');
    const changes = (await gateway.ended(moved.id))['changes'];
    expect(changes).toContainEqual(expect.objectContaining({ code: 'DROPPED', feature: 'reasoning.encrypted_content' }));
    // Each account gets its own again.
    const whole = [question, ...first, question, ...readOutput(moved.text), question];
    await post({ model: 'up0/m', input: whole, stream });
    expect(one.got.at(-1)).toContain(mine);
    expect(one.got.at(-1)).not.toContain(theirs);
    await post({ model: 'up1/m', input: whole, stream });
    expect(two.got.at(-1)).toContain(theirs);
    expect(two.got.at(-1)).not.toContain(mine);
  });

  test('has its bytes passed on as they are when all of it is of the account', async () => {
    const [one] = upstreams as [Upstream, Upstream]; // both are started
    const item = { ...create('never seen'), odd_field: 1 };
    await post({ model: 'up0/m', input: [{ role: 'user', content: 'x' }, item] });
    expect(one.got.at(-1)).toContain(JSON.stringify(item));
  });
});
