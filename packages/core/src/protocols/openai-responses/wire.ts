import { getOwn, isObject, writeJson } from '../../accumulate/overlay.ts';
import { LimitError } from '../../accumulate/tool-calls.ts';

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
