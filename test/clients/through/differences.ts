import type { ProtocolId } from '@sluice/core';
import type { Verdict } from './compare.ts';
import type { Way } from './sdks.ts';

/** Faults whose responses an SDK reads differently through the gateway. */
interface Difference {
  verdict: Exclude<Verdict, 'equal'>;
  ways: readonly Way[];
  /** Only these show it: the older majors, which are tried at night, or the newest SDKs, which `npm run test:sdk-next` installs. */
  only?: 'older' | 'newest';
  reason: string;
  /** Names, separated by blanks. */
  faults: Partial<Record<ProtocolId, string>>;
}

/** Every difference: better for the client or as good, except the last rows, which are worse. A test fails at one that no longer occurs. */
export const DIFFERENCES: readonly Difference[] = [
  {
    verdict: 'healed',
    ways: ['events'],
    reason: 'Fields of the envelope are missing or wrong, and the SDK does not find the content.',
    faults: {
      gemini: 'gemini/response-wrapper gemini/snake-case',
    },
  },
  {
    verdict: 'healed',
    ways: ['events', 'assembled'],
    reason: 'Fields of the envelope are missing or wrong, and the SDK does not find the content.',
    faults: {
      'anthropic-messages': 'anthropic/no-event-lines anthropic/no-types',
      'openai-responses': 'responses/no-types',
    },
  },
  {
    verdict: 'healed',
    ways: ['assembled'],
    reason: 'Fields of the envelope are missing or wrong, and the SDK does not find the content.',
    faults: {
      'openai-chat': 'chat/choice-index-missing chat/envelope-missing chat/foreign-ping',
      'anthropic-messages': `
        anthropic/start-again-later anthropic/start-bare anthropic/start-missing anthropic/start-twice
      `,
      'openai-responses': 'responses/after-the-end responses/no-created responses/unknown-events',
    },
  },
  {
    verdict: 'healed',
    ways: ['events'],
    reason: 'The SDK loses a call, joins two, or misreads its name or arguments.',
    faults: {
      'openai-chat': `
        chat/ids-after-the-name chat/ids-and-names-repeated chat/names-growing chat/names-repeated
      `,
      'openai-responses': 'responses/names-in-output',
      gemini: 'gemini/args-streamed-no-end gemini/args-text gemini/stray-call-ends',
    },
  },
  {
    verdict: 'healed',
    ways: ['events', 'assembled'],
    reason: 'The SDK loses a call, joins two, or misreads its name or arguments.',
    faults: {
      'openai-chat': `
        chat/arguments-cumulative chat/arguments-leading-empty-object chat/arguments-object
        chat/arguments-object-repeated chat/arguments-sent-again chat/calls-not-a-list chat/function-call
        chat/index-drifts chat/names-the-word-null
      `,
      'anthropic-messages': `
        anthropic/call-starts-again anthropic/input-after-empty-object anthropic/input-after-stop
        anthropic/input-cumulative anthropic/input-sent-twice
      `,
      'openai-responses': 'responses/arguments-object',
    },
  },
  {
    verdict: 'healed',
    ways: ['assembled'],
    reason: 'The SDK loses a call, joins two, or misreads its name or arguments.',
    faults: {
      'openai-chat': `
        chat/calls-whole-no-index chat/index-gaps chat/index-missing chat/index-missing-ids-repeated
        chat/index-negative chat/index-only-first chat/names-split chat/names-split-by-arguments chat/type-missing
        chat/type-upper-case
      `,
    },
  },
  {
    verdict: 'healed',
    ways: ['events'],
    reason: 'The SDK loses text, reads it twice, or reads an object as text.',
    faults: {
      'openai-chat': 'chat/message-in-a-chunk chat/message-only',
      'anthropic-messages': 'anthropic/content-in-start',
      'openai-responses': `
        responses/done-twice responses/last-delta-lost responses/not-done responses/only-in-output
        responses/texts-only-done
      `,
    },
  },
  {
    verdict: 'healed',
    ways: ['events', 'assembled'],
    reason: 'The SDK loses text, reads it twice, or reads an object as text.',
    faults: {
      'openai-chat': 'chat/content-one-part chat/content-parts chat/reasoning-parts chat/text-completion',
      'anthropic-messages': `
        anthropic/index-missing anthropic/index-zero anthropic/starts-missing anthropic/text-in-thinking
        anthropic/text-repeated-in-start
      `,
      'openai-responses': 'responses/only-done',
    },
  },
  {
    verdict: 'healed',
    ways: ['assembled'],
    reason: 'The SDK loses text, reads it twice, or reads an object as text.',
    faults: {
      'openai-chat': 'chat/role-missing',
      'anthropic-messages': 'anthropic/index-gaps anthropic/starts-twice',
      'openai-responses': `
        responses/added-late responses/done-elsewhere responses/no-output-index responses/not-added
        responses/parts-counted-up responses/parts-not-added
      `,
    },
  },
  {
    verdict: 'healed',
    ways: ['events', 'assembled'],
    reason: 'The SDK reads no usage, or too little.',
    faults: {
      'anthropic-messages': 'anthropic/usage-null anthropic/usage-of-zeros',
    },
  },
  {
    verdict: 'healed',
    ways: ['assembled'],
    reason: 'The SDK reads no usage, or too little.',
    faults: {
      'openai-chat': 'chat/usage-no-choices chat/usage-null-choices',
    },
  },
  {
    verdict: 'healed',
    ways: ['events'],
    reason: 'The finish reason is missing, or not one of the protocol.',
    faults: {
      gemini: 'gemini/finish-number',
    },
  },
  {
    verdict: 'healed',
    ways: ['events', 'assembled'],
    reason: 'The finish reason is missing, or not one of the protocol.',
    faults: {
      'openai-chat': `
        chat/finish-function-call chat/finish-missing chat/finish-other-words chat/finish-stop-with-calls
      `,
      'anthropic-messages': `
        anthropic/delta-twice anthropic/end-turn-with-calls anthropic/no-stop-reason anthropic/stop-reason-of-chat
      `,
      'openai-responses': 'responses/done-for-completed responses/status-differs',
    },
  },
  {
    verdict: 'healed',
    ways: ['assembled'],
    reason: 'The finish reason is missing, or not one of the protocol.',
    faults: {
      'anthropic-messages': 'anthropic/no-message-stop',
      'openai-responses': 'responses/output-empty responses/output-missing',
    },
  },
  {
    verdict: 'healed',
    ways: ['events'],
    reason: 'The framing is not what the SDK expects.',
    faults: {
      'openai-chat': 'chat/done-padded',
      gemini: `
        gemini/done gemini/json-array sse/comments sse/comments-inside sse/empty-data sse/keepalive-as-data
        sse/last-line-only sse/ndjson sse/no-blank-lines sse/no-last-line-end sse/trailing-garbage
      `,
    },
  },
  {
    verdict: 'healed',
    ways: ['events', 'assembled'],
    reason: 'The framing is not what the SDK expects.',
    faults: {
      'openai-chat': 'sse/empty-data sse/keepalive-as-data sse/ndjson sse/no-blank-lines sse/trailing-garbage',
      'anthropic-messages': 'sse/ndjson sse/no-blank-lines sse/trailing-garbage',
      'openai-responses': `
        sse/empty-data sse/keepalive-as-data sse/last-line-only sse/ndjson sse/no-blank-lines sse/no-last-line-end
        sse/trailing-garbage
      `,
    },
  },
  {
    verdict: 'healed',
    ways: ['assembled'],
    reason: 'The framing is not what the SDK expects.',
    faults: {
      'anthropic-messages': 'sse/last-line-only sse/no-last-line-end',
    },
  },
  {
    verdict: 'healed',
    ways: ['whole', 'events'],
    reason: 'The gateway sends the request again.',
    faults: {
      'openai-chat': 'status=503,times=1',
      'anthropic-messages': 'status=503,times=1',
      'openai-responses': 'status=503,times=1',
      gemini: 'status=503,times=1',
    },
  },
  {
    verdict: 'healed',
    ways: ['assembled'],
    reason: 'The gateway sends the request again.',
    faults: {
      'openai-chat': 'status=503,times=1',
      'anthropic-messages': 'status=503,times=1',
      'openai-responses': 'status=503,times=1',
    },
  },
  {
    verdict: 'healed',
    ways: ['count'],
    reason: 'The gateway sends the request again.',
    faults: {
      'anthropic-messages': 'status=503,times=1',
      'openai-responses': 'status=503,times=1',
      gemini: 'status=503,times=1',
    },
  },
  {
    verdict: 'healed',
    ways: ['embed'],
    reason: 'The gateway sends the request again.',
    faults: {
      'openai-chat': 'status=503,times=1',
      gemini: 'status=503,times=1',
    },
  },
  {
    verdict: 'restated',
    ways: ['events'],
    reason: 'Calls get the ids, indexes and form of the protocol; names and arguments are the same.',
    faults: {
      'openai-chat': `
        chat/arguments-null chat/calls-joined chat/calls-whole-no-index chat/function-null chat/ids-blank
        chat/ids-late chat/ids-null chat/index-gaps chat/index-missing chat/index-missing-ids-repeated
        chat/index-negative chat/index-only-first chat/index-text chat/names-after-the-arguments chat/names-blank
        chat/names-null chat/names-split chat/type-missing chat/type-upper-case
      `,
      'anthropic-messages': 'anthropic/input-in-start anthropic/input-in-start-and-deltas anthropic/no-input-in-start',
      'openai-responses': `
        responses/arguments-after-empty-object responses/arguments-cumulative responses/arguments-only-done
        responses/arguments-sent-again
      `,
    },
  },
  {
    verdict: 'restated',
    ways: ['events', 'assembled'],
    reason: 'Calls get the ids, indexes and form of the protocol; names and arguments are the same.',
    faults: {
      'openai-chat': `
        chat/ids-after-the-arguments chat/ids-all-blank chat/ids-never chat/ids-new-on-every-delta chat/ids-numbers
        chat/ids-the-word-null
      `,
      'anthropic-messages': 'anthropic/ids-missing',
      'openai-responses': 'responses/call-ids-differ responses/call-ids-missing',
    },
  },
  {
    verdict: 'restated',
    ways: ['events'],
    reason: 'Events that carry nothing are dropped.',
    faults: {
      'anthropic-messages': 'sse/empty-data sse/keepalive-as-data sse/last-line-only sse/no-last-line-end',
    },
  },
  {
    verdict: 'restated',
    ways: ['events'],
    reason: 'The envelope is completed; what the SDK reads is the same.',
    faults: {
      'openai-chat': `
        chat/choice-index-missing chat/envelope-missing chat/filter-offsets-last chat/foreign-ping chat/object-missing
      `,
      'anthropic-messages': `
        anthropic/event-lines-differ anthropic/start-again-later anthropic/start-bare anthropic/start-missing
        anthropic/start-twice
      `,
      'openai-responses': 'responses/after-the-end responses/no-created responses/unknown-events',
      gemini: 'gemini/foreign-payload-first gemini/foreign-payloads',
    },
  },
  {
    verdict: 'restated',
    ways: ['events', 'assembled'],
    reason: 'The envelope is completed; what the SDK reads is the same.',
    faults: {
      'anthropic-messages': 'anthropic/no-message-id',
    },
  },
  {
    verdict: 'restated',
    ways: ['events'],
    reason: 'The error is the same; the items that it leaves open are closed before it.',
    faults: {
      'openai-responses': 'failure/error-payload failure/responses-failed',
    },
  },
  {
    verdict: 'restated',
    ways: ['events'],
    reason: 'The events get the form of the protocol; the text is the same.',
    faults: {
      'openai-chat': `
        chat/delta-missing chat/delta-null chat/every-field chat/message-at-the-end chat/role-blank chat/role-missing
        chat/role-null
      `,
      'anthropic-messages': `
        anthropic/index-gaps anthropic/index-missing anthropic/overlap anthropic/stops-missing
        anthropic/stops-of-nothing anthropic/text-in-start
      `,
      'openai-responses': `
        responses/added-late responses/added-twice responses/done-differs responses/done-elsewhere
        responses/done-twice responses/no-output-index responses/not-added responses/not-done
        responses/output-index-zero responses/overlap responses/parts-counted-up responses/parts-not-added
        responses/reasoning-done-as-text
      `,
      gemini: 'gemini/nameless-calls gemini/null-parts',
    },
  },
  {
    verdict: 'restated',
    ways: ['events', 'assembled'],
    reason: 'The events get the form of the protocol; the text is the same.',
    faults: {
      'openai-chat': 'chat/reasoning-twice',
      'anthropic-messages': 'anthropic/starts-twice anthropic/text-after-stop',
      'openai-responses': 'responses/item-ids-rotate',
    },
  },
  {
    verdict: 'restated',
    ways: ['events'],
    reason: 'The finish reason comes once, at the end.',
    faults: {
      'openai-chat': `
        chat/finish-before-content chat/finish-empty chat/finish-on-every-chunk chat/finish-on-the-last-content
        chat/finish-twice
      `,
      'anthropic-messages': `
        anthropic/after-the-end anthropic/delta-before-content anthropic/no-message-stop anthropic/usage-delta-first
      `,
      'openai-responses': 'responses/output-empty responses/output-missing',
      gemini: 'gemini/finish-on-every-chunk gemini/finish-unspecified',
    },
  },
  {
    verdict: 'restated',
    ways: ['events'],
    reason: 'Usage comes once, at the end.',
    faults: {
      'openai-chat': 'chat/usage-no-choices chat/usage-null-choices',
      'anthropic-messages': 'anthropic/usage-growing',
    },
  },
  {
    verdict: 'reported',
    ways: ['events'],
    reason: 'The SDK takes a part of a response for the whole; through the gateway it throws.',
    faults: {
      'openai-chat': 'failure/bare-error failure/cut failure/cut-in-event failure/error-field',
      'anthropic-messages': `
        failure/anthropic-spliced failure/bare-error failure/cut failure/cut-in-event failure/error-field
        failure/error-payload
      `,
      'openai-responses': 'failure/responses-error-event failure/responses-failed-without-error',
      gemini: `
        failure/cut failure/error-event-plain-text failure/error-event-without-data failure/error-field
        failure/gemini-unfinished
      `,
    },
  },
  {
    verdict: 'reported',
    ways: ['events', 'assembled'],
    reason: 'The SDK takes a part of a response for the whole; through the gateway it throws.',
    faults: {
      'openai-chat': 'failure/chat-choice-error',
      'openai-responses': `
        failure/bare-error failure/cut failure/cut-in-event failure/error-field
      `,
    },
  },
  {
    verdict: 'reported',
    ways: ['assembled'],
    reason: 'The SDK takes a part of a response for the whole; through the gateway it throws.',
    faults: {
      'openai-responses': 'failure/responses-failed',
    },
  },
  {
    verdict: 'reported',
    ways: ['whole'],
    reason: 'The body is cut, empty, or a page of a proxy, which the SDK takes for a response; through the gateway it throws.',
    faults: {
      'openai-chat': 'page=200',
      'anthropic-messages': 'page=200',
    },
  },
  {
    verdict: 'reported',
    ways: ['events'],
    reason: 'The body is cut, empty, or a page of a proxy, which the SDK takes for a response; through the gateway it throws.',
    faults: {
      'openai-chat': 'cut=0 cut=700 page=200',
      'anthropic-messages': 'cut=0 cut=700 page=200',
      'openai-responses': 'cut=0 cut=700 page=200',
      gemini: 'cut=0',
    },
  },
  {
    verdict: 'reported',
    ways: ['assembled'],
    reason: 'The body is cut, empty, or a page of a proxy, which the SDK takes for a response; through the gateway it throws.',
    faults: {
      'openai-responses': 'cut=700',
    },
  },
  {
    verdict: 'reported',
    ways: ['count'],
    reason: 'The body is cut, empty, or a page of a proxy, which the SDK takes for a response; through the gateway it throws.',
    faults: {
      'anthropic-messages': 'page=200',
      'openai-responses': 'page=200',
    },
  },
  {
    verdict: 'reported',
    ways: ['embed'],
    reason: 'The body is cut, empty, or a page of a proxy, which the SDK takes for a response; through the gateway it throws.',
    faults: {
      'openai-chat': 'page=200',
    },
  },
  {
    verdict: 'renamed',
    ways: ['whole'],
    reason:
      "The SDK throws both ways; the gateway names the provider, and does not repeat what it says about the operator's key.",
    faults: {
      'openai-chat': 'page=502 status=401',
      'anthropic-messages': 'page=502 status=401',
      'openai-responses': 'page=200 page=502 status=401',
      gemini: 'page=200 page=502 status=401',
    },
  },
  {
    verdict: 'renamed',
    ways: ['events'],
    reason:
      "The SDK throws both ways; the gateway names the provider, and does not repeat what it says about the operator's key.",
    faults: {
      'openai-chat': 'page=502 reset=0 reset=700 status=401',
      'anthropic-messages': 'page=502 reset=0 reset=700 status=401',
      'openai-responses': 'page=502 reset=0 reset=700 status=401',
      gemini: 'cut=700 page=200 page=502 reset=0 reset=700 status=401',
    },
  },
  {
    verdict: 'renamed',
    ways: ['assembled'],
    reason:
      "The SDK throws both ways; the gateway names the provider, and does not repeat what it says about the operator's key.",
    faults: {
      'openai-chat': 'cut=0 cut=700 page=200 page=502 reset=0 reset=700 status=401',
      'anthropic-messages': 'cut=0 cut=700 page=200 page=502 reset=0 reset=700 status=401',
      'openai-responses': 'cut=0 cut=700 page=200 page=502 reset=0 reset=700 status=401',
    },
  },
  {
    verdict: 'renamed',
    ways: ['count'],
    reason:
      "The SDK throws both ways; the gateway names the provider, and does not repeat what it says about the operator's key.",
    faults: {
      'anthropic-messages': 'page=502 status=401',
      'openai-responses': 'page=502 status=401',
      gemini: 'page=200 page=502 status=401',
    },
  },
  {
    verdict: 'renamed',
    ways: ['embed'],
    reason:
      "The SDK throws both ways; the gateway names the provider, and does not repeat what it says about the operator's key.",
    faults: {
      'openai-chat': 'page=502 status=401',
      gemini: 'page=200 page=502 status=401',
    },
  },
  {
    verdict: 'renamed',
    ways: ['events'],
    reason: 'The SDK throws both ways; the gateway says what happened to the stream.',
    faults: {
      gemini: 'failure/cut-in-event',
    },
  },
  {
    verdict: 'renamed',
    ways: ['events', 'assembled'],
    reason: 'The SDK throws both ways; the gateway says what happened to the stream.',
    faults: {
      'openai-chat': 'failure/error-event-plain-text failure/error-event-without-data',
      'anthropic-messages': 'failure/error-event-plain-text failure/error-event-without-data',
      'openai-responses': 'failure/error-event-plain-text failure/error-event-without-data',
    },
  },
  {
    verdict: 'renamed',
    ways: ['assembled'],
    reason: 'The SDK throws both ways; the gateway says what happened to the stream.',
    faults: {
      'openai-chat': 'failure/bare-error failure/cut failure/cut-in-event failure/error-field',
      'anthropic-messages': `
        failure/anthropic-spliced failure/bare-error failure/cut failure/cut-in-event failure/error-field
        failure/error-payload
      `,
      'openai-responses': 'failure/responses-error-event failure/responses-failed-without-error',
    },
  },
  {
    verdict: 'renamed',
    ways: ['events'],
    reason: 'The SDK throws both ways; the gateway says what is wrong with the event.',
    faults: {
      gemini: 'sse/malformed-frame',
    },
  },
  {
    verdict: 'renamed',
    ways: ['events', 'assembled'],
    reason: 'The SDK throws both ways; the gateway says what is wrong with the event.',
    faults: {
      'openai-chat': 'sse/malformed-frame',
      'openai-responses': 'sse/malformed-frame',
    },
  },
  {
    verdict: 'restated',
    ways: ['events'],
    only: 'older',
    reason:
      'An error event of Google is an empty event to @google/genai 1, with and without the gateway; bare JSON is an error both ways.',
    faults: { gemini: 'failure/bare-error failure/error-event-plain-text failure/error-field' },
  },
  {
    verdict: 'healed',
    ways: ['assembled'],
    reason: 'The framing is not what the SDK expects.',
    faults: { 'openai-chat': 'chat/done-padded' },
  },
  {
    verdict: 'renamed',
    ways: ['events'],
    only: 'newest',
    reason: 'openai 7 reads a cut stream to its end and throws, as the majors before do through the gateway only.',
    faults: {
      'openai-chat': 'cut=700 failure/cut-in-event',
      'openai-responses': 'cut=700 failure/cut-in-event failure/responses-error-event',
    },
  },
  {
    verdict: 'worse',
    ways: ['events'],
    reason:
      'A call that has other parts before it in its chunk waits for the next chunk: what follows may show that it has to be written again, and a client must not get it twice.',
    faults: {
      gemini: 'gemini/parts-together',
    },
  },
  {
    verdict: 'worse',
    ways: ['events'],
    reason:
      'No reader can know the name of a call that never has one, or repair for clients that join the pieces of a name and for those that keep the last one.',
    faults: {
      'openai-chat': 'chat/names-split-by-arguments',
    },
  },
  {
    verdict: 'worse',
    ways: ['events', 'assembled'],
    reason:
      'No reader can know the name of a call that never has one, or repair for clients that join the pieces of a name and for those that keep the last one.',
    faults: {
      'openai-chat': 'chat/names-never',
      'anthropic-messages': 'anthropic/call-starts-missing anthropic/names-missing',
      'openai-responses': 'responses/names-missing',
    },
  },
  {
    verdict: 'worse',
    ways: ['events', 'assembled'],
    reason:
      'The SDK skips events without a name; the gateway cannot know what a broken one held, and never presents a part of a response as the whole.',
    faults: {
      'anthropic-messages': 'sse/malformed-frame',
    },
  },
];
