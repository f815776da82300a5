import type { ProviderProfile } from '../../../packages/core/src/codec/profile.ts';
import type { JsonObject } from '../../../packages/core/src/json/json.ts';
import { openaiChatCodec } from '../../../packages/core/src/protocols/openai-chat/codec.ts';
import type { Route } from '../probe.ts';
import { routesOf, type Speaker } from '../route.ts';
import { samplesOf } from './samples.ts';

const codec = openaiChatCodec;

/** OpenAI itself, as if one model took everything that some model takes. */
const profile = {
  ...codec.profileFor('openai', 'gpt-5.6-sol'),
  supports_sampling: true,
  supports_stop: true,
  web_search_options: true,
  effort_values: ['none', 'minimal', 'low', 'medium', 'high', 'xhigh', 'max'],
};

const call = { id: 'call_a', type: 'function', function: { name: 'alpha', arguments: '{}' } };
const tool = { type: 'function', function: { name: 'alpha', parameters: { type: 'object', properties: {} } } };
const SCHEMAS = [
  { type: 'object', properties: { alpha: { type: 'string' } } },
  { type: 'object', properties: { beta: { type: 'string' } } },
];

const samples = samplesOf({
  '**.url': ['https://example.com/alpha', 'https://example.com/beta'],
  '**.input_audio.data': ['YWxwaGE=', 'YmV0YQ=='],
  '**.audio.data': ['YWxwaGE=', 'YmV0YQ=='],
  '**.file_data': ['data:application/pdf;base64,YWxwaGE=', 'data:application/pdf;base64,YmV0YQ=='],
  'choices[].message.content': ['alpha text', 'beta text'],
  '**.arguments': ['{"alpha":1}', '{"beta":2}'],
  '**.name': ['alpha', 'beta'],
  'tool_choice(custom).custom.name': ['alpha_text', 'beta_text'],
  '**.id': ['alpha', 'beta'],
  'messages[user].content[file].file': [{ file_id: 'file-alpha' }, { file_id: 'file-beta' }],
  '**.file_id': ['file-alpha', 'file-beta'],
  prompt_cache_options: [{ mode: 'implicit' }, { mode: 'explicit' }],
  '**.tool_call_id': ['call_alpha', 'call_beta'],
  '**.parameters': SCHEMAS,
  '**.schema': SCHEMAS,
  'usage.prompt_tokens': [40, 50],
  'usage.completion_tokens': [30, 20],
  'choices[].finish_reason': ['length', 'content_filter'],
  'choices[].index': [0, 1],
  'choices[].delta.tool_calls[].index': [0],
  '**.start_index': [0, 1],
  '**.end_index': [3, 4],
  'data[].embedding': [[0.5], [0.25]],
  'data[].index': [0],
  top_p: [0.5, 0.25],
  logit_bias: [{ 50256: 1 }, { 50256: 2 }],
  modalities: [['text', 'audio'], ['text']],
  stream: [true, false],
  response_format: [{ type: 'json_object' }, { type: 'json_schema', json_schema: { name: 'alpha', schema: SCHEMAS[0] } }],
  'tool_choice(allowed_tools).allowed_tools.tools': [
    [{ type: 'function', function: { name: 'alpha' } }],
    [{ type: 'function', function: { name: 'beta' } }],
  ],
});

interface Message extends JsonObject {
  role: string;
  tool_calls?: JsonObject[];
}

/** Somebody speaks first, calls have results and results calls, and choices have something to choose from. */
function completeRequest(built: unknown): unknown {
  const body = built as JsonObject & { messages?: Message[] }; // made by the sampler
  const messages = (body.messages ?? []).flatMap(withPartner);
  const names = ['alpha', 'beta'];
  const needsTools = ['tool_choice', 'parallel_tool_calls'].some((name) => body[name] !== undefined);
  for (const { content } of messages) if (Array.isArray(content)) completeFile(content);
  const isFirst = messages[0]?.role === 'system' || messages[0]?.role === 'developer';
  const user = { role: 'user', content: 'Hello, answer in JSON.' };
  return {
    ...body,
    model: body['model'] ?? 'alpha',
    messages: isFirst ? [...messages, user] : [user, ...messages],
    ...(needsTools && { tools: [...names.map((name) => ({ ...tool, function: { ...tool.function, name } })), ...CUSTOM] }),
    ...(body['stream_options'] !== undefined && { stream: true }),
    ...(body['top_logprobs'] !== undefined && { logprobs: true }),
    ...(body['function_call'] !== undefined && { functions: names.map((name) => ({ name })) }),
  };
}

const CUSTOM = ['alpha', 'beta'].map((name) => ({ type: 'custom', custom: { name: `${name}_text` } }));

function withPartner(message: Message): Message[] {
  const { role, tool_calls: calls, function_call: legacy } = message;
  if (role === 'tool')
    return [{ role: 'assistant', content: null, tool_calls: [{ ...call, id: message['tool_call_id'] }] }, message];
  if (role === 'function')
    return [{ role: 'assistant', content: null, function_call: { name: message['name'], arguments: '{}' } }, message];
  if (legacy) return [message, { role: 'function', name: (legacy as JsonObject)['name'], content: 'done' }];
  if (calls) return [message, ...calls.map(({ id }) => ({ role: 'tool', tool_call_id: id, content: 'done' }))];
  return [message];
}

/** A file is given by its data or by its id. */
function completeFile(parts: JsonObject[]): void {
  for (const { file } of parts) {
    const source = file as JsonObject | undefined; // a part of the sampler's
    if (source && source['file_data'] === undefined) source['file_id'] ??= 'file-alpha';
  }
}

/** A choice with something in it, and sums that are right. */
function completeResponse(built: unknown): unknown {
  const body = built as { choices?: JsonObject[]; usage?: JsonObject }; // made by the sampler
  const message = { role: 'assistant', content: 'Hello.', refusal: null };
  const usual = { index: 0, message, logprobs: null, finish_reason: 'stop' };
  const choices = (body.choices ?? []).map((choice) => ({
    ...choice,
    message: { ...message, ...(choice['message'] as object), ...refusalOf(choice['logprobs']) },
  }));
  return {
    ...body,
    choices: body.choices?.[0]?.['index'] === 0 ? choices : [usual, ...choices],
    ...(body.usage && { usage: withTotal(body.usage) }),
  };
}

/** Tokens of a refusal come with it. */
const refusalOf = (logprobs: unknown): JsonObject =>
  ((logprobs as JsonObject | null)?.['refusal'] as unknown[] | undefined)?.length ? { refusal: 'No.' } : {};

const withTotal = (usage: JsonObject): JsonObject => ({
  ...usage,
  total_tokens: Number(usage['prompt_tokens']) + Number(usage['completion_tokens']),
});

/** One chunk with the field, one that ends the choice. */
function completeStream(built: unknown): unknown {
  const chunk = built as JsonObject & { choices?: JsonObject[]; usage?: JsonObject }; // made by the sampler
  const { choices: _choices, usage: _usage, ...head } = chunk;
  const usual = { index: 0, delta: { content: 'Hello.' }, finish_reason: null };
  const choices = chunk.choices?.[0]?.['index'] === 0 ? chunk.choices : [usual, ...(chunk.choices ?? [])];
  for (const choice of choices) completeDelta(choice);
  const open = choices.filter((choice) => !choice['finish_reason']);
  const end = { ...head, choices: open.map(({ index }) => ({ index, delta: {}, finish_reason: 'stop' })) };
  return [{ ...chunk, choices, ...(chunk.usage && { usage: withTotal(chunk.usage) }) }, ...(open.length > 0 ? [end] : [])];
}

/** Pieces that only count together: tokens and their text, a call and its name. */
function completeDelta({ delta: piece, logprobs }: JsonObject): void {
  const delta = piece as JsonObject; // the sampler's
  const { content, refusal } = (logprobs ?? {}) as JsonObject;
  if (Array.isArray(content) && content.length > 0) delta['content'] ??= 'Hello.';
  if (Array.isArray(refusal) && refusal.length > 0) delta['refusal'] ??= 'No.';
  if (delta['audio']) delta['audio'] = { data: 'YWxwaGE=', ...delta['audio'] };
  if (delta['function_call']) delta['function_call'] = { name: 'alpha', arguments: '{}', ...delta['function_call'] };
  for (const call of (delta['tool_calls'] ?? []) as JsonObject[]) {
    call['id'] ??= 'call_alpha';
    if (call['custom']) Object.assign(call, { type: 'custom', custom: { name: 'alpha', input: 'text', ...call['custom'] } });
    else
      Object.assign(call, {
        type: call['type'] ?? 'function',
        function: { name: 'alpha', arguments: '{}', ...(call['function'] as object) },
      });
  }
}

/** Servers have dialects: each takes its own. */
const dialectOf = (body: unknown): Partial<ProviderProfile> => {
  const field = THINKING.find((name) => (body as JsonObject)[name] !== undefined);
  return {
    ...(field && { thinking_field: field }),
    ...((body as JsonObject)['disable_thinking'] !== undefined && { thinking_field: 'enable_thinking' }),
    reasoning_field: 'reasoning_content',
    reasoning_replay: 'always',
  };
};

const THINKING = ['thinking', 'reasoning', 'enable_thinking'] as const;

const same = (body: unknown): unknown => body;

const make = routesOf(codec, profile);

const routes: Record<string, Route> = {
  request: make.request({ samples, profileOf: dialectOf, complete: completeRequest, path: '/v1/chat/completions' }),
  response: make.response({ samples, profileOf: dialectOf, complete: completeResponse }),
  stream: make.stream({ samples, complete: completeStream }),
  'embedding request': make.embeddingRequest({ samples, complete: same, path: '/v1/embeddings' }),
  'embedding response': make.embeddingResponse({ samples, complete: same }),
  model: make.model({ samples, complete: same }),
};

export const openaiChatRoutes: Speaker = { codec, profile, plain: codec.profileFor('openai', 'gpt-4o'), routes };
