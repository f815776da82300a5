import type { JsonObject } from '../../../packages/core/src/json/json.ts';
import { openaiResponsesCodec } from '../../../packages/core/src/protocols/openai-responses/codec.ts';
import type { Route } from '../probe.ts';
import { routesOf, type Speaker } from '../route.ts';
import { samplesOf } from './samples.ts';

const codec = openaiResponsesCodec;

/** OpenAI itself, as if one model took everything that some model takes. */
const profile = {
  ...codec.profileFor('openai', 'gpt-5.6-sol'),
  supports_sampling: true,
  effort_values: ['none', 'minimal', 'low', 'medium', 'high', 'xhigh', 'max'],
};

const SCHEMAS = ['alpha', 'beta'].map((name) => ({ type: 'object', properties: { [name]: { type: 'string' } } }));

const RESPONSE = { id: 'resp_1', object: 'response', created_at: 1, model: 'alpha', status: 'in_progress', output: [] };

const samples = samplesOf({
  '**.url': ['https://example.com/alpha', 'https://example.com/beta'],
  '**.image_url': ['https://example.com/alpha.png', 'https://example.com/beta.png'],
  '**.file_url': ['https://example.com/alpha.pdf', 'https://example.com/beta.pdf'],
  '**.file_data': ['data:application/pdf;base64,YWxwaGE=', 'data:application/pdf;base64,YmV0YQ=='],
  '**.file_id': ['file-alpha', 'file-beta'],
  '**.arguments': ['{"alpha":1}', '{"beta":2}'],
  '**.name': ['alpha', 'beta'],
  '**.call_id': ['call_alpha', 'call_beta'],
  '**.parameters': SCHEMAS,
  '**.schema': SCHEMAS,
  'input[message:EasyInputMessage].role': ['user', 'assistant'],
  'input[message:ResponseOutputMessage].id': ['msg_alpha', 'msg_beta'],
  'output[message].id': ['msg_alpha', 'msg_beta'],
  '**[function_call].id': ['fc_alpha', 'fc_beta'],
  '**[custom_tool_call].id': ['ctc_alpha', 'ctc_beta'],
  'input[local_shell_call_output].id': ['call_alpha', 'call_beta'],
  '**[reasoning].id': ['rs_alpha', 'rs_beta'],
  // Reasoning that repeats its summary is read once.
  '**[reasoning].content[].text': ['gamma', 'delta'],
  top_p: [0.5, 0.25],
  'tool_choice(allowed_tools).tools': [[{ type: 'function', name: 'alpha' }], [{ type: 'function', name: 'beta' }]],
  'input[local_shell_call].action.env': [{ alpha: 'a' }, { beta: 'b' }],
  'output[local_shell_call].action.env': [{ alpha: 'a' }, { beta: 'b' }],
  '**.server_label': ['alpha_mcp', 'beta_mcp'],
  max_output_tokens: [64, 128],
  stream: [true, false],
  'text.format': [{ type: 'json_object' }, { type: 'json_schema', name: 'alpha', schema: SCHEMAS[0] }],
  'usage.input_tokens': [40, 50],
  'usage.output_tokens': [30, 20],
  '**.response': ['resp_alpha', 'resp_beta'].map((id) => ({ id, object: 'response', created_at: 1, model: 'alpha' })),
  '(response.output_item.*).item': ['alpha', 'beta'].map((name) => ({
    id: `fc_${name}`,
    type: 'function_call',
    call_id: `call_${name}`,
    name,
    arguments: '{}',
    status: 'completed',
  })),
  '(response.output_text.annotation.added).annotation': [
    { type: 'file_citation', file_id: 'file-alpha', filename: 'alpha', index: 0 },
  ],
  '(response.output_item.added).item': ['alpha', 'beta'].map((name) => ({
    id: `fc_${name}`,
    type: 'function_call',
    call_id: `call_${name}`,
    name,
    arguments: '',
  })),
  status: ['completed', 'incomplete'],
  '**.status': ['completed', 'incomplete'],
  metadata: [{ alpha: 'a' }, { beta: 'b' }],
  '**.output_index': [0],
  '**.content_index': [0],
  '**.summary_index': [0],
  '**.start_index': [0, 1],
  '**.end_index': [3, 4],
});

type Item = JsonObject & { type?: string; call_id?: string };

/** Calls that the client makes, and the least of each and of its output. */
const CALLS: Readonly<Record<string, [call: (id: string) => Item, output: (id: string) => Item]>> = {
  function_call: [
    (call_id) => ({ type: 'function_call', call_id, name: 'alpha', arguments: '{}' }),
    (call_id) => ({ type: 'function_call_output', call_id, output: 'done' }),
  ],
  custom_tool_call: [
    (call_id) => ({ type: 'custom_tool_call', call_id, name: 'alpha', input: '' }),
    (call_id) => ({ type: 'custom_tool_call_output', call_id, output: 'done' }),
  ],
  shell_call: [
    (call_id) => ({ type: 'shell_call', call_id, action: { commands: ['ls'] }, status: 'completed' }),
    (call_id) => ({
      type: 'shell_call_output',
      call_id,
      output: [{ stdout: 'a', stderr: '', outcome: { type: 'exit', exit_code: 0 } }],
    }),
  ],
  local_shell_call: [
    (call_id) => ({
      type: 'local_shell_call',
      id: 'lsh_1',
      call_id,
      action: { type: 'exec', command: ['ls'], env: {} },
      status: 'completed',
    }),
    (id) => ({ type: 'local_shell_call_output', id, output: 'a' }),
  ],
  apply_patch_call: [
    (call_id) => ({
      type: 'apply_patch_call',
      call_id,
      operation: { type: 'delete_file', path: 'alpha' },
      status: 'completed',
    }),
    (call_id) => ({ type: 'apply_patch_call_output', call_id, status: 'completed', output: 'done' }),
  ],
};

const tools = ['alpha', 'beta'].map((name) => ({ type: 'function', name, parameters: SCHEMAS[0], strict: false }));

/** The user begins; calls have outputs and outputs calls; choices have something to choose from. */
function completeRequest(built: unknown): unknown {
  const body = built as JsonObject; // made by the sampler
  const items = Array.isArray(body['input']) ? (body['input'] as Item[]) : [];
  const text = typeof body['input'] === 'string' ? { input: body['input'] } : undefined;
  const needsTools = ['tool_choice', 'parallel_tool_calls', 'max_tool_calls'].some((name) => body[name] !== undefined);
  return {
    ...body,
    model: body['model'] ?? 'alpha',
    ...(text ?? { input: [{ role: 'user', content: 'Hello, answer in JSON.' }, ...items.flatMap(withPartner)] }),
    ...(needsTools && {
      tools: [
        ...tools,
        ...['alpha', 'beta'].map((label) => ({ type: 'mcp', server_label: `${label}_mcp`, server_url: 'https://example.com' })),
      ],
    }),
    ...(body['stream_options'] !== undefined && { stream: true }),
  };
}

/** Media are given by their place, their data or their id. */
function completePart(part: JsonObject): JsonObject {
  const isGiven = ['image_url', 'file_id', 'file_data', 'file_url'].some(
    (name) => part[name] !== undefined && part[name] !== null,
  );
  if (isGiven) return part;
  if (part['type'] === 'input_image') return { ...part, image_url: 'https://example.com/alpha.png' };
  return part['type'] === 'input_file' ? { ...part, file_id: 'file-alpha' } : part;
}

/** Calls have outputs, and outputs calls. */
function withPartner(given: Item): Item[] {
  const item = { ...given };
  for (const name of ['content', 'output'])
    if (Array.isArray(item[name])) item[name] = (item[name] as JsonObject[]).map(completePart);
  const { type = '' } = item;
  const call = CALLS[type];
  if (call) return [item, call[1](String(item['call_id'] ?? 'call_alpha'))];
  const answered = CALLS[type.replace(/_output$/, '')];
  if (answered) {
    const key = type === 'local_shell_call_output' ? 'id' : 'call_id';
    const id = String(item[key] ?? 'call_alpha');
    return [answered[0](id), { ...item, [key]: id }];
  }
  // Reasoning counts when it is sealed, and before what was made of it.
  if (type === 'reasoning')
    return [
      { encrypted_content: 'alpha', ...item },
      { type: 'message', role: 'assistant', content: 'Hello.' },
    ];
  return [item];
}

const MESSAGE = {
  id: 'msg_1',
  type: 'message',
  role: 'assistant',
  status: 'completed',
  content: [{ type: 'output_text', text: 'Hello.', annotations: [], logprobs: [] }],
};

/** A response with something in it, and sums that are right. */
function completeResponse(built: unknown): unknown {
  const body = built as JsonObject & { output?: Item[]; usage?: JsonObject }; // made by the sampler
  return {
    ...body,
    status: body['incomplete_details'] ? 'incomplete' : (body['status'] ?? 'completed'),
    output: body.output?.length ? body.output : [MESSAGE],
    ...(body.usage && {
      usage: { ...body.usage, total_tokens: Number(body.usage['input_tokens']) + Number(body.usage['output_tokens']) },
    }),
  };
}

/** The item that an event speaks of, by the beginning of its type. */
const ITEM_OF: Readonly<Record<string, JsonObject>> = {
  'response.function_call_arguments': { id: 'item_1', type: 'function_call', call_id: 'call_1', name: 'alpha', arguments: '' },
  'response.custom_tool_call_input': { id: 'item_1', type: 'custom_tool_call', call_id: 'call_1', name: 'alpha', input: '' },
  'response.reasoning': { id: 'item_1', type: 'reasoning', summary: [] },
  'response.code_interpreter_call': {
    id: 'item_1',
    type: 'code_interpreter_call',
    code: '',
    container_id: 'c',
    outputs: null,
    status: 'in_progress',
  },
  'response.file_search_call': { id: 'item_1', type: 'file_search_call', queries: [], status: 'in_progress' },
  'response.web_search_call': { id: 'item_1', type: 'web_search_call', status: 'in_progress' },
  'response.image_generation_call': { id: 'item_1', type: 'image_generation_call', result: null, status: 'in_progress' },
  'response.mcp_call': { id: 'item_1', type: 'mcp_call', name: 'alpha', server_label: 'beta', arguments: '' },
  'response.mcp_list_tools': { id: 'item_1', type: 'mcp_list_tools', server_label: 'beta', tools: [] },
  'response.shell_call': { id: 'item_1', type: 'shell_call', call_id: 'call_1', action: { commands: [] }, status: 'in_progress' },
  'response.compaction': { id: 'item_1', type: 'compaction', encrypted_content: 'alpha' },
};

/** The event at its place in a stream. */
function completeStream(built: unknown): unknown {
  const event = built as JsonObject & { type: string }; // made by the sampler
  const { type } = event;
  const numbered = (events: JsonObject[]): JsonObject[] => events.map((one, i) => ({ ...one, sequence_number: i }));
  const { id } = (event['response'] ?? RESPONSE) as { id: string };
  const created = { type: 'response.created', response: { ...RESPONSE, id } };
  const completed = { type: 'response.completed', response: { ...RESPONSE, id, status: 'completed', output: [] } };
  completeLogprobs(event['logprobs']);
  if (type === 'error') return numbered([created, event]);
  if (event['response'] !== undefined) return numbered(around(event, created, completed));
  const item = Object.entries(ITEM_OF).find(([prefix]) => type.startsWith(prefix))?.[1] ?? {
    ...MESSAGE,
    id: 'item_1',
    content: [],
  };
  const added = { type: 'response.output_item.added', output_index: 0, item };
  const part = partOf(type);
  return numbered([
    created,
    ...(type === 'response.output_item.added' ? [] : [added]),
    ...(part && type !== part['type'] ? [part] : []),
    { ...event, ...('item_id' in event && { item_id: 'item_1' }) },
    completed,
  ]);
}

/** Events that carry the whole response, in the state they tell of. */
function around(event: JsonObject, created: JsonObject, completed: JsonObject): JsonObject[] {
  const begun = { ...event, response: { status: 'in_progress', output: [], ...(event['response'] as object) } };
  if (event['type'] === 'response.created') return [begun, completed];
  const status = /^response\.(completed|failed|incomplete)$/.exec(String(event['type']))?.[1];
  if (status === undefined) return [created, begun, completed];
  return [created, { ...event, response: { ...(event['response'] as object), status, output: [MESSAGE] } }];
}

/** A token has a text and a number. */
function completeLogprobs(logprobs: unknown): void {
  for (const token of (logprobs ?? []) as { top_logprobs?: JsonObject[] }[])
    token.top_logprobs = token.top_logprobs?.map((other) => ({ token: 'alpha', logprob: -1, ...other })) ?? [];
}

/** Text goes into a part that was opened for it. */
function partOf(type: string): JsonObject | undefined {
  const place = { item_id: 'item_1', output_index: 0 };
  const opened = { ...place, type: 'response.content_part.added', content_index: 0 };
  if (type.startsWith('response.output_text') || type === 'response.content_part.done')
    return { ...opened, part: { type: 'output_text', text: '', annotations: [] } };
  if (type.startsWith('response.refusal')) return { ...opened, part: { type: 'refusal', refusal: '' } };
  if (type.startsWith('response.reasoning_text')) return { ...opened, part: { type: 'reasoning_text', text: '' } };
  if (type.startsWith('response.reasoning_summary'))
    return {
      ...place,
      type: 'response.reasoning_summary_part.added',
      summary_index: 0,
      part: { type: 'summary_text', text: '' },
    };
  return undefined;
}

const same = (body: unknown): unknown => body;

const make = routesOf(codec, profile);

const routes: Record<string, Route> = {
  request: make.request({ samples, complete: completeRequest, path: '/v1/responses' }),
  response: make.response({ samples, complete: completeResponse }),
  stream: make.stream({ samples, complete: completeStream }),
  'count request': make.countRequest({ samples, complete: completeRequest, path: '/v1/responses/input_tokens' }),
  'count response': make.countResponse({ samples, complete: same }),
};

export const openaiResponsesRoutes: Speaker = { codec, profile, plain: codec.profileFor('openai', 'gpt-4o'), routes };
