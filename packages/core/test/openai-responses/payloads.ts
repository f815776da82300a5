import type { Payload } from './run.ts';

/** The events of the wire, as short as they can be written. */
const response = (status: string, fields: Payload = {}): Payload => ({
  id: 'resp_1',
  object: 'response',
  created_at: 7,
  status,
  model: 'gpt-x',
  output: [],
  error: null,
  usage: null,
  ...fields,
});

export const created: Payload = { type: 'response.created', response: response('in_progress') };
export const usage: Payload = { input_tokens: 5, output_tokens: 3, total_tokens: 8 };

export const completed = (output: Payload[] = [], fields: Payload = {}): Payload => ({
  type: 'response.completed',
  response: response('completed', { output, usage, ...fields }),
});
export const incomplete = (reason: string | null, output: Payload[] = []): Payload => ({
  type: 'response.incomplete',
  response: response('incomplete', { output, usage, incomplete_details: reason === null ? null : { reason } }),
});
export const failed = (error: Payload | null): Payload => ({ type: 'response.failed', response: response('failed', { error }) });
export const body = (status: string, output: Payload[], fields: Payload = {}): Payload =>
  response(status, { output, usage, ...fields });

export const added = (output_index: number, item: Payload): Payload => ({
  type: 'response.output_item.added',
  output_index,
  item,
});
export const done = (output_index: number, item: Payload): Payload => ({ type: 'response.output_item.done', output_index, item });

export const message = (id: string, content: Payload[] = [], fields: Payload = {}): Payload => ({
  type: 'message',
  id,
  role: 'assistant',
  content,
  ...fields,
});
export const outputText = (text: string, fields: Payload = {}): Payload => ({
  type: 'output_text',
  text,
  annotations: [],
  ...fields,
});
export const partAdded = (output_index: number, part: Payload = outputText(''), content_index = 0): Payload => ({
  type: 'response.content_part.added',
  output_index,
  content_index,
  part,
});
export const partDone = (output_index: number, part: Payload, content_index = 0): Payload => ({
  type: 'response.content_part.done',
  output_index,
  content_index,
  part,
});
export const text = (output_index: number, delta: string, fields: Payload = {}): Payload => ({
  type: 'response.output_text.delta',
  output_index,
  content_index: 0,
  delta,
  ...fields,
});
export const textDone = (output_index: number, whole: string): Payload => ({
  type: 'response.output_text.done',
  output_index,
  content_index: 0,
  text: whole,
});
/** A message as the API streams it. */
export const wholeMessage = (index: number, id: string, whole: string): Payload[] => [
  added(index, message(id)),
  partAdded(index),
  text(index, whole),
  textDone(index, whole),
  partDone(index, outputText(whole)),
  done(index, message(id, [outputText(whole)])),
];

export const call = (call_id: string, name: string, args = '', fields: Payload = {}): Payload => ({
  type: 'function_call',
  id: `fc_${call_id}`,
  call_id,
  name,
  arguments: args,
  ...fields,
});
export const args = (output_index: number, delta: string): Payload => ({
  type: 'response.function_call_arguments.delta',
  output_index,
  delta,
});
export const argsDone = (output_index: number, whole: unknown, fields: Payload = {}): Payload => ({
  type: 'response.function_call_arguments.done',
  output_index,
  arguments: whole,
  ...fields,
});

export const reasoning = (id: string, fields: Payload = {}): Payload => ({ type: 'reasoning', id, summary: [], ...fields });
export const summaryPart = (output_index: number, summary_index: number): Payload => ({
  type: 'response.reasoning_summary_part.added',
  output_index,
  summary_index,
  part: { type: 'summary_text', text: '' },
});
export const summary = (output_index: number, summary_index: number, delta: string): Payload => ({
  type: 'response.reasoning_summary_text.delta',
  output_index,
  summary_index,
  delta,
});
export const thought = (output_index: number, delta: string): Payload => ({
  type: 'response.reasoning_text.delta',
  output_index,
  content_index: 0,
  delta,
});
export const summaryTexts = (...texts: string[]): Payload[] => texts.map((value) => ({ type: 'summary_text', text: value }));
