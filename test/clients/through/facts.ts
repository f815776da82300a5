import type { ProtocolId } from '@sluice/core';

export type Json = Record<string, unknown>;

/** What a client shows to its user, or acts on. */
export interface Facts {
  text: string;
  reasoning: string;
  calls: { name: unknown; input: unknown }[];
  finish: unknown;
  usage: unknown;
}

const list = (value: unknown): Json[] => (Array.isArray(value) ? value.filter(isObject) : []);
const isObject = (value: unknown): value is Json => typeof value === 'object' && value !== null;
export const object = (value: unknown): Json => (isObject(value) ? value : {});
const string = (value: unknown): string => (typeof value === 'string' ? value : '');

function parse(json: string): unknown {
  try {
    return JSON.parse(json || '{}');
  } catch {
    return json;
  }
}

const pick = (value: unknown, ...names: string[]): Json | undefined =>
  isObject(value) ? Object.fromEntries(names.map((name) => [name, value[name] ?? 0])) : undefined;

/** Joins the deltas of a stream as most clients do; a whole response is a stream of one. */
export const READ_FACTS: Record<ProtocolId, (events: readonly Json[]) => Facts> = {
  'openai-chat': readChat,
  'anthropic-messages': readMessages,
  'openai-responses': readResponses,
  gemini: readGemini,
};

function readChat(chunks: readonly Json[]): Facts {
  const choices = chunks.flatMap(({ choices: all }) => list(all)).filter(({ index = 0 }) => index === 0);
  const isWhole = chunks.length === 1;
  const deltas = choices.map(({ delta, message }) => object(isWhole ? message : delta));
  const calls = new Map<unknown, { name: string; json: string }>();
  for (const delta of deltas)
    for (const [at, { index = at, function: value }] of list(delta['tool_calls']).entries()) {
      const call = calls.get(index) ?? { name: '', json: '' };
      const { name, arguments: json } = object(value);
      calls.set(index, { name: call.name + string(name), json: call.json + (isObject(json) ? '[object Object]' : string(json)) });
    }
  return {
    text: deltas.map(({ content }) => string(content)).join(''),
    reasoning: deltas.map(({ reasoning_content: one, reasoning: other }) => string(one ?? other)).join(''),
    calls: [...calls.values()].map(({ name, json }) => ({ name, input: parse(json) })),
    finish: choices.findLast(({ finish_reason: reason }) => reason)?.['finish_reason'],
    usage: pick(chunks.findLast(({ usage }) => usage)?.['usage'], 'prompt_tokens', 'completion_tokens'),
  };
}

function readMessages(events: readonly Json[]): Facts {
  const whole = events.find(({ type }) => type === 'message');
  const blocks: Json[] = whole ? list(whole['content']).map((block) => ({ ...block })) : joinBlocks(events);
  const last = whole ?? object(events.findLast(({ type }) => type === 'message_delta')?.['delta']);
  const usages = events.map(({ usage, message }) => object(usage ?? object(message)['usage']));
  const input = usages.findLast(({ input_tokens: count }) => count);
  return {
    text: blocks.map(({ type, text }) => (type === 'text' ? string(text) : '')).join(''),
    reasoning: blocks.map(({ thinking }) => string(thinking)).join(''),
    calls: blocks.flatMap(({ type, name, input: value, json }) =>
      type === 'tool_use' ? [{ name, input: json === undefined ? value : parse(string(json)) }] : [],
    ),
    finish: last['stop_reason'],
    usage: {
      ...pick(input, 'input_tokens'),
      ...pick(
        usages.findLast(({ output_tokens: count }) => count),
        'output_tokens',
      ),
    },
  };
}

function joinBlocks(events: readonly Json[]): Json[] {
  const blocks = new Map<unknown, Json>();
  for (const { type, index, content_block: block, delta } of events) {
    if (type === 'content_block_start') blocks.set(index, { ...object(block) });
    const open = blocks.get(index);
    if (type !== 'content_block_delta' || !open) continue;
    const { text, thinking, partial_json: json } = object(delta);
    open['text'] = string(open['text']) + string(text);
    open['thinking'] = string(open['thinking']) + string(thinking);
    if (json !== undefined) open['json'] = string(open['json']) + string(json);
  }
  return [...blocks.values()];
}

function readResponses(events: readonly Json[]): Facts {
  const whole = events.find(({ object: kind }) => kind === 'response');
  const terminal =
    whole ?? object(events.findLast(({ type }) => /^response\.(completed|incomplete|failed)$/.test(string(type)))?.['response']);
  const items = whole
    ? list(whole['output'])
    : events.filter(({ type }) => type === 'response.output_item.done').map(({ item }) => object(item));
  const streamed = (kind: RegExp): string =>
    events.map(({ type, delta }) => (kind.test(string(type)) ? string(delta) : '')).join('');
  const texts = (name: string): string =>
    items
      .flatMap((item) => list(item[name]))
      .map(({ text }) => string(text))
      .join('');
  return {
    text: whole ? texts('content') : streamed(/^response\.output_text\.delta$/),
    reasoning: whole ? texts('summary') : streamed(/^response\.reasoning.*_text\.delta$/),
    calls: items.flatMap(({ type, name, arguments: json }) =>
      type === 'function_call' ? [{ name, input: parse(string(json)) }] : [],
    ),
    finish: terminal['status'],
    usage: pick(terminal['usage'], 'input_tokens', 'output_tokens'),
  };
}

function readGemini(chunks: readonly Json[]): Facts {
  const candidates = chunks.flatMap(({ candidates: all }) => list(all)).filter(({ index = 0 }) => index === 0);
  const parts = candidates.flatMap(({ content }) => list(object(content)['parts']));
  const join = (isThought: boolean): string =>
    parts.map(({ text, thought = false }) => (thought === isThought ? string(text) : '')).join('');
  return {
    text: join(false),
    reasoning: join(true),
    calls: parts.flatMap(({ functionCall: call }) => (isObject(call) ? [{ name: call['name'], input: call['args'] ?? {} }] : [])),
    finish: candidates.findLast(({ finishReason }) => finishReason)?.['finishReason'],
    usage: pick(
      chunks.findLast(({ usageMetadata: usage }) => usage)?.['usageMetadata'],
      'promptTokenCount',
      'candidatesTokenCount',
    ),
  };
}
