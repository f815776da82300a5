import { expect, test } from 'vitest';
import { bytesOf, splitEvery } from '../../../../test/run.ts';
import { EventReader } from '../../src/engine/reader.ts';
import type { BlockDelta, CanonicalStreamEvent } from '../../src/index.ts';
import { openaiChat } from '../../src/protocols/openai-chat/index.ts';

function textOf(delta: BlockDelta): string {
  if (delta.type === 'citations_delta') return `cites ${delta.citation.url}`;
  return 'text' in delta ? delta.text : 'thinking' in delta ? delta.thinking : 'partial_json' in delta ? delta.partial_json : '';
}

/** An event in a few words. */
function digest(event: CanonicalStreamEvent): string {
  const choice = 'choice' in event && event.choice ? `choice ${event.choice} ` : '';
  switch (event.type) {
    case 'message_start':
      return `start ${event.message.id} ${event.message.model}`;
    case 'content_block_start': {
      const { content_block: block, index } = event;
      return `${choice}open ${index} ${block.type}${block.type === 'tool_use' ? ` ${block.id} ${block.name}${block.kind ? ` ${block.kind}` : ''}` : ''}${block.type === 'text' && block.refusal ? ' refusal' : ''}`;
    }
    case 'content_block_delta':
      return `${choice}${event.index} ${textOf(event.delta)}`;
    case 'content_block_stop':
      return `${choice}close ${event.index}`;
    case 'message_delta':
      return `${choice}finish ${event.delta.stop_reason}${event.usage ? ` ${event.usage.input_tokens}+${event.usage.output_tokens}` : ''}`;
    case 'error':
      return `error ${event.error.code}`;
    default:
      return event.type;
  }
}

function read(body: string): string[] {
  const reader = new EventReader({ protocol: openaiChat });
  return [...splitEvery(bytesOf(body), 7).flatMap((piece) => reader.push(piece)), ...reader.end()].map(digest);
}

const chunk = (delta: object | undefined, more: object = {}): string =>
  `data: ${JSON.stringify({ id: 'r', model: 'm', choices: [{ index: 0, ...(delta && { delta }), finish_reason: null, ...more }] })}\n\n`;
const call = (entry: object): string => chunk({ tool_calls: [entry] });
const finish = (reason: string): string => chunk({}, { finish_reason: reason });
const usage = 'data: {"id":"r","model":"m","choices":[],"usage":{"prompt_tokens":3,"completion_tokens":4,"total_tokens":7}}\n\n';
const DONE = 'data: [DONE]\n\n';

const cited = (url: string): object => ({ annotations: [{ type: 'url_citation', url_citation: { url } }] });
const f = (name: string, args: string): object => ({ function: { name, arguments: args } });
const args = (text: string): object => ({ function: { arguments: text } });

/** What the founding document's stream decoder does wrong (#49-#65, docs/seed-004.md), and reported streams (P.., docs/pitfalls.md). */
const ROWS: [name: string, body: string, events: string[]][] = [
  [
    'P133 text inside an unfinished call: the whole call first, then the text',
    call({ index: 0, id: 'c', ...f('f', '') }) +
      call({ index: 0, ...args('{"x"') }) +
      chunk({ content: 'T' }) +
      call({ index: 0, ...args(':1}') }) +
      finish('tool_calls') +
      DONE,
    [
      'start r m',
      'open 0 tool_use c f',
      '0 {"x"',
      '0 :1}',
      'close 0',
      'open 1 text',
      '1 T',
      'close 1',
      'finish tool_use',
      'message_stop',
    ],
  ],
  [
    '#49 the finish waits for the usage: one message_delta, one message_stop',
    chunk({ content: 'a' }) + finish('stop') + usage + DONE,
    ['start r m', 'open 0 text', '0 a', 'close 0', 'finish end_turn 3+4', 'message_stop'],
  ],
  [
    '#50 P88 a blank id continues the call',
    call({ index: 0, id: 'c', ...f('f', '') }) +
      call({ index: 0, id: '', ...args('{"a"') }) +
      call({ index: 0, id: '', ...args(':1}') }) +
      finish('tool_calls') +
      DONE,
    ['start r m', 'open 0 tool_use c f', '0 {"a"', '0 :1}', 'close 0', 'finish tool_use', 'message_stop'],
  ],
  [
    '#50 P89 a repeated id and name continue the call',
    call({ index: 0, id: 'c', ...f('f', '{"a"') }) + call({ index: 0, id: 'c', ...f('f', ':1}') }) + finish('tool_calls') + DONE,
    ['start r m', 'open 0 tool_use c f', '0 {"a":1}', 'close 0', 'finish tool_use', 'message_stop'],
  ],
  [
    '#51 P90 index 0 for parallel calls',
    call({ index: 0, id: 'c', ...f('f', '{"a":1}') }) +
      call({ index: 0, id: 'd', ...f('g', '{"b":2}') }) +
      finish('tool_calls') +
      DONE,
    [
      'start r m',
      'open 0 tool_use c f',
      '0 {"a":1}',
      'close 0',
      'open 1 tool_use d g',
      '1 {"b":2}',
      'close 1',
      'finish tool_use',
      'message_stop',
    ],
  ],
  [
    '#51 P91 no index',
    call({ id: 'c', ...f('f', '') }) + call(args('{"a":1}')) + finish('tool_calls') + DONE,
    ['start r m', 'open 0 tool_use c f', '0 {"a":1}', 'close 0', 'finish tool_use', 'message_stop'],
  ],
  [
    '#52 #53 every block has an index of its own',
    chunk({ reasoning_content: 'r', content: 't' }) +
      call({ index: 0, id: 'c', ...f('f', '{"a":1}') }) +
      finish('tool_calls') +
      DONE,
    [
      'start r m',
      'open 0 thinking',
      '0 r',
      'close 0',
      'open 1 text',
      '1 t',
      'close 1',
      'open 2 tool_use c f',
      '2 {"a":1}',
      'close 2',
      'finish tool_use',
      'message_stop',
    ],
  ],
  [
    '#54 P101 a change of kind closes the block, and later text opens another',
    chunk({ content: 'a' }) +
      call({ index: 0, id: 'c', ...f('f', '{"a":1}') }) +
      chunk({ content: 'b' }) +
      finish('tool_calls') +
      DONE,
    [
      'start r m',
      'open 0 text',
      '0 a',
      'close 0',
      'open 1 tool_use c f',
      '1 {"a":1}',
      'close 1',
      'open 2 text',
      '2 b',
      'close 2',
      'finish tool_use',
      'message_stop',
    ],
  ],
  [
    '#55 reasoning stands before the text of the same chunk',
    chunk({ content: 't', reasoning: 'r' }) + finish('stop') + DONE,
    ['start r m', 'open 0 thinking', '0 r', 'close 0', 'open 1 text', '1 t', 'close 1', 'finish end_turn', 'message_stop'],
  ],
  [
    '#56 empty content opens nothing',
    chunk({ role: 'assistant', content: '' }) + call({ index: 0, id: 'c', ...f('f', '{"a":1}') }) + finish('tool_calls') + DONE,
    ['start r m', 'open 0 tool_use c f', '0 {"a":1}', 'close 0', 'finish tool_use', 'message_stop'],
  ],
  [
    '#57 P92 a call opens when its name is known',
    call({ index: 0, id: 'c', ...args('{"a"') }) +
      call({ index: 0, ...f('f', ':1') }) +
      call({ index: 0, ...args('}') }) +
      finish('tool_calls') +
      DONE,
    ['start r m', 'open 0 tool_use c f', '0 {"a":1}', 'close 0', 'finish tool_use', 'message_stop'],
  ],
  [
    '#58 P97 usage on the finish chunk',
    chunk({ content: 'a' }) +
      `data: {"id":"r","choices":[{"index":0,"delta":{},"finish_reason":"stop"}],"usage":{"prompt_tokens":3,"completion_tokens":4}}\n\n${DONE}`,
    ['start r m', 'open 0 text', '0 a', 'close 0', 'finish end_turn 3+4', 'message_stop'],
  ],
  [
    '#59 P75 choices are kept apart',
    `data: ${JSON.stringify({
      id: 'r',
      model: 'm',
      choices: [
        { index: 0, delta: { content: 'a' }, finish_reason: 'stop' },
        { index: 1, delta: { content: 'b' }, finish_reason: 'length' },
      ],
    })}\n\n${DONE}`,
    [
      'start r m',
      'open 0 text',
      '0 a',
      'choice 1 open 0 text',
      'choice 1 0 b',
      'close 0',
      'finish end_turn',
      'choice 1 close 0',
      'choice 1 finish max_tokens',
      'message_stop',
    ],
  ],
  [
    '#60 a custom call',
    call({ index: 0, id: 'c', type: 'custom', custom: { name: 'p', input: 'x' } }) +
      call({ index: 0, custom: { input: 'y' } }) +
      finish('tool_calls') +
      DONE,
    ['start r m', 'open 0 tool_use c p custom', '0 xy', 'close 0', 'finish tool_use', 'message_stop'],
  ],
  [
    '#61 an error chunk ends the stream',
    `${chunk({ content: 'a' })}data: {"error":{"message":"busy","code":503}}\n\n${DONE}`,
    ['start r m', 'open 0 text', '0 a', 'close 0', 'finish null', 'error OVERLOADED'],
  ],
  [
    '#61 a chunk that is no JSON is skipped, and named',
    `${chunk({ content: 'a' })}data: {"id":\n\n${finish('stop')}${DONE}`,
    ['start r m', 'open 0 text', '0 a', 'close 0', 'finish end_turn', 'message_stop'],
  ],
  [
    '#62 [DONE] without a finish_reason',
    chunk({ content: 'a' }) + DONE,
    ['start r m', 'open 0 text', '0 a', 'close 0', 'finish end_turn', 'message_stop'],
  ],
  [
    '#62 [DONE] without a finish_reason, with a call',
    call({ index: 0, id: 'c', ...f('f', '{"a":1}') }) + DONE,
    ['start r m', 'open 0 tool_use c f', '0 {"a":1}', 'close 0', 'finish tool_use', 'message_stop'],
  ],
  ...(
    [
      ['an image', { images: [{ type: 'image_url', image_url: { url: 'https://i' } }] }, 'image'],
      ['an unknown part', { content: [{ type: 'tarot' }] }, 'opaque'],
    ] as const
  ).map(([name, delta, type]): [string, string, string[]] => [
    `#62 [DONE] without a finish_reason, with nothing but ${name}`,
    chunk(delta) + DONE,
    ['start r m', `open 0 ${type}`, 'close 0', 'finish end_turn', 'message_stop'],
  ]),
  ...(
    [
      ['parts that were written again', { content_parts: [{ type: 'tarot' }] }],
      ['a ciphertext', { reasoning_details: [{ type: 'reasoning.encrypted', data: 'x' }] }],
    ] as const
  ).map(([name, delta]): [string, string, string[]] => [
    `#62 the same with ${name}`,
    chunk(delta) + DONE,
    ['start r m', 'finish end_turn', 'message_stop'],
  ]),
  [
    '#62 [DONE] after fields that say nothing is no end',
    chunk({ role: 'assistant', content: '', prefix: false, reasoning_details: [] }) + DONE,
    ['start r m', 'finish null', 'error UPSTREAM_ERROR'],
  ],
  [
    'annotations before the text belong to it, and those after it',
    chunk(cited('a')) +
      chunk({ content: '' }) +
      chunk({ content: 'T', ...cited('b') }) +
      chunk(cited('a')) +
      finish('stop') +
      DONE,
    ['start r m', 'open 0 text', '0 T', '0 cites a', '0 cites b', 'close 0', 'finish end_turn', 'message_stop'],
  ],
  [
    'annotations after the text had closed, where no text follows',
    chunk({ content: 'T' }) + call({ index: 0, id: 'c', ...f('f', '{}') }) + chunk(cited('a')) + finish('tool_calls') + DONE,
    [
      'start r m',
      'open 0 text',
      '0 T',
      'close 0',
      'open 1 tool_use c f',
      '1 {}',
      'close 1',
      'open 2 text',
      '2 cites a',
      'close 2',
      'finish tool_use',
      'message_stop',
    ],
  ],
  [
    'annotations inside an unfinished call wait with the text behind it',
    call({ index: 0, id: 'c', ...f('f', '') }) +
      call({ index: 0, ...args('{"x"') }) +
      chunk(cited('a')) +
      chunk({ content: 'T' }) +
      call({ index: 0, ...args(':1}') }) +
      finish('tool_calls') +
      DONE,
    [
      'start r m',
      'open 0 tool_use c f',
      '0 {"x"',
      '0 :1}',
      'close 0',
      'open 1 text',
      '1 T',
      '1 cites a',
      'close 1',
      'finish tool_use',
      'message_stop',
    ],
  ],
  [
    '#51 without an index, calls that overlap stand as they were first seen',
    call({ id: 'c', ...f('f', '') }) +
      call({ id: 'd', ...f('g', '') }) +
      call({ id: 'd', ...args('{"b"') }) +
      call({ id: 'c', ...args('{"a"') }) +
      call({ id: 'd', ...args(':2}') }) +
      call({ id: 'c', ...args(':1}') }) +
      finish('tool_calls') +
      DONE,
    [
      'start r m',
      'open 0 tool_use c f',
      '0 {"a"',
      'open 1 tool_use d g',
      '1 {"b"',
      '1 :2}',
      '0 :1}',
      'close 0',
      'close 1',
      'finish tool_use',
      'message_stop',
    ],
  ],
  [
    '#62 an end without anything is no end',
    chunk({ content: 'a' }),
    ['start r m', 'open 0 text', '0 a', 'close 0', 'finish null', 'error STREAM_TRUNCATED'],
  ],
  [
    '#63 Azure’s first chunk does not start the message',
    `data: {"id":"","model":"","choices":[],"prompt_filter_results":[]}\n\n${chunk({ content: 'a' })}${finish('stop')}${DONE}`,
    ['start r m', 'open 0 text', '0 a', 'close 0', 'finish end_turn', 'message_stop'],
  ],
  [
    '#64 P102 interleaved calls overlap, and stop in their order',
    call({ index: 0, id: 'c', ...f('f', '') }) +
      call({ index: 1, id: 'd', ...f('g', '') }) +
      call({ index: 0, ...args('{"a"') }) +
      call({ index: 1, ...args('{"b"') }) +
      call({ index: 0, ...args(':1}') }) +
      call({ index: 1, ...args(':2}') }) +
      finish('tool_calls') +
      DONE,
    [
      'start r m',
      'open 0 tool_use c f',
      '0 {"a"',
      'open 1 tool_use d g',
      '1 {"b"',
      '0 :1}',
      '1 :2}',
      'close 0',
      'close 1',
      'finish tool_use',
      'message_stop',
    ],
  ],
  [
    '#65 P119 characters cut by the network arrive whole',
    chunk({ content: 'Grüße 世界 😀' }) + finish('stop') + DONE,
    ['start r m', 'open 0 text', '0 Grüße 世界 😀', 'close 0', 'finish end_turn', 'message_stop'],
  ],
  [
    '#65 a character cut by the server arrives whole',
    chunk({ content: 'a\ud83d' }) + chunk({ content: '\ude00' }) + finish('stop') + DONE,
    ['start r m', 'open 0 text', '0 a', '0 😀', 'close 0', 'finish end_turn', 'message_stop'],
  ],
];

test.each(ROWS)('%s', (_, body, events) => {
  expect(read(body)).toEqual(events);
});

test.each([
  ['restated is not late', '', undefined],
  ['continued is late', '{"y":2}', [{ index: 0, content_block: { id: 'a', name: 'f', input_raw: '{"x":1}{"y":2}' } }]],
] as const)('a call that stopped and is then %s', (_, more, late) => {
  const call = (index: number, id: string, text: string): string =>
    chunk({ tool_calls: [{ index, id, type: 'function', function: { name: 'f', arguments: text } }] });
  const rest = chunk({ tool_calls: [{ index: 0, id: 'a', function: { arguments: more } }] });
  const body = call(0, 'a', '{"x":1}') + call(1, 'b', '{"x":2}') + rest + finish('tool_calls') + DONE;
  const reader = new EventReader({ protocol: openaiChat });
  const found = [...reader.push(bytesOf(body)), ...reader.end()].find(({ type }) => type === 'message_delta');
  if (late) expect(found).toMatchObject({ late_blocks: late });
  else expect(found).not.toHaveProperty('late_blocks');
});

test.each([
  [
    'lists side by side',
    { tokens: ['Hel', 'lo'], token_logprobs: [-0.1, -0.2], top_logprobs: [{ Hel: -0.1, Hey: -2 }, null], text_offset: [0, 3] },
    [
      {
        token: 'Hel',
        logprob: -0.1,
        top: [
          { token: 'Hel', logprob: -0.1 },
          { token: 'Hey', logprob: -2 },
        ],
      },
      { token: 'lo', logprob: -0.2 },
    ],
  ],
  ['the form of a chat', { content: [{ token: 'Hello', logprob: -0.3 }] }, [{ token: 'Hello', logprob: -0.3 }]],
  ['none', null, undefined],
  ['no lists', { tokens: 'Hello', token_logprobs: 7 }, undefined],
])('the log probabilities of a text completion: %s', (_, logprobs, expected) => {
  const reader = new EventReader({ protocol: openaiChat });
  const events = [...reader.push(bytesOf(chunk(undefined, { text: 'Hello', logprobs }))), ...reader.end()];
  const deltas = events.flatMap((event) => (event.type === 'content_block_delta' ? [event.delta] : []));
  expect(deltas).toEqual([{ type: 'text_delta', text: 'Hello', ...(expected && { logprobs: expected }) }]);
});
