import { describe, expect, test } from 'vitest';
import { bodyOf, encodeMessages, type Json, messagesContext, payloadsOf, readStream } from '../../../../test/sdk/anthropic.ts';
import type { BlockDelta, CanonicalStreamEvent } from '../../src/canonical/events.ts';
import type { CanonicalUsage, ContentBlock, StopReason } from '../../src/canonical/message.ts';
import type { SignedBlob } from '../../src/canonical/protocol.ts';
import { decodeCarrier } from '../../src/codec/answers.ts';
import type { CodecContext } from '../../src/codec/protocol.ts';
import { MessagesGrammar } from '../../src/protocols/anthropic-messages/grammar.ts';
import { encodeStream } from '../../src/protocols/anthropic-messages/stream-encode.ts';

type Events = CanonicalStreamEvent[];

const start = (message: object = {}): Events => [
  { type: 'message_start', message: { id: 'chatcmpl-1', model: 'gpt', ...message } },
];
const open = (index: number, content_block: ContentBlock, choice?: number): Events => [
  { type: 'content_block_start', index, content_block, ...(choice !== undefined && { choice }) },
];
const delta = (index: number, value: BlockDelta, choice?: number): Events => [
  { type: 'content_block_delta', index, delta: value, ...(choice !== undefined && { choice }) },
];
const close = (index: number, content_block?: ContentBlock): Events => [
  { type: 'content_block_stop', index, ...(content_block && { content_block }) },
];
const finish = (stop_reason: StopReason | null, more: object = {}): Events => [
  { type: 'message_delta', delta: { stop_reason }, ...more } as CanonicalStreamEvent,
];
const stop: Events = [{ type: 'message_stop' }];
const end = (reason: StopReason = 'end_turn', more: object = {}): Events => [...finish(reason, more), ...stop];

const TEXT: ContentBlock = { type: 'text', text: '' };
const THINKING: ContentBlock = { type: 'thinking', thinking: '' };
const use = (id: string, name: string, rest: object = {}): ContentBlock => ({ type: 'tool_use', id, name, input: {}, ...rest });
const say = (index: number, ...texts: string[]): Events => [
  ...open(index, TEXT),
  ...texts.flatMap((text) => delta(index, { type: 'text_delta', text })),
  ...close(index),
];
const args = (index: number, partial_json: string): Events => delta(index, { type: 'input_json_delta', partial_json });
const sign = (index: number, signature: SignedBlob): Events => delta(index, { type: 'signature_delta', signature });

const GEMINI: SignedBlob = { origin: 'gemini', form: 'thought_signature', value: 'S' };
const OWN: SignedBlob = { origin: 'anthropic-messages', form: 'signature', value: 'sig' };
const provider = { id: 'g1', protocol: 'gemini' as const, base_url: 'http://localhost' };
const FROM_GEMINI: Partial<CodecContext> = { source: 'gemini', target: { provider, model: 'm', stream: true } };

/** A frame in short: what it starts, adds or stops. */
function brief(payload: Json): string {
  const { type, index, content_block: block, delta: value } = payload as Record<string, Json & { type: string }>;
  if (String(type) === 'content_block_start') return `${index}+${block?.type}${block?.['name'] ? `:${block['name']}` : ''}`;
  if (String(type) === 'content_block_stop') return `${index}-`;
  if (String(type) === 'content_block_delta') {
    const { type: kind, ...rest } = value ?? { type: '' };
    return `${index} ${kind.replace('_delta', '')} ${shorten(Object.values(rest)[0])}`;
  }
  return String(type);
}

/** Carriers by what they carry and where to. */
function shorten(value: unknown): string {
  const carrier = decodeCarrier(String(value));
  return carrier ? `${carrier.attach}:${carrier.blob.provider}:${carrier.blob.value}` : JSON.stringify(value);
}

function run(events: Events, changes: Partial<CodecContext> = { source: 'openai-chat' }) {
  const context = messagesContext(changes);
  const frames = encodeMessages(events, context);
  MessagesGrammar.check(frames);
  const payloads = payloadsOf(frames);
  return { context, frames, payloads, blocks: payloads.map(brief).filter((line) => /^\d/.test(line)) };
}

const notesOf = ({ context }: ReturnType<typeof run>): string[] => context.notes.map(({ code, feature }) => `${code} ${feature}`);

describe('the envelope', () => {
  test('message_start, ping, message_delta, message_stop, each with its event line (P104)', () => {
    const { frames } = run([...start(), ...say(0, 'Hi'), ...end()]);
    expect(frames.map(({ event }) => event)).toEqual([
      'message_start',
      'ping',
      'content_block_start',
      'content_block_delta',
      'content_block_stop',
      'message_delta',
      'message_stop',
    ]);
  });

  test('the id gets its prefix, the model is the one that was asked for, usage is counted from the start', () => {
    const request = { model: 'asked', messages: [], parameters: {} };
    const [first] = run([...start({ usage: { input_tokens: 3 } }), ...end()], { source: 'openai-chat', request }).payloads;
    expect(first?.['message']).toEqual({
      id: 'msg_chatcmpl-1',
      type: 'message',
      role: 'assistant',
      model: 'asked',
      content: [],
      stop_reason: null,
      stop_sequence: null,
      stop_details: null,
      container: null,
      diagnostics: null,
      usage: {
        input_tokens: 3,
        output_tokens: 0,
        cache_creation_input_tokens: 0,
        cache_read_input_tokens: 0,
        cache_creation: null,
        output_tokens_details: null,
        server_tool_use: null,
        service_tier: null,
        inference_geo: null,
        speed: null,
      },
    });
  });

  test('P95 P99 usage that comes with the finish stands in the one message_delta, without what the cache had', () => {
    const usage: CanonicalUsage = { input_tokens: 100, output_tokens: 9, cache_read_tokens: 75, reasoning_tokens: 4 };
    const { payloads } = run([...start(), ...say(0, 'Hi'), ...end('end_turn', { usage })]);
    expect(payloads.filter(({ type }) => type === 'message_delta')).toEqual([
      {
        type: 'message_delta',
        delta: { stop_reason: 'end_turn', stop_sequence: null, stop_details: null, container: null },
        usage: {
          input_tokens: 25,
          cache_read_input_tokens: 75,
          cache_creation_input_tokens: 0,
          output_tokens: 9,
          output_tokens_details: { thinking_tokens: 4 },
          server_tool_use: null,
        },
      },
    ]);
  });

  test('an answer of this protocol keeps its id, its pings and what only it knows', () => {
    const extensions = {
      'anthropic-messages': { context_management: { applied_edits: [] }, container: { id: 'c' }, finish_reason: 'compaction' },
    };
    const events: Events = [...start({ id: 'msg_1' }), { type: 'ping' }, ...finish('pause_turn', { extensions }), ...stop];
    const { frames, payloads } = run(events, { source: 'anthropic-messages' });
    expect(frames.map(({ event }) => event)).toEqual(['message_start', 'ping', 'message_delta', 'message_stop']);
    expect(payloads[0]?.['message']).toMatchObject({ id: 'msg_1' });
    expect(payloads[2]).toMatchObject({
      context_management: { applied_edits: [] },
      delta: { stop_reason: 'compaction', container: { id: 'c' } },
    });
    expect(payloads[2]).not.toHaveProperty('finish_reason');
  });

  test.each([
    ['end_turn', 'end_turn'],
    ['max_tokens', 'max_tokens'],
    ['tool_use', 'tool_use'],
    ['stop_sequence', 'stop_sequence'],
    ['pause_turn', 'pause_turn'],
    ['context_window', 'model_context_window_exceeded'],
    ['refusal', 'refusal'],
    ['content_filter', 'refusal'],
  ] as const)('%s is %s', (reason, wire) => {
    const { payloads } = run([...start(), ...end(reason)]);
    expect(payloads.at(-2)?.['delta']).toMatchObject({ stop_reason: wire });
  });

  test('P37 a refusal has details, in a category that the client knows', () => {
    const details = { delta: { stop_reason: 'refusal', stop_details: { category: 'SAFETY', explanation: 'No.' } } };
    const { payloads } = run([...start(), ...finish('refusal', details), ...stop]);
    expect(payloads.at(-2)?.['delta']).toMatchObject({ stop_details: { type: 'refusal', category: null, explanation: 'No.' } });
  });
});

describe('blocks', () => {
  const rows: [name: string, events: Events, blocks: string[]][] = [
    ['P103 an empty text is none', say(0, ''), []],
    ['text', say(0, 'Hi', ' you'), ['0+text', '0 text "Hi"', '0 text " you"', '0-']],
    [
      'P101 text stops before a call begins',
      [...say(0, 'a'), ...open(1, use('x', 'f')), ...args(1, '{}'), ...close(1)],
      ['0+text', '0 text "a"', '0-', '1+tool_use:f', '1 input_json "{}"', '1-'],
    ],
    ['P42 a call without arguments', [...open(0, use('x', 'f')), ...close(0)], ['0+tool_use:f', '0 input_json ""', '0-']],
    [
      'P80 unsigned thinking',
      [...open(0, THINKING), ...delta(0, { type: 'thinking_delta', thinking: 'hm' }), ...close(0), ...say(1, 'a')],
      ['0+thinking', '0 thinking "hm"', '0 signature self:undefined:', '0-', '1+text', '1 text "a"', '1-'],
    ],
    ['P134 what is left out takes no index', [...open(0, THINKING), ...close(0), ...say(1, 'a')], ['0+text', '0 text "a"', '0-']],
    [
      'the signature comes right before the stop, and once',
      [
        ...open(0, THINKING),
        ...sign(0, OWN),
        ...delta(0, { type: 'thinking_delta', thinking: 'hm' }),
        ...sign(0, OWN),
        ...close(0),
      ],
      ['0+thinking', '0 thinking "hm"', '0 signature "sig"', '0-'],
    ],
    [
      'a signature that comes late finds its block by the index',
      [...open(0, { type: 'thinking', thinking: 'hm' }), ...close(0), ...say(1, 'a'), ...sign(0, OWN)],
      ['0+thinking', '0 thinking "hm"', '0 signature self:undefined:', '0-', '1+text', '1 text "a"', '1-', '0 signature "sig"'],
    ],
    [
      'redacted thinking is whole in its start',
      [...open(0, { type: 'thinking', thinking: '', variant: 'redacted', signature: { ...OWN, form: 'redacted' } }), ...close(0)],
      ['0+redacted_thinking', '0-'],
    ],
    [
      'P44 arguments that are no object are put into one',
      [...open(0, use('x', 'f')), ...args(0, '['), ...args(0, '1]'), ...close(0)],
      ['0+tool_use:f', '0 input_json "{\\"input\\":[1]}"', '0-'],
    ],
    [
      'arguments that are no JSON do not look whole',
      [...open(0, use('x', 'f')), ...args(0, 'abc'), ...close(0)],
      ['0+tool_use:f', '0 input_json "{\\"INVALID_JSON\\":\\"abc\\""', '0-'],
    ],
    [
      'nor does the text of a custom tool that was cut',
      [
        ...open(0, use('x', 'sql', { kind: 'custom', input: '' })),
        ...delta(0, { type: 'input_text_delta', text: 'DELETE FROM t' }),
        ...close(0, use('x', 'sql', { kind: 'custom', input: '', status: 'incomplete' })),
      ],
      ['0+tool_use:sql', '0 input_json "{\\"input\\":\\"DELETE FROM t"', '0-'],
    ],
    ['P42 null is none', [...open(0, use('x', 'f')), ...args(0, 'null'), ...close(0)], ['0+tool_use:f', '0 input_json ""', '0-']],
    [
      'P44 as they are written, to the last digit',
      [...open(0, use('x', 'f')), ...args(0, ' '), ...args(0, '[9007199254740993'), ...args(0, ']'), ...close(0)],
      ['0+tool_use:f', '0 input_json "{\\"input\\": [9007199254740993]}"', '0-'],
    ],
    [
      'white space before an object goes with it',
      [...open(0, use('x', 'f')), ...args(0, ' '), ...args(0, '\n{'), ...args(0, '}'), ...close(0)],
      ['0+tool_use:f', '0 input_json " \\n{"', '0 input_json "}"', '0-'],
    ],
    [
      'the text of a custom tool is the one field of an object',
      [
        ...open(0, use('x', 'sql', { kind: 'custom', input: '' })),
        ...delta(0, { type: 'input_text_delta', text: 'SELECT "a"' }),
        ...delta(0, { type: 'input_text_delta', text: '\n;' }),
        ...close(0),
      ],
      [
        '0+tool_use:sql',
        '0 input_json "{\\"input\\":\\"SELECT \\\\\\"a\\\\\\""',
        '0 input_json "\\\\n;"',
        '0 input_json "\\"}"',
        '0-',
      ],
    ],
    [
      'a refusal is text',
      [...open(0, { ...TEXT, refusal: true }), ...delta(0, { type: 'text_delta', text: 'No.', refusal: true }), ...close(0)],
      ['0+text', '0 text "No."', '0-'],
    ],
    [
      'an image is told',
      [...open(0, { type: 'image', source: { url: 'https://a/b.png' } }), ...close(0)],
      ['0+text', '0 text "![image](https://a/b.png)"', '0-'],
    ],
    [
      'of audio there is the transcript',
      [
        ...open(0, { type: 'audio', source: {} }),
        ...delta(0, { type: 'audio_delta', data: 'AAAA', transcript: 'yes' }),
        ...close(0),
      ],
      ['0+text', '0 text "yes"', '0-'],
    ],
    [
      'a stand-in of the source stands',
      [...open(0, { type: 'opaque', origin: 'gemini', raw: {}, text: 'code' }), ...close(0)],
      ['0+text', '0 text "code"', '0-'],
    ],
    [
      'what another provider ran is nothing to the client',
      [
        ...open(0, use('x', 'web_search', { kind: 'server' })),
        ...args(0, '{}'),
        ...close(0),
        ...open(1, { type: 'tool_result', tool_use_id: 'x', content: 'r', kind: 'server' }),
        ...close(1),
        ...open(2, { type: 'opaque', origin: 'gemini', raw: {} }),
        ...close(2),
        ...say(3, 'a'),
      ],
      ['0+text', '0 text "a"', '0-'],
    ],
  ];

  test.each(rows)('%s', (_name, events, blocks) => {
    expect(run([...start(), ...events, ...end()]).blocks).toEqual(blocks);
  });

  test.each([
    ['{"a":', '{"a":', {}],
    ['abc', '{"INVALID_JSON":"abc"', { INVALID_JSON: 'abc' }],
    ['["half', '{"INVALID_JSON":"[\\"half"', { INVALID_JSON: '["half' }],
  ])('a call cut at %s stays cut', async (text, sent, input) => {
    const events = [
      ...start(),
      ...open(0, use('x', 'f')),
      ...args(0, text),
      ...close(0, use('x', 'f', { status: 'incomplete' })),
      ...end('max_tokens'),
    ];
    const { blocks, frames } = run(events);
    expect(blocks).toEqual(['0+tool_use:f', `0 input_json ${JSON.stringify(sent)}`, '0-']);
    expect(() => JSON.parse(sent)).toThrow();
    expect(await readStream(bodyOf(frames))).toMatchObject({ stop_reason: 'max_tokens', content: [{ input }] });
  });

  test('unknown blocks of the protocol are sent unchanged', () => {
    const events = [
      ...open(0, { type: 'opaque', origin: 'anthropic-messages', raw: { type: 'compaction', content: null } }),
      ...delta(0, { type: 'opaque_delta', raw: { content: 'a' } }),
      ...delta(0, { type: 'opaque_delta', raw: { content: 'b' } }),
      ...close(0),
    ];
    const { payloads } = run([...start(), ...events, ...end()], { source: 'anthropic-messages' });
    expect(payloads[1]?.['content_block']).toEqual({ type: 'compaction', content: 'ab' });
  });

  test('citations of our own stay, those of others cannot', () => {
    const citation = {
      kind: 'url' as const,
      url: 'https://a',
      raw: { type: 'web_search_result_location', encrypted_index: 'x' },
    };
    const cite = (origin: 'anthropic-messages' | 'openai-chat'): Events => [
      ...open(0, TEXT),
      ...delta(0, { type: 'text_delta', text: 'a' }),
      ...delta(0, { type: 'citations_delta', citation: { ...citation, origin } }),
      ...close(0),
    ];
    expect(run([...start(), ...cite('anthropic-messages'), ...end()], { source: 'anthropic-messages' }).blocks).toContain(
      '0 citations {"type":"web_search_result_location","encrypted_index":"x"}',
    );
    expect(notesOf(run([...start(), ...cite('openai-chat'), ...end()]))).toEqual(['DROPPED citations']);
  });
});

describe('signatures of other providers', () => {
  const rows: [name: string, events: Events, blocks: string[]][] = [
    [
      'P81 a signed call follows an empty thinking block that carries it',
      [...open(0, use('x', 'f')), ...sign(0, GEMINI), ...args(0, '{}'), ...close(0)],
      ['0+thinking', '0-', '1+tool_use:f', '1 input_json "{}"', '1-'],
    ],
    [
      'so does a call that is signed from the start',
      [...open(0, use('x', 'f', { signature: GEMINI })), ...close(0)],
      ['0+thinking', '0-', '1+tool_use:f', '1 input_json ""', '1-'],
    ],
    [
      'a text that is signed before it begins',
      [...open(0, { ...TEXT, signature: GEMINI }), ...delta(0, { type: 'text_delta', text: 'a' }), ...close(0)],
      ['0+thinking', '0-', '1+text', '1 text "a"', '1-'],
    ],
    [
      'P83 a signature that comes when the text is out stands behind it',
      [...open(0, TEXT), ...delta(0, { type: 'text_delta', text: 'a' }), ...sign(0, GEMINI), ...close(0)],
      ['0+text', '0 text "a"', '0-', '1+thinking', '1-'],
    ],
    [
      'one that comes after the stop waits for the open block',
      [...say(0, 'a'), ...open(1, use('x', 'f')), ...args(1, '{'), ...sign(0, GEMINI), ...args(1, '}'), ...close(1)],
      ['0+text', '0 text "a"', '0-', '1+tool_use:f', '1 input_json "{"', '1 input_json "}"', '1-', '2+thinking', '2-'],
    ],
    ['an empty text that carries one', [...open(0, TEXT), ...sign(0, GEMINI), ...close(0)], ['0+thinking', '0-']],
    [
      'encrypted reasoning that shows nothing',
      [...open(0, THINKING), ...sign(0, { origin: 'openai-responses', form: 'encrypted', value: 'E' }), ...close(0)],
      ['0+thinking', '0 signature self:g1:E', '0-'],
    ],
  ];

  test.each(rows)('%s', (_name, events, blocks) => {
    const found = run([...start(), ...events, ...end()], FROM_GEMINI);
    expect(found.blocks).toEqual(blocks);
    const carried = found.payloads.flatMap(({ content_block: block, delta: value }) => {
      const { signature = '' } = ((block ?? value) as Json) ?? {};
      return decodeCarrier(String(signature)) ?? [];
    });
    expect(carried.map(({ blob }) => blob.provider)).toEqual(['g1']);
  });
});

describe('interleaved calls (P102)', () => {
  const both = [...open(0, use('a', 'f')), ...open(1, use('b', 'g'))];

  test('come out as whole blocks, one after the other', () => {
    const events = [
      ...both,
      ...args(0, '{"x"'),
      ...args(1, '{"y"'),
      ...args(0, ':1}'),
      ...args(1, ':2}'),
      ...close(1),
      ...close(0),
    ];
    expect(run([...start(), ...events, ...end('tool_use')]).blocks).toEqual([
      '0+tool_use:f',
      '0 input_json "{\\"x\\""',
      '0 input_json ":1}"',
      '0-',
      '1+tool_use:g',
      '1 input_json "{\\"y\\""',
      '1 input_json ":2}"',
      '1-',
    ]);
  });

  test('nothing waits that need not: the first flows at once, and the next when it is certain that the first is whole', () => {
    const encoder = encodeStream(messagesContext({ source: 'openai-chat' }));
    const push = (events: Events): string[] => events.flatMap((event) => payloadsOf([...encoder.push(event)]).map(brief));
    push(start());
    expect(push(both)).toEqual(['0+tool_use:f']);
    expect(push(args(0, '{'))).toEqual(['0 input_json "{"']);
    expect(push(args(1, '{'))).toEqual([]);
    expect(push(args(0, '}'))).toEqual(['0 input_json "}"']);
    expect(push(close(0))).toEqual([]);
    expect(push(args(1, '}'))).toEqual([]);
    expect(push(close(1))).toEqual([]);
    const rest = ['0-', '1+tool_use:g', '1 input_json "{"', '1 input_json "}"', '1-'];
    expect(push(say(2, 'a'))).toEqual([...rest, '2+text', '2 text "a"']);
    expect(push(finish('tool_use'))).toEqual(['2-']);
  });

  test('a call of Gemini waits for its signature, but not longer than for its arguments', () => {
    const encoder = encodeStream(messagesContext(FROM_GEMINI));
    const push = (events: Events): string[] => events.flatMap((event) => payloadsOf([...encoder.push(event)]).map(brief));
    push(start());
    expect(push(open(0, use('a', 'f')))).toEqual([]);
    expect(push(args(0, '{'))).toEqual(['0+tool_use:f', '0 input_json "{"']);
  });

  test('the cost is that of the stream: many calls at once, each piece goes out once', () => {
    const many = Array.from({ length: 2000 }, (_, i) => i);
    const events = [
      ...many.flatMap((i) => open(i, use(`c${i}`, 'f'))),
      ...many.flatMap((i) => args(i, '{')),
      ...many.flatMap((i) => args(i, '}')),
      ...many.toReversed().flatMap((i) => close(i)),
    ];
    expect(run([...start(), ...events, ...end('tool_use')]).blocks).toHaveLength(4 * many.length);
  });
});

describe('errors and ends', () => {
  const ERROR: Events = [{ type: 'error', error: { code: 'OVERLOADED', message: 'busy' } }];

  test('P105 an error of the source is one of this protocol, and the last word', () => {
    const { payloads } = run([...start(), ...say(0, 'a'), ...finish(null), ...ERROR, ...say(1, 'b')]);
    expect(payloads.at(-1)).toEqual({ type: 'error', error: { type: 'overloaded_error', message: 'busy' }, request_id: null });
  });

  test('P105 blocks that the source stopped as it broke off are not whole: Claude Code runs a call that has stopped', () => {
    const cut: Events = [...start(), ...say(0, 'a'), ...open(1, use('x', 'f')), ...args(1, '{"p":"a'), ...open(2, use('y', 'g'))];
    const { frames, payloads } = run([...cut, ...close(1), ...args(2, '{"q"'), ...close(2), ...ERROR]);
    const stopped = payloads.filter(({ type }) => type === 'content_block_stop');
    expect(stopped).toEqual([{ type: 'content_block_stop', index: 0 }]);
    expect(JSON.stringify(payloads)).not.toContain('"id":"y"');
    expect(MessagesGrammar.check(frames)).toBe('error');
  });

  test('an error before anything', () => {
    expect(run(ERROR).frames.map(({ event }) => event)).toEqual(['error']);
  });

  test('an early end is an error, never an invented stop', async () => {
    const { payloads, frames } = run([...start(), ...open(0, TEXT), ...delta(0, { type: 'text_delta', text: 'a' })]);
    expect(payloads.at(-1)).toMatchObject({ type: 'error', error: { type: 'overloaded_error' } });
    await expect(readStream(bodyOf(frames))).rejects.toThrow('the stream ended early');
  });

  test('message_stop without a reason is an early end', () => {
    expect(run([...start(), ...say(0, 'a'), ...stop]).payloads.at(-1)).toMatchObject({ type: 'error' });
  });

  test('P117 a generation that the provider aborted is an error', () => {
    const more = { delta: { stop_reason: 'error', stop_details: { raw: 'MALFORMED_FUNCTION_CALL' } } };
    const { payloads } = run([...start(), ...finish('error', more), ...stop]);
    expect(payloads.at(-1)).toMatchObject({ type: 'error', error: { type: 'api_error', message: 'MALFORMED_FUNCTION_CALL' } });
  });

  test('a loss that the policy refuses ends the stream in an error', () => {
    const events = [...start(), ...say(0, 'a'), ...open(1, use('x', 'web_search', { kind: 'server' })), ...close(1), ...end()];
    const { payloads } = run(events, { source: 'openai-responses', policy: { strict: true } });
    expect(payloads.at(-1)).toMatchObject({ type: 'error', error: { type: 'invalid_request_error' } });
  });

  test('a second end() writes nothing', () => {
    const encoder = encodeStream(messagesContext());
    expect([...encoder.end()]).toHaveLength(1);
    expect([...encoder.end()]).toHaveLength(0);
  });

  test('what a server nested too deeply is an error', () => {
    let raw: unknown = {};
    for (let i = 0; i < 100_000; i++) raw = { raw };
    const block: ContentBlock = { type: 'opaque', origin: 'anthropic-messages', raw: { type: 'x', raw } };
    const { payloads } = run([...start(), ...open(0, block), ...close(0), ...end()], { source: 'anthropic-messages' });
    expect(payloads.at(-1)).toMatchObject({ type: 'error', error: { type: 'api_error' } });
  });
});

describe('P75 several choices', () => {
  test('only the first choice is sent, with one note', () => {
    const other = [
      ...open(0, TEXT, 1),
      ...delta(0, { type: 'text_delta', text: 'other' }, 1),
      ...finish('end_turn', { choice: 1, usage: { input_tokens: 1, output_tokens: 5 } }),
    ];
    const found = run([...start(), ...say(0, 'a'), ...other, ...finish('end_turn'), ...stop]);
    expect(found.blocks).toEqual(['0+text', '0 text "a"', '0-']);
    expect(notesOf(found)).toEqual(['DROPPED choices']);
    expect(found.payloads.at(-2)?.['usage']).toMatchObject({ output_tokens: 5 });
  });

  test('when there is no first one, it is empty', () => {
    const found = run([...start(), ...finish('end_turn', { choice: 1 }), ...stop]);
    expect(found.payloads.at(-2)?.['delta']).toMatchObject({ stop_reason: 'end_turn' });
    expect(notesOf(found)).toEqual(['DROPPED choices', 'REPAIRED choices']);
  });
});

test('a name that grew is noted', () => {
  const found = run([
    ...start(),
    ...open(0, use('x', 'get_')),
    ...args(0, '{}'),
    ...close(0, use('x', 'get_time')),
    ...end('tool_use'),
  ]);
  expect(notesOf(found)).toEqual(['APPROXIMATED content.tool_use.name']);
});

test('a call that has not gone out is corrected', () => {
  const events = [...start(), ...open(0, use('x', 'get_')), ...close(0, use('x', 'get_time')), ...end('tool_use')];
  expect(run(events, FROM_GEMINI).blocks[0]).toBe('0+tool_use:get_time');
});
