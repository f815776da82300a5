import type { RuleFacts, RuleText } from './rule.ts';

/** Violations of OpenAI and compatible servers from OpenAI Responses. */
export const OPENAI_RESPONSES_TEXTS = {
  'responses/event-line-missing': {
    title: 'Events have no event: line',
    remedy: 'Sluice uses the type in the data.',
  },
  'responses/type-missing': {
    title: 'A payload has no type',
    remedy: 'Sluice uses the name in the event: line; without one it skips the payload unless it is an error.',
  },
  'responses/unknown-event': {
    title: 'An event that is not in the standard',
    remedy: 'Sluice reads known synonyms and skips anything else.',
  },
  'responses/sequence-number': {
    title: 'Sequence numbers do not increase',
    remedy: 'Sluice uses the order of arrival.',
  },
  'responses/created-missing': {
    title: 'The stream does not begin with response.created',
    remedy: 'Sluice starts the message with a derived id and without a model.',
  },
  'responses/item-id-rotates': {
    title: 'The id of an item changes from event to event',
    remedy: 'Sluice matches events by output_index.',
  },
  'responses/output-index-differs': {
    title: 'The output_index of an item changes from event to event',
    remedy: 'Sluice matches the item by its ids, or else by its kind, name and content.',
  },
  'responses/call-id-differs': {
    title: 'The call_id of a call changes from event to event',
    remedy: 'Sluice keeps the first one, and the call once.',
  },
  'responses/item-repeated': {
    title: 'An item is sent again',
    remedy: 'Sluice uses it once.',
  },
  'responses/output-index-missing': {
    title: 'An event has no output_index',
    remedy: 'Sluice finds the item by its id, or else uses the last item of that type.',
  },
  'responses/output-index-reused': {
    title: 'Two items share one output_index',
    remedy: 'Sluice separates them by type, call id and whether the first one was done.',
  },
  'responses/item-not-added': {
    title: 'An item is used without output_item.added',
    remedy: 'Sluice creates the item from the first event.',
  },
  'responses/item-added-late': {
    title: 'output_item.added comes after the first deltas',
    remedy: 'Sluice keeps their content and merges it with the item.',
  },
  'responses/item-not-done': {
    title: 'An item has no output_item.done',
    remedy: 'Sluice closes the item with the content of the final response.',
  },
  'responses/part-not-added': {
    title: 'A delta comes before its content part',
    remedy: 'Sluice opens the part at its first delta.',
  },
  'responses/part-index-differs': {
    title: 'The index of a content part changes from event to event',
    remedy: 'Sluice continues the open part; a complete text is that of its deltas.',
  },
  'responses/text-of-another-kind': {
    title: 'Reasoning is sent as text, or text as reasoning',
    remedy: 'Sluice reads it as the item has it, and once.',
  },
  'responses/items-overlap': {
    title: 'An item begins while another one is open',
    remedy: 'Sluice stops the open block. A final form that arrives later is kept beside the message.',
  },
  'responses/deltas-missing': {
    title: 'Content arrives only in a done event',
    remedy: 'Sluice sends the value as one delta.',
  },
  'responses/done-longer': {
    title: 'A done event has more than its deltas',
    remedy: 'Sluice sends the rest at the done event.',
  },
  'responses/reasoning-twice': {
    title: 'The same reasoning is sent as reasoning text and as summary',
    remedy: 'Sluice reads it once.',
  },
  'responses/done-differs': {
    title: 'A done event contradicts its deltas',
    remedy: 'Sluice keeps the deltas, because they were already sent.',
  },
  'responses/output-empty': {
    title: 'The final response lacks streamed items',
    remedy: 'Sluice keeps the streamed items.',
  },
  'responses/item-only-in-output': {
    title: 'An item appears only in the final response',
    remedy: 'Sluice reads it from there.',
  },
  'responses/call-id-missing': {
    title: 'A call has no call_id',
    remedy: 'Sluice derives a stable id from the response and the position.',
  },
  'responses/call-id-repeated': {
    title: 'Two calls share one call_id',
    remedy: 'The later call gets a derived id.',
  },
  'responses/call-name-missing': {
    title: 'A call has no name',
    remedy: 'Sluice keeps it under a placeholder name, so that it is not run by accident.',
  },
  'responses/call-name-late': {
    title: 'The name of a call comes after the call was done',
    remedy: 'Sluice waits for the final response and hands the call out with it.',
  },
  'responses/arguments-object': {
    title: 'Arguments are an object instead of a string',
    remedy: 'Sluice converts the object to a string.',
  },
  'responses/arguments-repeated': {
    title: 'Argument deltas repeat earlier ones',
    remedy: 'Sluice reads them in the form that is one valid JSON document.',
  },
  'responses/parallel-wrapper': {
    title: 'Calls are wrapped in multi_tool_use.parallel',
    remedy: 'Sluice extracts the inner calls.',
  },
  'responses/failed-without-error': {
    title: 'The response failed without an error',
    remedy: 'Sluice reports an error.',
  },
  'responses/error-without-failed': {
    title: 'An error event ends the stream',
    remedy: 'Sluice reports the error.',
  },
  'responses/status-differs': {
    title: 'The terminal event and the status disagree',
    remedy: 'Sluice treats the response as failed or incomplete if either of them indicates it.',
  },
  'responses/terminal-missing': {
    title: 'The stream ends without a terminal event',
    remedy: 'Sluice treats the response as truncated.',
  },
  'responses/done-sentinel': {
    title: 'The stream has a [DONE]',
    remedy: 'Sluice ignores it.',
  },
} as const;

OPENAI_RESPONSES_TEXTS satisfies Record<`responses/${string}`, RuleText>;

/** The facts about these rules, for the doctor and the pages. */
export const OPENAI_RESPONSES_FACTS = {
  'responses/event-line-missing': {
    explanation: 'The frames have only a data line. Clients that dispatch on the SSE event name see nothing.',
    severity: 'info',
    providers: ['openrouter', 'bedrock'],
  },
  'responses/type-missing': {
    explanation: 'The data has no type. Official clients skip or reject it.',
    severity: 'error',
    providers: ['compatible servers'],
  },
  'responses/unknown-event': {
    explanation:
      'The type is not one that OpenAI sends: a ping, an event of another server, or a newer one. Exhaustive switches and the official stream helpers throw.',
    severity: 'error',
    providers: ['opencode-zen (ping)', 'bedrock (reasoning_part)'],
  },
  'responses/sequence-number': {
    explanation: 'A sequence number is repeated or decreases.',
    severity: 'info',
    providers: ['relays that insert events'],
  },
  'responses/created-missing': {
    explanation: 'Content arrives before any event with the response. openai-node throws.',
    severity: 'error',
    providers: ['compatible servers'],
  },
  'responses/item-id-rotates': {
    explanation:
      'Every event of one output item has a different item_id. Clients that match by it lose the text or run tools without arguments; openai-node 7 throws.',
    severity: 'error',
    providers: ['github-copilot'],
  },
  'responses/output-index-differs': {
    explanation:
      'An item is added at one index, and its deltas, its end or its place in the final response have another. Clients join two items, or run a call twice.',
    severity: 'error',
    providers: ['self-written servers'],
  },
  'responses/call-id-differs': {
    explanation:
      'A call has another call_id when it is done or in the final response. Clients that read both run the tool twice; a result may refer to an id that the server no longer knows.',
    severity: 'error',
    providers: ['self-written servers'],
  },
  'responses/item-repeated': {
    explanation:
      'output_item.added or output_item.done is sent again for an item, or the final response lists it twice. Clients that act on each run the tool twice or show the text again.',
    severity: 'error',
    providers: ['self-written servers', 'relays'],
  },
  'responses/output-index-missing': {
    explanation: 'The event does not identify its output item.',
    severity: 'error',
    providers: ['compatible servers'],
  },
  'responses/output-index-reused': {
    explanation: 'An item is added at an index that another item has. Clients merge the two.',
    severity: 'error',
    providers: ['compatible servers'],
  },
  'responses/item-not-added': {
    explanation:
      'The first event of an item is a delta or output_item.done. Clients that rely on output_item.added ignore it, and no tool runs; openai-node throws.',
    severity: 'error',
    providers: ['compatible servers'],
  },
  'responses/item-added-late': {
    explanation: 'The deltas of an item were sent before the item itself.',
    severity: 'error',
    providers: ['compatible servers'],
  },
  'responses/item-not-done': {
    explanation:
      'The response ends without output_item.done for a message, reasoning or call. Clients that wait for it never run the call. Items of server tools are not reported: OpenAI itself leaves mcp_list_tools open.',
    severity: 'warning',
    providers: ['relays'],
  },
  'responses/part-not-added': {
    explanation:
      'Text arrives for a part without content_part.added or reasoning_summary_part.added. openai-node throws "missing content".',
    severity: 'error',
    providers: ['compatible servers', 'gateways'],
  },
  'responses/part-index-differs': {
    explanation:
      'A delta or a done event has a content_index that no part was announced with: vLLM counted it up with every event. Clients that keep a text per index show it several times; openai-node throws "missing content".',
    severity: 'error',
    providers: ['vllm'],
  },
  'responses/text-of-another-kind': {
    explanation:
      'The text of a reasoning item comes with the events of a message, or the complete text of one kind repeats the deltas of the other. Clients show the reasoning as the response.',
    severity: 'error',
    providers: ['self-written servers'],
  },
  'responses/items-overlap': {
    explanation:
      'Content of one item arrives before the previous item is done. OpenAI does this when it runs MCP tools, with distinct output_index values; clients that track a single open item mix them up.',
    severity: 'info',
    providers: ['OpenAI (MCP)', 'openrouter'],
  },
  'responses/deltas-missing': {
    explanation:
      'No delta was sent for a text or arguments; the done event has the whole value. Clients that read only deltas get an empty text or call.',
    severity: 'error',
    providers: ['lmstudio', 'compatible servers'],
  },
  'responses/done-longer': {
    explanation: 'The value of the done event starts with the content of the deltas and continues: deltas were lost.',
    severity: 'error',
    providers: ['compatible servers', 'relays'],
  },
  'responses/reasoning-twice': {
    explanation: 'An item has the same text in content and in summary. Clients that show both show it twice.',
    severity: 'info',
    providers: ['halogen-flash-server'],
  },
  'responses/done-differs': {
    explanation: 'The value of the done event differs from the concatenated deltas.',
    severity: 'warning',
    providers: ['compatible servers'],
  },
  'responses/output-empty': {
    explanation:
      'Items were streamed, but response.completed has an empty output, or lacks a call. Clients that use the final object lose the response or the call when the stream ends.',
    severity: 'error',
    providers: ['chatgpt-codex', 'new-api', 'Plexus'],
  },
  'responses/item-only-in-output': {
    explanation: 'The output of the terminal event has an item that was not streamed.',
    severity: 'error',
    providers: ['compatible servers'],
  },
  'responses/call-id-missing': {
    explanation: 'A result cannot refer to it.',
    severity: 'error',
    providers: ['compatible servers'],
  },
  'responses/call-id-repeated': {
    explanation: 'A second call repeats the call_id of the first, so results cannot be matched.',
    severity: 'error',
    providers: ['compatible servers'],
  },
  'responses/call-name-missing': {
    explanation: 'No event of the call has a tool name.',
    severity: 'error',
    providers: ['compatible servers'],
  },
  'responses/call-name-late': {
    explanation:
      'output_item.done has no tool name; only the final response has one. Clients run a tool without a name, or none.',
    severity: 'error',
    providers: ['self-written servers'],
  },
  'responses/arguments-object': {
    explanation: 'The standard sends arguments as a string of JSON. Clients that parse it fail or see [object Object].',
    severity: 'error',
    providers: ['compatible servers'],
  },
  'responses/arguments-repeated': {
    explanation:
      'The deltas are not pieces of one text: each repeats everything so far, an empty object comes first, or the whole is sent again. Concatenated, they are not JSON.',
    severity: 'error',
    providers: ['compatible servers'],
  },
  'responses/parallel-wrapper': {
    explanation: 'The model calls an undeclared tool whose arguments are several calls. Clients report an unknown tool.',
    severity: 'error',
    providers: ['OpenAI'],
  },
  'responses/failed-without-error': {
    explanation:
      'The status is failed or cancelled and error is null. Clients that check only the error treat it as a short response.',
    severity: 'error',
    providers: ['OpenAI-compatible servers'],
  },
  'responses/error-without-failed': {
    explanation: 'The stream ends after an error event, without response.failed, which clients such as Codex wait for.',
    severity: 'warning',
    providers: ['compatible servers'],
  },
  'responses/status-differs': {
    explanation: 'The type of the last event does not match response.status.',
    severity: 'warning',
    providers: ['compatible servers'],
  },
  'responses/terminal-missing': {
    explanation:
      'None of response.completed, response.incomplete and response.failed arrived. openai-node returns the response as if it were complete; Codex retries.',
    severity: 'error',
    providers: ['gateways', 'dropped connections'],
  },
  'responses/done-sentinel': {
    explanation:
      'The sentinel belongs to Chat Completions; here only a terminal event shows whether the response is complete. Clients that parse every data line fail on it.',
    severity: 'info',
    providers: ['openrouter', 'gateways'],
  },
} as const;

OPENAI_RESPONSES_FACTS satisfies Record<keyof typeof OPENAI_RESPONSES_TEXTS, RuleFacts>;
