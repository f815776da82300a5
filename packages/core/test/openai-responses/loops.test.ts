import { describe, expect, test } from 'vitest';
import { bodyOf, encodeResponses, type Json, responseOf, responsesContext, SDKS } from '../../../../test/sdk/responses.ts';
import type { CanonicalStreamEvent } from '../../src/canonical/events.ts';
import type { ContentBlock } from '../../src/canonical/message.ts';
import type { ProtocolId, SignedBlob } from '../../src/canonical/protocol.ts';
import type { CodecContext, Provider } from '../../src/codec/protocol.ts';
import { ResponsesGrammar } from '../../src/protocols/openai-responses/grammar.ts';
import { profileFor } from '../../src/protocols/openai-responses/profiles.ts';
import { decodeRequestBody } from '../../src/protocols/openai-responses/request-decode.ts';
import { encodeRequestBody } from '../../src/protocols/openai-responses/request-encode.ts';
import { encodeResponse } from '../../src/protocols/openai-responses/response.ts';

const provider = (id: string, protocol: ProtocolId): Provider => ({ id, protocol, base_url: 'http://localhost' });
const contextOf = (id: string, protocol: ProtocolId): CodecContext =>
  responsesContext({ source: protocol, target: { provider: provider(id, protocol), model: 'm', stream: true } });

const call: ContentBlock = { type: 'tool_use', id: 'call_1', name: 'read', input: { path: 'a' }, input_raw: '{"path":"a"}' };

/** An answer with its proofs, as each protocol has them, and what of it must come back on the next turn. */
const ANSWERS: { name: string; id: string; protocol: ProtocolId; content: ContentBlock[]; blobs: SignedBlob[] }[] = [
  {
    name: 'Anthropic thinking with a signature',
    id: 'anthropic',
    protocol: 'anthropic-messages',
    content: [
      {
        type: 'thinking',
        thinking: 'Read it.',
        signature: { origin: 'anthropic-messages', form: 'signature', value: 'c2ln+/=' },
      },
      { type: 'text', text: 'One moment.' },
      call,
    ],
    blobs: [{ origin: 'anthropic-messages', form: 'signature', value: 'c2ln+/=', provider: 'anthropic' }],
  },
  {
    name: 'P86 Anthropic redacted thinking',
    id: 'anthropic.eu',
    protocol: 'anthropic-messages',
    content: [
      {
        type: 'thinking',
        thinking: '',
        variant: 'redacted',
        signature: { origin: 'anthropic-messages', form: 'redacted', value: 'D' },
      },
      call,
    ],
    blobs: [{ origin: 'anthropic-messages', form: 'redacted', value: 'D', provider: 'anthropic.eu' }],
  },
  {
    name: 'P81 Gemini: a thought, a signed call and a signed text',
    id: 'google',
    protocol: 'gemini',
    content: [
      { type: 'thinking', thinking: 'Hm.', variant: 'summary' },
      { ...call, signature: { origin: 'gemini', form: 'thought_signature', value: 'S1' } },
      { type: 'text', text: 'Reading.', signature: { origin: 'gemini', form: 'thought_signature', value: 'S2' } },
    ],
    blobs: [
      { origin: 'gemini', form: 'thought_signature', value: 'S1', provider: 'google' },
      { origin: 'gemini', form: 'thought_signature', value: 'S2', provider: 'google' },
    ],
  },
  {
    name: 'Responses: encrypted reasoning goes as it came',
    id: 'openai',
    protocol: 'openai-responses',
    content: [
      {
        type: 'thinking',
        thinking: 'Hm.',
        variant: 'summary',
        signature: { origin: 'openai-responses', form: 'encrypted', value: 'gAAA', item_id: 'rs_1' },
        extensions: { 'openai-responses': { item_id: 'rs_1' } },
      },
      { ...call, item_id: 'fc_1' },
    ],
    blobs: [{ origin: 'openai-responses', form: 'encrypted', value: 'gAAA', item_id: 'rs_1' }],
  },
];

function* eventsOf(content: readonly ContentBlock[]): Generator<CanonicalStreamEvent> {
  yield { type: 'message_start', message: { id: 'resp_1', model: 'm', created: 1 } };
  for (const [index, block] of content.entries()) {
    const start = block.type === 'tool_use' ? withoutInput(block) : block;
    yield { type: 'content_block_start', index, content_block: start };
    if (block.type === 'tool_use' && block.signature)
      yield { type: 'content_block_delta', index, delta: { type: 'signature_delta', signature: block.signature } };
    if (block.type === 'tool_use')
      yield { type: 'content_block_delta', index, delta: { type: 'input_json_delta', partial_json: block.input_raw ?? '' } };
    yield { type: 'content_block_stop', index };
  }
  yield { type: 'message_delta', delta: { stop_reason: 'tool_use' } };
  yield { type: 'message_stop' };
}

function withoutInput(block: Extract<ContentBlock, { type: 'tool_use' }>): ContentBlock {
  const { input_raw: _, signature: __, ...rest } = block;
  return { ...rest, input: {} };
}

/** The second turn of a client that sends back what it got, and the output of the call. */
const nextTurn = (output: unknown): Json => ({
  model: 'm',
  input: [
    { role: 'user', content: 'Read a.' },
    ...(output as Json[]),
    { type: 'function_call_output', call_id: 'call_1', output: 'A' },
    { role: 'user', content: 'And?' },
  ],
  store: false,
});

describe.each(ANSWERS)('$name', ({ id, protocol, content, blobs }) => {
  const context = contextOf(id, protocol);
  const whole = encodeResponse({ id: 'resp_1', model: 'm', created: 1, content, stop_reason: 'tool_use' }, context);
  const frames = encodeResponses(eventsOf(content), context);
  const live = responseOf(frames);
  const request = decodeRequestBody(nextTurn(whole['output']), responsesContext());
  const [, turn] = request.messages;

  test('is the same live and whole, and both SDKs read it', async () => {
    expect(ResponsesGrammar.check(frames)).toBe('completed');
    expect(live['output']).toEqual(whole['output']);
    for (const { stream } of SDKS) expect((await stream(bodyOf(frames))).output).toMatchObject(whole['output'] as Json[]);
  });

  test('every blob comes back on its block, under its own name', () => {
    const found = turn?.content.flatMap((block) => ('signature' in block && block.signature ? [block.signature] : []));
    expect(found).toEqual(blobs);
    const signed = turn?.content.filter((block) => 'signature' in block && block.signature).map(({ type }) => type);
    expect(signed).toEqual(content.filter((block) => 'signature' in block && block.signature).map(({ type }) => type));
  });

  test('what was said and called comes back in its order', () => {
    const said = (blocks: readonly ContentBlock[]): string[] =>
      blocks.map((block) => (block.type === 'text' ? block.text : block.type === 'tool_use' ? block.name : block.type));
    expect(said(turn?.content ?? [])).toEqual(said(content));
  });

  test('no provider sees what another issued', () => {
    const stranger = responsesContext({
      profile: profileFor('openai', 'gpt-5'),
      target: { provider: provider('openai', 'openai-responses'), model: 'gpt-5', stream: false },
    });
    const sent = JSON.stringify(encodeRequestBody(request, stranger)['input']);
    expect(sent).not.toContain('cv1.');
    expect(sent).not.toContain('_sl_');
    expect(sent.includes('gAAA')).toBe(protocol === 'openai-responses');
    const isLost = protocol !== 'openai-responses';
    expect(stranger.notes.some(({ feature }) => feature.startsWith('assistant.'))).toBe(isLost);
  });
});
