import { describe, expect, test } from 'vitest';
import { chatContext } from '../../../../test/sdk/chat.ts';
import type { CanonicalResponse } from '../../src/canonical/message.ts';
import { PROTOCOL_IDS, type ProtocolId } from '../../src/canonical/protocol.ts';
import { CODECS, replay } from '../../src/engine/index.ts';
import { convertRequest, convertResponse, createStreamConverter } from '../../src/index.ts';
import { encodeSse } from '../../src/sse/encode.ts';

// Nothing is lost without a note.

const BODY = { model: 'm', max_tokens: 99, messages: [{ role: 'user', content: 'hi' }] };

describe('anthropic-beta', () => {
  const convert = (to: ProtocolId, strict = false) =>
    convertRequest(BODY, { from: 'anthropic-messages', to, headers: { 'anthropic-beta': 'a-1,b-2' }, policy: { strict } });

  test.each(PROTOCOL_IDS.filter((id) => id !== 'anthropic-messages'))('towards %s is noted', (to) => {
    const message = 'anthropic-beta "a-1,b-2" is specific to anthropic-messages; dropped';
    expect(convert(to).notes).toEqual([{ code: 'DROPPED', path: '', feature: 'headers.anthropic-beta', message }]);
    expect(convert(to, true).notes).toHaveLength(1);
  });

  test('towards Anthropic is sent', () => {
    expect(convert('anthropic-messages')).toMatchObject({ notes: [], headers: { 'anthropic-beta': 'a-1,b-2' } });
  });
});

/** What a server reports beside the content, and the protocols that have no field for it. */
const FACTS: readonly { from: ProtocolId; name: string; response: Partial<CanonicalResponse>; lost: readonly ProtocolId[] }[] = [
  { from: 'openai-chat', name: 'service_tier', response: { service_tier: 'flex' }, lost: ['anthropic-messages', 'gemini'] },
  { from: 'openai-chat', name: 'service_tier', response: { service_tier: 'priority' }, lost: ['gemini'] },
  { from: 'openai-responses', name: 'service_tier', response: { service_tier: 'default' }, lost: [] },
  {
    from: 'anthropic-messages',
    name: 'stop_sequence',
    response: { stop_reason: 'stop_sequence', stop_sequence: 'END' },
    lost: ['openai-chat', 'openai-responses', 'gemini'],
  },
  {
    from: 'anthropic-messages',
    name: 'usage.server_tool_use',
    response: { usage: { input_tokens: 1, output_tokens: 1, details: { web_search_requests: 2 } } },
    lost: ['openai-chat', 'openai-responses', 'gemini'],
  },
];

const ROWS = FACTS.flatMap((fact) => PROTOCOL_IDS.filter((to) => to !== fact.from).map((to) => ({ ...fact, to })));

describe.each(ROWS)('$name of $from towards $to', ({ from, to, name, response, lost }) => {
  const answer: CanonicalResponse = {
    id: 'r1',
    model: 'm',
    content: [{ type: 'text', text: 'Hi' }],
    stop_reason: 'end_turn',
    usage: { input_tokens: 1, output_tokens: 1 },
    ...response,
  };
  const expected = lost.includes(to) ? ['DROPPED'] : [];
  const codesOf = (notes: readonly { code: string; feature: string }[]): string[] =>
    notes.filter(({ feature }) => feature === name).map(({ code }) => code);
  const { request } = convertRequest(BODY, { from: 'anthropic-messages', to: from });

  test('is noted in a whole response', () => {
    const body = JSON.parse(JSON.stringify(CODECS[from].response.encode(answer, chatContext())));
    expect(codesOf(convertResponse(body, { from, to, request }).notes)).toEqual(expected);
  });

  test('is noted in a stream', () => {
    const encoder = CODECS[from].streamEncoder(chatContext());
    const frames = [...[...replay(answer)].flatMap((event) => [...encoder.push(event)]), ...encoder.end()];
    const converter = createStreamConverter({ from, to, request, policy: { strict: true } });
    const sent = frames.map((frame) => encodeSse(frame)).join('');
    const out = Buffer.concat([...converter.push(new TextEncoder().encode(sent)), ...converter.end()]).toString();
    expect(codesOf(converter.notes)).toEqual(expected);
    expect(out).not.toContain('"error":{');
  });
});
