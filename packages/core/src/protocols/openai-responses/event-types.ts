import type { Channel } from './wire.ts';

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
