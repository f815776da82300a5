import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { ProtocolId } from '@sluice/core';

/** An upstream that speaks one protocol: it answers `answer 1`, `answer 2` …, and keeps what it got. */
export interface Upstream {
  url: string;
  protocol: ProtocolId;
  /** Bodies of all requests. */
  got: string[];
  paths: string[];
  /** What it answers next, in place of the usual text. */
  next: Partial<Pick<Answer, 'status' | 'text' | 'call' | 'signature' | 'finish' | 'refusal'>> & { id?: string };
  /** Streams wait before their last event until this is called. */
  hold: { isOn: boolean; release: () => void };
  close(): void;
}

interface Answer {
  text: string;
  /** The end of the id: its number, unless all have the same. */
  n: number | string;
  call: { name: string; id: string } | undefined;
  signature: string | undefined;
  status: string | undefined;
  /** Why it ended, and a refusal; of Chat only. */
  finish: string | undefined;
  refusal: string | undefined;
}

const SSE = (events: readonly (readonly [string | undefined, unknown])[]): string[] =>
  events.map(
    ([event, data]) =>
      `${event === undefined ? '' : `event: ${event}\n`}data: ${typeof data === 'string' ? data : JSON.stringify(data)}\n\n`,
  );

const ANSWERS: Record<ProtocolId, { whole(a: Answer): unknown; stream(a: Answer): string[] }> = {
  'openai-chat': {
    whole: ({ text, n, call, finish, refusal }) => ({
      id: `chatcmpl-${n}`,
      object: 'chat.completion',
      created: 1,
      model: 'm',
      choices: [
        {
          index: 0,
          message: {
            role: 'assistant',
            content: call || refusal ? null : text,
            ...(refusal && { refusal }),
            ...(call && { tool_calls: [{ id: call.id, type: 'function', function: { name: call.name, arguments: '{}' } }] }),
          },
          finish_reason: finish ?? (call ? 'tool_calls' : 'stop'),
        },
      ],
      usage: { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 },
    }),
    stream: ({ text, n }) => {
      const chunk = (delta: object, finish: string | null = null): unknown => ({
        id: `chatcmpl-${n}`,
        object: 'chat.completion.chunk',
        created: 1,
        model: 'm',
        choices: [{ index: 0, delta, finish_reason: finish }],
      });
      const words = text.split(/(?= )/).map((word) => [undefined, chunk({ content: word })] as const);
      return SSE([
        [undefined, chunk({ role: 'assistant', content: '' })],
        ...words,
        [undefined, chunk({}, 'stop')],
        [undefined, '[DONE]'],
      ]);
    },
  },
  'anthropic-messages': {
    whole: ({ text, n, call, signature }) => ({
      id: `msg_${n}`,
      type: 'message',
      role: 'assistant',
      model: 'm',
      content: [
        ...(signature ? [{ type: 'thinking', thinking: 'hm', signature }] : []),
        call ? { type: 'tool_use', id: call.id, name: call.name, input: {} } : { type: 'text', text },
      ],
      stop_reason: call ? 'tool_use' : 'end_turn',
      stop_sequence: null,
      usage: { input_tokens: 1, output_tokens: 1 },
    }),
    stream: ({ text, n }) =>
      SSE([
        [
          'message_start',
          {
            type: 'message_start',
            message: {
              id: `msg_${n}`,
              type: 'message',
              role: 'assistant',
              model: 'm',
              content: [],
              stop_reason: null,
              stop_sequence: null,
              usage: { input_tokens: 1, output_tokens: 1 },
            },
          },
        ],
        ['content_block_start', { type: 'content_block_start', index: 0, content_block: { type: 'text', text: '' } }],
        ...text
          .split(/(?= )/)
          .map(
            (word) =>
              [
                'content_block_delta',
                { type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text: word } },
              ] as const,
          ),
        ['content_block_stop', { type: 'content_block_stop', index: 0 }],
        [
          'message_delta',
          { type: 'message_delta', delta: { stop_reason: 'end_turn', stop_sequence: null }, usage: { output_tokens: 1 } },
        ],
        ['message_stop', { type: 'message_stop' }],
      ]),
  },
  gemini: {
    whole: ({ text, n, call, signature }) => ({
      candidates: [
        {
          content: {
            role: 'model',
            parts: [
              {
                ...(call ? { functionCall: { name: call.name, args: {} } } : { text }),
                ...(signature && { thoughtSignature: signature }),
              },
            ],
          },
          finishReason: 'STOP',
          index: 0,
        },
      ],
      usageMetadata: { promptTokenCount: 1, candidatesTokenCount: 1, totalTokenCount: 2 },
      modelVersion: 'm',
      responseId: `g${n}`,
    }),
    stream: (answer) => {
      const last = ANSWERS.gemini.whole(answer);
      return SSE([[undefined, last]]);
    },
  },
  'openai-responses': {
    whole: ({ text, n, call, signature, status = 'completed' }) => ({
      id: `resp_up_${n}`,
      object: 'response',
      created_at: 1,
      status,
      model: 'm',
      error: null,
      incomplete_details: null,
      output: [
        ...(signature ? [{ type: 'reasoning', id: `rs_up_${n}`, summary: [], encrypted_content: signature }] : []),
        call
          ? { type: 'function_call', id: `fc_up_${n}`, call_id: call.id, name: call.name, arguments: '{}', status: 'completed' }
          : {
              type: 'message',
              id: `msg_up_${n}`,
              role: 'assistant',
              status: 'completed',
              content: [{ type: 'output_text', text, annotations: [] }],
            },
      ],
      usage: {
        input_tokens: 1,
        output_tokens: 1,
        total_tokens: 2,
        input_tokens_details: { cached_tokens: 0 },
        output_tokens_details: { reasoning_tokens: 0 },
      },
    }),
    stream: (answer) => {
      const { text, n } = answer;
      const whole = ANSWERS['openai-responses'].whole(answer) as Record<string, unknown>;
      const item = { type: 'message', id: `msg_up_${n}`, role: 'assistant', status: 'in_progress', content: [] };
      const place = { item_id: item.id, output_index: 0, content_index: 0 };
      const part = { type: 'output_text', text: '', annotations: [] };
      const events: [string, Record<string, unknown>][] = [
        ['response.created', { response: { ...whole, status: 'in_progress', output: [] } }],
        ['response.output_item.added', { output_index: 0, item }],
        ['response.content_part.added', { ...place, part }],
        ...text
          .split(/(?= )/)
          .map((delta): [string, Record<string, unknown>] => ['response.output_text.delta', { ...place, delta, logprobs: [] }]),
        ['response.output_text.done', { ...place, text, logprobs: [] }],
        ['response.content_part.done', { ...place, part: { ...part, text } }],
        ['response.output_item.done', { output_index: 0, item: (whole['output'] as unknown[])[0] }],
        ['response.completed', { response: whole }],
      ];
      return SSE(events.map(([type, fields], i) => [type, { type, sequence_number: i, ...fields }]));
    },
  },
};

/** Starts an upstream. */
export async function startUpstream(protocol: ProtocolId): Promise<Upstream> {
  const servers: Server[] = [];
  const upstream: Upstream = {
    url: '',
    protocol,
    got: [],
    paths: [],
    next: {},
    hold: { isOn: false, release: () => undefined },
    close: () => {
      for (const server of servers) {
        server.close();
        server.closeAllConnections();
      }
    },
  };
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      const body = Buffer.concat(chunks).toString();
      upstream.got.push(body);
      upstream.paths.push(`${request.method} ${request.url}`);
      const n = upstream.got.length;
      const { id = n, text = `answer ${n} of ${protocol}`, call, signature, status, finish, refusal } = upstream.next;
      const isStream = (request.url ?? '').includes('streamGenerateContent') || /"stream":\s*true/.test(body);
      const answer = { text, n: id, call, signature, status, finish, refusal };
      if (!isStream) {
        response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(ANSWERS[protocol].whole(answer)));
        return;
      }
      const pieces = ANSWERS[protocol].stream(answer);
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      const last = pieces.length > 3 ? pieces.splice(-2) : pieces.splice(-1);
      for (const piece of pieces) response.write(piece);
      const end = (): void => void response.end(last.join(''));
      if (upstream.hold.isOn) upstream.hold.release = end;
      else end();
    });
  });
  servers.push(server);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  upstream.url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`; // a TCP server has one
  if (protocol === 'gemini') upstream.url = upstream.url.replace('/v1', '/v1beta');
  return upstream;
}

export const PROTOCOLS: readonly ProtocolId[] = ['openai-chat', 'anthropic-messages', 'gemini', 'openai-responses'];
