import type { ProtocolId } from '../packages/core/src/index.ts';

export const PROTOCOL_IDS: readonly ProtocolId[] = ['openai-chat', 'anthropic-messages', 'openai-responses', 'gemini'];

/** Recursion ends at some ten thousand calls. */
const DEPTH = 50_000;

/** JSON that a parser reads, and that ends the stack of whoever walks or writes it. */
export const DEEP: Readonly<Record<string, string>> = {
  objects: `${'{"a":'.repeat(DEPTH)}1${'}'.repeat(DEPTH)}`,
  arrays: `{"a":${'['.repeat(DEPTH)}${']'.repeat(DEPTH)}}`,
};

const user = { role: 'user', content: 'hi' };

/** The text of a request whose history holds a call with these arguments: as text where the protocol has them so, else as JSON. */
export function requestText(protocol: ProtocolId, args: string, stream = false): string {
  switch (protocol) {
    case 'openai-chat': {
      const call = { id: 'c', type: 'function', function: { name: 'f', arguments: args } };
      const messages = [user, { role: 'assistant', tool_calls: [call] }, { role: 'tool', tool_call_id: 'c', content: 'ok' }];
      return JSON.stringify({ model: 'm', messages, stream });
    }
    case 'anthropic-messages': {
      const call = { type: 'tool_use', id: 'c', name: 'f', input: ARGS };
      const result = { type: 'tool_result', tool_use_id: 'c', content: 'ok' };
      const messages = [user, { role: 'assistant', content: [call] }, { role: 'user', content: [result] }];
      return withArgs({ model: 'm', max_tokens: 10, messages, stream }, args);
    }
    case 'openai-responses': {
      const call = { type: 'function_call', call_id: 'c', name: 'f', arguments: args };
      const input = [user, call, { type: 'function_call_output', call_id: 'c', output: 'ok' }];
      return JSON.stringify({ model: 'm', input, stream });
    }
    case 'gemini': {
      const call = { functionCall: { name: 'f', args: ARGS } };
      const result = { functionResponse: { name: 'f', response: { output: 'ok' } } };
      const contents = [
        { role: 'user', parts: [{ text: 'hi' }] },
        { role: 'model', parts: [call] },
        { role: 'user', parts: [result] },
      ];
      return withArgs({ model: 'm', contents }, args);
    }
    default:
      return protocol satisfies never;
  }
}

export const requestOf = (protocol: ProtocolId, args: string): unknown => JSON.parse(requestText(protocol, args));

const ARGS = 'the arguments';
/** JSON.stringify cannot write them. */
const withArgs = (body: object, args: string): string => JSON.stringify(body).replace(`"${ARGS}"`, () => args);

const chatMessage = (args: string) => ({
  role: 'assistant',
  content: null,
  tool_calls: [{ index: 0, id: 'c', type: 'function', function: { name: 'f', arguments: args } }],
});

const responsesItem = (args: string, status: string) => ({
  type: 'function_call',
  id: 'fc_1',
  call_id: 'c',
  name: 'f',
  arguments: args,
  status,
});

const responsesBody = (output: unknown[], status: string) => ({ id: 'resp_1', object: 'response', model: 'm', status, output });

/** A response with one call, as the text of its JSON. */
export function responseText(protocol: ProtocolId, args: string): string {
  switch (protocol) {
    case 'openai-chat':
      return JSON.stringify({
        id: 'a',
        object: 'chat.completion',
        created: 1,
        model: 'm',
        choices: [{ index: 0, message: chatMessage(args), finish_reason: 'tool_calls' }],
      });
    case 'anthropic-messages':
      return `{"id":"msg_1","type":"message","role":"assistant","model":"m","stop_reason":"tool_use","usage":{"input_tokens":1,"output_tokens":1},"content":[{"type":"tool_use","id":"c","name":"f","input":${args}}]}`;
    case 'openai-responses':
      return JSON.stringify(responsesBody([responsesItem(args, 'completed')], 'completed'));
    case 'gemini':
      return `{"candidates":[{"index":0,"finishReason":"STOP","content":{"role":"model","parts":[{"functionCall":{"name":"f","args":${args}}}]}}],"modelVersion":"m","responseId":"r"}`;
    default:
      return protocol satisfies never;
  }
}

export const responseOf = (protocol: ProtocolId, args: string): unknown => JSON.parse(responseText(protocol, args));

const sse = (payloads: readonly (string | object)[]): string =>
  payloads
    .map((payload) => {
      const data = typeof payload === 'string' ? payload : JSON.stringify(payload);
      const event = typeof payload === 'object' && 'type' in payload ? `event: ${payload.type}\n` : '';
      return `${event}data: ${data}\n\n`;
    })
    .join('');

/** The same as a stream, the arguments in pieces where the protocol cuts them. */
export function streamOf(protocol: ProtocolId, args: string): string {
  const half = args.length >> 1;
  switch (protocol) {
    case 'openai-chat': {
      const chunk = (delta: object, finish_reason: string | null) => ({
        id: 'a',
        object: 'chat.completion.chunk',
        created: 1,
        model: 'm',
        choices: [{ index: 0, delta, finish_reason }],
      });
      const rest = { tool_calls: [{ index: 0, function: { arguments: args.slice(half) } }] };
      return sse([chunk(chatMessage(args.slice(0, half)), null), chunk(rest, null), chunk({}, 'tool_calls'), '[DONE]']);
    }
    case 'anthropic-messages': {
      const message = {
        id: 'msg_1',
        type: 'message',
        role: 'assistant',
        model: 'm',
        content: [],
        usage: { input_tokens: 1, output_tokens: 1 },
      };
      const delta = (partial_json: string) => ({
        type: 'content_block_delta',
        index: 0,
        delta: { type: 'input_json_delta', partial_json },
      });
      return sse([
        { type: 'message_start', message },
        { type: 'content_block_start', index: 0, content_block: { type: 'tool_use', id: 'c', name: 'f', input: {} } },
        delta(args.slice(0, half)),
        delta(args.slice(half)),
        { type: 'content_block_stop', index: 0 },
        { type: 'message_delta', delta: { stop_reason: 'tool_use' }, usage: { output_tokens: 1 } },
        { type: 'message_stop' },
      ]);
    }
    case 'openai-responses': {
      const place = { item_id: 'fc_1', output_index: 0 };
      return sse([
        { type: 'response.created', response: responsesBody([], 'in_progress') },
        { type: 'response.output_item.added', output_index: 0, item: responsesItem('', 'in_progress') },
        { type: 'response.function_call_arguments.delta', ...place, delta: args.slice(0, half) },
        { type: 'response.function_call_arguments.delta', ...place, delta: args.slice(half) },
        { type: 'response.function_call_arguments.done', ...place, arguments: args },
        { type: 'response.output_item.done', output_index: 0, item: responsesItem(args, 'completed') },
        { type: 'response.completed', response: responsesBody([responsesItem(args, 'completed')], 'completed') },
      ]);
    }
    case 'gemini':
      return sse([responseText('gemini', args)]);
    default:
      return protocol satisfies never;
  }
}
