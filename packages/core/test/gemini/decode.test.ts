import { describe, expect, test } from 'vitest';
import type { CanonicalStreamEvent } from '../../src/canonical/events.ts';
import { chunk, run, STOP, sse } from './run.ts';

const START: CanonicalStreamEvent = { type: 'message_start', message: { id: 'r1', model: 'gemini-x' } };
const open = (index: number, content_block: object): object => ({ type: 'content_block_start', index, content_block });
const delta = (index: number, value: object): object => ({ type: 'content_block_delta', index, delta: value });
const close = (index: number, content_block?: object): object => ({
  type: 'content_block_stop',
  index,
  ...(content_block && { content_block }),
});
const text = (index: number, value: string): object => delta(index, { type: 'text_delta', text: value });
const thinking = (index: number, value: string): object => delta(index, { type: 'thinking_delta', thinking: value });
const json = (index: number, value: string): object => delta(index, { type: 'input_json_delta', partial_json: value });
const blob = (value: string): object => ({ origin: 'gemini', form: 'thought_signature', value });
const sign = (index: number, value: string): object => delta(index, { type: 'signature_delta', signature: blob(value) });
const TEXT = { type: 'text', text: '' };
const THINKING = { type: 'thinking', thinking: '', variant: 'summary' };
const ID = expect.stringMatching(/^call_[0-9a-f]{24}$/);
const call = (name: string, id: unknown = ID): object => ({ type: 'tool_use', id, name, input: {} });
const end = (stop_reason: string | null, finish_reason?: unknown, more: object = {}): object => ({
  type: 'message_delta',
  delta: { stop_reason, ...more },
  extensions: { gemini: finish_reason === undefined ? {} : { finish_reason } },
});
const ended = (stop: string, finish = 'STOP'): object[] => [end(stop, finish), { type: 'message_stop' }];
const cut = { type: 'error', error: { code: 'STREAM_TRUNCATED', message: expect.any(String) } };

interface Row {
  name: string;
  input: string;
  /** After message_start. */
  events: object[];
  rules?: string[];
}

const GRAMMAR: Row[] = [
  {
    name: 'adjacent text parts are one block, thoughts another',
    input: sse(
      chunk([{ text: 'a', thought: true }]),
      chunk([{ text: 'b', thought: true }, { text: 'c' }]),
      chunk([{ text: 'd' }, { text: '' }], STOP),
    ),
    events: [
      open(0, THINKING),
      thinking(0, 'a'),
      thinking(0, 'b'),
      close(0),
      open(1, TEXT),
      text(1, 'c'),
      text(1, 'd'),
      close(1),
      ...ended('end_turn'),
    ],
  },
  {
    name: 'a call is whole: start, signature, arguments, stop',
    input: sse(chunk([{ functionCall: { id: 'x', name: 'f', args: { b: 1, a: [] } }, thoughtSignature: 'S' }], STOP)),
    events: [open(0, call('f', 'x')), sign(0, 'S'), json(0, '{"b":1,"a":[]}'), close(0), ...ended('tool_use')],
  },
  {
    name: 'calls of one name in separate chunks stay apart',
    input: sse(
      chunk([{ functionCall: { name: 'f', args: { n: 1 } } }]),
      chunk([{ functionCall: { name: 'f' } }]),
      chunk([{ text: '!' }], STOP),
    ),
    events: [
      open(0, call('f')),
      json(0, '{"n":1}'),
      close(0),
      open(1, call('f')),
      json(1, '{}'),
      close(1),
      open(2, TEXT),
      text(2, '!'),
      close(2),
      ...ended('tool_use'),
    ],
  },
  {
    name: 'a part can be both a call and a thought',
    input: sse(chunk([{ thought: true, functionCall: { name: 'f', args: {} } }], STOP)),
    events: [open(0, { ...call('f'), extensions: { gemini: { thought: true } } }), json(0, '{}'), close(0), ...ended('tool_use')],
  },
  {
    name: 'a signature ends its part: text after it is another block',
    input: sse(chunk([{ text: 'a' }]), chunk([{ text: 'b', thoughtSignature: 'S' }]), chunk([{ text: 'c' }], STOP)),
    events: [
      open(0, TEXT),
      text(0, 'a'),
      text(0, 'b'),
      sign(0, 'S'),
      close(0),
      open(1, TEXT),
      text(1, 'c'),
      close(1),
      ...ended('end_turn'),
    ],
  },
  {
    name: 'a signature on an empty part belongs to the block before it',
    input: sse(chunk([{ text: 'a' }]), chunk([{ text: '', thoughtSignature: 'S' }], STOP)),
    events: [open(0, TEXT), text(0, 'a'), sign(0, 'S'), close(0), ...ended('end_turn')],
  },
  {
    name: 'a signature with nothing before it gets an empty thinking block',
    input: sse(chunk([{ text: '', thoughtSignature: 'S' }]), chunk([{ thoughtSignature: 'T' }], STOP)),
    events: [open(0, THINKING), sign(0, 'S'), close(0), open(1, THINKING), sign(1, 'T'), close(1), ...ended('end_turn')],
  },
  {
    name: 'a signature behind a call is not given to the text before the call',
    input: sse(chunk([{ text: 'a' }, { functionCall: { name: 'f' } }, { text: '', thoughtSignature: 'S' }], STOP)),
    events: [
      open(0, TEXT),
      text(0, 'a'),
      close(0),
      open(1, call('f')),
      json(1, '{}'),
      close(1),
      open(2, THINKING),
      sign(2, 'S'),
      close(2),
      ...ended('tool_use'),
    ],
  },
  {
    name: 'media by mimeType',
    input: sse(
      chunk([
        { inlineData: { mimeType: 'image/png', data: 'a-_b' } },
        { inlineData: { mimeType: 'audio/L16;rate=24000', data: 'UE' } },
        { inlineData: { mimeType: 'application/pdf', data: 'JV' }, thoughtSignature: 'S' },
      ]),
      chunk([{ fileData: { mimeType: 'image/png', fileUri: 'https://x/y.png' } }, { fileData: { fileUri: 'gs://b/c' } }], STOP),
    ),
    events: [
      open(0, { type: 'image', source: { data: 'a+/b', media_type: 'image/png' } }),
      close(0),
      open(1, { type: 'audio', source: { data: 'UE', media_type: 'audio/L16;rate=24000' } }),
      close(1),
      open(2, {
        type: 'file',
        source: { file_data: 'JV', media_type: 'application/pdf' },
        extensions: { gemini: { thoughtSignature: 'S' } },
      }),
      close(2),
      open(3, { type: 'image', source: { url: 'https://x/y.png', media_type: 'image/png' } }),
      close(3),
      open(4, { type: 'file', source: { file_id: 'gs://b/c' }, extensions: { gemini: {} } }),
      close(4),
      ...ended('end_turn'),
    ],
  },
  {
    name: 'code execution and server tools stay as they are',
    input: sse(chunk([{ executableCode: { code: '1' }, thoughtSignature: 'S' }, { codeExecutionResult: { output: '1' } }], STOP)),
    events: [
      open(0, { type: 'opaque', origin: 'gemini', raw: { executableCode: { code: '1' }, thoughtSignature: 'S' } }),
      close(0),
      open(1, { type: 'opaque', origin: 'gemini', raw: { codeExecutionResult: { output: '1' } } }),
      close(1),
      ...ended('end_turn'),
    ],
  },
  {
    name: 'calls that Google runs itself are of kind server and do not count',
    input: sse(
      chunk([{ functionCall: { name: 'f', args: { n: 1 } } }, { functionCall: { name: 'f', args: { n: 2 } } }]),
      chunk([
        { functionResponse: { name: 'f', response: { output: 'one' } } },
        { functionResponse: { name: 'f', response: { error: 'two' } } },
      ]),
      chunk([{ text: 'ok' }], STOP),
    ),
    events: [
      open(0, { ...call('f'), kind: 'server' }),
      json(0, '{"n":1}'),
      close(0),
      open(1, { ...call('f'), kind: 'server' }),
      json(1, '{"n":2}'),
      close(1),
      open(2, { type: 'tool_result', tool_use_id: ID, name: 'f', content: 'one', kind: 'server' }),
      close(2),
      open(3, { type: 'tool_result', tool_use_id: ID, name: 'f', content: 'two', is_error: true, kind: 'server' }),
      close(3),
      open(4, TEXT),
      text(4, 'ok'),
      close(4),
      ...ended('end_turn'),
    ],
  },
  {
    name: 'P115 streamed arguments: pieces by path, one delta at the end',
    input: sse(
      chunk([{ functionCall: { name: 'f', willContinue: true }, thoughtSignature: 'S' }]),
      chunk([
        { functionCall: { partialArgs: [{ jsonPath: '$.a.b[0].c', stringValue: 'x', willContinue: true }], willContinue: true } },
      ]),
      chunk([{ functionCall: { partialArgs: [{ jsonPath: '$.a.b[0].c', stringValue: 'y' }], willContinue: true } }]),
      chunk([{ functionCall: { willContinue: true } }]),
      chunk([
        {
          functionCall: {
            partialArgs: [
              { jsonPath: "$['k k']", numberValue: 2 },
              { jsonPath: '$["q\\"q"]', boolValue: false },
            ],
            willContinue: true,
          },
        },
      ]),
      chunk([
        {
          functionCall: {
            partialArgs: [
              { jsonPath: '$.n', nullValue: 'NULL_VALUE' },
              { jsonPath: '$.__proto__.p', stringValue: 'd' },
            ],
          },
        },
      ]),
      chunk([{ text: '' }], STOP),
    ),
    events: [
      open(0, call('f')),
      sign(0, 'S'),
      json(0, '{"a":{"b":[{"c":"xy"}]},"k k":2,"q\\"q":false,"n":null,"__proto__":{"p":"d"}}'),
      close(0),
      ...ended('tool_use'),
    ],
  },
  {
    name: 'a prompt that was blocked',
    input: sse({
      promptFeedback: { blockReason: 'SAFETY', blockReasonMessage: 'no' },
      modelVersion: 'gemini-x',
      responseId: 'r1',
    }),
    events: [
      {
        type: 'message_delta',
        delta: { stop_reason: 'content_filter', stop_details: { category: 'SAFETY', explanation: 'no', raw: 'SAFETY' } },
        extensions: { gemini: { promptFeedback: { blockReason: 'SAFETY', blockReasonMessage: 'no' } } },
      },
      { type: 'message_stop' },
    ],
  },
  {
    name: 'several candidates, in any order',
    input: sse(
      {
        responseId: 'r1',
        modelVersion: 'gemini-x',
        candidates: [{ content: { parts: [{ text: 'a' }] } }, { content: { parts: [{ text: 'b' }] } }],
      },
      {
        candidates: [
          { index: 1, finishReason: 'MAX_TOKENS' },
          { index: 0, finishReason: 'STOP' },
        ],
      },
    ),
    events: [
      open(0, TEXT),
      text(0, 'a'),
      { ...open(0, TEXT), choice: 1 },
      { ...text(0, 'b'), choice: 1 },
      close(0),
      end('end_turn', 'STOP'),
      { ...close(0), choice: 1 },
      { ...end('max_tokens', 'MAX_TOKENS'), choice: 1 },
      { type: 'message_stop' },
    ],
  },
  {
    name: 'grounding: bytes become code points, and only true quotations count',
    input: sse(
      chunk([{ text: 'é😀 Paris' }]),
      chunk([{ text: ' is.' }], {
        ...STOP,
        groundingMetadata: {
          groundingChunks: [{ web: { uri: 'https://p', title: 'P' } }],
          groundingSupports: [
            { segment: { startIndex: 7, endIndex: 12, text: 'Paris' }, groundingChunkIndices: [0, 9] },
            { segment: { startIndex: 3, endIndex: 8, text: 'Paris' }, groundingChunkIndices: [0] },
          ],
        },
      }),
    ),
    events: [
      open(0, TEXT),
      text(0, 'é😀 Paris'),
      text(0, ' is.'),
      delta(0, {
        type: 'citations_delta',
        citation: { kind: 'url', url: 'https://p', title: 'P', start: 3, end: 8, raw: expect.any(Object), origin: 'gemini' },
      }),
      close(0),
      {
        type: 'message_delta',
        delta: { stop_reason: 'end_turn' },
        extensions: { gemini: { finish_reason: 'STOP', groundingMetadata: expect.any(Object) } },
      },
      { type: 'message_stop' },
    ],
  },
  {
    name: 'grounding of a text that a call follows',
    input: sse(
      chunk([{ text: 'Paris' }]),
      chunk([{ functionCall: { id: 'c', name: 'f', args: {} } }], {
        ...STOP,
        groundingMetadata: {
          groundingChunks: [{ web: { uri: 'https://p' } }],
          groundingSupports: [{ segment: { endIndex: 5, text: 'Paris' }, groundingChunkIndices: [0] }],
        },
      }),
    ),
    events: [
      open(0, TEXT),
      text(0, 'Paris'),
      delta(0, {
        type: 'citations_delta',
        citation: { kind: 'url', url: 'https://p', start: 0, end: 5, raw: expect.any(Object), origin: 'gemini' },
      }),
      close(0),
      open(1, { ...call('f'), id: 'c' }),
      json(1, '{}'),
      close(1),
      {
        type: 'message_delta',
        delta: { stop_reason: 'tool_use' },
        extensions: { gemini: { finish_reason: 'STOP', groundingMetadata: expect.any(Object) } },
      },
      { type: 'message_stop' },
    ],
  },
  {
    name: 'an early end keeps what was read',
    input: sse(chunk([{ text: 'a' }])),
    events: [open(0, TEXT), text(0, 'a'), close(0), end(null), cut],
    rules: ['gemini/finish-missing'],
  },
  {
    name: 'streamed arguments that are cut stay cut',
    input: sse(
      chunk([{ functionCall: { name: 'f', willContinue: true } }]),
      chunk([{ functionCall: { partialArgs: [{ jsonPath: '$.a', stringValue: 'x' }], willContinue: true } }]),
      chunk([], { finishReason: 'MAX_TOKENS' }),
    ),
    events: [
      open(0, call('f')),
      json(0, '{"a":"x"'),
      close(0, { ...call('f'), status: 'incomplete' }),
      ...ended('max_tokens', 'MAX_TOKENS'),
    ],
  },
];

const LENIENT: Row[] = [
  {
    name: 'the wrapper of Cloud Code',
    input: sse({ response: chunk([{ text: 'a' }], STOP), traceId: 't' }),
    events: [
      open(0, TEXT),
      text(0, 'a'),
      close(0),
      { ...end('end_turn', 'STOP'), extensions: { gemini: { traceId: 't', finish_reason: 'STOP' } } },
      { type: 'message_stop' },
    ],
    rules: ['gemini/response-wrapper'],
  },
  {
    name: 'snake_case',
    input: sse({
      candidates: [
        {
          content: {
            parts: [
              { function_call: { name: 'f', args: { a_b: 1 } }, thought_signature: 'S' },
              { inline_data: { mime_type: 'image/png', data: 'a' } },
            ],
          },
          finish_reason: 'STOP',
        },
      ],
      model_version: 'gemini-x',
      response_id: 'r1',
      usage_metadata: { prompt_token_count: '3', candidates_token_count: 4, total_token_count: 7 },
    }),
    events: [
      open(0, call('f')),
      sign(0, 'S'),
      json(0, '{"a_b":1}'),
      close(0),
      open(1, { type: 'image', source: { data: 'a', media_type: 'image/png' } }),
      close(1),
      {
        ...end('tool_use', 'STOP'),
        usage: {
          input_tokens: 3,
          output_tokens: 4,
          extensions: { gemini: { promptTokenCount: '3', candidatesTokenCount: 4, totalTokenCount: 7 } },
        },
      },
      { type: 'message_stop' },
    ],
    rules: ['gemini/snake-case'],
  },
  {
    name: 'snake_case in what is handed on as it is; what tools and users say, and names that nobody knows, stay',
    input: sse({
      candidates: [
        {
          content: {
            parts: [
              { code_execution_result: { outcome: 'OUTCOME_OK' }, thought_signature: 'S' },
              { tool_call: { tool_type: 'MAPS', args: { a_b: 1 } }, part_metadata: { c_d: 1 } },
              { tarot_card: { e_f: 1 } },
              { text: 'ab', video_metadata: { start_offset: '1s' } },
            ],
          },
          finish_reason: 'STOP',
          grounding_metadata: {
            grounding_chunks: [{ web: { uri: 'https://p' } }],
            grounding_supports: [{ segment: { end_index: 2, text: 'ab' }, grounding_chunk_indices: [0] }],
          },
          house_mark: { g_h: 1 },
        },
      ],
      prompt_feedback: { safety_ratings: [{ is_set: 1 }] },
      model_version: 'gemini-x',
      response_id: 'r1',
      turn_mark: { i_j: 1 },
    }),
    events: [
      open(0, {
        type: 'opaque',
        origin: 'gemini',
        raw: { codeExecutionResult: { outcome: 'OUTCOME_OK' }, thoughtSignature: 'S' },
      }),
      close(0),
      open(1, {
        type: 'opaque',
        origin: 'gemini',
        raw: { toolCall: { toolType: 'MAPS', args: { a_b: 1 } }, partMetadata: { c_d: 1 } },
      }),
      close(1),
      open(2, { type: 'opaque', origin: 'gemini', raw: { tarot_card: { e_f: 1 } } }),
      close(2),
      open(3, { ...TEXT, extensions: { gemini: { videoMetadata: { startOffset: '1s' } } } }),
      text(3, 'ab'),
      delta(3, {
        type: 'citations_delta',
        citation: {
          kind: 'url',
          url: 'https://p',
          start: 0,
          end: 2,
          raw: { segment: { endIndex: 2, text: 'ab' }, groundingChunkIndices: [0] },
          origin: 'gemini',
        },
      }),
      close(3),
      {
        type: 'message_delta',
        delta: { stop_reason: 'end_turn' },
        extensions: {
          gemini: {
            promptFeedback: { safetyRatings: [{ isSet: 1 }] },
            turn_mark: { i_j: 1 },
            groundingMetadata: {
              groundingChunks: [{ web: { uri: 'https://p' } }],
              groundingSupports: [{ segment: { endIndex: 2, text: 'ab' }, groundingChunkIndices: [0] }],
            },
            candidate: { house_mark: { g_h: 1 } },
            finish_reason: 'STOP',
          },
        },
      },
      { type: 'message_stop' },
    ],
    rules: ['gemini/snake-case', 'gemini/unknown-part'],
  },
  {
    name: '[DONE] is not the end',
    input: `${sse(chunk([{ text: 'a' }]))}data: [DONE]\n\n${sse(chunk([{ text: 'b' }], STOP))}`,
    events: [open(0, TEXT), text(0, 'a'), text(0, 'b'), close(0), ...ended('end_turn')],
    rules: ['gemini/done-sentinel'],
  },
  {
    name: 'finishReason is not the end: the last one counts',
    input: sse(chunk([{ text: 'a' }], STOP), chunk([{ text: 'b' }], { finishReason: 'SAFETY', finishMessage: 'm' })),
    events: [
      open(0, TEXT),
      text(0, 'a'),
      text(0, 'b'),
      close(0),
      {
        type: 'message_delta',
        delta: { stop_reason: 'content_filter', stop_details: { category: 'SAFETY', explanation: 'm', raw: 'SAFETY' } },
        extensions: { gemini: { finishMessage: 'm', finish_reason: 'SAFETY' } },
      },
      { type: 'message_stop' },
    ],
    rules: ['gemini/parts-after-finish'],
  },
  {
    name: 'a repeated id is the first call’s alone',
    input: sse(chunk([{ functionCall: { id: 'x', name: 'f' } }, { functionCall: { id: 'x', name: 'g' } }], STOP)),
    events: [open(0, call('f', 'x')), json(0, '{}'), close(0), open(1, call('g')), json(1, '{}'), close(1), ...ended('tool_use')],
    rules: ['gemini/duplicate-call-id'],
  },
  {
    name: 'a signature inside the call',
    input: sse(chunk([{ functionCall: { name: 'f', thoughtSignature: 'S' } }], STOP)),
    events: [open(0, call('f')), sign(0, 'S'), json(0, '{}'), close(0), ...ended('tool_use')],
    rules: ['gemini/nested-signature'],
  },
  {
    name: 'arguments that are no object',
    input: sse(chunk([{ functionCall: { name: 'f', args: '{"a": 1}' } }, { functionCall: { name: 'g', args: [1] } }], STOP)),
    events: [
      open(0, call('f')),
      json(0, '{"a": 1}'),
      close(0),
      open(1, call('g')),
      json(1, '[1]'),
      close(1),
      ...ended('tool_use'),
    ],
    rules: ['gemini/args-not-object'],
  },
  {
    name: 'a nameless call and a stray end marker',
    input: sse(chunk([{ functionCall: {} }, { functionCall: { args: { a: 1 } } }], STOP)),
    events: [
      open(0, { type: 'opaque', origin: 'gemini', raw: { functionCall: { args: { a: 1 } } } }),
      close(0),
      ...ended('end_turn'),
    ],
    rules: ['gemini/stray-call-end', 'gemini/nameless-call'],
  },
  {
    name: 'streamed arguments without an end marker, at the next call and at STOP',
    input: sse(
      chunk([{ functionCall: { name: 'f', willContinue: true, partialArgs: [{ jsonPath: 'a', stringValue: 'x' }] } }]),
      chunk([{ functionCall: { name: 'f', willContinue: true } }]),
      chunk(
        [{ functionCall: { partialArgs: [{ jsonPath: '$.a', stringValue: 'y', willContinue: true }], willContinue: true } }],
        STOP,
      ),
    ),
    events: [
      open(0, call('f')),
      json(0, '{"a":"x"}'),
      open(1, call('f')),
      json(1, '{"a":"y"'),
      close(1, { ...call('f'), status: 'incomplete' }),
      close(0),
      ...ended('tool_use'),
    ],
    rules: ['gemini/call-not-ended'],
  },
  {
    name: 'paths that lead nowhere',
    input: sse(
      chunk(
        [
          {
            functionCall: {
              name: 'f',
              partialArgs: [
                { jsonPath: '$.a', numberValue: 1 },
                { jsonPath: '$.b[999999999]', numberValue: 1 },
              ],
            },
          },
        ],
        STOP,
      ),
    ),
    events: [
      open(0, call('f')),
      json(0, '{"a":1,"b":[]'),
      close(0, { ...call('f'), status: 'incomplete' }),
      ...ended('tool_use'),
    ],
    rules: ['gemini/bad-json-path'],
  },
  {
    name: 'text in the middle of streamed arguments waits',
    input: sse(
      chunk([{ functionCall: { name: 'f', willContinue: true } }, { text: 'a' }]),
      chunk([{ functionCall: { partialArgs: [{ jsonPath: '$.a', numberValue: 1 }] } }, { text: 'b' }], STOP),
    ),
    events: [
      open(0, call('f')),
      json(0, '{"a":1}'),
      close(0),
      open(1, TEXT),
      text(1, 'a'),
      close(1),
      open(2, TEXT),
      text(2, 'b'),
      close(2),
      ...ended('tool_use'),
    ],
  },
  {
    name: 'payloads of something else between the fragments, and usage alone',
    input: sse(chunk([{ text: 'a' }]), { type: 'ping' }, { usageMetadata: { promptTokenCount: 3 } }, {}, chunk([], STOP)),
    events: [
      open(0, TEXT),
      text(0, 'a'),
      close(0),
      {
        ...end('end_turn', 'STOP'),
        usage: { input_tokens: 3, output_tokens: 0, extensions: { gemini: { promptTokenCount: 3 } } },
      },
      { type: 'message_stop' },
    ],
    rules: ['gemini/unknown-payload'],
  },
  {
    name: 'streamed arguments are the client’s at once: who runs the call after that is late',
    input: sse(
      chunk([{ functionCall: { name: 'f', willContinue: true } }]),
      chunk([{ functionCall: { partialArgs: [{ jsonPath: '$.a', numberValue: 1 }] } }]),
      chunk([{ functionResponse: { name: 'f', response: { output: 'one' } } }, { text: 'b' }], STOP),
    ),
    events: [
      open(0, call('f')),
      json(0, '{"a":1}'),
      close(0, { ...call('f'), kind: 'server', input: { a: 1 } }),
      open(1, { type: 'tool_result', tool_use_id: ID, name: 'f', content: 'one', kind: 'server' }),
      close(1),
      open(2, TEXT),
      text(2, 'b'),
      close(2),
      ...ended('end_turn'),
    ],
    rules: ['gemini/late-function-response'],
  },
  {
    name: 'a number for a finishReason',
    input: sse(chunk([{ text: 'a' }], { finishReason: 2 })),
    events: [open(0, TEXT), text(0, 'a'), close(0), end('max_tokens', 2), { type: 'message_stop' }],
    rules: ['gemini/finish-reason-number'],
  },
  {
    name: 'an unknown reason, an unset one, an unknown part',
    input: sse(
      chunk([{ tarot: 1 }, { text: 5 }, { text: null }], { finishReason: 'BORED' }),
      chunk([], { finishReason: '' }),
      chunk([], { finishReason: 'FINISH_REASON_UNSPECIFIED' }),
    ),
    events: [
      open(0, { type: 'opaque', origin: 'gemini', raw: { tarot: 1 } }),
      close(0),
      open(1, { type: 'opaque', origin: 'gemini', raw: { text: 5 } }),
      close(1),
      end('end_turn', 'BORED', { stop_details: { category: 'BORED', raw: 'BORED' } }),
      { type: 'message_stop' },
    ],
    rules: ['gemini/unknown-part', 'gemini/unknown-finish-reason'],
  },
  {
    name: 'fields that nobody knows stand on the block of their part',
    input: sse(chunk([{ text: 'a' }, { text: 'b', partMetadata: { x: 1 } }, { text: 'c', inlineData: null }], STOP)),
    events: [
      open(0, TEXT),
      text(0, 'a'),
      close(0),
      open(1, { ...TEXT, extensions: { gemini: { partMetadata: { x: 1 } } } }),
      text(1, 'b'),
      close(1),
      open(2, TEXT),
      text(2, 'c'),
      close(2),
      ...ended('end_turn'),
    ],
  },
];

describe.each([
  ['grammar', GRAMMAR],
  ['leniency', LENIENT],
] as const)('%s', (_, rows) => {
  test.each(rows)('$name', ({ input, events, rules = [] }) => {
    const result = run(input);
    expect(result.events).toEqual([START, ...events]);
    expect(result.rules).toEqual(rules);
  });
});

/** Streams that end in an error. */
const UNAVAILABLE = { code: 503, message: 'overloaded', status: 'UNAVAILABLE' };
const body = JSON.stringify({ error: UNAVAILABLE });
const FAILED = {
  type: 'error',
  error: {
    code: 'OVERLOADED',
    message: 'overloaded',
    http_status: 503,
    upstream: { protocol: 'gemini', status: 503, type: 'UNAVAILABLE', code: 503, body: UNAVAILABLE },
  },
};
const PARTIAL = [START, open(0, TEXT), text(0, 'a'), close(0), end(null)];

test.each([
  { name: 'as data, in the middle', input: `${sse(chunk([{ text: 'a' }]))}data: ${body}\n\n`, events: [...PARTIAL, FAILED] },
  { name: 'bare, in the middle', input: `${sse(chunk([{ text: 'a' }]))}${body}\n`, events: [...PARTIAL, FAILED] },
  { name: 'as the only body', input: body, events: [FAILED] },
  { name: 'in a list', input: `[${body}]`, events: [FAILED] },
  { name: 'wrapped', input: sse({ response: { error: UNAVAILABLE } }), events: [FAILED] },
  {
    name: 'beside a wrapped response',
    input: sse({ response: chunk([{ text: 'a' }]), error: UNAVAILABLE }),
    events: [...PARTIAL.slice(0, -1), expect.anything(), FAILED],
  },
  { name: 'without its wrapper', input: sse(UNAVAILABLE), events: [FAILED] },
  {
    name: 'nothing at all',
    input: '',
    events: [{ type: 'error', error: expect.objectContaining({ details: { code: 'empty_stream' } }) }],
  },
  {
    name: 'the answer of another endpoint',
    input: '{"embeddings":[],"usageMetadata":{"promptTokenCount":1}}',
    events: [{ type: 'error', error: expect.objectContaining({ details: { code: 'not_a_stream' } }) }],
  },
])('error $name', ({ input, events }) => {
  expect(run(input).events).toEqual(events);
});

test.each([
  {
    error: { code: 400, message: 'API key not valid.', status: 'INVALID_ARGUMENT', details: [{ reason: 'API_KEY_INVALID' }] },
    code: 'AUTHENTICATION',
  },
  {
    error: { code: 400, message: 'User location is not supported for the API use.', status: 'FAILED_PRECONDITION' },
    code: 'PERMISSION',
  },
  {
    error: { code: 429, message: 'quota', status: 'RESOURCE_EXHAUSTED', details: [{ retryDelay: '34.4s' }] },
    code: 'RATE_LIMIT',
    retry: 34_400,
  },
  { error: 'odd', code: 'UPSTREAM_ERROR' },
  { error: { code: { valueOf: 1, toString: 1 }, status: { toString: 1 } }, code: 'UPSTREAM_ERROR' },
])('error code $code', ({ error, code, retry }) => {
  const found = run(sse({ error })).error;
  expect(found?.code).toBe(code);
  expect(found?.retry_after_ms).toBe(retry);
});

/** The finishReason of an empty answer, and of one with text. */
test.each([
  ['STOP', 'end_turn', 'end_turn'],
  ['OTHER', 'error', 'end_turn'],
  ['NO_IMAGE', 'error', 'end_turn'],
  ['MALFORMED_FUNCTION_CALL', 'error', 'error'],
  ['UNEXPECTED_TOOL_CALL', 'error', 'error'],
  ['CONTINUATION', 'max_tokens', 'max_tokens'],
  ['MODEL_ARMOR', 'content_filter', 'content_filter'],
  ['IMAGE_RECITATION', 'content_filter', 'content_filter'],
])('%s', (finishReason, empty, withText) => {
  expect(run(sse(chunk([], { finishReason }))).message.stop_reason).toBe(empty);
  expect(run(sse(chunk([{ text: 'a' }], { finishReason }))).message.stop_reason).toBe(withText);
});

/** The last usage replaces the former whole. */
const usageOf = (...usages: object[]): ReturnType<typeof run> =>
  run(
    sse(
      ...usages.map((usageMetadata, at) => ({ ...chunk([{ text: '.' }], at === usages.length - 1 ? STOP : {}), usageMetadata })),
    ),
  );

test.each([
  {
    usages: [{ promptTokenCount: 5, candidatesTokenCount: 21 }, { promptTokenCount: 6 }],
    usage: { input_tokens: 6, output_tokens: 0 },
  },
  { usages: [{ trafficType: 'X' }, { promptTokenCount: 6 }, { trafficType: 'X' }], usage: { input_tokens: 6, output_tokens: 0 } },
  { usages: [{ trafficType: 'X' }], usage: undefined },
  {
    usages: [
      {
        promptTokenCount: '29',
        candidatesTokenCount: 15,
        thoughtsTokenCount: 804,
        toolUsePromptTokenCount: 7,
        cachedContentTokenCount: 40,
      },
    ],
    usage: {
      input_tokens: 76,
      output_tokens: 819,
      reasoning_tokens: 804,
      cache_read_tokens: 40,
      details: { tool_use_prompt: 7 },
      uncertain: true,
    },
    notes: 1,
  },
  {
    usages: [
      {
        promptTokenCount: 9,
        promptTokensDetails: [
          { modality: 'TEXT', tokenCount: 1 },
          { modality: 'IMAGE', tokenCount: 5 },
          { modality: 4, tokenCount: 3 },
        ],
        candidatesTokensDetails: [{ modality: 'IMAGE', tokenCount: '2' }],
      },
    ],
    usage: { input_tokens: 9, output_tokens: 0, details: { input_image: 5, input_audio: 3, output_image: 2 } },
  },
])('usage $usages', ({ usages, usage, notes = 0 }) => {
  const result = usageOf(...usages);
  const counted = usages.findLast((raw) => 'promptTokenCount' in raw);
  expect(result.message.usage).toEqual(usage && { ...usage, extensions: { gemini: counted } });
  expect(result.notes).toHaveLength(notes);
});

test.each([
  ['month 0', '2026-00-19T14:59:42Z'],
  ['month 13', '2026-13-19T14:59:42Z'],
  ['day 0', '2026-05-00T14:59:42Z'],
  ['day 31 of a month with 30 days', '2026-04-31T14:59:42Z'],
  ['a leap day in a common year', '2026-02-29T14:59:42Z'],
  ['hour 24', '2026-05-19T24:00:00Z'],
  ['minute 60', '2026-05-19T14:60:00Z'],
  ['second 61', '2026-05-19T14:59:61Z'],
  ['an offset of 24 hours', '2026-05-19T14:59:42+24:00'],
])('a time with %s is not a time', (_, createTime) => {
  expect(run(sse({ ...chunk([{ text: 'a' }], STOP), createTime })).message.created).toBeUndefined();
});

test.each([
  ['a leap day', '2028-02-29T00:00:00Z', 1_835_395_200],
  ['a leap second', '2016-12-31T23:59:60Z', 1_483_228_800],
  ['an offset', '2026-05-19T16:29:42+01:30', 1_779_202_782],
])('a time with %s is read', (_, createTime, created) => {
  expect(run(sse({ ...chunk([{ text: 'a' }], STOP), createTime })).message.created).toBe(created);
});

test('the envelope', () => {
  const { message } = run(
    sse({
      ...chunk([{ text: 'a' }], STOP),
      createTime: '2026-05-19T14:59:42.780296Z',
      turnToken: 't',
      usageMetadata: { totalTokenCount: 1, serviceTier: 'FLEX' },
    }),
  );
  expect(message.created).toBe(1_779_202_782);
  expect(message.service_tier).toBe('flex');
  expect(message.extensions?.gemini).toMatchObject({ turnToken: 't', createTime: '2026-05-19T14:59:42.780296Z' });
  const derived = run(sse({ candidates: [{ ...STOP }] })).message;
  expect(derived.id).toMatch(/^resp_/);
});

test.each([
  ['without parts', []],
  ['with an empty one', [{ text: '' }]],
])('logprobs in a last fragment %s are those of the text before', (_, parts) => {
  const last = { ...STOP, logprobsResult: { chosenCandidates: [{ token: 'a', logProbability: -1 }] } };
  const { message } = run(sse(chunk([{ text: 'a' }]), chunk(parts, last)));
  expect(message.content).toEqual([{ type: 'text', text: 'a', logprobs: [{ token: 'a', logprob: -1 }] }]);
});

test('logprobs of all fragments are kept', () => {
  const part = (token: string): object => ({ logprobsResult: { chosenCandidates: [{ token }] }, avgLogprobs: -0.5 });
  const { message } = run(sse(chunk([{ text: 'a' }], part('a')), chunk([{ text: 'b' }], { ...part('b'), ...STOP })));
  expect(message.extensions?.gemini).toEqual({
    logprobsResult: { chosenCandidates: [{ token: 'a' }, { token: 'b' }] },
    avgLogprobs: -0.5,
    finish_reason: 'STOP',
  });
});
