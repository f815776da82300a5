import { describe, expect, test } from 'vitest';
import { type Recording, readManifest, readRecording } from '../../../../test/corpus.ts';
import type { CanonicalResponse } from '../../src/canonical/message.ts';
import { isObject, type JsonObject, parseJson } from '../../src/json/json.ts';
import * as p from './payloads.ts';
import { type Payload, runBytes, runPayloads } from './run.ts';

/** The last response object of a stream: what a request without `stream` would have got. */
function finalResponse(file: string): JsonObject | undefined {
  const lines = readRecording(file).toString('utf8').split(/\r?\n/);
  const payloads = lines.flatMap((line) => {
    const value = line.startsWith('data:') ? parseJson(line.slice(5)) : undefined;
    return isObject(value) ? [value] : [];
  });
  const last = payloads.findLast(({ type }) => type === 'response.completed' || type === 'response.incomplete');
  const response = last?.['response'];
  return isObject(response) && Array.isArray(response['output']) && response['output'].length > 0 ? response : undefined;
}

/** What must be equal: not the names of the envelope's own fields, and not what a server says differently in its two answers. */
function comparable(message: CanonicalResponse): unknown {
  const content = message.content.map(({ extensions, ...block }) => {
    if (block.type === 'opaque') return { type: block.type };
    if (block.type === 'text') return { ...block, logprobs: undefined };
    if (block.type === 'thinking') return { ...block, signature: block.signature?.form };
    return { ...block, item_id: undefined };
  });
  return { id: message.id, model: message.model, stop: message.stop_reason, usage: message.usage, content };
}

/** Rotating ids, items in another order than they are listed, and cut fixtures differ for reasons of their own. */
const DIFFERENT = /github-copilot|openrouter-(ecded7ae|0b2f7a03)|openai-e0f00585/;
const streams = readManifest().filter(
  ({ protocol, file }: Recording) =>
    protocol === 'openai-responses' && file.endsWith('.sse') && !DIFFERENT.test(file) && finalResponse(file),
);

test.each(streams)('whole body and stream give the same message: $file', ({ file }) => {
  const whole = runBytes(JSON.stringify(finalResponse(file)));
  expect(comparable(whole.message)).toEqual(comparable(runBytes(readRecording(file)).message));
});

describe('whole bodies', () => {
  const output = [
    p.reasoning('rs_1', { summary: p.summaryTexts('One', 'Two'), encrypted_content: 'gA' }),
    { type: 'web_search_call', id: 'ws_1', status: 'completed' },
    p.message('msg_1', [p.outputText('Hi', { annotations: [{ type: 'url_citation', url: 'https://a' }] })]),
    p.call('call_1', 'f', '{"a":1}'),
  ];
  const streamed = [
    p.created,
    p.added(0, p.reasoning('rs_1')),
    p.summaryPart(0, 0),
    p.summary(0, 0, 'O'),
    p.summary(0, 0, 'ne'),
    p.summaryPart(0, 1),
    p.summary(0, 1, 'Two'),
    p.done(0, output[0] ?? {}),
    p.added(1, { type: 'web_search_call', id: 'ws_1', status: 'in_progress' }),
    p.done(1, output[1] ?? {}),
    p.added(2, p.message('msg_1')),
    p.partAdded(2),
    p.text(2, 'H'),
    p.text(2, 'i'),
    p.done(2, output[2] ?? {}),
    p.added(3, p.call('call_1', 'f')),
    p.args(3, '{"a"'),
    p.args(3, ':1}'),
    p.done(3, output[3] ?? {}),
    p.completed(output),
  ];

  test('equal their stream', () => {
    expect(runBytes(JSON.stringify(p.body('completed', output))).message).toEqual(runPayloads(streamed).message);
  });

  test.each<[string, Payload, object]>([
    [
      'completed',
      p.body('completed', [p.message('m', [p.outputText('Hi')])]),
      { complete: true, error: null, message: { stop_reason: 'end_turn' } },
    ],
    [
      'incomplete',
      p.body('incomplete', [], { incomplete_details: { reason: 'max_output_tokens' } }),
      { complete: true, message: { stop_reason: 'max_tokens' } },
    ],
    [
      'failed',
      p.body('failed', [], { error: { code: 'server_error', message: 'x' } }),
      { complete: true, error: { upstream: { code: 'server_error' } } },
    ],
    ['cancelled', p.body('cancelled', []), { complete: true, error: { code: 'CANCELLED' } }],
    ['queued', p.body('queued', []), { complete: false, error: null, message: { stop_reason: null } }],
    [
      'in progress',
      p.body('in_progress', [p.message('m', [p.outputText('Ha')])]),
      { complete: false, message: { content: [{ text: 'Ha' }] } },
    ],
    [
      'content as a string',
      p.body('completed', [{ type: 'message', id: 'm', content: 'Hi' }]),
      { message: { content: [{ type: 'text', text: 'Hi' }] } },
    ],
  ])('%s', (_, payload, expected) => {
    expect(runBytes(JSON.stringify(payload))).toMatchObject(expected);
  });
});
