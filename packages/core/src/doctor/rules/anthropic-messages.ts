import type { Rule } from './rule.ts';

/** Anthropic Messages as servers and relays speak it. */
export const ANTHROPIC_MESSAGES_RULES = {
  'anthropic/event-name-missing': {
    title: 'A frame has no event line',
    explanation:
      'Every event names its type in the data and in an `event:` line. The official SDK selects by that line and skips frames without one, so that it sees an empty stream. Sluice reads the type in the data.',
    severity: 'error',
    providers: ['Anthropic-compatible relays'],
  },
  'anthropic/event-name-differs': {
    title: 'The event line and the type in the data differ',
    explanation:
      'The `event:` line names another event than `type` in the data. Clients disagree which of them counts. Sluice follows the data.',
    severity: 'warning',
    providers: ['proxies'],
  },
  'anthropic/type-missing': {
    title: 'The data of an event has no type',
    explanation:
      'The event is named in the `event:` line only. Clients that read `type` in the data skip it. Sluice falls back to the line.',
    severity: 'warning',
    providers: ['proxies'],
  },
  'anthropic/unknown-event': {
    title: 'An event of unknown type',
    explanation:
      'The protocol may add events, and clients that do not know every one must not fail. Sluice leaves it out and reads on.',
    severity: 'info',
    providers: ['anthropic'],
  },
  'anthropic/unknown-delta': {
    title: 'A delta of unknown type',
    explanation:
      'The protocol may add deltas. In a block that Sluice does not know either, they are kept as they are; in a text, thinking or tool block there is no place for them, and they are left out.',
    severity: 'info',
    providers: ['anthropic'],
  },
  'anthropic/message-start-missing': {
    title: 'Content without message_start',
    explanation:
      'The first event is not message_start. The official SDK throws on the first block. Sluice begins the message itself, with a derived id.',
    severity: 'error',
    providers: ['Anthropic-compatible relays'],
  },
  'anthropic/message-start-repeated': {
    title: 'message_start is sent twice',
    explanation: 'The same message starts again. The official SDK throws. Sluice ignores the second start.',
    severity: 'error',
    providers: ['Anthropic-compatible relays'],
  },
  'anthropic/spliced-stream': {
    title: 'Another message starts before the first one ended',
    explanation:
      'A message_start with another id arrives in the middle of a message: a retry was glued to the stream that failed. Nobody can tell what belongs together. Sluice keeps what it has and reports an error.',
    severity: 'error',
    providers: ['Anthropic-compatible relays'],
  },
  'anthropic/message-id-missing': {
    title: 'The message has no id',
    explanation: 'message_start carries no id, or a blank one. Sluice derives one.',
    severity: 'warning',
    providers: ['Anthropic-compatible relays'],
  },
  'anthropic/content-in-message-start': {
    title: 'The content stands in message_start',
    explanation:
      'The content of message_start is empty in the standard; here it holds the blocks, and no block event follows. Sluice reads them from there.',
    severity: 'error',
    providers: ['Anthropic-compatible relays'],
  },
  'anthropic/block-start-missing': {
    title: 'A delta for a block that was never started',
    explanation:
      'Clients stop with "Content block not found". Sluice infers the block from the type of the delta; a call without a start has no name, so it gets a stand-in.',
    severity: 'error',
    providers: ['CLIProxyAPI'],
  },
  'anthropic/block-start-repeated': {
    title: 'The start of a block is sent twice',
    explanation:
      'The same block starts again before any delta. Clients that append a block at each start show an empty one. Sluice ignores the second start.',
    severity: 'error',
    providers: ['Anthropic-compatible relays'],
  },
  'anthropic/block-stop-missing': {
    title: 'A block never stops',
    explanation:
      'The message ends while a block is open. Clients that parse arguments at the stop of the block never do. Sluice stops it.',
    severity: 'error',
    providers: ['Anthropic-compatible relays'],
  },
  'anthropic/stop-without-start': {
    title: 'A stop for a block that was never started',
    explanation: 'content_block_stop names an index without a block. The official SDK fails on it. Sluice ignores it.',
    severity: 'warning',
    providers: ['Anthropic-compatible relays'],
  },
  'anthropic/index-gap': {
    title: 'Block indexes are not 0, 1, 2 …',
    explanation:
      'An index is skipped, missing or no number. The official SDK appends blocks by position and then reads them by index: text is lost, or an index error retried. Sluice takes an index as a name and counts the blocks itself.',
    severity: 'error',
    providers: ['NewAPI relay'],
  },
  'anthropic/index-reused': {
    title: 'A block index is used again',
    explanation:
      'A second block starts with the index of an earlier one. Clients overwrite or mix the two. Sluice begins another block.',
    severity: 'error',
    providers: ['Anthropic-compatible relays'],
  },
  'anthropic/blocks-overlap': {
    title: 'A block starts before the one before it has stopped',
    explanation:
      'The standard has one block open at a time. Clients with a single current block mix the contents. Sluice tells them apart by index; text that arrives while a call is open follows the call.',
    severity: 'error',
    providers: ['fine-grained tool streaming relays', 'openrouter'],
  },
  'anthropic/delta-of-another-kind': {
    title: 'A delta does not fit its block',
    explanation:
      'For example text in a thinking block: a relay changed the kind of content without starting another block. Sluice opens the block that fits.',
    severity: 'error',
    providers: ['Anthropic-compatible relays'],
  },
  'anthropic/delta-after-stop': {
    title: 'Text for a block that has stopped',
    explanation: 'Deltas follow the stop of their block. Sluice puts them into another block of the same kind.',
    severity: 'error',
    providers: ['Anthropic-compatible relays'],
  },
  'anthropic/text-in-start': {
    title: 'The start of a block carries text',
    explanation:
      'The standard starts text and thinking empty. Clients that ignore text in the start lose the first characters. Sluice takes it as the first piece.',
    severity: 'warning',
    providers: ['Anthropic-compatible relays'],
  },
  'anthropic/start-text-repeated': {
    title: 'The start of a block carries text that the deltas repeat',
    explanation:
      'Clients that add both show the text twice. Sluice holds the text of the start until the deltas show which it is, and takes it once.',
    severity: 'error',
    providers: ['Anthropic-compatible relays'],
  },
  'anthropic/input-in-start-and-deltas': {
    title: 'The input stands in the start and comes again as deltas',
    explanation: 'Joining both gives two JSON documents. Sluice takes the deltas as soon as there is one that is not empty.',
    severity: 'error',
    providers: ['Anthropic-compatible relays'],
  },
  'anthropic/input-sent-twice': {
    title: 'Argument deltas repeat what was sent before',
    explanation:
      'The deltas of a call, joined, are no JSON, but read as snapshots that grow, as an empty object before the real one, or as one document sent twice, they are. Sluice reads them so.',
    severity: 'error',
    providers: ['Anthropic-compatible relays'],
  },
  'anthropic/input-not-json': {
    title: 'The arguments of a call are not JSON',
    explanation:
      'The deltas of a call do not add up to a JSON document, although the message was not cut. The official SDK throws when it parses them. Sluice keeps the text as it came and marks the call.',
    severity: 'error',
    providers: ['Anthropic-compatible relays'],
  },
  'anthropic/input-after-stop': {
    title: 'Arguments for a call that has stopped',
    explanation: 'The call was whole; a client may have executed it already. Sluice leaves the late piece out.',
    severity: 'error',
    providers: ['Anthropic-compatible relays'],
  },
  'anthropic/tool-id-missing': {
    title: 'A call has no id',
    explanation: 'The start of a call carries no id, so that no result could name it. Sluice derives a stable one.',
    severity: 'error',
    providers: ['Anthropic-compatible relays'],
  },
  'anthropic/tool-id-duplicate': {
    title: 'Two calls share one id',
    explanation:
      'A second call repeats the id of the first. The later call gets a derived id, so that results can be told apart.',
    severity: 'error',
    providers: ['Anthropic-compatible relays'],
  },
  'anthropic/tool-name-missing': {
    title: 'A call has no name',
    explanation:
      'The start of a call carries no name, or there was no start at all. Sluice puts a stand-in there: no client has such a tool, so nothing is executed by mistake.',
    severity: 'error',
    providers: ['CLIProxyAPI'],
  },
  'anthropic/signature-split': {
    title: 'A signature arrives in pieces',
    explanation:
      'The standard sends one signature_delta, and the official SDK keeps the last: a piece, which the next request is refused for. Sluice joins the pieces.',
    severity: 'error',
    providers: ['proxies'],
  },
  'anthropic/signature-repeated': {
    title: 'A signature is sent twice',
    explanation: 'Clients that join pieces double it, and the next request is refused. Sluice takes it once.',
    severity: 'warning',
    providers: ['proxies'],
  },
  'anthropic/signature-late': {
    title: 'A signature arrives after its block has stopped',
    explanation:
      'Clients that give it to the last block send an invalid signature with the next request. Sluice gives it to the thinking block it belongs to.',
    severity: 'error',
    providers: ['openrouter'],
  },
  'anthropic/message-delta-repeated': {
    title: 'message_delta is sent more than once',
    explanation:
      'The official SDK takes each as it is, and a second one without a stop_reason takes the first one back. Sluice keeps the last value of each field.',
    severity: 'error',
    providers: ['Anthropic-compatible relays'],
  },
  'anthropic/content-after-message-delta': {
    title: 'Content after message_delta',
    explanation: 'The stop reason was sent and content still follows. Sluice reads it into the message.',
    severity: 'warning',
    providers: ['Anthropic-compatible relays'],
  },
  'anthropic/message-stop-missing': {
    title: 'The stream ends without message_stop',
    explanation: 'The stop reason was sent, so the message is whole, but the official SDK throws. Sluice ends the message.',
    severity: 'error',
    providers: ['Anthropic-compatible relays'],
  },
  'anthropic/ended-early': {
    title: 'The stream ends in the middle of the message',
    explanation:
      'Neither a stop reason nor message_stop was sent. Sluice keeps what it has read and says that it is not complete; it never invents a stop reason.',
    severity: 'error',
    providers: ['dropped connections'],
  },
  'anthropic/stop-reason-missing': {
    title: 'The message ends without a stop reason',
    explanation:
      'message_stop arrives and no message_delta named a stop_reason. Sluice takes tool_use when there are calls, else end_turn.',
    severity: 'warning',
    providers: ['Anthropic-compatible relays'],
  },
  'anthropic/stop-reason-unknown': {
    title: 'The stop reason is not one of the protocol',
    explanation:
      'Often a word of another protocol that a relay passed on. Sluice maps those it knows, and takes others as end_turn.',
    severity: 'warning',
    providers: ['Anthropic-compatible relays'],
  },
  'anthropic/end-turn-with-calls': {
    title: 'end_turn, although the model called a tool',
    explanation: 'Agents that trust the stop reason do not run the call. Sluice reads it as tool_use.',
    severity: 'warning',
    providers: ['Anthropic-compatible relays'],
  },
  'anthropic/usage-of-zeros': {
    title: 'A usage of zeros follows a real one',
    explanation: 'A relay that knows no counts sends zeros at the end. Sluice keeps the counts it has.',
    severity: 'warning',
    providers: ['Anthropic-compatible relays'],
  },
  'anthropic/done-sentinel': {
    title: '[DONE] in an Anthropic stream',
    explanation: 'The sentinel belongs to OpenAI Chat; clients that parse every payload fail on it. Sluice ignores it.',
    severity: 'warning',
    providers: ['openrouter'],
  },
} as const;

ANTHROPIC_MESSAGES_RULES satisfies Record<`anthropic/${string}`, Rule>;
