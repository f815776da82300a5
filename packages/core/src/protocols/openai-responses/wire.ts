import { LimitError } from '../../accumulate/tool-calls.ts';
import { type Keeper, keeper } from '../../codec/extensions.ts';
import { getOwn, isObject, type JsonObject, writeJson } from '../../json/json.ts';

/** One event of the stream. Which fields it has depends on its type; input is hostile, so none is certain. */
export interface WireEvent {
  type?: unknown;
  sequence_number?: unknown;
  output_index?: unknown;
  item_id?: unknown;
  /** Outside the standard. */
  call_id?: unknown;
  content_index?: unknown;
  summary_index?: unknown;
  item?: unknown;
  part?: unknown;
  delta?: unknown;
  text?: unknown;
  refusal?: unknown;
  arguments?: unknown;
  input?: unknown;
  name?: unknown;
  annotation?: unknown;
  logprobs?: unknown;
  response?: unknown;
}

/** The fields of an output item that have a meaning here; everything else about it is kept as it is. */
export interface WireItem {
  type?: unknown;
  id?: unknown;
  status?: unknown;
  role?: unknown;
  content?: unknown;
  summary?: unknown;
  encrypted_content?: unknown;
  phase?: unknown;
  call_id?: unknown;
  name?: unknown;
  namespace?: unknown;
  arguments?: unknown;
  input?: unknown;
}

export interface WireResponse {
  id?: unknown;
  object?: unknown;
  created_at?: unknown;
  status?: unknown;
  model?: unknown;
  output?: unknown;
  output_text?: unknown;
  usage?: unknown;
  error?: unknown;
  incomplete_details?: unknown;
  service_tier?: unknown;
  system_fingerprint?: unknown;
  tools?: unknown;
}

/** What a stretch of text is. `full` is the raw chain of thought (`reasoning_text`). */
export type Channel = 'text' | 'refusal' | 'summary' | 'full';

/** The names of content parts, of the standard and of histories that are sent back as answers. */
const CHANNELS: Record<string, Channel> = {
  output_text: 'text',
  text: 'text',
  input_text: 'text',
  refusal: 'refusal',
  summary_text: 'summary',
  reasoning_text: 'full',
};

/** The channel of a content part; undefined for one that nobody here knows. */
export const channelOf = (type: unknown): Channel | undefined => getOwn(CHANNELS, type);

/** A string with something in it. */
export const filled = (value: unknown): string | undefined =>
  typeof value === 'string' && value.trim() !== '' ? value : undefined;

/** An index; compatible servers also send it as text. */
export function indexOf(value: unknown): number | undefined {
  const number = typeof value === 'string' && value.trim() !== '' ? Number(value) : value;
  return typeof number === 'number' && Number.isInteger(number) ? number : undefined;
}

/** Text that should be a string: some servers send arguments as an object, and a delta as `{text}`. */
export function looseText(value: unknown): string {
  if (typeof value === 'string') return value;
  if (isObject(value) && typeof value['text'] === 'string') return value['text'];
  return '';
}

/** Arguments as text; objects are written out. */
export function argumentsOf(value: unknown): string {
  if (typeof value === 'string') return value;
  if (typeof value !== 'object' || value === null) return '';
  const text = writeJson(value);
  if (text === undefined) throw new LimitError('arguments nested too deeply to be written as text');
  return text;
}

/** What an event says of an item. */
export type ItemAction =
  | { does: 'item-added' }
  | { does: 'item-done' }
  | { does: 'annotation' }
  | { does: 'part'; channel: Channel; isDone: boolean }
  | { does: 'text'; channel: Channel; isDone: boolean }
  | { does: 'input'; isCustom: boolean; isDone: boolean };

/** What an event is to us. */
export type Action =
  | ItemAction
  | { does: 'start' }
  | { does: 'error' }
  | { does: 'ping' }
  | { does: 'audio'; field: 'data' | 'transcript' }
  | { does: 'end'; status?: 'completed' | 'incomplete' | 'failed' | 'cancelled' };

const part = (channel: Channel, isDone: boolean): Action => ({ does: 'part', channel, isDone });

const text = (channel: Channel, isDone: boolean): Action => ({ does: 'text', channel, isDone });

const ACTIONS: Record<string, Action> = {
  'response.created': { does: 'start' },
  'response.queued': { does: 'start' },
  'response.in_progress': { does: 'start' },
  'response.output_item.added': { does: 'item-added' },
  'response.output_item.done': { does: 'item-done' },
  'response.content_part.added': part('text', false),
  'response.content_part.done': part('text', true),
  'response.reasoning_summary_part.added': part('summary', false),
  'response.reasoning_summary_part.done': part('summary', true),
  'response.output_text.delta': text('text', false),
  'response.output_text.done': text('text', true),
  'response.refusal.delta': text('refusal', false),
  'response.refusal.done': text('refusal', true),
  'response.reasoning_text.delta': text('full', false),
  'response.reasoning_text.done': text('full', true),
  'response.reasoning_summary_text.delta': text('summary', false),
  'response.reasoning_summary_text.done': text('summary', true),
  'response.output_text.annotation.added': { does: 'annotation' },
  'response.function_call_arguments.delta': { does: 'input', isCustom: false, isDone: false },
  'response.function_call_arguments.done': { does: 'input', isCustom: false, isDone: true },
  'response.custom_tool_call_input.delta': { does: 'input', isCustom: true, isDone: false },
  'response.custom_tool_call_input.done': { does: 'input', isCustom: true, isDone: true },
  'response.audio.delta': { does: 'audio', field: 'data' },
  'response.audio.transcript.delta': { does: 'audio', field: 'transcript' },
  'response.completed': { does: 'end', status: 'completed' },
  'response.incomplete': { does: 'end', status: 'incomplete' },
  'response.failed': { does: 'end', status: 'failed' },
  error: { does: 'error' },
  keepalive: { does: 'ping' },
};

/** Names outside the standard: older ones, and those of other servers (Bedrock's `reasoning_part`). */
const OTHER_NAMES: Record<string, Action> = {
  'response.reasoning_part.added': part('full', false),
  'response.reasoning_part.done': part('full', true),
  'response.reasoning.delta': text('full', false),
  'response.reasoning.done': text('full', true),
  'response.reasoning_summary.delta': text('summary', false),
  'response.reasoning_summary.done': text('summary', true),
  'response.output_text_annotation.added': { does: 'annotation' },
  'response.cancelled': { does: 'end', status: 'cancelled' },
  'response.done': { does: 'end' },
  'response.error': { does: 'error' },
  ping: { does: 'ping' },
  'response.ping': { does: 'ping' },
};

/** Progress of server tools, of a compaction and of audio: the item has the result when it is done. */
const PROGRESS =
  /^response\.(?:web_search|file_search|code_interpreter|image_generation|mcp|compaction|apply_patch|shell|local_shell|computer|tool_search|program|audio)/;

interface Reading {
  action: Action | undefined;
  /** The standard knows the event. */
  isStandard: boolean;
}

const READINGS: ReadonlyMap<string, Reading> = new Map([
  ...Object.entries(ACTIONS).map(([type, action]): [string, Reading] => [type, { action, isStandard: true }]),
  ...Object.entries(OTHER_NAMES).map(([type, action]): [string, Reading] => [type, { action, isStandard: false }]),
]);

const IN_PROGRESS: Reading = { action: { does: 'ping' }, isStandard: true };

const UNKNOWN: Reading = { action: undefined, isStandard: false };

export const readType = (type: string): Reading => READINGS.get(type) ?? (PROGRESS.test(type) ? IN_PROGRESS : UNKNOWN);

export const PROTOCOL = 'openai-responses';

const kept: Keeper = keeper(PROTOCOL);

/** What the decoders kept of a node under wire names. */
export const fieldsOf: Keeper['fieldsOf'] = kept.fieldsOf;

/** As a part of a node: nothing when there is nothing to keep. */
export const keep: Keeper['keep'] = kept.keep;

/** Where OpenAI Responses says what the canonical request says elsewhere. */
const PLACES: Readonly<Record<string, string>> = {
  system: '/instructions',
  messages: '/input',
  parameters: '',
  'parameters/max_tokens': '/max_output_tokens',
  output_format: '/text/format',
  'output_format/json_schema': '/text/format',
  verbosity: '/text/verbosity',
  parallel_tool_use: '/parallel_tool_calls',
  thinking: '/reasoning',
  state: '',
  'state/conversation_id': '/conversation',
  'state/prompt_id': '/prompt/id',
  prompt_cache: '/prompt_cache_options',
  'prompt_cache/key': '/prompt_cache_key',
};

/** What has an old name and a new one stands where this body says it. */
export const placesIn = (body: JsonObject): Record<string, string> => ({
  ...PLACES,
  user_id: (body['safety_identifier'] ?? undefined) === undefined ? '/user' : '/safety_identifier',
});

/** Fields that are kept as they came although the canonical request says them, too; the last ones say nothing more than their node. */
export const FIELDS: Readonly<Record<string, string>> = {
  'reasoning/generate_summary': '/thinking/summary',
  prompt_cache_retention: '/prompt_cache',
  service_tier: '/service_tier',
  id: '',
  status: '',
  // Of calls that the client runs, what the call of a function says.
  type: '',
  call_id: '',
  operation: '',
  action: '',
  output: '',
  file_id: '',
  // What openai-node adds to what it sends back.
  parsed_arguments: '',
};

/** Fields of an answer that nobody elsewhere misses: those that repeat the question, and those that the canonical answer says, too. */
export const IDLE: ReadonlySet<string> = new Set([
  'background',
  'conversation',
  'frequency_penalty',
  'instructions',
  'max_output_tokens',
  'max_tool_calls',
  'metadata',
  'parallel_tool_calls',
  'presence_penalty',
  'previous_response_id',
  'prompt',
  'prompt_cache_key',
  'prompt_cache_options',
  'prompt_cache_retention',
  'reasoning',
  'safety_identifier',
  'store',
  'temperature',
  'text',
  'tool_choice',
  'tools',
  'top_logprobs',
  'top_p',
  'truncation',
  'user',
  'finish_reason',
  'incomplete_details',
  'content/item_id',
  'content/output_index',
  'content/parallel_call_id',
  'content/status',
]);
