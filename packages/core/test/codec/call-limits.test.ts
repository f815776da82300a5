import { describe, expect, test } from 'vitest';
import type { CanonicalStreamEvent } from '../../src/canonical/events.ts';
import { pipe } from '../../src/canonical/stage.ts';
import { StreamValidator } from '../../src/canonical/validator.ts';
import type { Protocol } from '../../src/codec/protocol.ts';
import { PROTOCOLS } from '../../src/index.ts';

// What a hostile server can make us keep of one message: the same for all protocols.
const CALLS = 4096;

const MEBI = 'x'.repeat(1024 * 1024);

interface Row {
  protocol: Protocol;
  /** A call of its own, with arguments that are whole. */
  call: (at: number, argument: string) => unknown[];
  /** Whether arguments count that come in this way; one way a protocol is enough to see it, for it is 64 Mi that are read. */
  isCounted?: boolean;
  /** A call, and more of its arguments. */
  stream?: { open: unknown; more: unknown };
}

const item = (at: number, argument: string): object => ({
  type: 'function_call',
  id: `fc_${at}`,
  call_id: `c${at}`,
  name: 'f',
  arguments: JSON.stringify({ argument }),
});

const responsesCall = (at: number, argument: string): unknown[] => [
  { type: 'response.output_item.done', output_index: at, item: item(at, argument) },
];

const geminiParts = (...parts: unknown[]): unknown => ({ candidates: [{ content: { role: 'model', parts } }] });

const ROWS: Record<string, Row> = {
  'chat deltas': {
    protocol: PROTOCOLS['openai-chat'],
    call: (index, argument) => [
      chatCall({ index, id: `c${index}`, function: { name: 'f', arguments: JSON.stringify({ argument }) } }),
    ],
  },
  'Anthropic blocks': {
    protocol: PROTOCOLS['anthropic-messages'],
    call: (index, argument) => [
      { type: 'content_block_start', index, content_block: { type: 'tool_use', id: `t${index}`, name: 'f', input: {} } },
      { type: 'content_block_delta', index, delta: { type: 'input_json_delta', partial_json: JSON.stringify({ argument }) } },
      { type: 'content_block_stop', index },
    ],
    stream: {
      open: { type: 'content_block_start', index: 0, content_block: { type: 'tool_use', id: 't', name: 'f', input: {} } },
      more: { type: 'content_block_delta', index: 0, delta: { type: 'input_json_delta', partial_json: MEBI } },
    },
  },
  'Responses items': {
    protocol: PROTOCOLS['openai-responses'],
    call: responsesCall,
    isCounted: true,
    stream: {
      open: {
        type: 'response.output_item.added',
        output_index: 0,
        item: { type: 'custom_tool_call', id: 'ctc', call_id: 'c', name: 'f', input: '' },
      },
      more: { type: 'response.custom_tool_call_input.delta', output_index: 0, item_id: 'ctc', delta: MEBI },
    },
  },
  'Responses items that nobody named': {
    protocol: PROTOCOLS['openai-responses'],
    call: (output_index, argument) => [
      { type: 'response.function_call_arguments.delta', output_index, delta: JSON.stringify({ argument }) },
    ],
  },
  'a whole Responses output': {
    protocol: PROTOCOLS['openai-responses'],
    call: () => {
      const output = Array.from({ length: CALLS + 1 }, (_, at) => item(at, ''));
      return [{ type: 'response.completed', response: { id: 'r', status: 'completed', output } }];
    },
  },
  'Responses calls within a parallel call': {
    protocol: PROTOCOLS['openai-responses'],
    call: (output_index, argument) => [
      {
        type: 'response.output_item.done',
        output_index,
        item: {
          type: 'function_call',
          id: `fc_${output_index}`,
          call_id: `c${output_index}`,
          name: 'parallel',
          arguments: JSON.stringify({
            tool_uses: Array.from({ length: 3 }, () => ({ recipient_name: 'functions.f', parameters: { argument } })),
          }),
        },
      },
    ],
  },
  'Gemini parts': {
    protocol: PROTOCOLS.gemini,
    call: (at, argument) => [geminiParts({ functionCall: { id: `c${at}`, name: 'f', args: { argument } } })],
    isCounted: true,
    stream: {
      open: geminiParts({ functionCall: { name: 'f', willContinue: true } }),
      more: geminiParts({
        functionCall: { willContinue: true, partialArgs: [{ jsonPath: '$.a', stringValue: MEBI, willContinue: true }] },
      }),
    },
  },
  'Gemini parts that Google answers': {
    protocol: PROTOCOLS.gemini,
    call: (at, argument) => [
      geminiParts(
        { functionCall: { id: `c${at}`, name: 'f', args: { argument } } },
        { functionResponse: { id: `c${at}`, name: 'f', response: {} } },
      ),
    ],
  },
  'Gemini calls that begin with an object': {
    protocol: PROTOCOLS.gemini,
    call: (at, argument) => [geminiParts({ functionCall: { id: `c${at}`, name: 'f', args: { argument }, willContinue: true } })],
  },
};

function chatCall(call: object): unknown {
  return { id: 'a', choices: [{ index: 0, delta: { tool_calls: [call] } }] };
}

/** The last event after so many payloads; a stream that has ended takes no more. */
function last(protocol: Protocol, payloads: Iterable<string>): CanonicalStreamEvent | undefined {
  const decoder = pipe(protocol.streamDecoder({ report: () => {}, note: () => {} }), new StreamValidator());
  let event: CanonicalStreamEvent | undefined;
  for (const data of payloads) {
    for (const next of decoder.push({ data })) event = next;
    if (event?.type === 'error' || event?.type === 'message_stop') return event;
  }
  return event;
}

function* calls(count: number, { call }: Row, argument = ''): Generator<string> {
  for (let at = 0; at < count; at++) for (const payload of call(at, argument)) yield JSON.stringify(payload);
}

const tooLarge = (message: string): object => ({
  type: 'error',
  error: { code: 'PAYLOAD_TOO_LARGE', message: expect.stringContaining(message) },
});

describe.each(Object.entries(ROWS))('%s', (_, row) => {
  test('too many calls end in an error', () => {
    expect(last(row.protocol, calls(CALLS + 1, row))).toMatchObject(tooLarge(`more than ${CALLS} tool calls`));
  });

  if (row.isCounted)
    test('so do arguments that are too long together', () => {
      expect(last(row.protocol, calls(65, row, MEBI))).toMatchObject(tooLarge('characters of tool arguments'));
    });

  if (row.stream)
    test('and those of one call', () => {
      const more = JSON.stringify(row.stream?.more);
      const payloads = [JSON.stringify(row.stream?.open), ...Array.from({ length: 65 }, () => more)];
      expect(last(row.protocol, payloads)).toMatchObject(tooLarge('characters of tool arguments'));
    });
});

test.each(['Responses items', 'Gemini parts', 'Anthropic blocks', 'chat deltas'])('%s within the limits are read', (name) => {
  const row = ROWS[name];
  expect(row && last(row.protocol, calls(CALLS, row))?.type).not.toBe('error');
});
