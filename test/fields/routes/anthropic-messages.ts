import type { JsonObject } from '../../../packages/core/src/json/json.ts';
import { anthropicMessagesCodec } from '../../../packages/core/src/protocols/anthropic-messages/codec.ts';
import type { Route } from '../probe.ts';
import { routesOf, type Speaker } from '../route.ts';
import { samplesOf } from './samples.ts';

const codec = anthropicMessagesCodec;

/** Anthropic itself, as if one model took everything that some model takes. */
const profile = {
  ...codec.profileFor('anthropic', 'claude-opus-5-5'),
  rejects_sampling: false,
  prefill: true,
  mid_system: true,
  structured_outputs: true,
  temperature_xor_top_p: false,
};

const SCHEMAS = ['alpha', 'beta'].map((name) => ({
  type: 'object',
  properties: { [name]: { type: 'string' } },
  additionalProperties: false,
}));

const message = (id: string) => ({
  id,
  type: 'message',
  role: 'assistant',
  model: 'alpha',
  content: [],
  stop_reason: null,
  stop_sequence: null,
  usage: { input_tokens: 40, output_tokens: 1 },
});

const samples = samplesOf({
  '(message_start).message': [message('msg_alpha'), message('msg_beta')],
  '(message_delta).delta.container': ['alpha', 'beta'].map((id) => ({ id, expires_at: '2026-01-01T00:00:00Z', skills: null })),
  '(message_delta).delta.stop_details': ['cyber', 'bio'].map((category) => ({ type: 'refusal', category, explanation: null })),
  '(message_delta).usage.output_tokens_details': [{ thinking_tokens: 1 }, { thinking_tokens: 2 }],
  '(message_delta).usage.server_tool_use': [1, 2].map((count) => ({ web_search_requests: count, web_fetch_requests: 0 })),
  '(message_delta).usage.fallback_credit': [{ alpha: 1 }, { beta: 1 }],
  '(message_delta).usage.iterations': [1, 2].map((input_tokens) => [{ type: 'message', input_tokens, output_tokens: 1 }]),
  '(message_delta).context_management': [{ applied_edits: [{ type: 'alpha' }] }, { applied_edits: [{ type: 'beta' }] }],
  '(content_block_start).content_block': ['alpha', 'beta'].map((id) => ({ type: 'tool_use', id, name: 'alpha', input: {} })),
  '**(citations_delta).citation': ['alpha', 'beta'].map((title) => ({
    type: 'web_search_result_location',
    cited_text: 'alpha',
    encrypted_index: 'alpha',
    title,
    url: 'https://example.com/alpha',
  })),
  created_at: ['2026-01-01T00:00:00Z', '2026-02-01T00:00:00Z'],
  max_tokens: [8192, 4096],
  '**.url': ['https://example.com/alpha', 'https://example.com/beta'],
  '**(base64).data': ['YWxwaGE=', 'YmV0YQ=='],
  '**.data': ['alpha data', 'beta data'],
  '**.name': ['alpha', 'beta'],
  '**.id': ['toolu_alpha', 'toolu_beta'],
  '**.tool_use_id': ['toolu_alpha', 'toolu_beta'],
  '**.file_id': ['file_alpha', 'file_beta'],
  '**.input': [{ alpha: 1 }, { beta: 2 }],
  '**.partial_json': ['{"alpha":1}', '{"beta":2}'],
  '**.input_schema': SCHEMAS,
  'tools[custom].input_schema.properties': SCHEMAS.map(({ properties }) => properties),
  'tools[custom].input_schema.required': [['alpha'], []],
  '**.format.schema': SCHEMAS,
  'output_format.schema': SCHEMAS,
  'thinking(enabled).budget_tokens': [1024, 2048],
  '**.stop_reason': ['max_tokens', 'stop_sequence'],
  '**.start_char_index': [0, 1],
  '**.end_char_index': [3, 4],
  'usage.input_tokens': [40, 50],
  '**.usage.output_tokens': [30, 20],
  'usage.output_tokens': [30, 20],
  '**.citations': [
    [
      {
        type: 'char_location',
        cited_text: 'alpha',
        document_index: 0,
        document_title: 'alpha',
        start_char_index: 0,
        end_char_index: 3,
      },
    ],
  ],
  '**.citations_config': [{ enabled: true }, { enabled: false }],
  'messages[user].content[document].citations': [{ enabled: true }, { enabled: false }],
  'messages[user].content[search_result].citations': [{ enabled: true }, { enabled: false }],
  '**.content[document].citations': [{ enabled: true }, { enabled: false }],
  '**.content[search_result].citations': [{ enabled: true }, { enabled: false }],
  '**.content(web_fetch_result).content.citations': [{ enabled: true }, { enabled: false }],
});

interface Message extends JsonObject {
  role: string;
  content: unknown;
}

type Block = JsonObject & { type: string; id?: string; tool_use_id?: string };

const USER = { role: 'user', content: 'Hello.' };
const blocksOf = ({ content }: Message): Block[] => (Array.isArray(content) ? content : []);

/** The user begins; calls have results and results calls; choices have something to choose from. */
function completeRequest(built: unknown): unknown {
  const body = built as JsonObject & { messages?: Message[] }; // made by the sampler
  const messages = (body.messages ?? []).flatMap(withPartners);
  const needsTools = body['tool_choice'] !== undefined;
  const tools = ['alpha', 'beta'].map((name) => ({ name, input_schema: SCHEMAS[0] }));
  return {
    ...body,
    model: body['model'] ?? 'alpha',
    max_tokens: body['max_tokens'] ?? 8192,
    messages: [USER, ...(messages[0]?.role === 'user' ? [{ role: 'assistant', content: 'Hello.' }] : []), ...messages],
    ...(needsTools && { tools }),
  };
}

function withPartners(message: Message): Message[] {
  const before: Block[] = [];
  const after: Block[] = [];
  for (const block of blocksOf(message)) {
    if (block.type === 'tool_result') before.push({ type: 'tool_use', id: String(block.tool_use_id), name: 'alpha', input: {} });
    if (block.type === 'tool_use') after.push({ type: 'tool_result', tool_use_id: String(block.id), content: 'done' });
  }
  const content = message.content ?? 'Hello.';
  const own = { ...message, content: Array.isArray(message.content) ? withServerPartners(blocksOf(message)) : content };
  return [
    ...(before.length > 0 ? [USER, { role: 'assistant', content: before }] : []),
    own,
    ...(after.length > 0 ? [{ role: 'user', content: after }] : []),
  ];
}

/** Calls that the server made and their results stand in one message. */
function withServerPartners(blocks: Block[]): Block[] {
  return blocks.flatMap((block) => {
    if (block.type === 'server_tool_use') return [block, webResult(String(block.id))];
    if (block.type === 'mcp_tool_use')
      return [block, { type: 'mcp_tool_result', tool_use_id: String(block.id), content: 'done' }];
    if (block.type === 'mcp_tool_result')
      return [{ type: 'mcp_tool_use', id: String(block.tool_use_id), name: 'alpha', server_name: 'alpha', input: {} }, block];
    if (block.tool_use_id !== undefined && block.type !== 'tool_result')
      return [{ type: 'server_tool_use', id: block.tool_use_id, name: serverToolOf(block.type), input: {} }, block];
    return [block];
  });
}

const serverToolOf = (result: string): string =>
  result === 'tool_search_tool_result' ? 'tool_search_tool_regex' : result.replace('_tool_result', '');

const webResult = (id: string): Block => ({ type: 'web_search_tool_result', tool_use_id: id, content: [] });

/** A message with something in it. */
function completeResponse(built: unknown): unknown {
  const body = built as JsonObject & { content?: Block[] }; // made by the sampler
  return {
    ...body,
    content: body.content?.length ? withServerPartners(body.content) : [{ type: 'text', text: 'Hello.', citations: null }],
  };
}

const START = {
  type: 'message_start',
  message: message('msg_1'),
};
const END = { type: 'message_delta', delta: { stop_reason: 'end_turn', stop_sequence: null }, usage: { output_tokens: 30 } };
const STOP = { type: 'message_stop' };

const BLOCK_OF: Readonly<Record<string, JsonObject>> = {
  text_delta: { type: 'text', text: '', citations: null },
  citations_delta: { type: 'text', text: 'Hello.', citations: null },
  input_json_delta: { type: 'tool_use', id: 'toolu_1', name: 'alpha', input: {} },
  thinking_delta: { type: 'thinking', thinking: '', signature: '' },
  signature_delta: { type: 'thinking', thinking: 'Hm.', signature: '' },
  compaction_delta: { type: 'compaction', content: '' },
};

/** The event at its place in a stream. */
function completeStream(built: unknown): unknown {
  const event = { ...(built as JsonObject & { type: string }) }; // made by the sampler
  const start = (block: unknown) => ({ type: 'content_block_start', index: 0, content_block: block });
  const stop = { type: 'content_block_stop', index: 0 };
  const around = (events: unknown[]): unknown[] => [START, ...events, END, STOP];
  switch (event.type) {
    case 'message_start':
      return [event, start(BLOCK_OF['text_delta']), stop, END, STOP];
    case 'message_delta':
      return [START, start(BLOCK_OF['text_delta']), stop, event, STOP];
    case 'content_block_start':
      return around([{ ...event, index: 0 }, stop]);
    case 'content_block_delta':
      return around([start(BLOCK_OF[String((event['delta'] as JsonObject)['type'])]), { ...event, index: 0 }, stop]);
    default:
      return around([start(BLOCK_OF['citations_delta']), stop]);
  }
}

/** Models think by a budget or as they see fit. */
const profileOf = (body: unknown) => ({
  thinking_mode:
    (body as { thinking?: JsonObject }).thinking?.['type'] === 'enabled' ? ('budget' as const) : ('adaptive' as const),
});

const same = (body: unknown): unknown => body;

const make = routesOf(codec, profile);

const routes: Record<string, Route> = {
  request: make.request({ samples, profileOf, complete: completeRequest, path: '/v1/messages' }),
  response: make.response({ samples, complete: completeResponse }),
  stream: make.stream({ samples, complete: completeStream }),
  'beta request': make.request({ samples, profileOf, complete: completeRequest, path: '/v1/messages' }),
  'beta response': make.response({ samples, complete: completeResponse }),
  'beta stream': make.stream({ samples, complete: completeStream }),
  'count request': make.countRequest({ samples, complete: completeRequest, path: '/v1/messages/count_tokens' }),
  'count response': make.countResponse({ samples, complete: same }),
  model: make.model({ samples, complete: same }),
};

export const anthropicMessagesRoutes: Speaker = {
  codec,
  profile,
  plain: codec.profileFor('anthropic', 'claude-3-haiku'),
  routes,
};
