import { randomBytes } from 'node:crypto';
import { CodecError, createExchange, type ProtocolId, type Provider } from '@sluice/core';
import { CODECS } from '@sluice/core/engine';
import { describe, expect, test } from 'vitest';
import { Capsules, findModelFamily } from '../../src/responses/capsule.ts';
import { PROTOCOLS } from './upstreams.ts';

const provider = (id: string, more: Partial<Provider> = {}): Provider => ({
  id,
  protocol: 'anthropic-messages',
  base_url: 'http://one',
  api_key: 'k',
  ...more,
});

describe('a capsule', () => {
  const capsules = new Capsules(randomBytes(32));
  const upstream = { provider: provider('a'), model: 'claude-sonnet-4' };
  const sealing = capsules.for(upstream);
  const label = 'anthropic-messages.signature.self';

  test.each(['', 'short', 'ünïcödé', 'x'.repeat(10_000)])('opens to what was sealed (%#)', (value) => {
    const sealed = sealing.seal(value, label);
    expect(sealed).toMatch(/^[\w-]+$/);
    if (value !== '') expect(Buffer.from(sealed, 'base64url').toString()).not.toContain(value);
    expect(sealing.open(sealed, label)).toBe(value);
    expect(sealing.seal(value, label)).toBe(sealed);
  });

  test.each([
    ['another provider', { ...upstream, provider: provider('b') }],
    ['another account', { ...upstream, provider: provider('a', { api_key: 'other' }) }],
    ['another address', { ...upstream, provider: provider('a', { base_url: 'http://two' }) }],
    ['another project', { ...upstream, provider: provider('a', { adapter_config: { project: 'p' } }) }],
    ['another model family', { ...upstream, model: 'gemini-3' }],
  ])('does not open for %s', (_, other) => {
    expect(capsules.for(other).open(sealing.seal('value', label), label)).toBeUndefined();
  });

  test('opens for another model of the family', () => {
    expect(capsules.for({ ...upstream, model: 'anthropic/claude-opus-5' }).open(sealing.seal('v', label), label)).toBe('v');
    expect(['gpt-5.1', 'openai/gpt-6', 'Gemini-3', '4'].map(findModelFamily)).toEqual(['gpt', 'gpt', 'gemini', '']);
  });

  test('does not open with another key or label', () => {
    const sealed = sealing.seal('value', label);
    expect(new Capsules(randomBytes(32)).for(upstream).open(sealed, label)).toBeUndefined();
    expect(sealing.open(sealed, 'anthropic-messages.signature.next')).toBeUndefined();
  });

  test('10,000 mutations do not open', () => {
    const sealed = sealing.seal('the signature of a thought', label);
    const alphabet = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_=.+/ ';
    const pick = (n: number): number => Math.floor(Math.random() * n);
    const mutations: ((text: string, at: number, char: string) => string)[] = [
      (text, at, char) => text.slice(0, at) + char + text.slice(at + 1),
      (text, at, char) => text.slice(0, at) + char + text.slice(at),
      (text, at) => text.slice(0, at) + text.slice(at + 1),
      (text, at) => text.slice(0, at),
      (text, at) => text.slice(at) + text.slice(0, at),
      (text, at, char) => text + char.repeat(at),
    ];
    let changed = 0;
    while (changed < 10_000) {
      const mutate = mutations[pick(mutations.length)];
      const mutated = mutate?.(sealed, pick(sealed.length), alphabet[pick(alphabet.length)] ?? '') ?? '';
      if (mutated === sealed) continue;
      changed++;
      if (sealing.open(mutated, label) !== undefined) expect.fail(`opened: ${mutated}`);
    }
    expect(changed).toBe(10_000);
  });
});

/** A response of each protocol with a thought that the provider signed, and the text `done`. */
const SIGNED: Record<ProtocolId, object> = {
  'openai-chat': {
    id: 'chatcmpl-1',
    object: 'chat.completion',
    created: 1,
    model: 'm',
    choices: [{ index: 0, message: { role: 'assistant', content: 'done', reasoning_content: 'hm' }, finish_reason: 'stop' }],
  },
  'anthropic-messages': {
    id: 'msg_1',
    type: 'message',
    role: 'assistant',
    model: 'm',
    content: [
      { type: 'thinking', thinking: 'hm', signature: 'SECRET' },
      { type: 'text', text: 'done' },
    ],
    stop_reason: 'end_turn',
    usage: { input_tokens: 1, output_tokens: 1 },
  },
  'openai-responses': {
    id: 'resp_1',
    object: 'response',
    created_at: 1,
    status: 'completed',
    model: 'm',
    output: [
      { type: 'reasoning', id: 'rs_1', summary: [{ type: 'summary_text', text: 'hm' }], encrypted_content: 'SECRET' },
      {
        type: 'message',
        id: 'msg_1',
        role: 'assistant',
        status: 'completed',
        content: [{ type: 'output_text', text: 'done', annotations: [] }],
      },
    ],
    usage: { input_tokens: 1, output_tokens: 1, total_tokens: 2 },
  },
  gemini: {
    candidates: [
      {
        content: {
          role: 'model',
          parts: [
            { text: 'hm', thought: true },
            { text: 'done', thoughtSignature: 'U0VDUkVU' },
          ],
        },
        finishReason: 'STOP',
        index: 0,
      },
    ],
    modelVersion: 'm',
    responseId: 'g1',
  },
};

const SECRET = /SECRET|U0VDUkVU/;

interface Client {
  path: string;
  first: object;
  /** The request of the next turn, with the response as the client got it. */
  next(response: Record<string, unknown>): object;
}

const CLIENTS: Record<ProtocolId, Client> = {
  'openai-chat': {
    path: '/v1/chat/completions',
    first: { model: 'm', messages: [{ role: 'user', content: 'hi' }] },
    next: ({ choices }) => ({
      model: 'm',
      messages: [
        { role: 'user', content: 'hi' },
        (choices as { message: object }[])[0]?.message,
        { role: 'user', content: 'go on' },
      ],
    }),
  },
  'anthropic-messages': {
    path: '/v1/messages',
    first: {
      model: 'm',
      max_tokens: 4000,
      thinking: { type: 'enabled', budget_tokens: 2000 },
      messages: [{ role: 'user', content: 'hi' }],
    },
    next: ({ content }) => ({
      ...CLIENTS['anthropic-messages'].first,
      messages: [
        { role: 'user', content: 'hi' },
        { role: 'assistant', content },
        { role: 'user', content: 'go on' },
      ],
    }),
  },
  'openai-responses': {
    path: '/v1/responses',
    first: { model: 'm', input: [{ role: 'user', content: 'hi' }], include: ['reasoning.encrypted_content'], store: false },
    next: ({ output }) => ({
      ...CLIENTS['openai-responses'].first,
      input: [{ role: 'user', content: 'hi' }, ...(output as object[]), { role: 'user', content: 'go on' }],
    }),
  },
  gemini: {
    path: '/v1beta/models/m:generateContent',
    first: {
      contents: [{ role: 'user', parts: [{ text: 'hi' }] }],
      generationConfig: { thinkingConfig: { includeThoughts: true } },
    },
    next: ({ candidates }) => ({
      ...CLIENTS.gemini.first,
      contents: [
        { role: 'user', parts: [{ text: 'hi' }] },
        (candidates as { content: object }[])[0]?.content,
        { role: 'user', parts: [{ text: 'go on' }] },
      ],
    }),
  },
};

const PAIRS = PROTOCOLS.flatMap((client) => PROTOCOLS.map((upstream) => ({ client, upstream })));

describe.each(PAIRS)('a $client client of $upstream', ({ client: clientId, upstream: upstreamId }) => {
  const capsules = new Capsules(randomBytes(32));
  const client = CLIENTS[clientId];
  const provide = (protocol: ProtocolId, id: string): Provider => ({
    id,
    protocol,
    base_url: 'http://up/v1',
    api_key: `key-of-${id}`,
  });
  const exchange = (target: Provider, model: string, passthrough = false) =>
    createExchange(CODECS[clientId], CODECS[target.protocol], {
      provider: target,
      model,
      passthrough,
      sealing: capsules.for({ provider: target, model }),
    });
  const wire = (body: unknown) => ({ method: 'POST', path: client.path, headers: {}, body, text: JSON.stringify(body) });

  function begin(): Record<string, unknown> {
    const first = exchange(provide(upstreamId, 'one'), 'claude-1');
    first.request(wire(client.first));
    return first.response({ status: 200, headers: {}, body: SIGNED[upstreamId] }).body as Record<string, unknown>;
  }

  test('the signature reaches its issuer again', () => {
    const response = begin();
    if (clientId !== upstreamId && upstreamId !== 'openai-chat') expect(JSON.stringify(response)).not.toMatch(SECRET);
    const sent = JSON.stringify(exchange(provide(upstreamId, 'one'), 'claude-2').request(wire(client.next(response))).body);
    expect(sent).toContain('done');
    expect(sent).not.toMatch(/cv[12]\.|Y3Y[xy]/);
    if (upstreamId !== 'openai-chat') expect(sent).toMatch(SECRET);
  });

  test.each(PROTOCOLS.flatMap((to) => [false, true].map((passthrough) => ({ to, passthrough }))))(
    'the conversation continues at another provider of $to (passthrough: $passthrough)',
    ({ to, passthrough }) => {
      const response = begin();
      const next = exchange(provide(to, 'two'), 'gemini-1', passthrough);
      const sent = JSON.stringify(next.request(wire(client.next(response))).body);
      expect(sent).toContain('done');
      expect(sent).not.toMatch(/cv[12]\.|Y3Y[xy]/);
      // A client of the issuer's protocol has the bare signature; it only reaches providers of that protocol.
      if (clientId !== upstreamId || to !== upstreamId) expect(sent).not.toMatch(SECRET);
    },
  );

  test.each(['tampered', 'of another gateway', 'of an older version'])('a capsule that is %s is dropped with a note', (how) => {
    const text = JSON.stringify(client.next(begin()));
    if (!holdsCapsule(text)) return;
    const target = exchange(provide(upstreamId, 'one'), 'claude-1');
    const sent = target.request(wire(JSON.parse(breakCapsules(text, how))));
    expect(JSON.stringify(sent.body)).toContain('done');
    expect(JSON.stringify(sent.body)).not.toMatch(/cv[12]\.|Y3Y[xy]|SECRET|U0VDUkVU/);
    expect(target.notes.some(({ message }) => message.includes('dropped'))).toBe(true);
  });
});

const CAPSULE = /cv2\.[\w.-]+/g;
const ENCODED = /Y3Yy[\w+/=-]+/g;

const holdsCapsule = (text: string): boolean => CAPSULE.test(text) || ENCODED.test(text);

/** Breaks every capsule of a request. */
function breakCapsules(text: string, how: string): string {
  const change = (capsule: string): string => {
    const [version = '', origin = '', form = '', attach = '', sealed = ''] = capsule.split('.');
    if (how === 'tampered') return [version, origin, form, attach, `${sealed.slice(0, -4)}AAAA`].join('.');
    if (how === 'of another gateway') return [version, origin, form, attach, randomBytes(40).toString('base64url')].join('.');
    return ['cv1', origin, 'one', form, attach, Buffer.from('SECRET').toString('base64url')].join('.');
  };
  return text
    .replace(CAPSULE, change)
    .replace(ENCODED, (encoded) => btoa(change(atob(encoded.replaceAll('-', '+').replaceAll('_', '/')))));
}

test('without a sealing, capsules of a gateway are not sent either', () => {
  const target = createExchange(CODECS['openai-responses'], CODECS['openai-responses'], {
    provider: { id: 'x', protocol: 'openai-responses', base_url: 'http://up/v1' },
    model: 'm',
  });
  const item = { type: 'reasoning', id: 'rs_1', summary: [], encrypted_content: 'cv2.gemini.thought_signature.self.AAAA' };
  const body = { model: 'm', input: [{ role: 'user', content: 'hi' }, item, { role: 'user', content: 'go on' }] };
  try {
    expect(JSON.stringify(target.request({ method: 'POST', path: '/v1/responses', headers: {}, body }).body)).not.toContain(
      'cv2',
    );
  } catch (error) {
    expect(error).not.toBeInstanceOf(CodecError);
    throw error;
  }
});
