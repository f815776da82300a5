import type { Fault } from './fault.ts';

/** The table "Upstreams" of docs/reliability.md. */
export const UPSTREAM_FAULTS: readonly Fault[] = [
  {
    fault: 'refuses, has an unknown name, speaks no TLS, or takes the connection and no more',
    right: 'the next one at once; alone 502 or 504, without key or host',
    stream: [
      'upstream-connection › is told as 502 or 504 without its address: $client, stream $stream',
      'upstream-connection › is followed by the next one at once: stream %s',
    ],
    whole: [
      'upstream-connection › is told as 502 or 504 without its address: $client, stream $stream',
      'upstream-connection › is followed by the next one at once: stream %s',
    ],
  },
  {
    fault: 'accepts, and hangs before its headers',
    right: '504 or another, the call is given up, and may be on the bill',
    stream: [
      'upstream-connection › stream, $name: 504, and the call is given up',
      'upstream-connection › stream, $name: another answers',
    ],
    whole: ['upstream-connection › a whole answer that hangs %s'],
  },
  {
    fault: 'headers, then silence before the first event',
    right: 'the status is held; then 200 and beats, another may still answer, errors in the stream from then on',
    stream: [
      'upstream-connection › an upstream that hangs %s',
      'gate › a silent stream opens and beats, and Gemini’s is only held',
      'gate › another may still answer behind the beats',
      'gate › an error behind the beats is told in the stream, or as a status where it was held',
      'gate › silence behind the beats, too',
    ],
    whole: ['upstream-connection › a whole answer that hangs %s'],
  },
  {
    fault: 'hangs in the middle',
    right: 'an error in the stream, what was counted so far, no second attempt',
    stream: ['upstream-connection › an upstream that hangs in the middle: $name'],
    whole: ['upstream-connection › a whole answer that hangs %s'],
  },
  {
    fault: 'reset in a chunk, in a character, in the JSON',
    right: 'before content another answers; behind it an error in the stream, and no half frame',
    stream: ['upstream-connection › behind content: $name', 'upstream-connection › before content: $name'],
    whole: ['upstream-connection › with a $way is none, and another answers: $name'],
  },
  {
    fault: 'reset of a kept connection before any byte',
    right: 'once more on a new one, counted as an attempt and possibly billed; of passed-through requests GET and HEAD alone',
    stream: [
      'upstream-connection › is replaced, and the request sent once more: $name, stream $stream',
      'upstream-attempts › the repeat on a new connection counts against both',
      'upstream-attempts › a repeat on a new connection is logged as possibly billed: $name',
    ],
    whole: [
      'upstream-connection › is replaced, and the request sent once more: $name, stream $stream',
      'upstream-connection › a new connection that breaks is not tried again by itself',
      'upstream-attempts › %s is never sent twice',
      'upstream-attempts › GET is sent once more, and not a third time',
    ],
  },
  {
    fault: 'reset or close before any byte, after one, in the headers, or behind them',
    right: 'retries up to the limits, and no request above them',
    stream: [
      'upstream-attempts › gets at most as many requests as the limits say',
      'upstream-attempts › also when the first of them meets a kept connection',
    ],
    whole: [
      'upstream-attempts › gets at most as many requests as the limits say',
      'upstream-attempts › also when the first of them meets a kept connection',
    ],
  },
  {
    fault: 'malformed HTTP: two lengths, oversized headers, bytes that are not HTTP',
    right: '502, never again at the same upstream, another answers; may be on the bill',
    stream: [
      'upstream-attempts › and %s is not retried, and logged as possibly billed',
      'upstream-attempts › and %s is followed by another upstream',
    ],
    whole: [
      'upstream-attempts › and %s is not retried, and logged as possibly billed',
      'upstream-attempts › and %s is followed by another upstream',
    ],
  },
  {
    fault: 'paused after failures, and no other target is available',
    right: 'one probe at a time without retries; 503 with what is left of the pause when it fails, and for all others meanwhile',
    stream: [
      'upstream-pauses › gets one probe and no retries; one that fails is 503 with what is left of the pause',
      'upstream-pauses › gets one probe without retries when the pause has ended, and a new pause when that fails',
      'upstream-pauses › gets one probe at a time: other requests are 503 at once',
      'upstream-pauses › keeps the status and words of a probe that gets $status',
      'upstream-pauses › of several paused targets, the one whose pause ends first is probed',
    ],
    whole: [
      'upstream-pauses › gets one probe and no retries; one that fails is 503 with what is left of the pause',
      'upstream-pauses › gets one probe without retries when the pause has ended, and a new pause when that fails',
      'upstream-pauses › gets one probe at a time: other requests are 503 at once',
      'upstream-pauses › keeps the status and words of a probe that gets $status',
      'upstream-pauses › of several paused targets, the one whose pause ends first is probed',
    ],
  },
  {
    fault: 'a stream that reports its usage and does not come to its end',
    right: 'what was reported is in the log and the metrics, whoever ended the stream',
    stream: [
      'stream-usage › the usage that was reported is in the log and the metrics: $name',
      'stream-usage › usage that was reported before any content is recorded, too: $name',
    ],
    whole: 'reported with the whole answer alone',
  },
  {
    fault: 'headers that are not ASCII',
    right: 'passed on to the byte',
    stream: ['header-bytes › of a conversation does no harm: $name', 'header-bytes › of an error does no harm: $name'],
    whole: [
      'header-bytes › of a conversation does no harm: $name',
      'header-bytes › of an error does no harm: $name',
      'header-bytes › of a passed-through download %s arrives to the byte',
    ],
  },
  {
    fault: 'a byte order mark before JSON or a stream',
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
    right: 'cannot happen: upstreams are asked in HTTP/1.1, and nothing else is offered',
    stream: ['upstream-connection › HTTP/2 is not offered, so that no GOAWAY can end a stream: stream %s'],
    whole: ['upstream-connection › HTTP/2 is not offered, so that no GOAWAY can end a stream: stream %s'],
  },
  {
    fault: '429, with any form of Retry-After',
    right: 'a short wait, or another; a long one goes to the client and the upstream rests; who has no money is not asked again',
    stream: [
      'upstream-retry › is waited for, when it asks for %s',
      'upstream-retry › goes to the client, when it asks for %s',
      'upstream-retry › is not waited for when another can answer',
      'upstream-retry › for want of money is not tried again',
      'upstream-retry › that asks for more than it gets makes its upstream rest',
    ],
    whole: [
      'upstream-retry › is waited for, when it asks for %s',
      'upstream-retry › goes to the client, when it asks for %s',
      'upstream-retry › that asks for more than it gets makes its upstream rest',
    ],
  },
  {
    fault: '500, 502, 503, 504, 529',
    right: 'another answers; alone, its words and status; who fails again and again rests; 502 and 504 may be on the bill',
    stream: [
      'upstream-answers › %i: another answers; alone, its words and status stay',
      'upstream-retry › rests, while another answers',
    ],
    whole: [
      'upstream-answers › %i: another answers; alone, its words and status stay',
      'upstream-retry › rests, while another answers',
    ],
  },
  {
    fault: '400, 401, 403, 404, 422',
    right:
      'not retried at the same upstream; its status and words, but a rejected provider key is reported as that of the provider, which then rests',
    stream: [
      'upstream-answers › %i is not retried at the same upstream, and keeps its status',
      'upstream-answers › a wrong request is nobody else’s business',
      'upstream-retry › rests at once when it does not know our key, and nobody learns which',
    ],
    whole: [
      'upstream-answers › %i is not retried at the same upstream, and keeps its status',
      'upstream-retry › rests at once when it does not know our key, and nobody learns which',
    ],
  },
  {
    fault: '200 with an error for a body',
    right: 'the error that it is',
    stream: ['upstream-answers › a body that is an error: $name'],
    whole: ['upstream-answers › a body that is an error: $name'],
  },
  {
    fault: '200, and an error for a first event',
    right: 'a status of its own, and another answers',
    stream: [
      'upstream-answers › a stream that begins with an error: $name',
      'upstream-answers › in the words of real servers: $name',
    ],
    whole: [
      'upstream-answers › in the words of real servers: $name',
      'upstream-answers › a stream of one in the place of a whole answer: $name',
    ],
  },
  {
    fault: 'the same behind content',
    right: 'the error in the words of the client, and no mark of a good end',
    stream: [
      'upstream-answers › a stream that goes on with one: $name',
      'upstream-answers › the end of a stream, whether the upstream closes behind it or not: $name',
    ],
    whole: ['upstream-answers › a stream of one in the place of a whole answer: $name'],
  },
  {
    fault: 'a wrong content type',
    right: 'the bytes decide; what is no answer is 502 with the type named, and logged without secrets',
    stream: [
      'upstream-answers › a stream under %j is a stream',
      'upstream-answers › a whole answer under %s is told as a stream to who wants one',
      'upstream-answers › HTML is no answer: $name',
      'upstream-answers › nothing is no answer: $name',
    ],
    whole: [
      'upstream-answers › a stream under %j is a stream',
      'upstream-answers › a whole answer under %s is told as a stream to who wants one',
      'upstream-answers › HTML is no answer: $name',
      'upstream-answers › an error page of a proxy is not shown as JSON: $name',
    ],
  },
  {
    fault: 'an event whose data is no JSON',
    right: 'an error, and the end: nothing is skipped in silence',
    stream: ['upstream-bytes › ends the stream, and is not passed on: $name', 'upstream-bytes › in the first place: $name'],
    whole: ['upstream-bytes › in the place of a whole answer: $name', 'upstream-bytes › a whole answer that is no JSON: $name'],
  },
  {
    fault: 'event streams that are no good SSE: CR, CRLF, BOM, NUL, unknown fields, no colon, no blank lines',
    right: 'read as WHATWG says, and a little more',
    stream: [
      'upstream-bytes › no blank line at the end',
      'upstream-bytes › a NUL in a comment',
      'upstream-bytes › no blank lines at all: $name',
    ],
    whole: [
      'upstream-bytes › no blank line at the end',
      'upstream-bytes › a NUL in a comment',
      'upstream-bytes › no blank lines at all: $name',
    ],
  },
  {
    fault: 'a line or an event without end',
    right: 'called off at the limit',
    stream: [
      'upstream-sizes › a line without end: $name',
      'upstream-sizes › an event without end: $name',
      'answer-sizes › event_bytes',
    ],
    whole: ['upstream-sizes › a whole answer without end: $name', 'upstream-sizes › an error without end: $name'],
  },
  {
    fault: 'an answer without end, in bytes or in time',
    right: 'an error in the stream at the limit; 502 or 504 as long as nothing was said',
    stream: [
      'upstream-sizes › a stream without end: $name',
      'upstream-connection › is ended in the stream: $name',
      'upstream-connection › is 504 as long as nothing was said: $name',
    ],
    whole: [
      'upstream-sizes › a whole answer without end: $name',
      'upstream-connection › is 504 as long as nothing was said: $name',
    ],
  },
  {
    fault: 'one byte at a time',
    right: 'works',
    stream: ['upstream-sizes › an answer that comes byte by byte: $name'],
    whole: ['upstream-sizes › an answer that comes byte by byte: $name'],
  },
  {
    fault: 'packed although plain was asked for',
    right: 'gzip, brotli and deflate are unpacked as they come; two codings and zstd are 502, and bombs are stopped',
    stream: [
      'upstream-packing › %s is unpacked',
      'upstream-packing › %s is refused',
      'upstream-packing › a stream is told as it comes: $name',
      'upstream-packing › a bomb is stopped: $name',
      'upstream-packing › a packed stream that breaks off is seen to break off: $name',
    ],
    whole: [
      'upstream-packing › %s is unpacked',
      'upstream-packing › %s is refused',
      'upstream-packing › a bomb is stopped: $name',
      'upstream-packing › what cannot be unpacked is no answer: $name',
    ],
  },
  {
    fault: 'UTF-8 that is cut at the end or wrong inside',
    right: 'U+FFFD, and nothing ends because of it',
    stream: ['upstream-bytes › that are no UTF-8 do not end a stream: $name', 'upstream-bytes › cut at the end: $name'],
    whole: ['upstream-bytes › nor a whole answer: $name', 'upstream-bytes › cut at the end: $name'],
  },
  {
    fault: 'the end said twice, more behind it, usage told twice',
    right: 'said once; usage counts field by field, and is never summed',
    stream: [
      'upstream-bytes › said twice, and followed by more, is said once: $name',
      'upstream-bytes › usage that is told twice counts once: $name',
    ],
    whole: [
      'upstream-bytes › said twice, and followed by more, is said once: $name',
      'upstream-bytes › usage that is told twice counts once: $name',
    ],
  },
  {
    fault: 'closes without its terminal marker (`[DONE]`, `message_stop`), after a finish reason',
    right: 'a complete response; the marker is added, also where bytes are passed through',
    stream: [
      'upstream-bytes › left out, with a reason to stop, is an end: $name',
      'upstream-bytes › left out or cut after a finish reason, the marker is added to passed bytes: $name',
      'upstream-bytes › followed by silence is an end: $name',
    ],
    whole: ['upstream-bytes › left out, with a reason to stop, is an end: $name'],
  },
  {
    fault: 'closes without both',
    right: 'an error, never an invented end',
    stream: [
      'upstream-connection › a stream that ends early, in order: $name',
      'upstream-bytes › left out, without one, is none: $name',
    ],
    whole: ['upstream-bytes › left out, without one, is none: $name'],
  },
  {
    fault: 'events out of order, wild indexes, `__proto__`, nesting without end',
    right: 'read, or an error; nothing is polluted, nothing is slow',
    stream: ['upstream-bytes › wild indexes and names'],
    whole: [
      'upstream-bytes › wild values in a whole answer: $name',
      'upstream-bytes › a whole answer that is nested without end: $name',
    ],
  },
  {
    fault: 'closes or resets the connection of a response while the client does not read',
    right: 'the client gets all of it when it reads again',
    stream: [
      'paused-upstream › the connection of a response may %s during a pause',
      'paused-upstream › gets all of an answer that ends with its connection: $name',
    ],
    whole: 'a whole answer is read without pauses',
  },
  {
    fault: 'tool arguments, or an error body, nested 200,000 levels deep',
    right: '502, or an error in the stream; an error keeps its status',
    stream: [
      'deep-arguments › in a stream end it in an error: $name',
      'deep-arguments › in the body of an error leave its status: $name',
    ],
    whole: ['deep-arguments › in a response are 502: $name', 'deep-arguments › in the body of an error leave its status: $name'],
  },
  {
    fault: 'refuses an optional field (stream_options, reasoning in the history) with 400 or 422',
    right: 'repeated once without it and remembered for the target; a second error reaches the client; no failure of the target',
    stream: [
      'refused-fields › a refusal of $field ($status, stream: $stream) is healed once and remembered',
      'refused-fields › a second error reaches the client, and nothing is remembered',
    ],
    whole: ['refused-fields › a refusal of $field ($status, stream: $stream) is healed once and remembered'],
  },
  {
    fault: 'redirects',
    right: 'not followed: 502, and no retry',
    stream: ['upstream-answers › %i is not followed'],
    whole: ['upstream-answers › %i is not followed'],
  },
  {
    fault: 'answers before it has read the request, or in between',
    right: 'its answer is read, and no more is sent',
    stream: [
      'upstream-sizes › an upstream that answers %i before it has read the request',
      'upstream-sizes › an interim answer is no answer',
      'upstream-attempts › interim responses are skipped',
    ],
    whole: [
      'upstream-sizes › an upstream that answers %i before it has read the request',
      'upstream-sizes › an interim answer is no answer',
      'upstream-attempts › interim responses are skipped',
    ],
  },
];
