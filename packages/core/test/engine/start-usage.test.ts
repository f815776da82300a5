import { describe, expect, test } from 'vitest';
import { chatContext } from '../../../../test/sdk/chat.ts';
import { CODECS, estimateTokens } from '../../src/engine/index.ts';
import { convertRequest, createStreamConverter, type ProtocolId } from '../../src/index.ts';

// Anthropic's streams begin with the tokens of the request, from which clients show how full the context is.

const BODY = {
  model: 'm',
  max_tokens: 99,
  stream: true,
  system: 'Be brief.',
  messages: [{ role: 'user', content: 'x'.repeat(4000) }],
};

const USAGE = { input_tokens: 1234, output_tokens: 2, cache_read_tokens: 1000 };

/** A stream of a server, which reports its usage at the end. */
function streamOf(protocol: ProtocolId): Uint8Array {
  const encoder = CODECS[protocol].streamEncoder(chatContext());
  const frames = [
    { type: 'message_start' as const, message: { id: 'r1', model: 'm' } },
    { type: 'content_block_start' as const, index: 0, content_block: { type: 'text' as const, text: '' } },
    { type: 'content_block_delta' as const, index: 0, delta: { type: 'text_delta' as const, text: 'Hi' } },
    { type: 'content_block_stop' as const, index: 0 },
    { type: 'message_delta' as const, delta: { stop_reason: 'end_turn' as const }, usage: USAGE },
    { type: 'message_stop' as const },
  ].flatMap((event) => [...encoder.push(event)]);
  return new TextEncoder().encode(
    [...frames, ...encoder.end()].map(({ event, data }) => `${event ? `event: ${event}\n` : ''}data: ${data}\n\n`).join(''),
  );
}

function convert(from: ProtocolId, to: ProtocolId) {
  const { request } = convertRequest(BODY, { from: 'anthropic-messages', to: from });
  const converter = createStreamConverter({ from, to, request, tap: true });
  const out = [...converter.push(streamOf(from)), ...converter.end()];
  const payloads = [
    ...Buffer.concat(out)
      .toString()
      .matchAll(/^data: (\{.*)$/gm),
  ].map(([, data]) => JSON.parse(data ?? ''));
  return { payloads, request, converter };
}

const OTHERS = ['openai-chat', 'openai-responses', 'gemini'] as const;

describe.each(OTHERS)('a stream of %s', (from) => {
  test('begins with an estimate for clients of Anthropic, and ends with the usage', () => {
    const { payloads, request } = convert(from, 'anthropic-messages');
    const { input_tokens: estimate } = estimateTokens(request);
    expect(estimate).toBeGreaterThan(1000);
    expect(payloads[0]).toMatchObject({
      type: 'message_start',
      message: { usage: { input_tokens: estimate, output_tokens: 0 } },
    });
    expect(payloads.find(({ type }) => type === 'message_delta')).toMatchObject({
      usage: { input_tokens: 234, cache_read_input_tokens: 1000, output_tokens: 2 },
    });
  });

  test('the estimate is not recorded', () => {
    const { converter } = convert(from, 'anthropic-messages');
    expect(converter.result?.message.usage).toMatchObject({ input_tokens: 1234, output_tokens: 2 });
  });

  test('the estimate is not recorded for a stream that is truncated before its usage', () => {
    const { request } = convertRequest(BODY, { from: 'anthropic-messages', to: from });
    const converter = createStreamConverter({ from, to: 'anthropic-messages', request, tap: 'usage' });
    const bytes = streamOf(from);
    const out = [...converter.push(bytes.subarray(0, bytes.length / 2)), ...converter.fail('reset')];
    expect(Buffer.concat(out).toString()).toContain('message_start');
    expect(converter.result?.message.usage).toBeUndefined();
  });
});

test('a stream of Anthropic begins with the usage that it reports', () => {
  const { payloads } = convert('anthropic-messages', 'anthropic-messages');
  expect(payloads[0]).toMatchObject({ message: { usage: { input_tokens: 0 } } });
});
