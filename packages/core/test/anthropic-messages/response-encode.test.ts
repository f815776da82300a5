import { describe, expect, test } from 'vitest';
import { type Json, messagesContext, readWhole } from '../../../../test/sdk/anthropic.ts';
import type { CanonicalResponse, ContentBlock } from '../../src/canonical/message.ts';
import { CodecError } from '../../src/canonical/notes.ts';
import type { SignedBlob } from '../../src/canonical/protocol.ts';
import { decodeCarrier } from '../../src/codec/answers.ts';
import type { CodecContext } from '../../src/codec/protocol.ts';
import { decodeResponse, encodeResponse } from '../../src/protocols/anthropic-messages/response.ts';

const provider = { id: 'g1', protocol: 'gemini' as const, base_url: 'http://localhost' };

function encode(response: Partial<CanonicalResponse>, changes: Partial<CodecContext> = { source: 'openai-chat' }) {
  const context = messagesContext(changes);
  const body = encodeResponse({ id: 'chatcmpl-1', model: 'gpt', content: [], stop_reason: 'end_turn', ...response }, context);
  return { body, content: body['content'] as Json[], notes: context.notes.map(({ code, feature }) => `${code} ${feature}`) };
}

const GEMINI: SignedBlob = { origin: 'gemini', form: 'thought_signature', value: 'S' };
const text = (value: string, more: object = {}): ContentBlock => ({ type: 'text', text: value, ...more });
const use = (more: object = {}): ContentBlock => ({ type: 'tool_use', id: 'a', name: 'f', input: {}, ...more });
const NOTHING_CITED = { citations: null };
const CALL = { type: 'tool_use', caller: { type: 'direct' }, id: 'a', name: 'f', input: {} };

test('every field that the official type requires, and the SDK reads it', async () => {
  const { body, notes } = encode({
    content: [text('Hi')],
    usage: { input_tokens: 100, output_tokens: 9, cache_read_tokens: 75, cache_creation_tokens: 5 },
    service_tier: 'default',
    system_fingerprint: 'fp',
  });
  expect(body).toEqual({
    id: 'msg_chatcmpl-1',
    type: 'message',
    role: 'assistant',
    model: 'gpt',
    content: [{ type: 'text', text: 'Hi', citations: null }],
    stop_reason: 'end_turn',
    stop_sequence: null,
    stop_details: null,
    container: null,
    diagnostics: null,
    usage: {
      input_tokens: 20,
      cache_read_input_tokens: 75,
      cache_creation_input_tokens: 5,
      output_tokens: 9,
      cache_creation: null,
      output_tokens_details: null,
      server_tool_use: null,
      service_tier: 'standard',
      inference_geo: null,
      speed: null,
    },
  });
  expect(notes).toEqual([]);
  expect(await readWhole(body)).toMatchObject(body);
});

test('without usage there are zeros: the SDK writes into it', () => {
  expect(encode({}).body['usage']).toMatchObject({ input_tokens: 0, output_tokens: 0 });
});

describe('blocks', () => {
  const rows: [name: string, content: ContentBlock[], wire: Json[], notes?: string[]][] = [
    [
      'P80 unsigned thinking',
      [{ type: 'thinking', thinking: 'hm' }],
      [{ type: 'thinking', thinking: 'hm', signature: 'cv1.openai-chat..signature.self.' }],
    ],
    ['thinking that says and carries nothing', [{ type: 'thinking', thinking: '' }], []],
    ['an empty text', [text('')], []],
    ['a call', [use({ input_raw: '{"a":1}', input: { a: 1 } })], [{ ...CALL, input: { a: 1 } }]],
    ['P42 a call with null', [use({ input_raw: 'null' })], [CALL]],
    ['P44 a call with a list', [use({ input_raw: '[1]' })], [{ ...CALL, input: { input: [1] } }], ['REPAIRED tool_use.input']],
    [
      'a call that was cut is none that a tool would take',
      [use({ input_raw: '{"a":' })],
      [{ ...CALL, input: { INVALID_JSON: '{"a":' } }],
      ['REPAIRED tool_use.input'],
    ],
    [
      'so is one that was never JSON',
      [use({ input_raw: 'abc' })],
      [{ ...CALL, input: { INVALID_JSON: 'abc' } }],
      ['REPAIRED tool_use.input'],
    ],
    [
      'and half the text of a custom tool',
      [use({ kind: 'custom', input: 'DELETE FROM t', status: 'incomplete' })],
      [{ ...CALL, input: { INVALID_JSON: 'DELETE FROM t' } }],
      ['REPAIRED tool_use.input'],
    ],
    ['a custom call', [use({ kind: 'custom', input: 'SELECT 1' })], [{ ...CALL, input: { input: 'SELECT 1' } }]],
    ['a call of the provider', [use({ kind: 'server' })], [], ['DROPPED content.server_tool_use']],
    [
      'its result',
      [{ type: 'tool_result', tool_use_id: 'a', content: 'r', kind: 'server' }],
      [],
      ['DROPPED content.tool_result'],
    ],
    ['an image', [{ type: 'image', source: { data: 'A', media_type: 'image/png' } }], [], ['DROPPED content.image']],
    [
      'an image with a URL',
      [{ type: 'image', source: { url: 'https://a/b.png' } }],
      [{ type: 'text', text: '![image](https://a/b.png)', ...NOTHING_CITED }],
      ['APPROXIMATED content.image'],
    ],
    [
      'audio',
      [{ type: 'audio', source: {}, transcript: 'yes' }],
      [{ type: 'text', text: 'yes', ...NOTHING_CITED }],
      ['APPROXIMATED content.audio'],
    ],
    ['silent audio', [{ type: 'audio', source: {} }], [], ['DROPPED content.audio']],
    ['a file', [{ type: 'file', source: { text: 'a' } }], [], ['DROPPED content.file']],
    ['a block of others', [{ type: 'opaque', origin: 'gemini', raw: {} }], [], ['DROPPED content.opaque']],
    [
      'one with a stand-in',
      [{ type: 'opaque', origin: 'gemini', raw: {}, text: 'code' }],
      [{ type: 'text', text: 'code', ...NOTHING_CITED }],
    ],
    [
      'citations that Anthropic did not make',
      [text('a', { citations: [{ kind: 'url', url: 'https://a', origin: 'openai-chat' }] })],
      [{ type: 'text', text: 'a', ...NOTHING_CITED }],
      ['DROPPED citations'],
    ],
  ];

  test.each(rows)('%s', (_name, content, wire, notes = []) => {
    const encoded = encode({ content });
    expect(encoded.content).toEqual(wire);
    expect(encoded.notes).toEqual(notes);
  });
});

describe('signatures of other providers', () => {
  const carriersOf = (content: Json[]) => content.map(({ signature }) => decodeCarrier(String(signature ?? '')));
  const from: Partial<CodecContext> = { source: 'gemini', target: { provider, model: 'm', stream: false } };

  test.each([
    ['P81 a call', use({ signature: GEMINI }), 'tool_use'],
    ['a text', text('a', { signature: GEMINI }), 'text'],
  ])('%s follows an empty thinking block that carries its signature', (_name, block, type) => {
    const { content } = encode({ content: [block] }, from);
    expect(content.map((item) => item['type'])).toEqual(['thinking', type]);
    expect(carriersOf(content)[0]).toEqual({ blob: { ...GEMINI, provider: 'g1' }, attach: 'next' });
    expect(content[1]).not.toHaveProperty('signature');
  });

  test('thinking carries its own', () => {
    const signature: SignedBlob = { origin: 'openai-responses', form: 'encrypted', value: 'E' };
    const { content } = encode({ content: [{ type: 'thinking', thinking: '', variant: 'redacted', signature }] }, from);
    expect(carriersOf(content)).toEqual([{ blob: { ...signature, provider: 'g1' }, attach: 'self' }]);
  });

  test('what was there comes back from the client', () => {
    const { body } = encode({ content: [use({ signature: GEMINI })] }, from);
    expect(JSON.stringify(body)).not.toContain('"S"');
  });
});

describe('stops', () => {
  test('P37 a refusal is text, and says that it is one', () => {
    const { body } = encode({ content: [text('No.', { refusal: true })], stop_reason: 'refusal' });
    expect(body).toMatchObject({
      content: [{ type: 'text', text: 'No.' }],
      stop_reason: 'refusal',
      stop_details: { type: 'refusal', category: null, explanation: null },
    });
  });

  test('a filter is a refusal, with the reason that the provider gave', () => {
    const { body } = encode({ stop_reason: 'content_filter', stop_details: { raw: 'SAFETY' } });
    expect(body).toMatchObject({ stop_reason: 'refusal', stop_details: { type: 'refusal', explanation: 'SAFETY' } });
  });

  test.each([
    [null, undefined, 'the response ended early'],
    ['error', { explanation: 'broken' }, 'broken'],
  ] as const)('%s is an error', (stop_reason, stop_details, message) => {
    const run = () => encode({ stop_reason, ...(stop_details && { stop_details }) });
    expect(run).toThrow(CodecError);
    expect(run).toThrow(message);
  });

  test('so is what failed on the way', () => {
    expect(() => encode({ error: { code: 'OVERLOADED', message: 'busy' } })).toThrow('busy');
  });

  test('P75 only the first choice has a place', () => {
    const choice = { content: [], stop_reason: 'end_turn' as const };
    expect(
      encode({
        choices: [
          { index: 0, ...choice },
          { index: 1, ...choice },
        ],
      }).notes,
    ).toEqual(['DROPPED choices']);
  });
});

describe('reading', () => {
  test.each([
    ['an error with status 200', { type: 'error', error: { type: 'overloaded_error', message: 'busy' } }, 'OVERLOADED', 'busy'],
    ['a text', 'no', 'UPSTREAM_ERROR', 'no'],
    ['anything else', { object: 'list' }, 'UPSTREAM_ERROR', 'the response is not a message'],
    ['nothing', undefined, 'UPSTREAM_ERROR', 'without an error message'],
  ])('%s is an error', (_name, body, code, message) => {
    const run = () => decodeResponse(body, messagesContext());
    expect(run).toThrow(message);
    try {
      run();
    } catch (error) {
      expect(error instanceof CodecError && error.error.code).toBe(code);
    }
  });

  test('calls that code made do not stop the turn: Anthropic says itself when they wait for an answer', () => {
    const caller = { type: 'code_execution_20250825', tool_id: 's' };
    const body = {
      type: 'message',
      role: 'assistant',
      content: [{ type: 'tool_use', id: 'a', name: 'f', input: {}, caller }],
      stop_reason: 'end_turn',
    };
    expect(decodeResponse(body, messagesContext()).stop_reason).toBe('end_turn');
  });
});
