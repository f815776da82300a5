/** Wire types and events of OpenAI Responses, and the wire fields that travel as extensions. */

import { LimitError } from '../../accumulate/tool-calls.ts';
import type { Node } from '../../canonical/protocol.ts';
import { keepFields, readFields } from '../../codec/extensions.ts';
import { getOwn, isObject, type JsonObject } from '../../json/json.ts';
import { writeExact } from '../../json/literals.ts';

/** An event of the stream. Its fields depend on its type, and input is untrusted: none is certain. */
export interface WireEvent {
  type?: unknown;
  sequence_number?: unknown;
  output_index?: unknown;
  item_id?: unknown;
  /** Not in the standard. */
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

/** The fields of an output item that are decoded; others are kept as extensions. */
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

/** The fields of a response object that are decoded; others are kept as extensions. */
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

/** The kind of a text. `full` is the raw chain of thought (`reasoning_text`). */
export type Channel = 'text' | 'refusal' | 'summary' | 'full';

/** Types of content parts, in responses and in histories that servers send back. */
const CHANNELS: Record<string, Channel> = {
  output_text: 'text',
  text: 'text',
  input_text: 'text',
  refusal: 'refusal',
  summary_text: 'summary',
  reasoning_text: 'full',
};

/** The channel of a content part; undefined for an unknown type. */
export const findChannel = (type: unknown): Channel | undefined => getOwn(CHANNELS, type);

// ---- events

/** What an event does. */
export type Action =
  | ItemAction
  | { does: 'start' }
  | { does: 'error' }
  | { does: 'ping' }
  | { does: 'audio'; field: 'data' | 'transcript' }
  | { does: 'end'; status?: 'completed' | 'incomplete' | 'failed' | 'cancelled' };

/** What an event does to an item. */
export type ItemAction =
  | { does: 'item-added' }
  | { does: 'item-done' }
  | { does: 'annotation' }
  | { does: 'part'; channel: Channel; isDone: boolean }
  | { does: 'text'; channel: Channel; isDone: boolean }
  | { does: 'input'; isCustom: boolean; isDone: boolean };

interface EventReading {
  action: Action | undefined;
  /** Whether the event is in the standard. */
  isStandard: boolean;
}

const partAction = (channel: Channel, isDone: boolean): Action => ({ does: 'part', channel, isDone });

const textAction = (channel: Channel, isDone: boolean): Action => ({ does: 'text', channel, isDone });

const ACTIONS: Record<string, Action> = {
  'response.created': { does: 'start' },
  'response.queued': { does: 'start' },
  'response.in_progress': { does: 'start' },
  'response.output_item.added': { does: 'item-added' },
  'response.output_item.done': { does: 'item-done' },
  'response.content_part.added': partAction('text', false),
  'response.content_part.done': partAction('text', true),
  'response.reasoning_summary_part.added': partAction('summary', false),
  'response.reasoning_summary_part.done': partAction('summary', true),
  'response.output_text.delta': textAction('text', false),
  'response.output_text.done': textAction('text', true),
  'response.refusal.delta': textAction('refusal', false),
  'response.refusal.done': textAction('refusal', true),
  'response.reasoning_text.delta': textAction('full', false),
  'response.reasoning_text.done': textAction('full', true),
  'response.reasoning_summary_text.delta': textAction('summary', false),
  'response.reasoning_summary_text.done': textAction('summary', true),
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

/** Names that are not in the standard: older ones, and those of other servers (Bedrock's `reasoning_part`). */
const NONSTANDARD_ACTIONS: Record<string, Action> = {
  'response.reasoning_part.added': partAction('full', false),
  'response.reasoning_part.done': partAction('full', true),
  'response.reasoning.delta': textAction('full', false),
  'response.reasoning.done': textAction('full', true),
  'response.reasoning_summary.delta': textAction('summary', false),
  'response.reasoning_summary.done': textAction('summary', true),
  'response.output_text_annotation.added': { does: 'annotation' },
  'response.cancelled': { does: 'end', status: 'cancelled' },
  'response.done': { does: 'end' },
  'response.error': { does: 'error' },
  ping: { does: 'ping' },
  'response.ping': { does: 'ping' },
};

const READINGS: ReadonlyMap<string, EventReading> = new Map([
  ...Object.entries(ACTIONS).map(([type, action]): [string, EventReading] => [type, { action, isStandard: true }]),
  ...Object.entries(NONSTANDARD_ACTIONS).map(([type, action]): [string, EventReading] => [type, { action, isStandard: false }]),
]);

/** Progress of server tools, compaction and audio: the item has the result when it is done. */
const PROGRESS =
  /^response\.(?:web_search|file_search|code_interpreter|image_generation|mcp|compaction|apply_patch|shell|local_shell|computer|tool_search|program|audio)/;

const PROGRESS_READING: EventReading = { action: { does: 'ping' }, isStandard: true };

const UNKNOWN_READING: EventReading = { action: undefined, isStandard: false };

/** The action of an event type. */
export const readType = (type: string): EventReading =>
  READINGS.get(type) ?? (PROGRESS.test(type) ? PROGRESS_READING : UNKNOWN_READING);

// ---- values

/** The value if it is a string that is not blank. */
export const nonBlank = (value: unknown): string | undefined =>
  typeof value === 'string' && value.trim() !== '' ? value : undefined;

/** Reads an index; compatible servers also send it as a string. */
export function readIndex(value: unknown): number | undefined {
  const number = typeof value === 'string' && value.trim() !== '' ? Number(value) : value;
  return typeof number === 'number' && Number.isInteger(number) ? number : undefined;
}

/** Reads text; some servers send a delta as `{text}`. */
export function readLooseText(value: unknown): string {
  if (typeof value === 'string') return value;
  if (isObject(value) && typeof value['text'] === 'string') return value['text'];
  return '';
}

/** Reads arguments as text; objects are serialized. */
export function readArguments(value: unknown): string {
  if (typeof value === 'string') return value;
  if (typeof value !== 'object' || value === null) return '';
  const text = writeExact(value);
  if (text === undefined) throw new LimitError('arguments nested too deeply to be written as text');
  return text;
}

// ---- extensions

/** The id of this protocol. */
export const PROTOCOL = 'openai-responses';

/** Reads the extensions of a node: wire fields without a canonical place. */
export const readExtensions = (node: Node): JsonObject => readFields(node, PROTOCOL);

/** Builds the `extensions` of a node from wire fields; empty if there are none. */
export const toExtensions = (fields: JsonObject | undefined): Node => keepFields(fields, PROTOCOL);

/**
 * Extensions that the canonical request holds too, with the path of the canonical field; '' if the node itself holds the
 * same.
 */
export const MIRRORED_FIELDS: Readonly<Record<string, string>> = {
  'reasoning/generate_summary': '/thinking/summary',
  prompt_cache_retention: '/prompt_cache',
  service_tier: '/service_tier',
  id: '',
  status: '',
  // Fields of calls that the client runs; the function call holds the same.
  type: '',
  call_id: '',
  operation: '',
  action: '',
  output: '',
  file_id: '',
  // Added by openai-node to items that it sends back.
  parsed_arguments: '',
};

/** The wire location of each canonical field whose path differs. */
const FIELD_PATHS: Readonly<Record<string, string>> = {
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

/** The wire locations for this body; a field with an old and a new name has the one that the body uses. */
export const listFieldPaths = (body: JsonObject): Record<string, string> => ({
  ...FIELD_PATHS,
  user_id: (body['safety_identifier'] ?? undefined) === undefined ? '/user' : '/safety_identifier',
});

/**
 * Extensions of a response that other protocols can do without: they repeat the request, or canonical fields hold the
 * same.
 */
export const IGNORABLE_FIELDS: ReadonlySet<string> = new Set([
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
