import type { Fault } from './fault.ts';

/** The table "Upstreams" of docs/reliability.md. */
export const UPSTREAM_FAULTS: readonly Fault[] = [
  {
    fault: 'refuses the connection, has an unknown host name, has no TLS, or accepts the connection and stays silent',
    right: 'falls back at once; without a fallback 502 or 504, without key or host',
    stream: [
      'upstream-connection › is reported as 502 or 504 without its address: $client, stream $stream',
      'upstream-connection › falls back to the next upstream at once: stream %s',
    ],
    whole: [
      'upstream-connection › is reported as 502 or 504 without its address: $client, stream $stream',
      'upstream-connection › falls back to the next upstream at once: stream %s',
    ],
  },
  {
    fault: 'accepts the request and hangs before its headers',
    right: '504 or a fallback; the request is cancelled and may be billed',
    stream: [
      'upstream-connection › stream, $name: 504, and the upstream request is cancelled',
      'upstream-connection › stream, $name: falls back to another upstream',
    ],
    whole: ['upstream-connection › a whole response that hangs %s'],
  },
  {
    fault: 'sends headers, then nothing before the first event',
    right: 'the status is held, then 200 with heartbeats; a fallback is still possible, and errors are sent in the stream',
    stream: [
      'upstream-connection › an upstream that hangs %s',
      'gate › a silent stream opens and sends heartbeats; a Gemini stream is held',
      'gate › another upstream may still respond after heartbeats',
      'gate › an error after heartbeats is sent in the stream, or as a status if the stream was held',
      'gate › a timeout after heartbeats is sent in the stream',
    ],
    whole: ['upstream-connection › a whole response that hangs %s'],
  },
  {
    fault: 'hangs in the middle of a stream',
    right: 'an error in the stream; usage so far is counted; no second attempt',
    stream: ['upstream-connection › an upstream that hangs in the middle: $name'],
    whole: ['upstream-connection › a whole response that hangs %s'],
  },
  {
    fault: 'resets the connection within a chunk, a character or the JSON',
    right: 'before content a fallback; after content an error in the stream, and no partial frame',
    stream: [
      'upstream-connection › after content ends the stream with an error: $name',
      'upstream-connection › before content falls back to another upstream: $name',
    ],
    whole: ['upstream-connection › by a $way is an error, with a fallback: $name'],
  },
  {
    fault: 'resets a kept-alive connection before any byte',
    right:
      'one retry on a new connection, counted as an attempt and possibly billed; for passed-through requests only GET and HEAD',
    stream: [
      'upstream-connection › is replaced, and the request is retried: $name, stream $stream',
      'upstream-attempts › the retry on a new connection counts against both limits',
      'upstream-attempts › a retry on a new connection is logged as possibly billed: $name',
    ],
    whole: [
      'upstream-connection › is replaced, and the request is retried: $name, stream $stream',
      'upstream-connection › a new connection that fails is not retried automatically',
      'upstream-attempts › %s is never sent twice',
      'upstream-attempts › GET is retried once',
    ],
  },
  {
    fault: 'resets or closes before any byte, after one, within the headers, or after them',
    right: 'retries up to the limits',
    stream: [
      'upstream-attempts › gets at most as many requests as the limits allow',
      'upstream-attempts › also if the first request uses a kept-alive connection',
    ],
    whole: [
      'upstream-attempts › gets at most as many requests as the limits allow',
      'upstream-attempts › also if the first request uses a kept-alive connection',
    ],
  },
  {
    fault: 'sends malformed HTTP: two lengths, oversized headers, bytes that are not HTTP',
    right: '502 or a fallback; no retry at the same upstream; may be billed',
    stream: [
      'upstream-attempts › with %s is not retried and logged as possibly billed',
      'upstream-attempts › with %s falls back to another upstream',
    ],
    whole: [
      'upstream-attempts › with %s is not retried and logged as possibly billed',
      'upstream-attempts › with %s falls back to another upstream',
    ],
  },
  {
    fault: 'is paused after failures, and no other target is available',
    right:
      'one probe at a time without retries; 503 with the rest of the pause if it fails, and for all other requests meanwhile',
    stream: [
      'upstream-pauses › gets one probe and no retries; a failed probe is 503 with the rest of the pause',
      'upstream-pauses › gets one probe without retries after the pause, and a new pause if it fails',
      'upstream-pauses › gets one probe at a time; other requests get 503 at once',
      'upstream-pauses › keeps the status and message of a probe that gets $status',
      'upstream-pauses › of several paused targets, the one whose pause ends first is probed',
    ],
    whole: [
      'upstream-pauses › gets one probe and no retries; a failed probe is 503 with the rest of the pause',
      'upstream-pauses › gets one probe without retries after the pause, and a new pause if it fails',
      'upstream-pauses › gets one probe at a time; other requests get 503 at once',
      'upstream-pauses › keeps the status and message of a probe that gets $status',
      'upstream-pauses › of several paused targets, the one whose pause ends first is probed',
    ],
  },
  {
    fault: 'reports usage in a stream that does not finish',
    right: 'reported usage is in the log and the metrics',
    stream: [
      'stream-usage › reported usage is in the log and the metrics: $name',
      'stream-usage › usage reported before any content is recorded: $name',
    ],
    whole: 'usage comes only with a complete response',
  },
  {
    fault: 'sends headers that are not ASCII',
    right: 'forwarded unchanged',
    stream: ['header-bytes › of a conversation does not fail it: $name', 'header-bytes › of an error does not change it: $name'],
    whole: [
      'header-bytes › of a conversation does not fail it: $name',
      'header-bytes › of an error does not change it: $name',
      'header-bytes › of a passed-through download %s arrives unchanged',
    ],
  },
  {
    fault: 'sends a byte order mark before JSON or a stream',
    right: 'skipped',
    stream: [
      'header-bytes › before a whole response is skipped: $name',
      'header-bytes › before a stream is skipped: $name',
      'header-bytes › before an error is skipped: $name',
    ],
    whole: [
      'header-bytes › before a whole response is skipped: $name',
      'header-bytes › before a stream is skipped: $name',
      'header-bytes › before an error is skipped: $name',
      'header-bytes › before an error of a passed-through request is skipped, and kept in a download',
      'model-lists › a byte order mark before a list is skipped',
    ],
  },
  {
    fault: 'GOAWAY or RST_STREAM of HTTP/2',
    right: 'cannot happen: upstream requests use HTTP/1.1 only',
    stream: ['upstream-connection › HTTP/2 is not offered, so that no GOAWAY can end a stream: stream %s'],
    whole: ['upstream-connection › HTTP/2 is not offered, so that no GOAWAY can end a stream: stream %s'],
  },
  {
    fault: '429, with any form of Retry-After',
    right:
      'waits briefly or falls back; a long Retry-After goes to the client and pauses the upstream; exhausted credit is not retried',
    stream: [
      'upstream-retry › is waited for when Retry-After is %s',
      'upstream-retry › is passed to the client when Retry-After is %s',
      'upstream-retry › is not waited for when another upstream is available',
      'upstream-retry › for exhausted credit is not retried',
      'upstream-retry › with a long Retry-After pauses its upstream',
    ],
    whole: [
      'upstream-retry › is waited for when Retry-After is %s',
      'upstream-retry › is passed to the client when Retry-After is %s',
      'upstream-retry › with a long Retry-After pauses its upstream',
    ],
  },
  {
    fault: '500, 502, 503, 504, 529',
    right:
      'falls back; without a fallback, status and message are kept; repeated failures pause the upstream; 502 and 504 may be billed',
    stream: [
      'upstream-answers › %i: falls back to another upstream; without one, status and message are kept',
      'upstream-retry › is paused while another upstream responds',
    ],
    whole: [
      'upstream-answers › %i: falls back to another upstream; without one, status and message are kept',
      'upstream-retry › is paused while another upstream responds',
    ],
  },
  {
    fault: '400, 401, 403, 404, 422',
    right:
      'not retried at the same upstream; status and message are kept; a rejected provider key is reported with the name of the provider, which is then paused',
    stream: [
      'upstream-answers › %i is not retried at the same upstream, and keeps its status',
      'upstream-answers › an invalid request does not fall back to another upstream',
      'upstream-retry › is paused at once when it rejects the key, and the key is not shown',
    ],
    whole: [
      'upstream-answers › %i is not retried at the same upstream, and keeps its status',
      'upstream-retry › is paused at once when it rejects the key, and the key is not shown',
    ],
  },
  {
    fault: '200 with an error as the body',
    right: 'reported as an error',
    stream: ['upstream-answers › an error as the body is reported as an error: $name'],
    whole: ['upstream-answers › an error as the body is reported as an error: $name'],
  },
  {
    fault: '200 with an error as the first event',
    right: 'an error status or a fallback',
    stream: [
      'upstream-answers › an error as the first event gets an error status or a fallback: $name',
      'upstream-answers › recorded error events of real servers are detected: $name',
    ],
    whole: [
      'upstream-answers › recorded error events of real servers are detected: $name',
      'upstream-answers › an error stream instead of a whole response is an error: $name',
    ],
  },
  {
    fault: '200 with an error after content',
    right: 'an error in the protocol of the client, without a terminal marker',
    stream: [
      'upstream-answers › an error after content is sent in the protocol of the client: $name',
      'upstream-answers › an error ends the stream, whether the upstream closes or not: $name',
    ],
    whole: ['upstream-answers › an error stream instead of a whole response is an error: $name'],
  },
  {
    fault: 'a wrong content type',
    right: 'the bytes decide; anything else is 502 with the content type, and logged without secrets; may be billed',
    stream: [
      'upstream-answers › a stream with content type %j is read as a stream',
      'upstream-answers › a whole response with content type %s is streamed to a client that requested a stream',
      'upstream-answers › an HTML page is an error: $name',
      'upstream-answers › an empty body is an error: $name',
    ],
    whole: [
      'upstream-answers › a stream with content type %j is read as a stream',
      'upstream-answers › a whole response with content type %s is streamed to a client that requested a stream',
      'upstream-answers › an HTML page is an error: $name',
      'upstream-answers › an error page of a proxy is not forwarded: $name',
    ],
  },
  {
    fault: '200 with a response that is empty or invalid',
    right: '502 or a fallback; no retry at the same upstream; may be billed',
    stream: ['upstream-attempts › a response with status 200 that cannot be used is requested once: $name'],
    whole: ['upstream-attempts › a response with status 200 that cannot be used is requested once: $name'],
  },
  {
    fault: 'an event whose data is not JSON',
    right: 'an error ends the stream; nothing is skipped silently',
    stream: [
      'upstream-bytes › ends the stream with an error and is not forwarded: $name',
      'upstream-bytes › as the first event is an error: $name',
    ],
    whole: [
      'upstream-bytes › instead of a whole response is an error: $name',
      'upstream-bytes › a whole response that is not JSON is an error: $name',
    ],
  },
  {
    fault: 'unusual SSE: CR, CRLF, BOM, NUL, unknown fields, no colon, no blank lines',
    right: 'read by the WHATWG rules, more leniently where possible',
    stream: [
      'upstream-bytes › no blank line at the end',
      'upstream-bytes › a NUL in a comment',
      'upstream-bytes › a stream without blank lines is read: $name',
    ],
    whole: [
      'upstream-bytes › no blank line at the end',
      'upstream-bytes › a NUL in a comment',
      'upstream-bytes › a stream without blank lines is read: $name',
    ],
  },
  {
    fault: 'an endless line or event',
    right: 'cancelled at the limit',
    stream: [
      'upstream-sizes › an endless line is cancelled at the limit: $name',
      'upstream-sizes › an endless event is cancelled at the limit: $name',
      'answer-sizes › event_bytes',
    ],
    whole: [
      'upstream-sizes › an endless whole response is cancelled at the limit: $name',
      'upstream-sizes › an endless error body is cut at the limit: $name',
    ],
  },
  {
    fault: 'an endless response, in bytes or in time',
    right: 'an error in the stream at the limit; 502 or 504 before any content',
    stream: [
      'upstream-sizes › an endless stream is cancelled at the limit: $name',
      'upstream-connection › ends with an error in the stream: $name',
      'upstream-connection › is 504 before any content: $name',
    ],
    whole: [
      'upstream-sizes › an endless whole response is cancelled at the limit: $name',
      'upstream-connection › is 504 before any content: $name',
    ],
  },
  {
    fault: 'one byte at a time',
    right: 'works',
    stream: ['upstream-sizes › a response that arrives byte by byte is read: $name'],
    whole: ['upstream-sizes › a response that arrives byte by byte is read: $name'],
  },
  {
    fault: 'compressed although identity was requested',
    right:
      'gzip, brotli and deflate, and zstd with Node 22.15 and later, are decompressed incrementally; two encodings and others are 502; bombs are stopped',
    stream: [
      'upstream-packing › %s is decompressed',
      'upstream-packing › %s is rejected with 502',
      'upstream-packing › a compressed stream is forwarded as it arrives: $name',
      'upstream-packing › a decompression bomb is stopped: $name',
      'upstream-packing › a truncated compressed stream is an error: $name',
    ],
    whole: [
      'upstream-packing › %s is decompressed',
      'upstream-packing › %s is rejected with 502',
      'upstream-packing › a decompression bomb is stopped: $name',
      'upstream-packing › corrupt compressed data is an error: $name',
    ],
  },
  {
    fault: 'UTF-8 that is truncated at the end or invalid inside',
    right: 'replaced by U+FFFD; the response continues',
    stream: [
      'upstream-bytes › that are not UTF-8 do not end a stream: $name',
      'upstream-bytes › truncated at the end become U+FFFD: $name',
    ],
    whole: [
      'upstream-bytes › that are not UTF-8 do not fail a whole response: $name',
      'upstream-bytes › truncated at the end become U+FFFD: $name',
    ],
  },
  {
    fault: 'the end marker twice, data after it, usage twice',
    right: 'sent once; usage is merged by field, never summed',
    stream: [
      'upstream-bytes › sent twice, with more after it, is sent once: $name',
      'upstream-bytes › usage that is sent twice counts once: $name',
    ],
    whole: [
      'upstream-bytes › sent twice, with more after it, is sent once: $name',
      'upstream-bytes › usage that is sent twice counts once: $name',
    ],
  },
  {
    fault: 'closes without its terminal marker (`[DONE]`, `message_stop`), after a finish reason',
    right: 'a complete response; the marker is added, also where bytes are passed through',
    stream: [
      'upstream-bytes › missing after a finish reason, the response is complete: $name',
      'upstream-bytes › missing or truncated after a finish reason, the marker is added to passed-through bytes: $name',
      'upstream-bytes › followed by silence completes the response: $name',
    ],
    whole: ['upstream-bytes › missing after a finish reason, the response is complete: $name'],
  },
  {
    fault: 'closes without a finish reason and without a terminal marker',
    right:
      'an error; an end is never invented. A client of the same protocol gets Anthropic or Responses streams as they came when all their blocks or items have ended; the log and the ledger have them as truncated',
    stream: [
      'upstream-bytes › missing although every part has ended, the stream stays as it came, and is recorded as truncated: $name',
      'upstream-connection › a stream that ends early without a reset is an error: $name',
      'upstream-bytes › missing without a finish reason, the response is an error: $name',
    ],
    whole: ['upstream-bytes › missing without a finish reason, the response is an error: $name'],
  },
  {
    fault: 'events out of order, wild indexes, `__proto__`, endless nesting',
    right: 'read or an error; no prototype pollution, linear time',
    stream: ['upstream-bytes › wild indexes and names'],
    whole: [
      'upstream-bytes › wild values in a whole response: $name',
      'upstream-bytes › an endlessly nested whole response is an error: $name',
    ],
  },
  {
    fault: 'closes or resets the connection of a response while the client does not read',
    right: 'the client gets all of it when it reads again',
    stream: [
      'paused-upstream › the connection of a response may %s during a pause',
      'paused-upstream › gets all of a response that ends with its connection: $name',
    ],
    whole: 'a whole response is read without pauses',
  },
  {
    fault: 'tool arguments, or an error body, nested 50,000 levels deep',
    right: '502, or an error in the stream; an error keeps its status',
    stream: [
      'deep-arguments › in a stream end it with an error: $name',
      'deep-arguments › in an error body do not change its status: $name',
    ],
    whole: ['deep-arguments › in a response are 502: $name', 'deep-arguments › in an error body do not change its status: $name'],
  },
  {
    fault: 'rejects an optional field (stream_options, reasoning in the history) with 400 or 422',
    right: 'one retry without the field, remembered for the target; a second error reaches the client; not counted as a failure',
    stream: [
      'refused-fields › a rejected $field ($status, stream: $stream) is dropped in one retry and remembered',
      'refused-fields › a second error reaches the client, and nothing is remembered',
    ],
    whole: ['refused-fields › a rejected $field ($status, stream: $stream) is dropped in one retry and remembered'],
  },
  {
    fault: 'redirects',
    right: 'not followed: 502, and no retry',
    stream: ['upstream-answers › %i is not followed'],
    whole: ['upstream-answers › %i is not followed'],
  },
  {
    fault: 'responds before it has read the request',
    right: 'its response is read, and sending stops',
    stream: [
      'upstream-sizes › an upstream may respond with %i before it has read the request',
      'upstream-sizes › an interim response is skipped',
      'upstream-attempts › interim responses are skipped',
    ],
    whole: [
      'upstream-sizes › an upstream may respond with %i before it has read the request',
      'upstream-sizes › an interim response is skipped',
      'upstream-attempts › interim responses are skipped',
    ],
  },
];
