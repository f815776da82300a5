import type { Finding, Protocol, RuleId } from '@sluice/core';
import { CODECS } from '@sluice/core/engine';
import { describe, expect, test } from 'vitest';
import { listMutations, seededRandom, writeStream } from '../../packages/lab/src/mutate/index.ts';
import { readCases } from '../corpus.ts';
import { bytesOf, protocolOf } from '../run.ts';
import { cleanStreams, PROTOCOL_IDS } from './clean-streams.ts';
import { examine } from './examine.ts';

interface Body {
  id: string;
  protocol: Protocol;
  bytes: Buffer;
}

/** The reported streams, and every violation that can be made out of a clean one. */
const bodies: Body[] = [
  ...readCases().map(({ id, protocol, raw }) => ({ id, protocol: protocolOf(protocol), bytes: Buffer.from(bytesOf(raw)) })),
  ...PROTOCOL_IDS.flatMap((protocol) =>
    cleanStreams(protocol).flatMap((clean, at) =>
      listMutations(protocol).flatMap((mutation) => {
        const random = seededRandom(3);
        const mutated = mutation.apply(clean, random);
        if (mutated === clean) return [];
        const bytes = Buffer.concat(writeStream(mutated, random));
        return [{ id: `${mutation.id} #${at}`, protocol: CODECS[protocol], bytes }];
      }),
    ),
  ),
];

/** The event that begins at a place, and the body without it. */
function eventAt({ bytes }: Body, offset: number): { event: string; without: Buffer } {
  const rest = bytes.subarray(offset).toString('latin1');
  const end = /\r?\n\r?\n|\r\r/.exec(rest);
  const length = end ? end.index + end[0].length : rest.length;
  return { event: rest.slice(0, length), without: Buffer.concat([bytes.subarray(0, offset), bytes.subarray(offset + length)]) };
}

/** Whether a stream has this violation less often once the event is gone. */
function isHealed(body: Body, { rule, count, offset }: Finding): boolean {
  const { findings } = examine([eventAt(body, offset).without], { protocol: body.protocol });
  return (findings.find((finding) => finding.rule === rule)?.count ?? 0) < count;
}

/**
 * What the event at a finding has in it, for violations that stay, or become others, when one event is left out: what never came, and what several
 * events show together.
 */
const SHOWN_BY: Partial<Record<RuleId, RegExp>> = {
  // The beginning that lacks something: the event after it lacks it, too.
  'chat/id-missing': /"choices"/,
  'chat/role-missing': /"delta"/,
  'chat/tool-type-missing': /"tool_calls"/,
  'chat/tool-id-missing': /"tool_calls"/,
  'chat/tool-name-missing': /"tool_calls"/,
  'chat/tool-index-gap': /"tool_calls"/,
  'anthropic/message-start-missing': /./,
  'anthropic/message-id-missing': /message_start|content_block/,
  'anthropic/block-start-missing': /content_block_delta/,
  'anthropic/tool-id-missing': /content_block/,
  'anthropic/tool-name-missing': /content_block/,
  'responses/created-missing': /output_item\.added|\.delta/,
  'sse/not-a-stream': /./,
  'responses/item-not-added': /./,
  'responses/part-not-added': /\.delta/,
  // The end that is missing.
  'chat/ended-early': /^$/,
  'chat/finish-missing': /\[DONE\]|chat\.completion"|finish_details/,
  'sse/missing-done': /"finish_reason"|"usage"/,
  'sse/empty-stream': /./,
  'anthropic/ended-early': /./,
  'responses/terminal-missing': /./,
  'gemini/finish-missing': /./,
  // What a block, a call or an item lacks stands at its beginning.
  'anthropic/block-stop-missing': /content_block_(?:start|delta)/,
  'responses/item-not-done': /output_item\.added|\.delta/,
  'responses/call-id-missing': /output_item\.added|arguments\.delta|output_item\.done/,
  'responses/call-name-missing': /output_item\.added|arguments\.delta|output_item\.done/,
  'responses/call-name-late': /output_item\.added|arguments\.delta|output_item\.done/,
  'responses/call-id-differs': /output_item\.done|response\.completed/,
  'chat/tool-id-duplicate': /"tool_calls"/,
  'chat/tool-index-reused': /"tool_calls"/,
  'responses/call-id-repeated': /output_item\.added/,
  'responses/items-overlap': /output_item\.added|\.delta/,
  'gemini/call-not-ended': /"functionCall"/,
  'gemini/bad-json-path': /"jsonPath"/,
  // What several deltas show together stands at one of them.
  'chat/tool-args-invalid': /"arguments":\s?"/,
  'chat/tool-args-cumulative': /"arguments":\s?"/,
  'chat/tool-args-leading-empty-object': /"arguments":\s?"/,
  'chat/tool-args-not-object': /"arguments":\s?"/,
  'chat/tool-args-sent-again': /"arguments":\s?"/,
  'chat/tool-name-fragmented': /"tool_calls"/,
  'anthropic/input-not-json': /input_json_delta/,
  'anthropic/input-sent-twice': /input_json_delta/,
  'anthropic/input-in-start-and-deltas': /input_json_delta/,
  'responses/arguments-repeated': /arguments\.delta/,
  'responses/parallel-wrapper': /output_item\.done/,
  'responses/reasoning-twice': /"reasoning_text"/,
  'responses/deltas-missing': /\.done|response\.completed/,
  'responses/done-longer': /\.done/,
  // One comment of several.
  'gemini/comment': /^:/,
};

const findings = bodies.flatMap((body) =>
  examine([body.bytes], { protocol: body.protocol }).findings.map((finding) => ({ body, finding })),
);

const rules = [...new Set(findings.map(({ finding }) => finding.rule))].toSorted();

describe('a finding points at the event that shows it', () => {
  test.each(rules)('%s', (rule) => {
    const wrong = findings
      .filter(({ finding }) => finding.rule === rule)
      .flatMap(({ body, finding }) => {
        const { event } = eventAt(body, finding.offset);
        const isRight = SHOWN_BY[rule]?.test(event) ?? isHealed(body, finding);
        return isRight ? [] : [`${body.id}: ${event.slice(0, 200)}`];
      });
    expect(wrong).toEqual([]);
  });
});

describe('rules that only the end of the stream decides', () => {
  const chunk = (delta: object, finish: string | null = null): string =>
    `data: ${JSON.stringify({ id: 'c', object: 'chat.completion.chunk', created: 1, model: 'm', choices: [{ index: 0, delta, finish_reason: finish }] })}\n\n`;
  const call = (index: number, fields: object, args: string, name?: string): string =>
    chunk({ tool_calls: [{ index, ...fields, function: { ...(name !== undefined && { name }), arguments: args } }] });
  const role = chunk({ role: 'assistant', content: null });
  const first = call(0, { id: 'call_1', type: 'function' }, '{"a":1}', 'f');
  const end = `${chunk({}, 'tool_calls')}data: [DONE]\n\n`;
  const event = (payload: { type: string }): string => `event: ${payload.type}\ndata: ${JSON.stringify(payload)}\n\n`;
  const start = event({
    type: 'message_start',
    message: {
      id: 'm',
      type: 'message',
      role: 'assistant',
      model: 'm',
      content: [],
      stop_reason: null,
      stop_sequence: null,
      usage: { input_tokens: 1, output_tokens: 1 },
    },
  } as { type: string });
  const tool = (index: number): string =>
    event({
      type: 'content_block_start',
      index,
      content_block: { type: 'tool_use', id: `t${index}`, name: 'f', input: {} },
    } as { type: string });
  const input = (index: number, partial_json: string): string =>
    event({ type: 'content_block_delta', index, delta: { type: 'input_json_delta', partial_json } } as { type: string });
  const stop = (index: number): string => event({ type: 'content_block_stop', index } as { type: string });
  const over = (reason: string): string =>
    event({
      type: 'message_delta',
      delta: { stop_reason: reason, stop_sequence: null },
      usage: { output_tokens: 2 },
    } as { type: string });
  const last = event({ type: 'message_stop' });

  /** The part that is marked is the event. */
  test.each<[RuleId, string, readonly string[], number]>([
    ['chat/tool-index-reused', 'openai-chat', [role, first, call(0, { id: 'call_2', type: 'function' }, '{"b":2}', 'g'), end], 2],
    ['chat/tool-id-duplicate', 'openai-chat', [role, first, call(1, { id: 'call_1', type: 'function' }, '{"b":2}', 'g'), end], 2],
    [
      'chat/tool-id-missing',
      'openai-chat',
      [role, first, call(1, { type: 'function' }, '{"b":', 'g'), call(1, {}, '2}'), end],
      2,
    ],
    ['chat/tool-name-missing', 'openai-chat', [role, first, call(1, { id: 'x', type: 'function' }, '{"b":2}'), end], 2],
    [
      'chat/tool-args-invalid',
      'openai-chat',
      [role, call(0, { id: 'x', type: 'function' }, '{"a":', 'f'), call(1, { id: 'y', type: 'function' }, '{}', 'g'), end],
      1,
    ],
    [
      'chat/tool-args-cumulative',
      'openai-chat',
      [role, call(0, { id: 'x', type: 'function' }, '{"a":', 'f'), call(0, {}, '{"a":1}'), end],
      2,
    ],
    [
      'chat/tool-args-sent-again',
      'openai-chat',
      [role, call(0, { id: 'x', type: 'function' }, '{"a":', 'f'), call(0, {}, '1}'), call(0, {}, '{"a":1}'), end],
      3,
    ],
    [
      'chat/tool-args-not-object',
      'openai-chat',
      [role, call(0, { id: 'x', type: 'function' }, '"{}"', 'f'), chunk({ content: 'so' }), end],
      1,
    ],
    ['chat/finish-stop-with-calls', 'openai-chat', [role, first, chunk({}, 'stop'), 'data: [DONE]\n\n'], 2],
    ['chat/finish-calls-missing', 'openai-chat', [role, chunk({ content: 'a' }), end], 2],
    ['anthropic/tool-use-without-calls', 'anthropic-messages', [start, over('tool_use'), last], 1],
    [
      'anthropic/input-not-json',
      'anthropic-messages',
      [start, tool(0), input(0, '{"a":'), stop(0), tool(1), input(1, '{}'), stop(1), over('tool_use'), last],
      2,
    ],
    ['anthropic/end-turn-with-calls', 'anthropic-messages', [start, tool(0), input(0, '{}'), stop(0), over('end_turn'), last], 4],
    ['anthropic/stop-reason-unknown', 'anthropic-messages', [start, tool(0), input(0, '{}'), stop(0), over('calls'), last], 4],
    ['anthropic/block-stop-missing', 'anthropic-messages', [start, tool(0), input(0, '{}'), over('tool_use'), last], 1],
    [
      'anthropic/input-sent-twice',
      'anthropic-messages',
      [start, tool(0), input(0, '{"a":1}'), input(0, '{"a":1}'), stop(0), over('tool_use'), last],
      3,
    ],
  ])('%s points at its delta', (rule, protocol, parts, at) => {
    const { findings: found } = examine([bytesOf(parts.join(''))], { protocol: protocolOf(protocol) });
    expect(found.find((finding) => finding.rule === rule)?.offset).toBe(parts.slice(0, at).join('').length);
  });

  test('an empty finish_reason is reported once', () => {
    const body = [
      chunk({ role: 'assistant', content: 'a' }, ''),
      chunk({ content: 'b' }, ''),
      chunk({}, 'stop'),
      'data: [DONE]\n\n',
    ];
    const { findings: found } = examine([bytesOf(body.join(''))], { protocol: protocolOf('openai-chat') });
    expect(found.map(({ rule, count }) => [rule, count])).toEqual([['chat/finish-empty', 2]]);
  });
});
