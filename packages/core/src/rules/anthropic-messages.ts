import type { RuleFacts, RuleText } from './rule.ts';

/** Violations of servers and relays from Anthropic Messages. */
export const ANTHROPIC_MESSAGES_TEXTS = {
  'anthropic/event-name-missing': {
    title: 'A frame has no event line',
    remedy: 'Sluice uses the type in the data.',
  },
  'anthropic/event-name-differs': {
    title: 'The event line and the type in the data differ',
    remedy: 'Sluice uses the type in the data.',
  },
  'anthropic/type-missing': {
    title: 'The data of an event has no type',
    remedy: 'Sluice falls back to the `event:` line.',
  },
  'anthropic/unknown-event': {
    title: 'An event of unknown type',
    remedy: 'Sluice skips the event and continues.',
  },
  'anthropic/unknown-delta': {
    title: 'A delta of unknown type',
    remedy: 'Sluice keeps the delta in a block of unknown type, and skips it in a text, thinking or tool block.',
  },
  'anthropic/message-start-missing': {
    title: 'Content without message_start',
    remedy: 'Sluice starts the message with a derived id.',
  },
  'anthropic/message-start-repeated': {
    title: 'message_start is sent twice',
    remedy: 'Sluice ignores the second start.',
  },
  'anthropic/spliced-stream': {
    title: 'Another message starts before the first one ended',
    remedy: 'Sluice keeps what was read and reports an error.',
  },
  'anthropic/message-id-missing': {
    title: 'The message has no id',
    remedy: 'Sluice derives an id.',
  },
  'anthropic/content-in-message-start': {
    title: 'The content is in message_start',
    remedy: 'Sluice reads the blocks from message_start.',
  },
  'anthropic/block-start-missing': {
    title: 'A delta for a block that was never started',
    remedy: 'Sluice infers the block from the type of the delta. A call without a start gets a placeholder name.',
  },
  'anthropic/block-start-repeated': {
    title: 'content_block_start is sent twice',
    remedy: 'Sluice continues the block; what the second start adds is used once.',
  },
  'anthropic/block-stop-missing': {
    title: 'A block never stops',
    remedy: 'Sluice stops the block.',
  },
  'anthropic/stop-without-start': {
    title: 'content_block_stop for a block that was never started',
    remedy: 'Sluice ignores the event.',
  },
  'anthropic/index-gap': {
    title: 'Block indexes are not 0, 1, 2 …',
    remedy: 'Sluice treats the index as an opaque key and numbers the blocks itself.',
  },
  'anthropic/index-reused': {
    title: 'A block index is used again',
    remedy: 'Sluice starts a new block.',
  },
  'anthropic/blocks-overlap': {
    title: 'A block starts before the previous one has stopped',
    remedy: 'Sluice separates the blocks by index. Text that arrives while a call is open is placed after the call.',
  },
  'anthropic/delta-of-another-kind': {
    title: 'A delta does not fit its block',
    remedy: 'Sluice opens a block of the matching type.',
  },
  'anthropic/delta-after-stop': {
    title: 'A delta for a block that has stopped',
    remedy: 'Sluice puts them into a new block of the same type.',
  },
  'anthropic/text-in-start': {
    title: 'content_block_start contains text',
    remedy: 'Sluice uses it as the first piece.',
  },
  'anthropic/start-text-repeated': {
    title: 'content_block_start contains text that the deltas repeat',
    remedy: 'Sluice waits for the deltas and uses the text once.',
  },
  'anthropic/input-in-start-and-deltas': {
    title: 'The input is in content_block_start and again in deltas',
    remedy: 'Sluice uses the deltas as soon as one is not empty.',
  },
  'anthropic/input-sent-twice': {
    title: 'Argument deltas repeat earlier ones',
    remedy: 'Sluice reads them in the form that is valid JSON.',
  },
  'anthropic/input-not-json': {
    title: 'The arguments of a call are not JSON',
    remedy: 'Sluice keeps the text unchanged and marks the call as invalid.',
  },
  'anthropic/input-after-stop': {
    title: 'Arguments for a call that has stopped',
    remedy: 'Sluice drops the late piece.',
  },
  'anthropic/tool-id-missing': {
    title: 'A call has no id',
    remedy: 'Sluice derives a stable id.',
  },
  'anthropic/tool-id-duplicate': {
    title: 'Two calls share one id',
    remedy: 'The later call gets a derived id, so that results can be matched.',
  },
  'anthropic/tool-name-missing': {
    title: 'A call has no name',
    remedy: 'Sluice uses a placeholder name. No client has such a tool, so nothing is executed by mistake.',
  },
  'anthropic/signature-split': {
    title: 'A signature arrives in pieces',
    remedy: 'Sluice joins the pieces.',
  },
  'anthropic/signature-repeated': {
    title: 'A signature is sent twice',
    remedy: 'Sluice uses it once.',
  },
  'anthropic/signature-late': {
    title: 'A signature arrives after its block has stopped',
    remedy: 'Sluice assigns it to its thinking block.',
  },
  'anthropic/message-delta-repeated': {
    title: 'message_delta is sent more than once',
    remedy: 'Sluice keeps the last value of each field.',
  },
  'anthropic/content-after-message-delta': {
    title: 'Content after message_delta',
    remedy: 'Sluice adds it to the message.',
  },
  'anthropic/message-stop-missing': {
    title: 'The stream ends without message_stop',
    remedy: 'Sluice ends the message.',
  },
  'anthropic/ended-early': {
    title: 'The stream ends in the middle of the message',
    remedy: 'Sluice keeps what was read and marks the message as incomplete; it never invents a stop reason.',
  },
  'anthropic/stop-reason-missing': {
    title: 'The message ends without a stop reason',
    remedy: 'Sluice uses tool_use when there are calls, otherwise end_turn.',
  },
  'anthropic/stop-reason-unknown': {
    title: 'The stop reason is not a value of the protocol',
    remedy: 'Sluice maps known values and treats others as end_turn.',
  },
  'anthropic/end-turn-with-calls': {
    title: 'end_turn, although the model called a tool',
    remedy: 'Sluice reads it as tool_use.',
  },
  'anthropic/tool-use-without-calls': {
    title: 'tool_use, although the message has no call',
    remedy: 'Sluice reads it as end_turn and keeps the original value.',
  },
  'anthropic/usage-of-zeros': {
    title: 'A usage of zeros follows a real one',
    remedy: 'Sluice keeps the earlier counts.',
  },
  'anthropic/done-sentinel': {
    title: '[DONE] in an Anthropic stream',
    remedy: 'Sluice ignores the event.',
  },
} as const;

ANTHROPIC_MESSAGES_TEXTS satisfies Record<`anthropic/${string}`, RuleText>;

/** The facts about these rules, for the doctor and the pages. */
export const ANTHROPIC_MESSAGES_FACTS = {
  'anthropic/event-name-missing': {
    explanation:
      'Every event has its type in the data and in an `event:` line. The official SDK dispatches on that line and skips frames without one, so it sees an empty stream.',
    severity: 'error',
    providers: ['Anthropic-compatible relays'],
  },
  'anthropic/event-name-differs': {
    explanation: 'The `event:` line and `type` in the data have different values. Clients differ in which one they use.',
    severity: 'warning',
    providers: ['proxies'],
  },
  'anthropic/type-missing': {
    explanation: 'The type is only in the `event:` line. Clients that read `type` in the data skip the event.',
    severity: 'error',
    providers: ['proxies'],
  },
  'anthropic/unknown-event': {
    explanation: 'The protocol may add events; clients must ignore those that they do not know.',
    severity: 'info',
    providers: ['anthropic'],
  },
  'anthropic/unknown-delta': {
    explanation: 'The protocol may add deltas.',
    severity: 'info',
    providers: ['anthropic'],
  },
  'anthropic/message-start-missing': {
    explanation: 'The first event is not message_start. The official SDK throws on the first block.',
    severity: 'error',
    providers: ['Anthropic-compatible relays'],
  },
  'anthropic/message-start-repeated': {
    explanation: 'The same message starts again. The official SDK throws.',
    severity: 'error',
    providers: ['Anthropic-compatible relays'],
  },
  'anthropic/spliced-stream': {
    explanation:
      'A message_start with a different id arrives in the middle of a message: a retry was appended to a failed stream. The content of the two messages cannot be separated.',
    severity: 'error',
    providers: ['Anthropic-compatible relays'],
  },
  'anthropic/message-id-missing': {
    explanation: 'message_start has no id or a blank one.',
    severity: 'warning',
    providers: ['Anthropic-compatible relays'],
  },
  'anthropic/content-in-message-start': {
    explanation: 'The standard sends message_start with empty content. Here it contains the blocks, and no block events follow.',
    severity: 'error',
    providers: ['Anthropic-compatible relays'],
  },
  'anthropic/block-start-missing': {
    explanation: 'Clients stop with "Content block not found".',
    severity: 'error',
    providers: ['CLIProxyAPI'],
  },
  'anthropic/block-start-repeated': {
    explanation:
      'The same block starts again while it is open. Clients that append a block at each start show an empty one; a call in two pieces cannot be run.',
    severity: 'error',
    providers: ['Anthropic-compatible relays', 'llama.cpp'],
  },
  'anthropic/block-stop-missing': {
    explanation: 'The message ends while a block is open. Clients that parse arguments at content_block_stop never parse them.',
    severity: 'error',
    providers: ['Anthropic-compatible relays'],
  },
  'anthropic/stop-without-start': {
    explanation: 'content_block_stop has an index without a block. The official SDK fails.',
    severity: 'warning',
    providers: ['Anthropic-compatible relays'],
  },
  'anthropic/index-gap': {
    explanation:
      'An index is skipped, missing or not a number. The official SDK appends blocks by position and reads them by index: text is lost, or the request fails and is retried.',
    severity: 'error',
    providers: ['NewAPI relay'],
  },
  'anthropic/index-reused': {
    explanation: 'A second block starts with the index of an earlier one. Clients overwrite or mix the two.',
    severity: 'error',
    providers: ['Anthropic-compatible relays'],
  },
  'anthropic/blocks-overlap': {
    explanation: 'The standard has one open block at a time. Clients that track a single block mix the contents.',
    severity: 'error',
    providers: ['fine-grained tool streaming relays', 'openrouter'],
  },
  'anthropic/delta-of-another-kind': {
    explanation:
      'For example, text arrives in a thinking block because a relay changed the kind of content without starting a new block.',
    severity: 'error',
    providers: ['Anthropic-compatible relays'],
  },
  'anthropic/delta-after-stop': {
    explanation: 'Deltas arrive after the content_block_stop of their block.',
    severity: 'error',
    providers: ['Anthropic-compatible relays'],
  },
  'anthropic/text-in-start': {
    explanation:
      'In the standard, text and thinking start empty. Clients that ignore text in the start lose the first characters.',
    severity: 'warning',
    providers: ['Anthropic-compatible relays'],
  },
  'anthropic/start-text-repeated': {
    explanation: 'Clients that append both show the text twice.',
    severity: 'error',
    providers: ['Anthropic-compatible relays'],
  },
  'anthropic/input-in-start-and-deltas': {
    explanation: 'Concatenated, they are two JSON documents.',
    severity: 'error',
    providers: ['Anthropic-compatible relays'],
  },
  'anthropic/input-sent-twice': {
    explanation:
      'Concatenated, the deltas of a call are not JSON. They are valid as growing snapshots, as an empty object before the real one, or as one document sent twice.',
    severity: 'error',
    providers: ['Anthropic-compatible relays'],
  },
  'anthropic/input-not-json': {
    explanation:
      'The deltas of a call are not a JSON document, although the message was not truncated. The official SDK throws when it parses them.',
    severity: 'error',
    providers: ['Anthropic-compatible relays'],
  },
  'anthropic/input-after-stop': {
    explanation: 'The call was complete; a client may already have executed it.',
    severity: 'error',
    providers: ['Anthropic-compatible relays'],
  },
  'anthropic/tool-id-missing': {
    explanation: 'The start of a call has no id, so a result cannot refer to it.',
    severity: 'error',
    providers: ['Anthropic-compatible relays'],
  },
  'anthropic/tool-id-duplicate': {
    explanation: 'A second call repeats the id of the first.',
    severity: 'error',
    providers: ['Anthropic-compatible relays'],
  },
  'anthropic/tool-name-missing': {
    explanation: 'The start of a call has no name, or there was no start.',
    severity: 'error',
    providers: ['CLIProxyAPI'],
  },
  'anthropic/signature-split': {
    explanation:
      'The standard sends one signature_delta. The official SDK keeps only the last piece, and the next request is rejected.',
    severity: 'error',
    providers: ['proxies'],
  },
  'anthropic/signature-repeated': {
    explanation: 'Clients that join pieces double it, and the next request is rejected.',
    severity: 'warning',
    providers: ['proxies'],
  },
  'anthropic/signature-late': {
    explanation: 'Clients that assign it to the last block send an invalid signature with the next request.',
    severity: 'error',
    providers: ['openrouter'],
  },
  'anthropic/message-delta-repeated': {
    explanation: 'The official SDK applies each one; a second one without a stop_reason erases the first.',
    severity: 'error',
    providers: ['Anthropic-compatible relays'],
  },
  'anthropic/content-after-message-delta': {
    explanation: 'The stop reason was sent and content still follows.',
    severity: 'warning',
    providers: ['Anthropic-compatible relays'],
  },
  'anthropic/message-stop-missing': {
    explanation: 'The stop reason was sent, so the message is complete, but the official SDK throws.',
    severity: 'error',
    providers: ['Anthropic-compatible relays'],
  },
  'anthropic/ended-early': {
    explanation: 'Neither a stop reason nor message_stop was sent.',
    severity: 'error',
    providers: ['dropped connections'],
  },
  'anthropic/stop-reason-missing': {
    explanation: 'message_stop arrives, but no message_delta had a stop_reason.',
    severity: 'warning',
    providers: ['Anthropic-compatible relays'],
  },
  'anthropic/stop-reason-unknown': {
    explanation: 'Often it is a value of another protocol that a relay passed through.',
    severity: 'warning',
    providers: ['Anthropic-compatible relays'],
  },
  'anthropic/end-turn-with-calls': {
    explanation: 'Agents that trust the stop reason do not run the call.',
    severity: 'warning',
    providers: ['Anthropic-compatible relays'],
  },
  'anthropic/tool-use-without-calls': {
    explanation: 'Agents wait for results of calls that do not exist, or send an empty turn.',
    severity: 'error',
    providers: ['Anthropic'],
  },
  'anthropic/usage-of-zeros': {
    explanation: 'A relay without token counts sends zeros at the end.',
    severity: 'warning',
    providers: ['Anthropic-compatible relays'],
  },
  'anthropic/done-sentinel': {
    explanation: 'The sentinel belongs to OpenAI Chat; clients that parse every payload fail on it.',
    severity: 'warning',
    providers: ['openrouter'],
  },
} as const;

ANTHROPIC_MESSAGES_FACTS satisfies Record<keyof typeof ANTHROPIC_MESSAGES_TEXTS, RuleFacts>;
