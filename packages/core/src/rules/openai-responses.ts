import type { Rule } from './rule.ts';

/** Departures of OpenAI and compatible servers from OpenAI Responses. */
export const OPENAI_RESPONSES_RULES = {
  'responses/event-line-missing': {
    title: 'Events come without an event: line',
    explanation: 'The frames have only a data line. Clients that go by the SSE event name see nothing.',
    remedy: 'The type inside the data tells what the event is, so nothing is lost.',
    severity: 'info',
    providers: ['openrouter', 'bedrock'],
  },
  'responses/type-missing': {
    title: 'A payload does not say what it is',
    explanation: 'The data has no type. Official clients skip or reject it.',
    remedy: 'The name in the event: line is taken instead; without one the payload is skipped unless it is an error.',
    severity: 'error',
    providers: ['compatible servers'],
  },
  'responses/unknown-event': {
    title: 'An event that the standard does not have',
    explanation:
      'The type is not among those that OpenAI sends: a ping, an event of another server, or one added later. Exhaustive switches throw on it, and so do the official helpers.',
    remedy: 'Known synonyms are read; anything else is skipped.',
    severity: 'error',
    providers: ['opencode-zen (ping)', 'bedrock (reasoning_part)'],
  },
  'responses/sequence-number': {
    title: 'Sequence numbers do not rise',
    explanation: 'A sequence number is repeated or goes back.',
    remedy: 'Events are taken in the order in which they arrive.',
    severity: 'info',
    providers: ['relays that insert events'],
  },
  'responses/created-missing': {
    title: 'The stream does not begin with response.created',
    explanation: 'Content comes before any event that names the response. openai-node throws.',
    remedy: 'The message is started with a derived id and without a model.',
    severity: 'error',
    providers: ['compatible servers'],
  },
  'responses/item-id-rotates': {
    title: 'The id of an item changes from event to event',
    explanation:
      'Every event of one output item carries another item_id. Clients that go by it lose the text or run tools without arguments; openai-node 7 throws.',
    remedy: 'Events are put together by output_index.',
    severity: 'error',
    providers: ['github-copilot'],
  },
  'responses/output-index-missing': {
    title: 'An event has no output_index',
    explanation: 'The event does not say which item of the output it belongs to.',
    remedy: 'Without it the item is told by its id, or else is the last one of its kind.',
    severity: 'error',
    providers: ['compatible servers'],
  },
  'responses/output-index-reused': {
    title: 'Two items share one output_index',
    explanation: 'An item is added at an index that another one has. Clients merge the two.',
    remedy: 'Their kind, their call id and whether the first was done tell them apart.',
    severity: 'error',
    providers: ['compatible servers'],
  },
  'responses/item-not-added': {
    title: 'An item is used without output_item.added',
    explanation:
      'A delta or output_item.done is the first that is heard of an item. Delta-only clients ignore it and no tool runs; openai-node throws.',
    remedy: 'The item is read from whatever comes.',
    severity: 'error',
    providers: ['compatible servers'],
  },
  'responses/item-added-late': {
    title: 'output_item.added comes after the first deltas',
    explanation: 'The deltas of an item were sent before the item itself.',
    remedy: 'What they brought is kept and joined with it.',
    severity: 'error',
    providers: ['compatible servers'],
  },
  'responses/item-not-done': {
    title: 'An item is never declared done',
    explanation:
      'The response ends without output_item.done for a message, reasoning or a call. Clients that wait for it never run the call. Items of server tools do not count: OpenAI itself leaves mcp_list_tools open.',
    remedy: 'The item is closed with the content of the final response.',
    severity: 'warning',
    providers: ['relays'],
  },
  'responses/part-not-added': {
    title: 'A delta comes before its content part',
    explanation:
      'Text arrives for a part that was not announced by content_part.added or reasoning_summary_part.added. openai-node throws "missing content".',
    remedy: 'The part is opened by its first delta.',
    severity: 'error',
    providers: ['compatible servers', 'gateways'],
  },
  'responses/items-overlap': {
    title: 'An item begins while another one is open',
    explanation:
      'Content of one item arrives before the previous item is done. output_index keeps them apart, and OpenAI does so when it runs MCP tools; clients that track a single open item mix them up.',
    remedy:
      'The open block is stopped; its ciphertext is still accepted when it comes, and a final form that comes too late is kept beside the message.',
    severity: 'info',
    providers: ['OpenAI (MCP)', 'openrouter'],
  },
  'responses/deltas-missing': {
    title: 'Content comes only in a done event',
    explanation:
      'No delta was sent for a text or for arguments; the whole value stands in the done event. Delta-only clients end up with an empty text or an empty call.',
    remedy: 'The value goes out as one delta.',
    severity: 'error',
    providers: ['lmstudio', 'compatible servers'],
  },
  'responses/done-longer': {
    title: 'A done event has more than its deltas',
    explanation: 'The whole value begins with what the deltas said and goes on: deltas were lost.',
    remedy: 'The rest goes out when the done event comes.',
    severity: 'error',
    providers: ['compatible servers', 'relays'],
  },
  'responses/done-differs': {
    title: 'A done event contradicts its deltas',
    explanation: 'The whole value is not what the deltas add up to.',
    remedy: 'What was sent cannot be taken back, so the deltas stand.',
    severity: 'warning',
    providers: ['compatible servers'],
  },
  'responses/output-empty': {
    title: 'The final response has no output',
    explanation:
      'Items were streamed, but response.completed carries an empty output. Clients that take the final object lose the answer the moment the stream ends.',
    remedy: 'The items of the stream stand.',
    severity: 'error',
    providers: ['chatgpt-codex', 'new-api', 'Plexus'],
  },
  'responses/item-only-in-output': {
    title: 'An item appears only in the final response',
    explanation: 'The output of the terminal event lists an item of which the stream said nothing.',
    remedy: 'It is read from there.',
    severity: 'error',
    providers: ['compatible servers'],
  },
  'responses/call-id-missing': {
    title: 'A call has no call_id',
    explanation: 'Its result could not name it.',
    remedy: 'A stable id is derived from the response and the position.',
    severity: 'error',
    providers: ['compatible servers'],
  },
  'responses/call-id-repeated': {
    title: 'Two calls share one call_id',
    explanation: 'A second call repeats the call_id of the first, so that results could not be told apart.',
    remedy: 'The later call gets a derived id.',
    severity: 'error',
    providers: ['compatible servers'],
  },
  'responses/call-name-missing': {
    title: 'A call has no name',
    explanation: 'No event of the call says which tool it is for.',
    remedy: 'It is kept under a made-up name, so that it is not run by accident.',
    severity: 'error',
    providers: ['compatible servers'],
  },
  'responses/arguments-object': {
    title: 'Arguments are an object instead of text',
    explanation: 'The standard sends arguments as JSON text. Clients that parse it fail or see [object Object].',
    remedy: 'The object is written out as text.',
    severity: 'error',
    providers: ['compatible servers'],
  },
  'responses/arguments-repeated': {
    title: 'Argument deltas repeat what was said',
    explanation:
      'The deltas are no pieces of one text: each holds everything so far, an empty object comes first, or the whole is sent again.',
    remedy: 'Joined they are no JSON; they are read the way that gives one document.',
    severity: 'error',
    providers: ['compatible servers'],
  },
  'responses/parallel-wrapper': {
    title: 'Calls are wrapped in multi_tool_use.parallel',
    explanation: 'The model calls a tool that nobody declared, whose arguments are several calls. Clients answer "unknown tool".',
    remedy: 'The calls inside are taken out.',
    severity: 'error',
    providers: ['OpenAI'],
  },
  'responses/failed-without-error': {
    title: 'The response failed without saying why',
    explanation: 'The status is failed or cancelled and error is null. Clients that go by the error take it for a short answer.',
    remedy: 'It is an error all the same.',
    severity: 'error',
    providers: ['OpenAI-compatible servers'],
  },
  'responses/error-without-failed': {
    title: 'An error event ends the stream',
    explanation: 'The stream ends after an error event; response.failed, which clients such as Codex wait for, does not come.',
    remedy: 'The error stands.',
    severity: 'warning',
    providers: ['compatible servers'],
  },
  'responses/status-differs': {
    title: 'The terminal event and the status disagree',
    explanation: 'The name of the last event says one thing and response.status another.',
    remedy: 'A failure or an incomplete response is believed, whichever of the two says so.',
    severity: 'warning',
    providers: ['compatible servers'],
  },
  'responses/terminal-missing': {
    title: 'The stream ends without a terminal event',
    explanation:
      'None of response.completed, response.incomplete and response.failed came. openai-node returns such an answer as if nothing were wrong; Codex retries.',
    remedy: 'It counts as cut.',
    severity: 'error',
    providers: ['gateways', 'dropped connections'],
  },
  'responses/done-sentinel': {
    title: 'The stream has a [DONE]',
    explanation:
      'The sentinel belongs to Chat Completions and says nothing here: only a terminal event tells whether the answer is whole. Clients that parse every data line fail on it.',
    remedy: 'Sluice ignores it.',
    severity: 'info',
    providers: ['openrouter', 'gateways'],
  },
} as const;

OPENAI_RESPONSES_RULES satisfies Record<`responses/${string}`, Rule>;
